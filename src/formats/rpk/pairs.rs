//! The matching of tool responses and errors to tool requests.

use std::collections::{HashMap, HashSet};

use super::calls::{CallIds, StepCall, is_of_listener, is_of_policy};
use super::members::{step_type, texts_at};
use super::pending_requests::{IdMatch, PendingRequests};
use crate::artifact::Responder;
use crate::json::Value;

/// The locations of the name of what failed in errors. A plain name is that of the error.
const NAMED_BY_ERRORS: &[&[&str]] = &[
    &["input", "tool"],
    &["metadata", "tool"],
    &["input", "tool_name"],
    &["input", "target"],
    &["input", "url"],
];

/// The numbers of the steps of one call.
#[derive(Default)]
pub(super) struct CallStepNumbers {
    pub(super) request: Option<usize>,
    pub(super) response: Option<usize>,
    /// The `error.event` that is about this call.
    error: Option<usize>,
    /// The request ids of its last step.
    request_ids: Vec<String>,
}

/// All tool calls, collected while steps are read in order. Runs may have any number of steps: few requests are pending
/// at a time, and everything else is looked up by key.
#[derive(Default)]
pub(super) struct ToolCallIndex {
    pub(super) pairs: Vec<CallStepNumbers>,
    open: PendingRequests,
    by_call_id: HashMap<String, usize>,
    /// The latest call with each name.
    latest: HashMap<String, usize>,
    /// The request ids of all steps so far.
    request_ids: HashSet<String>,
    /// The last error for each request id.
    failed_requests: HashMap<String, usize>,
    /// The call of the previous step.
    previous: Option<usize>,
}

impl ToolCallIndex {
    pub(super) fn read(steps: &[Value<'_>]) -> Self {
        let mut recorded = Self::default();
        for (index, step) in steps.iter().enumerate() {
            match step_type(step) {
                "tool.request" => recorded.request(index, step),
                "tool.response" => recorded.response(index, step),
                "error.event" => recorded.error(index, step),
                _ => {
                    recorded.previous = None;
                    recorded.request_ids.extend(CallIds::from_step(Responder::Model, step).request);
                }
            }
        }
        recorded
    }

    fn request(&mut self, index: usize, step: &Value<'_>) {
        let call = StepCall { number: self.pairs.len(), ..StepCall::from_request(Responder::Tool, step) };
        self.pairs.push(CallStepNumbers { request: Some(index), ..CallStepNumbers::default() });
        self.follow(call.number, &call);
        self.open.push(call);
    }

    fn response(&mut self, index: usize, step: &Value<'_>) {
        let response = StepCall::from_response(Responder::Tool, step);
        let request = match self.open.take_by_id(&response) {
            IdMatch::Request(request) => Some(request),
            IdMatch::Several => None,
            IdMatch::None => self.open.take_only(&response),
        };
        let number = request.map_or(self.pairs.len(), |request| request.number);
        if number == self.pairs.len() {
            self.pairs.push(CallStepNumbers::default());
        }
        if let Some(pair) = self.pairs.get_mut(number) {
            pair.response = Some(index);
        }
        self.follow(number, &response);
    }

    fn follow(&mut self, number: usize, call: &StepCall) {
        self.by_call_id.extend(call.ids.call.iter().map(|id| (id.clone(), number)));
        self.latest.extend(call.names.iter().map(|name| (name.clone(), number)));
        self.request_ids.extend(call.ids.request.iter().cloned());
        if let Some(pair) = self.pairs.get_mut(number) {
            pair.request_ids.clone_from(&call.ids.request);
        }
        self.previous = Some(number);
    }

    /// Assigns an error to the call that it names, else to those that share its id, else to the previous step.
    fn error(&mut self, index: usize, step: &Value<'_>) {
        // A call that a policy forbids is not made.
        if is_of_policy(step) {
            return;
        }
        let ids = CallIds::from_step(Responder::Model, step);
        if let Some(id) = &ids.call {
            return self.fail(self.by_call_id.get(id).copied(), index);
        }
        let mut named = texts_at(step, NAMED_BY_ERRORS).peekable();
        if named.peek().is_some() {
            return self.fail(named.find_map(|name| self.latest.get(name).copied()), index);
        }
        let shared: Vec<String> =
            ids.request.into_iter().filter(|id| self.request_ids.contains(id)).collect();
        if shared.is_empty() {
            return self.fail(self.previous.filter(|_| !is_of_listener(step)), index);
        }
        self.failed_requests.extend(shared.into_iter().map(|id| (id, index)));
    }

    fn fail(&mut self, number: Option<usize>, error: usize) {
        let Some(number) = number else { return };
        self.open.take_newest(|request| request.number == number);
        if let Some(pair) = self.pairs.get_mut(number) {
            pair.error.get_or_insert(error);
        }
    }

    /// Returns the error that follows the steps of `pair` and belongs to it.
    pub(super) fn error_after(&self, pair: &CallStepNumbers) -> Option<usize> {
        let last = pair.response.or(pair.request)?;
        let of_requests = pair.request_ids.iter().filter_map(|id| self.failed_requests.get(id).copied());
        pair.error.or_else(|| of_requests.filter(|error| *error > last).max())
    }
}

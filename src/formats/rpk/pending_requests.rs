//! The pending requests of a run, and the matching of responses to requests.

use std::collections::{HashMap, HashSet, VecDeque};

use super::calls::{self, CallIds, StepCall, is_of_listener, is_of_policy, is_of_protocol};
use super::envelope::{at, step_type, texts_at};
use crate::artifact::Responder;
use crate::json::Value;

/// Maximum number of pending requests; the oldest is then discarded. Runs usually have few.
const MAX_OPEN: usize = 256;

/// Requests without a response, oldest first.
#[derive(Default)]
pub(super) struct PendingRequests {
    requests: VecDeque<StepCall>,
}

/// The result of matching a response by id.
pub(super) enum IdMatch {
    /// One match.
    Request(StepCall),
    /// Several matches, which cannot be distinguished.
    Several,
    /// No match.
    None,
}

impl PendingRequests {
    pub(super) fn push(&mut self, request: StepCall) {
        if self.requests.len() == MAX_OPEN {
            self.requests.pop_front();
        }
        self.requests.push_back(request);
    }

    /// Removes and returns the request that has an id of `response`. A call id alone is sufficient: APIs do not repeat
    /// the name of the tool, and models respond under other names than those in the request.
    pub(super) fn take_by_id(&mut self, response: &StepCall) -> IdMatch {
        let of_one_call = |request: &StepCall| {
            request.responder == response.responder && request.ids.are_of_one_call(&response.ids)
        };
        if let Some(request) = self.take_oldest(of_one_call) {
            return IdMatch::Request(request);
        }
        let sharing = self.positions(|request| {
            let other_call = request.ids.call.is_some() && response.ids.call.is_some();
            let is_of_model = response.responder == Responder::Model && request.responder == Responder::Model;
            let can_be = is_of_model || request.is_compatible(response);
            can_be && !other_call && request.ids.are_of_one_request(&response.ids)
        });
        match (self.take_if_alike(&sharing), sharing.is_empty()) {
            (Some(request), _) => IdMatch::Request(request),
            (None, true) => IdMatch::None,
            (None, false) => IdMatch::Several,
        }
    }

    /// Removes and returns the only request that `response` can answer without a common id, or the oldest if all
    /// candidates make the same request. An ambiguous response matches none: a wrong match is worse than no match.
    pub(super) fn take_only(&mut self, response: &StepCall) -> Option<StepCall> {
        let able = self.positions(|request| {
            // A request with another id is answered by another response.
            let other_call = request.ids.call.is_some() && response.ids.call.is_some();
            let other_request = !request.ids.request.is_empty() && !response.ids.request.is_empty();
            request.is_compatible(response) && !other_call && !other_request
        });
        self.take_if_alike(&able)
    }

    /// Removes and returns the newest request that satisfies `is_meant`.
    fn take_newest(&mut self, is_meant: impl Fn(&StepCall) -> bool) -> Option<StepCall> {
        let newest = self.requests.iter().rposition(is_meant)?;
        self.requests.remove(newest)
    }

    /// Removes and returns the call that an `error.event` ends, or returns `None` if it is not about a call.
    pub(super) fn take_failed(&mut self, step: &Value<'_>) -> Option<StepCall> {
        let text = |names: &[&str]| at(step, names).and_then(Value::as_non_empty_str);
        let ids = CallIds::from_step(Responder::Model, step);
        let has_id = |request: &StepCall| {
            request.ids.are_of_one_call(&ids) || ids.call.is_none() && request.ids.are_of_one_request(&ids)
        };
        if let Some(request) = self.take_newest(has_id) {
            return Some(request);
        }
        // ReplayKit's recorder states what was called.
        let boundary = text(&["input", "boundary"]).or(text(&["metadata", "boundary"]));
        if let (Some(boundary), Some(target)) = (boundary, text(&["input", "target"])) {
            let responder = if boundary == "model" { Responder::Model } else { Responder::Tool };
            let is_named = |request: &StepCall| {
                request.responder == responder && request.names.iter().any(|name| name == target)
            };
            // A call that a policy forbids has no preceding request.
            let was_requested = !calls::is_of_policy(step);
            let request = if was_requested { self.take_newest(is_named) } else { None };
            let tool = Some(target).filter(|_| boundary == "tool");
            return Some(request.unwrap_or_else(|| StepCall::unrequested(responder, tool)));
        }
        // The listener also records its own errors.
        if calls::is_of_listener(step) {
            return None;
        }
        let may_be = |request: &StepCall| ids.is_empty() || request.ids.is_empty();
        self.take_newest(may_be)
    }

    fn take_oldest(&mut self, is_meant: impl Fn(&StepCall) -> bool) -> Option<StepCall> {
        let oldest = self.requests.iter().position(is_meant)?;
        self.requests.remove(oldest)
    }

    fn positions(&self, is_meant: impl Fn(&StepCall) -> bool) -> Vec<usize> {
        let positions = self.requests.iter().enumerate().filter(|(_, request)| is_meant(request));
        positions.map(|(at, _)| at).collect()
    }

    /// Removes and returns the first of these requests if all of them are the same.
    fn take_if_alike(&mut self, positions: &[usize]) -> Option<StepCall> {
        let first = *positions.first()?;
        let oldest = self.requests.get(first)?;
        let mut others = positions.iter().filter_map(|at| self.requests.get(*at));
        if others.all(|request| request.asks_the_same(oldest)) { self.requests.remove(first) } else { None }
    }
}

/// The requests that wait for a response while steps are read in order.
#[derive(Default)]
pub(super) struct RequestMatcher {
    open: PendingRequests,
}

impl RequestMatcher {
    /// Processes the step `index`, and returns the number of the request that it answers, if that is known.
    pub(super) fn follow(&mut self, index: usize, step: &Value<'_>) -> Option<usize> {
        let step_type = step.get("type").and_then(Value::as_str)?;
        if step_type == "error.event" {
            // The number of a call without a request is not that of a step.
            return self.open.take_failed(step).map(|call| call.number).filter(|number| *number < index);
        }
        let (responder, direction) = match step_type.split_once('.')? {
            ("model", direction) => (Responder::Model, direction),
            ("tool", direction) => (Responder::Tool, direction),
            _ => return None,
        };
        match direction {
            "request" => {
                self.open.push(StepCall { number: index, ..StepCall::from_request(responder, step) });
                None
            }
            "response" => self.answered_by(&StepCall::from_response(responder, step)),
            _ => None,
        }
    }

    fn answered_by(&mut self, response: &StepCall) -> Option<usize> {
        let request = match self.open.take_by_id(response) {
            IdMatch::Request(request) => Some(request),
            IdMatch::Several => None,
            IdMatch::None => self.open.take_only(response),
        };
        request.map(|request| request.number)
    }
}

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
                _ if is_of_protocol(step) => {}
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

//! Which response answers which request of a tool, and which errors are about them.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{TOOL_PLACES, at};
use crate::canonical::Value;

/// Where steps carry the id of one call.
const CALL_IDS: &[&[&str]] = &[
    &["input", "call_id"],
    &["metadata", "call_id"],
    &["input", "tool_call_id"],
    &["metadata", "tool_call_id"],
    &["input", "tool_use_id"],
    &["metadata", "tool_use_id"],
];

/// Where steps carry the id of a request to a provider, which several calls may share.
const REQUEST_IDS: &[&[&str]] =
    &[&["metadata", "request_id"], &["metadata", "correlation_id"], &["input", "request_id"]];

/// Where errors name what failed. A plain name is that of the error.
const NAMED_BY_ERRORS: &[&[&str]] = &[
    &["input", "tool"],
    &["metadata", "tool"],
    &["input", "tool_name"],
    &["input", "target"],
    &["input", "url"],
];

/// Where steps carry the URL of an HTTP request.
pub(super) const URLS: &[&[&str]] = &[&["input", "url"], &["metadata", "url"]];

pub(super) fn step_type<'v>(step: &'v Value<'_>) -> &'v str {
    step.get("type").and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn texts<'v>(step: &'v Value<'_>, places: &[&[&str]]) -> impl Iterator<Item = &'v str> {
    places.iter().filter_map(|names| at(step, names).and_then(Value::as_filled_str))
}

/// The numbers of the steps of one call.
#[derive(Default)]
pub(super) struct Pair {
    pub(super) request: Option<usize>,
    pub(super) response: Option<usize>,
    /// The `error.event` that is about this call.
    error: Option<usize>,
}

/// Every call, while steps are read in order. Nothing here is searched through: runs may have any number of steps.
#[derive(Default)]
pub(super) struct Recorded<'v> {
    pub(super) pairs: Vec<Pair>,
    by_call_id: HashMap<&'v str, usize>,
    /// Requests that have no response yet, oldest first, by the names of their tools; under an empty name all of them.
    open: HashMap<&'v str, VecDeque<usize>>,
    /// The latest call of each name.
    latest: HashMap<&'v str, usize>,
    /// The ids of requests that any step has carried.
    request_ids: HashSet<&'v str>,
    /// The last error about each of them.
    failed_requests: HashMap<&'v str, usize>,
    /// The call that the step before belongs to.
    previous: Option<usize>,
}

impl<'v> Recorded<'v> {
    pub(super) fn read(steps: &'v [Value<'_>]) -> Self {
        let mut recorded = Self::default();
        for (index, step) in steps.iter().enumerate() {
            match step_type(step) {
                "tool.request" => recorded.request(index, step),
                "tool.response" => recorded.response(index, step),
                "error.event" => {
                    recorded.error(index, step);
                    continue;
                }
                _ => recorded.previous = None,
            }
            recorded.request_ids.extend(texts(step, REQUEST_IDS));
        }
        recorded
    }

    fn request(&mut self, index: usize, step: &'v Value<'_>) {
        let number = self.pairs.len();
        self.pairs.push(Pair { request: Some(index), ..Pair::default() });
        if let Some(id) = texts(step, CALL_IDS).next() {
            self.by_call_id.insert(id, number);
        }
        for name in names_of(step).into_iter().chain([""]) {
            self.open.entry(name).or_default().push_back(number);
        }
        self.follow(number, step);
    }

    fn response(&mut self, index: usize, step: &'v Value<'_>) {
        let number = self.answered_by(step).unwrap_or_else(|| {
            self.pairs.push(Pair::default());
            self.pairs.len() - 1
        });
        if let Some(pair) = self.pairs.get_mut(number) {
            pair.response = Some(index);
        }
        self.follow(number, step);
    }

    fn follow(&mut self, number: usize, step: &'v Value<'_>) {
        for name in names_of(step) {
            self.latest.insert(name, number);
        }
        self.previous = Some(number);
    }

    /// The request that `step` answers: that of the same call; where calls have no ids, the oldest of the same tool.
    fn answered_by(&mut self, step: &Value<'_>) -> Option<usize> {
        if let Some(id) = texts(step, CALL_IDS).next() {
            let number = self.by_call_id.get(id).copied();
            return number.filter(|number| self.is_open(*number));
        }
        let names = names_of(step);
        let of_any = [""];
        let names = if names.is_empty() { &of_any[..] } else { &names };
        names.iter().find_map(|name| self.oldest_open(name))
    }

    fn oldest_open(&mut self, name: &str) -> Option<usize> {
        loop {
            let number = *self.open.get(name)?.front()?;
            if self.is_open(number) {
                return Some(number);
            }
            self.open.get_mut(name)?.pop_front();
        }
    }

    fn is_open(&self, number: usize) -> bool {
        self.pairs.get(number).is_some_and(|pair| pair.response.is_none() && pair.error.is_none())
    }

    /// An error is about the call that it names; else about those that share its id; else about the step before it.
    fn error(&mut self, index: usize, step: &'v Value<'_>) {
        let by_id = texts(step, CALL_IDS).next().map(|id| self.by_call_id.get(id).copied());
        let named: Vec<&str> = texts(step, NAMED_BY_ERRORS).collect();
        let by_name =
            (!named.is_empty()).then(|| named.iter().find_map(|name| self.latest.get(name).copied()));
        if let Some(number) = by_id.or(by_name) {
            return self.fail(number, index);
        }
        let shared: Vec<&str> = texts(step, REQUEST_IDS).filter(|id| self.request_ids.contains(id)).collect();
        if shared.is_empty() {
            return self.fail(self.previous, index);
        }
        self.failed_requests.extend(shared.into_iter().map(|id| (id, index)));
    }

    fn fail(&mut self, number: Option<usize>, error: usize) {
        if let Some(pair) = number.and_then(|number| self.pairs.get_mut(number)) {
            pair.error.get_or_insert(error);
        }
    }

    /// The error that follows the steps of `pair` and is about it.
    pub(super) fn error_after(&self, pair: &Pair, steps: &[Value<'_>]) -> Option<usize> {
        let of_request = |index: usize| {
            let ids = steps.get(index).into_iter().flat_map(|step| texts(step, REQUEST_IDS));
            let errors = ids.filter_map(|id| self.failed_requests.get(id).copied());
            errors.filter(|error| *error > index).max()
        };
        pair.error.or_else(|| pair.response.or(pair.request).and_then(of_request))
    }
}

/// The names of the tool, or the URL that stands for it.
fn names_of<'v>(step: &'v Value<'_>) -> Vec<&'v str> {
    let mut names: Vec<&str> = texts(step, TOOL_PLACES).collect();
    if names.is_empty() {
        names.extend(texts(step, URLS).next());
    }
    names.dedup();
    names
}

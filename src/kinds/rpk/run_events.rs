//! The tool calls of a run, as audits look at them: which response answers which request, and which do not count.

use std::collections::{HashMap, HashSet, VecDeque};

use super::arguments::arguments;
use super::{TOOL_PLACES, at};
use crate::artifact::{Answer, Call, CallNames, EventVisitor, RunEvent};
use crate::canonical::{Value, compact};

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

const URLS: &[&[&str]] = &[&["input", "url"], &["metadata", "url"]];
const MODES: &[&[&str]] =
    &[&["metadata", "mode"], &["input", "mode"], &["metadata", "method"], &["input", "method"]];
const IO_REFS: &[&[&str]] = &[&["metadata", "io_ref"], &["input", "io_ref"]];
/// Members that may name an effect or a target.
const LABELS: &[&[&str]] = &[
    &["metadata", "effect"],
    &["input", "effect"],
    &["metadata", "target"],
    &["input", "target"],
    &["metadata", "ref"],
    &["input", "ref"],
    &["metadata", "resource"],
    &["input", "resource"],
];

/// Gives `visit` the calls of `steps`, in the order in which they began, and what the recorder states in between.
pub(super) fn visit(steps: &[Value<'_>], visit: &mut EventVisitor<'_>) {
    let recorded = Recorded::read(steps);
    for step in steps {
        let is_prompt = step_type(step) == "prompt.render";
        let stated = step.get("metadata").into_iter().chain(step.get("input").filter(|_| is_prompt));
        stated.for_each(|value| visit(RunEvent::Statement(value)));
    }
    for pair in &recorded.pairs {
        visit(RunEvent::Call(call(steps, pair, &recorded)));
    }
}

fn step_type<'v>(step: &'v Value<'_>) -> &'v str {
    step.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn texts<'v>(step: &'v Value<'_>, places: &[&[&str]]) -> impl Iterator<Item = &'v str> {
    places.iter().filter_map(|names| at(step, names).and_then(Value::as_filled_str))
}

/// The numbers of the steps of one call.
#[derive(Default)]
struct Pair {
    request: Option<usize>,
    response: Option<usize>,
    /// The `error.event` that is about this call.
    error: Option<usize>,
}

/// Every call, while steps are read in order. Nothing here is searched through: runs may have any number of steps.
#[derive(Default)]
struct Recorded<'v> {
    pairs: Vec<Pair>,
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
    fn read(steps: &'v [Value<'_>]) -> Self {
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
        let named: Vec<&str> =
            names_of(step).into_iter().chain(texts(step, &[&["input", "target"]])).collect();
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
    fn error_after(&self, pair: &Pair, steps: &[Value<'_>]) -> Option<usize> {
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

fn call<'v, 'd>(steps: &'v [Value<'d>], pair: &Pair, recorded: &Recorded<'_>) -> Call<'v, 'd> {
    let step = |index: Option<usize>| index.and_then(|index| steps.get(index));
    let (request, response) = (step(pair.request), step(pair.response));
    let arguments = request.and_then(|request| arguments(request.get("input")?));
    let names = names(request, response);
    let sent = arguments.as_deref().map(compact::text).unwrap_or_default();
    Call {
        place: place(pair.request.or(pair.response)),
        attempt_at: format!("{} {sent}", names.tools.first().or(names.url.as_ref()).unwrap_or(&"")),
        arguments,
        names,
        is_part: false,
        answer: answer(steps, pair, recorded),
    }
}

fn place(index: Option<usize>) -> String {
    format!("step {}", index.unwrap_or_default())
}

fn answer<'v, 'd>(steps: &'v [Value<'d>], pair: &Pair, recorded: &Recorded<'_>) -> Answer<'v, 'd> {
    let response = pair.response.and_then(|index| steps.get(index));
    let value = response.and_then(|response| response.get("output"));
    let played_back = response.is_some_and(|response| {
        at(response, &["metadata", "replay_mode"]).and_then(Value::as_str) == Some("stub")
    });
    let why = match recorded.error_after(pair, steps) {
        Some(error) => Some(format!("an error follows at step {error}")),
        None if played_back => Some("it was played back, nothing was called".to_owned()),
        None => None,
    };
    let place = place(pair.response.or(pair.request));
    match (why, value) {
        (Some(why), value) => Answer::Discounted { place, value, why },
        (None, Some(value)) => Answer::Result { place, value },
        (None, None) => Answer::None,
    }
}

fn names<'v>(request: Option<&'v Value<'_>>, response: Option<&'v Value<'_>>) -> CallNames<'v> {
    let both = |places: &'static [&[&str]]| {
        let steps = request.into_iter().chain(response);
        steps.flat_map(|step| texts(step, places)).collect::<Vec<&str>>()
    };
    let mut tools = both(TOOL_PLACES);
    tools.sort_unstable();
    tools.dedup();
    CallNames {
        tools,
        url: both(URLS).first().copied(),
        io_ref: both(IO_REFS).first().copied(),
        labels: both(LABELS),
        mode: both(MODES).first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::reader::{self, Limits};

    /// Each call as its names, its arguments and what came back.
    fn calls(steps: &str) -> Vec<String> {
        let steps = reader::read(steps.as_bytes(), &Limits::default()).unwrap();
        let mut calls = Vec::new();
        visit(steps.as_array().unwrap(), &mut |event| {
            let RunEvent::Call(call) = event else { return };
            let sent = call.arguments.as_deref().map_or_else(|| "?".to_owned(), compact::text);
            let shown = |value: &Value<'_>| compact::text(value);
            let answer = match call.answer {
                Answer::None => "nothing".to_owned(),
                Answer::Result { place, value } => format!("{} at {place}", shown(value)),
                Answer::Discounted { value, why, .. } => {
                    format!("{} but {why}", value.map_or_else(|| "nothing".to_owned(), shown))
                }
            };
            let names = call.names.tools.iter().chain(&call.names.url).copied().collect::<Vec<_>>().join("+");
            calls.push(format!("{names}({sent}) -> {answer}"));
        });
        calls
    }

    #[test]
    fn responses_answer_the_request_of_their_call() {
        let steps = r#"[
            {"type": "tool.request", "input": {"tool": "a", "arguments": {"n": 1}, "call_id": "1"}},
            {"type": "tool.request", "input": {"tool": "a", "arguments": "{\"n\": 2}", "call_id": "2"}},
            {"type": "tool.response", "input": {"tool": "a", "call_id": "2"}, "output": "second"},
            {"type": "tool.response", "input": {"tool": "a", "call_id": "0"}, "output": "of a call before"},
            {"type": "tool.response", "input": {"tool": "a", "call_id": "1"}, "output": "first"}]"#;
        assert_eq!(
            calls(steps),
            [
                r#"a({"n":1}) -> "first" at step 4"#,
                r#"a({"n":2}) -> "second" at step 2"#,
                r#"a(?) -> "of a call before" at step 3"#
            ]
        );
    }

    #[test]
    fn responses_without_ids_answer_the_oldest_request_of_the_same_tool() {
        let steps = r#"[
            {"type": "tool.request", "input": {"tool": "a", "args": [], "kwargs": {"n": 1}}},
            {"type": "tool.request", "input": {"method": "POST", "url": "https://x/y", "body": {"n": 2}}},
            {"type": "tool.request", "input": {"tool": "a", "args": [], "kwargs": {"n": 3}}, "metadata": {"tool": "a2"}},
            {"type": "tool.response", "input": {"tool": "a"}, "output": 1},
            {"type": "tool.response", "input": {"tool": "a2"}, "output": 3},
            {"type": "tool.response", "input": {"method": "POST", "url": "https://x/y"}, "output": 2},
            {"type": "tool.request", "input": {"tool": "b"}}]"#;
        assert_eq!(
            calls(steps),
            [
                r#"a({"n":1}) -> 1 at step 3"#,
                r#"https://x/y({"n":2}) -> 2 at step 5"#,
                r#"a+a2({"n":3}) -> 3 at step 4"#,
                "b(?) -> nothing"
            ]
        );
    }

    #[test]
    fn errors_discount_the_call_that_they_are_about() {
        let followed = |error: &str| {
            calls(&format!(
                r#"[{{"type": "tool.request", "input": {{"tool": "a"}}, "metadata": {{"request_id": "1"}}}},
                {{"type": "tool.response", "input": {{"tool": "a"}}, "output": 1, "metadata": {{"request_id": "1"}}}},
                {{"type": "tool.request", "input": {{"tool": "b"}}, "metadata": {{"request_id": "2"}}}},
                {{"type": "tool.response", "input": {{"tool": "b"}}, "output": 2, "metadata": {{"request_id": "2"}}}},
                {error}]"#
            ))
        };
        let fine = ["a(?) -> 1 at step 1", "b(?) -> 2 at step 3"];
        let (a, b) = ("a(?) -> 1 but an error follows at step 4", "b(?) -> 2 but an error follows at step 4");
        for (error, expected) in [
            (r#"{"type": "error.event", "input": {}}"#, [fine[0], b]),
            (r#"{"type": "error.event", "input": {"target": "a"}}"#, [a, fine[1]]),
            (r#"{"type": "error.event", "metadata": {"request_id": "1"}}"#, [a, fine[1]]),
            (r#"{"type": "error.event", "metadata": {"request_id": "9"}}"#, [fine[0], b]),
            (r#"{"type": "error.event", "input": {"target": "never called"}}"#, fine),
            (r#"{"type": "model.request"}, {"type": "error.event", "input": {}}"#, fine),
        ] {
            assert_eq!(followed(error), expected, "{error}");
        }
        let retried = r#"[{"type": "tool.request", "input": {"tool": "a"}}, {"type": "error.event", "input": {"target": "a"}},
            {"type": "tool.request", "input": {"tool": "a"}}, {"type": "tool.response", "input": {"tool": "a"}, "output": 1}]"#;
        assert_eq!(calls(retried), ["a(?) -> nothing but an error follows at step 1", "a(?) -> 1 at step 3"]);
    }

    #[test]
    fn what_was_played_back_did_not_happen() {
        let steps = r#"[{"type": "tool.response", "input": {"tool": "a"}, "output": 1, "metadata": {"replay_mode": "stub"}}]"#;
        assert_eq!(calls(steps), ["a(?) -> 1 but it was played back, nothing was called"]);
    }
}

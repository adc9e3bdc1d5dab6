//! The tool calls of a run for audits: which response answers which request, and which do not count.

use std::borrow::Cow;

use super::calls::{URLS, tools};
use super::envelope::{at, step_type, texts_at};
use super::pending_requests::{CallStepNumbers, ToolCallIndex};
use crate::artifact::{CallNames, EventVisitor, RunCall, RunCallResult, RunEvent};
use crate::json::reader::{self, Limits};
use crate::json::{Object, Value, compact};

/// Members that contain only the arguments, in order of precedence.
const MEMBERS: [&str; 6] = ["arguments", "params", "parameters", "payload", "body", "input"];

/// Members that describe the call and are not sent with it.
const DESCRIPTIONS: [&str; 15] = [
    "call_id",
    "effect",
    "headers",
    "io_ref",
    "method",
    "mode",
    "name",
    "ref",
    "request_id",
    "target",
    "tool",
    "tool_call_id",
    "tool_name",
    "type",
    "url",
];

/// Returns the arguments in the `input` of a `tool.request`: a member that is known to contain them, with JSON in a
/// string parsed; else the members that do not describe the call. Returns `None` if they are not recorded, or have no
/// names.
pub(super) fn arguments<'v, 'd>(input: &'v Value<'d>) -> Option<Cow<'v, Value<'d>>> {
    let Some(object) = input.as_object() else {
        return (!input.is_null()).then_some(Cow::Borrowed(input));
    };
    if object.contains("kwargs") || object.contains("args") {
        return by_keyword(object);
    }
    if let Some(member) = MEMBERS.iter().find_map(|name| object.get(name).filter(|value| !value.is_null())) {
        return Some(read(member));
    }
    let rest = object.iter().filter(|(name, _)| !DESCRIPTIONS.contains(name));
    let rest: Vec<_> = rest.map(|(name, value)| (Cow::Owned(name.to_owned()), value.clone())).collect();
    (!rest.is_empty()).then(|| Cow::Owned(Value::Object(Object::from_members(rest))))
}

/// Returns `kwargs`, or, if there are none, a single positional argument. Positional arguments have no names that a
/// schema could describe.
fn by_keyword<'v, 'd>(object: &'v Object<'d>) -> Option<Cow<'v, Value<'d>>> {
    let named = object
        .get("kwargs")
        .filter(|kwargs| kwargs.as_object().is_some_and(|kwargs| kwargs.iter().len() > 0));
    match (named, object.get("args").and_then(Value::as_array).unwrap_or_default()) {
        (Some(named), []) => Some(Cow::Borrowed(named)),
        (None, [only]) => Some(Cow::Borrowed(only)),
        _ => None,
    }
}

/// Returns `value`, or the JSON that it contains.
fn read<'v, 'd>(value: &'v Value<'d>) -> Cow<'v, Value<'d>> {
    let text = value.as_str().filter(|text| text.trim_start().starts_with(['{', '[']));
    let limits = Limits { bytes: u64::MAX, ..Limits::default() };
    let json = text.and_then(|text| reader::read(text.as_bytes(), &limits).ok());
    json.map_or(Cow::Borrowed(value), |json| Cow::Owned(json.to_owned_value()))
}

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

/// Calls `visit` with the calls in `steps`, in the order in which they began, and the statements of the recorder
/// between them.
pub(super) fn visit(steps: &[Value<'_>], visit: &mut EventVisitor<'_>) {
    let recorded = ToolCallIndex::read(steps);
    for (at, step) in steps.iter().enumerate() {
        let is_prompt = step_type(step) == "prompt.render";
        let statements = step.get("metadata").into_iter().chain(step.get("input").filter(|_| is_prompt));
        statements.for_each(|value| visit(RunEvent::Statement { at, value }));
    }
    for pair in &recorded.pairs {
        visit(RunEvent::Call(Box::new(call(steps, pair, &recorded))));
    }
}

fn call<'v, 'd>(steps: &'v [Value<'d>], pair: &CallStepNumbers, recorded: &ToolCallIndex) -> RunCall<'v, 'd> {
    let step = |index: Option<usize>| index.and_then(|index| steps.get(index));
    let (request, response) = (step(pair.request), step(pair.response));
    let arguments = request.and_then(|request| arguments(request.get("input")?));
    let names = names(request, response);
    let parts: [&[&str]; 4] = [&["input"], &["input", "headers"], &["metadata"], &["metadata", "headers"]];
    let envelope =
        request.into_iter().flat_map(|request| parts.into_iter().filter_map(|part| at(request, part)));
    let (began, ended) = (pair.request.or(pair.response), pair.response.or(pair.request));
    let sent = arguments.as_deref().map(compact::text).unwrap_or_default();
    RunCall {
        place: place(began),
        began: began.unwrap_or_default(),
        ended: ended.unwrap_or_default(),
        envelope: envelope.collect(),
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

fn answer<'v, 'd>(
    steps: &'v [Value<'d>],
    pair: &CallStepNumbers,
    recorded: &ToolCallIndex,
) -> RunCallResult<'v, 'd> {
    let response = pair.response.and_then(|index| steps.get(index));
    let value = response.and_then(|response| response.get("output"));
    let played_back = response.is_some_and(|response| {
        at(response, &["metadata", "replay_mode"]).and_then(Value::as_str) == Some("stub")
    });
    let why = match recorded.error_after(pair) {
        Some(error) => Some(format!("an error follows at step {error}")),
        None if played_back => Some("it was replayed, no call was made".to_owned()),
        None => None,
    };
    let place = place(pair.response.or(pair.request));
    match (why, value) {
        (Some(why), value) => RunCallResult::Discounted { place, value, why },
        (None, Some(value)) => RunCallResult::Result { place, value },
        (None, None) => RunCallResult::None,
    }
}

fn names<'v>(request: Option<&'v Value<'_>>, response: Option<&'v Value<'_>>) -> CallNames<'v> {
    let steps = || request.into_iter().chain(response);
    let both = |places: &'static [&[&str]]| -> Vec<&'v str> {
        steps().flat_map(|step| texts_at(step, places)).collect()
    };
    let mut called: Vec<&str> = steps().flat_map(tools).collect();
    called.sort_unstable();
    called.dedup();
    CallNames {
        tools: called,
        url: both(URLS).first().copied(),
        io_ref: both(IO_REFS).first().copied(),
        labels: both(LABELS),
        mode: both(MODES).first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::compact;
    use crate::json::reader::{self, Limits};

    #[test]
    fn arguments_are_found_in_every_shape_that_recorders_write() {
        for (input, expected) in [
            (r#"{"tool": "t", "arguments": {"a": 1}}"#, Some(r#"{"a":1}"#)),
            (r#"{"tool": "t", "arguments": "{\"a\": 1}"}"#, Some(r#"{"a":1}"#)),
            (r#"{"tool": "t", "arguments": "ls -l"}"#, Some(r#""ls -l""#)),
            (r#"{"tool": "t", "arguments": "{broken"}"#, Some(r#""{broken""#)),
            (r#"{"tool": "t", "args": [], "kwargs": {"a": 1}}"#, Some(r#"{"a":1}"#)),
            (r#"{"tool": "t", "args": [{"a": 1}], "kwargs": {}}"#, Some(r#"{"a":1}"#)),
            (r#"{"tool": "t", "args": [1, 2], "kwargs": {}}"#, None),
            (r#"{"tool": "t", "args": [1], "kwargs": {"a": 1}}"#, None),
            (r#"{"method": "POST", "url": "u", "headers": {}, "body": {"a": 1}}"#, Some(r#"{"a":1}"#)),
            (r#"{"tool": "t", "a": 1, "call_id": "c"}"#, Some(r#"{"a":1}"#)),
            (r#"{"tool": "t"}"#, None),
            (r#""text""#, Some(r#""text""#)),
            ("null", None),
        ] {
            let value = reader::read(input.as_bytes(), &Limits::default()).unwrap();
            assert_eq!(arguments(&value).as_deref().map(compact::text).as_deref(), expected, "{input}");
        }
    }

    /// Describes each call by its names, its arguments and its result.
    fn calls(steps: &str) -> Vec<String> {
        let steps = reader::read(steps.as_bytes(), &Limits::default()).unwrap();
        let mut calls = Vec::new();
        visit(steps.as_array().unwrap(), &mut |event| {
            let RunEvent::Call(call) = event else { return };
            let sent = call.arguments.as_deref().map_or_else(|| "?".to_owned(), compact::text);
            let shown = |value: &Value<'_>| compact::text(value);
            let answer = match call.answer {
                RunCallResult::None => "nothing".to_owned(),
                RunCallResult::Result { place, value } => format!("{} at {place}", shown(value)),
                RunCallResult::Discounted { value, why, .. } => {
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
    fn responses_without_ids_answer_the_only_request_that_they_can() {
        let steps = r#"[
            {"type": "tool.request", "input": {"tool": "a", "args": [], "kwargs": {"n": 1}}, "metadata": {"tool": "a1"}},
            {"type": "tool.request", "input": {"method": "POST", "url": "https://x/y", "body": {"n": 2}}},
            {"type": "tool.request", "input": {"tool": "a", "args": [], "kwargs": {"n": 3}}, "metadata": {"tool": "a2"}},
            {"type": "tool.response", "input": {"tool": "a"}, "output": "of either"},
            {"type": "tool.response", "input": {"tool": "a2"}, "output": 3},
            {"type": "tool.response", "input": {"tool": "a"}, "output": 1},
            {"type": "tool.response", "input": {"method": "POST", "url": "https://x/y"}, "output": 2},
            {"type": "tool.request", "input": {"tool": "b"}}]"#;
        assert_eq!(
            calls(steps),
            [
                r#"a+a1({"n":1}) -> 1 at step 5"#,
                r#"https://x/y({"n":2}) -> 2 at step 6"#,
                r#"a+a2({"n":3}) -> 3 at step 4"#,
                r#"a(?) -> "of either" at step 3"#,
                "b(?) -> nothing"
            ]
        );
    }

    /// As recorded by the listener from requests to models: the name of a result is the type of its item.
    #[test]
    fn types_of_items_are_no_names_of_tools() {
        let steps = r#"[
            {"type": "tool.request", "input": {"tool": "shell", "call_id": "1", "arguments": "{\"c\": 1}"},
                "metadata": {"request_id": "r1", "event_type": "function_call", "derived_from": "x"}},
            {"type": "tool.response", "input": {"tool": "function_call_output", "call_id": "1"}, "output": 1,
                "metadata": {"request_id": "r2", "event_type": "function_call_output", "derived_from": "x"}},
            {"type": "error.event", "input": {"source": "listener"}, "output": {"message": "internal"}}]"#;
        assert_eq!(calls(steps), [r#"shell({"c":1}) -> 1 at step 1"#]);
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
            (r#"{"type": "error.event", "input": {"target": "b"}, "metadata": {"kind": "policy"}}"#, fine),
            (r#"{"type": "error.event", "input": {"name": "TimeoutError"}}"#, [fine[0], b]),
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
        assert_eq!(calls(steps), ["a(?) -> 1 but it was replayed, no call was made"]);
    }
}

//! The attributes of runs, among them those that follow from the messages of their steps, the roles of their digests, their
//! SQL view, and the table of their steps.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::calls::{CallIds, TOOL_PLACES, is_of_protocol, tools};
use super::envelope::{at, step_type, steps};
use super::messages::{answered, asked};
use super::metrics::{self, HTTP_HOST, HTTP_METHOD, PLATFORM, REDACTION_POLICY, REDACTION_PROFILE};
use super::texts::{self, StepTextRole};
use super::{exchanges, requests};
use crate::artifact::ColumnType::{Hash, Json, Number, Text, Time};
use crate::artifact::{
    ArtifactView, AttributeInfo, Cell, Column, Draft, MemberBytes, Relation, Responder, Role, Table,
    TableRow, group, relation, timestamp_text,
};
use crate::conversation::facts::{CalledTool, ConversationFacts};
use crate::conversation::providers::is_endpoint;
use crate::conversation::providers::mcp::is_name_of;
use crate::json::reader::ReadError;
use crate::json::{Object, Value};

const AGENT: AttributeInfo = AttributeInfo::text("agent", "the agent");
const CAPTURE_MODE: AttributeInfo = AttributeInfo::text("capture_mode", "how it was recorded");
pub(super) const PROVIDER: AttributeInfo = AttributeInfo::text("provider", "the provider of the model");
pub(super) const SOURCE: AttributeInfo = AttributeInfo::text("source", "the recorder");
const SOURCE_RUN_ID: AttributeInfo =
    AttributeInfo::text("source_run_id", "the id of the run that it was derived from");
/// The number of steps.
pub const STEPS: AttributeInfo = AttributeInfo::count("steps", "the number of steps");
const STEP_TYPE: AttributeInfo = AttributeInfo::text("step_type", "the type of a step");

pub(super) const ATTRIBUTES: [AttributeInfo; 32] = [
    AGENT,
    CAPTURE_MODE,
    AttributeInfo::COST_USD,
    AttributeInfo::CREATED_AT,
    AttributeInfo::DURATION_MS,
    AttributeInfo::ERROR,
    AttributeInfo::ERRORS,
    AttributeInfo::FINISH_REASON,
    AttributeInfo::FIRST_PROMPT,
    AttributeInfo::FIRST_STEP_AT,
    HTTP_HOST,
    HTTP_METHOD,
    AttributeInfo::LAST_ANSWER,
    AttributeInfo::LAST_STEP_AT,
    AttributeInfo::LATENCY_MS,
    AttributeInfo::MODEL_ID,
    AttributeInfo::OS,
    PLATFORM,
    PROVIDER,
    REDACTION_POLICY,
    REDACTION_PROFILE,
    AttributeInfo::RUN_ID,
    AttributeInfo::RUNTIME,
    SOURCE,
    SOURCE_RUN_ID,
    STEP_TYPE,
    STEPS,
    AttributeInfo::TOKENS,
    AttributeInfo::TOKENS_INPUT,
    AttributeInfo::TOKENS_OUTPUT,
    AttributeInfo::TOOL,
    AttributeInfo::TOOL_CALLS,
];

/// The locations of attributes in steps. Tools are only read from `tool.request` and `tool.response`.
pub(super) const STEP_ATTRIBUTES: &[(&str, &[&[&str]])] = &[
    ("provider", &[&["metadata", "provider"], &["input", "provider"]]),
    ("agent", &[&["metadata", "agent"]]),
    ("model_id", &[&["input", "model"], &["metadata", "model"], &["input", "payload", "model"]]),
    ("tool", TOOL_PLACES),
];

/// Returns whether a value states an attribute. A gateway writes the name of a request in the place of a model that it does not
/// name.
pub(super) fn states(attribute: &str, value: &str) -> bool {
    attribute != AttributeInfo::MODEL_ID.name || !is_endpoint(value)
}

pub(super) const STEP: Role = Role { name: "step", group: group::STEP, unit: "step", relation: None };
pub(super) const PROMPT: Role = Role { name: "prompt", group: group::PROMPT, unit: "step", relation: None };
pub(super) const RESPONSE: Role =
    Role { name: "response", group: group::RESPONSE, unit: "step", relation: None };

/// The part of the run before this one.
pub(super) const PREVIOUS: Role =
    Role { name: "previous", group: group::PART, unit: "", relation: Some(CONTINUES) };

pub(super) const CONTINUES: Relation = Relation { name: relation::CONTINUES, dangles: true };

/// Does not dangle: without the first part, the second one lacks the one that it continues.
pub(super) const PART_OF: Relation = Relation { name: relation::PART_OF, dangles: false };

/// The location of the core hash of the part before.
pub(super) const PREVIOUS_AT: &str = "/metadata/gateway/previous";

pub(super) const DERIVED_FROM: Relation = Relation { name: "derived-from", dangles: true };

/// The locations of digests that are indexed as the core hash, as that of another part, as step hashes and as prompts.
pub(super) const INDEXED: [&str; 4] =
    ["/checksum", PREVIOUS_AT, "/payload/run/steps/*/hash", "/payload/run/steps/*/input/prompt_hash"];

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a run pack",
    named_by: Some(AttributeInfo::RUN_ID.name),
    columns: &[
        AttributeInfo::RUN_ID.column(),
        SOURCE_RUN_ID.column(),
        PROVIDER.column().facet(),
        AGENT.column().facet(),
        SOURCE.column().facet(),
        CAPTURE_MODE.column().facet(),
        STEPS.column(),
        AttributeInfo::CREATED_AT.column(),
        AttributeInfo::MODEL_ID.column().facet(),
        AttributeInfo::FIRST_STEP_AT.column(),
        AttributeInfo::LAST_STEP_AT.column(),
        AttributeInfo::DURATION_MS.column(),
        AttributeInfo::LATENCY_MS.column(),
        AttributeInfo::TOKENS_INPUT.column(),
        AttributeInfo::TOKENS_OUTPUT.column(),
        AttributeInfo::TOKENS.column(),
        AttributeInfo::COST_USD.column(),
        AttributeInfo::TOOL_CALLS.column(),
        AttributeInfo::ERRORS.column().facet(),
        AttributeInfo::FINISH_REASON.column().facet(),
        AttributeInfo::FIRST_PROMPT.column(),
        AttributeInfo::LAST_ANSWER.column(),
        AttributeInfo::ERROR.column(),
        AttributeInfo::OS.column(),
        PLATFORM.column(),
        REDACTION_PROFILE.column(),
    ],
};

pub(super) const STEPS_TABLE: Table = Table {
    name: "steps",
    about: "a step of a run",
    columns: &[
        Column::new("i", Number, "index in the run, from 0"),
        Column::new("id", Text, "its id"),
        Column::new("type", Text, "its type, such as `model.response`").facet(),
        Column::new("hash", Hash, "its hash"),
        Column::new("tool", Text, "the tool that the step concerns").facet(),
        Column::new("model_id", Text, "the model that the step concerns").facet(),
        Column::new("provider", Text, "the provider of the model").facet(),
        Column::new("prompts", Json, "the list of the prompts that it contains; NULL if there are none"),
        Column::new("prompt_text", Text, "its prompts as text, with an empty line between two").searched(),
        Column::new("responses", Json, "the list of the responses that it contains; NULL if there are none"),
        Column::new("response_text", Text, "its responses as text, with an empty line between two")
            .searched(),
        Column::new("timestamp", Time, "its time, in UTC"),
        Column::new("duration_ms", Number, "the stated duration in milliseconds"),
        Column::new("http_method", Text, "the method of its HTTP request").facet(),
        Column::new("http_host", Text, "the host of its HTTP request").facet(),
        Column::new("is_error", Number, "1 if it is an error or a response that states one, else 0").facet(),
        Column::new("input", Json, "its input").searched(),
        Column::new("output", Json, "its output").searched(),
        Column::new("metadata", Json, "its metadata"),
    ],
    rows,
};

fn rows(members: &[MemberBytes<'_>]) -> Result<Vec<TableRow>, ReadError> {
    let mut rows = Vec::new();
    for member in members {
        let root = requests::read(member.bytes)?;
        rows.extend(steps(&root).iter().enumerate().map(|(index, step)| row(index, step)));
    }
    Ok(rows)
}

fn row(index: usize, step: &Value<'_>) -> TableRow {
    let (method, host) = metrics::http_requests(step).next().unzip();
    let method = method.flatten();
    let [prompts, responses] =
        [StepTextRole::Prompts, StepTextRole::Responses].map(|what| texts::carried(step, what));
    vec![
        Cell::index(index),
        Cell::text_of(step, "id"),
        Cell::text_of(step, "type"),
        Cell::hash_of(step, "hash"),
        attribute(step, "tool"),
        attribute(step, "model_id"),
        attribute(step, "provider"),
        list(&prompts),
        joined(&prompts),
        list(&responses),
        joined(&responses),
        metrics::time(step).map_or(Cell::Null, |time| Cell::Text(timestamp_text(time))),
        metrics::duration(step).map_or(Cell::Null, Cell::Integer),
        method.as_deref().into(),
        host.as_deref().into(),
        Cell::Integer(metrics::is_error(step).into()),
        Cell::json_of(step, "input"),
        Cell::json_of(step, "output"),
        Cell::json_of(step, "metadata"),
    ]
}

/// Returns the first value of the attribute `name` in a step.
fn attribute(step: &Value<'_>, name: &str) -> Cell {
    let is_of_tool = step.get("type").and_then(Value::as_str).is_some_and(|text| text.starts_with("tool."));
    let places = STEP_ATTRIBUTES.iter().filter(|(attribute, _)| *attribute == name);
    let places = places.filter(|_| name != "tool" || is_of_tool).flat_map(|(_, places)| *places);
    let mut values = places.filter_map(|names| at(step, names).and_then(Value::as_non_empty_str));
    values.find(|value| states(name, value)).into()
}

fn list(texts: &[&str]) -> Cell {
    let texts: Vec<_> = texts.iter().map(|text| Value::String((*text).into())).collect();
    if texts.is_empty() { Cell::Null } else { Cell::json(&Value::Array(texts)) }
}

fn joined(texts: &[&str]) -> Cell {
    if texts.is_empty() { Cell::Null } else { Cell::Text(texts.join("\n\n")) }
}

/// Adds the attributes that follow from messages, and the numbers of errors and of calls of tools.
pub(super) fn describe(steps: &[Value<'_>], draft: &mut Draft) {
    let (mut facts, mut errors) = (ConversationFacts::default(), 0);
    for step in steps {
        let request = (step_type(step) == "model.request").then(|| shortened(step));
        if let Some(request) = request.as_ref().and_then(asked) {
            facts.asked(&request.messages);
        } else if let Some(text) = texts::carried(step, StepTextRole::Prompts).last() {
            facts.asked_text(text);
        }
        let is_error = metrics::is_error(step);
        // A stream that fails has said something before; the body of an error status has not.
        if let Some(answer) = answered(step).filter(|_| !metrics::has_error_status(step)) {
            facts.answered(&answer);
        } else if let Some(text) = texts::carried(step, StepTextRole::Responses).last().filter(|_| !is_error)
        {
            facts.answered_text(text);
        }
        if is_error {
            errors += 1;
            if let Some(message) = exchanges::message(step) {
                facts.failed(message);
            }
        }
    }
    draft.count(AttributeInfo::ERRORS, errors + facts.failed_results());
    let requests = steps.iter().filter(|step| step_type(step) == "tool.request" && !is_of_protocol(step));
    let unstated = CallsInSteps::new(requests.clone()).without(facts.tool_calls());
    draft.count(AttributeInfo::TOOL_CALLS, requests.count() + unstated);
    facts.describe(draft);
}

/// The most bytes of a text of which attributes are made.
const LONG: usize = 4 << 10;

/// Returns a value with the beginnings of its texts, so that messages of many megabytes are not copied.
fn shortened<'v>(value: &'v Value<'_>) -> Value<'v> {
    match value {
        Value::String(text) => {
            Value::String(Cow::Borrowed(text.get(..text.floor_char_boundary(LONG)).unwrap_or_default()))
        }
        Value::Array(elements) => Value::Array(elements.iter().map(shortened).collect()),
        Value::Object(object) => {
            let members = object.iter().map(|(name, member)| (Cow::Borrowed(name), shortened(member)));
            Value::Object(Object::from_members(members.collect()))
        }
        other => other.clone(),
    }
}

/// The calls of tools that are steps of their own.
struct CallsInSteps<'v> {
    ids: HashSet<String>,
    /// Number of calls without ids, by the name of the tool.
    without_ids: HashMap<&'v str, usize>,
}

impl<'v> CallsInSteps<'v> {
    fn new<'a: 'v>(requests: impl Iterator<Item = &'v Value<'a>>) -> Self {
        let mut calls = Self { ids: HashSet::new(), without_ids: HashMap::new() };
        for step in requests {
            match CallIds::from_step(Responder::Tool, step).call {
                Some(id) => _ = calls.ids.insert(id),
                None => *calls.without_ids.entry(tools(step).next().unwrap_or_default()).or_default() += 1,
            }
        }
        calls
    }

    /// Returns the number of these calls that are not steps of their own.
    fn without(mut self, called: &[CalledTool]) -> usize {
        let mut is_step = |CalledTool { id, name }: &&CalledTool| {
            if id.as_ref().is_some_and(|id| self.ids.contains(id)) {
                return true;
            }
            let mut left = self.without_ids.iter_mut().filter(|(_, left)| **left > 0);
            let step = left.find(|(tool, _)| is_name_of(name, tool));
            step.map(|(_, left)| *left -= 1).is_some()
        };
        called.iter().filter(|call| !is_step(call)).count()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::formats::rpk::metrics::testing;

    /// Returns the attributes of a run with these steps, without numbers that are 0.
    fn described(steps: &Json) -> Vec<String> {
        let mut lines = testing::described(steps, |_, steps, draft| describe(steps, draft));
        lines.retain(|line| !line.ends_with(" 0"));
        lines.sort_unstable();
        lines
    }

    #[test]
    fn errors_are_events_and_responses_that_state_one() {
        let errors = json!([
            {"type": "error.event"},
            {"type": "model.response", "output": {"error": {"message": "no"}}},
            {"type": "tool.response", "output": {"error": "no"}},
            {"type": "tool.response", "output": {"status_code": 503}},
        ]);
        assert_eq!(described(&errors), ["error no", "errors 4"]);
        let none = json!([
            {"type": "model.response", "output": {"error": null}},
            {"type": "model.response", "output": {"error": ""}},
            {"type": "tool.response", "output": {"status_code": 302, "error": false}},
            {"type": "tool.request", "output": {"status_code": 500}},
            {"type": "model.request", "output": {"error": "no"}},
        ]);
        assert_eq!(described(&none), ["tool_calls 1"]);
    }

    #[test]
    fn calls_of_tools_that_are_steps_and_in_answers_count_once() {
        let call = |id: &str, name: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": "{}"});
        let answer = |calls: Json| json!({"type": "model.response", "output": {"output": {"object": "response", "output": calls}}});
        let step = |input: Json| json!({"type": "tool.request", "input": input});
        let steps = json!([
            answer(json!([call("c1", "shell"), call("c2", "shell")])),
            step(json!({"call_id": "c1", "tool": "shell"})),
            step(json!({"tool": "read"})),
            answer(json!([call("c3", "read"), call("c4", "read")])),
        ]);
        assert_eq!(described(&steps), ["tool read", "tool read", "tool shell", "tool shell", "tool_calls 4"]);
    }

    #[test]
    fn the_first_prompt_and_the_last_answer_are_those_of_messages() {
        let steps = json!([
            {"type": "model.request", "input": {"payload": {"messages": [
                {"role": "system", "content": "be brief"}, {"role": "user", "content": "one\n  two"}]}}},
            {"type": "model.response", "output": {"output": {"choices": [
                {"message": {"role": "assistant", "content": "first"}, "finish_reason": "stop"}]}}},
            {"type": "model.request", "input": {"prompt": "three"}},
            {"type": "model.response", "output": "last"},
        ]);
        assert_eq!(described(&steps), ["finish_reason stop", "first_prompt one two", "last_answer last"]);
    }

    #[test]
    fn names_of_requests_are_no_models() {
        for (value, is_model) in [("json", false), ("chat.completions", false), ("gpt-json", true)] {
            assert_eq!(states("model_id", value), is_model, "{value}");
            assert!(states("provider", value));
        }
    }

    #[test]
    fn bodies_of_failures_are_no_answers() {
        let answer = |status: u16, body: &str| {
            json!({"type": "model.response",
            "output": {"status_code": status, "content_type": "application/json", "content": body}})
        };
        let failed = r#"{"error":{"message":"boom"}}"#;
        for failed in [
            answer(500, failed),
            answer(502, "<h1>Bad gateway</h1>"),
            answer(500, r#"{"choices":[{"message":{"content":"partly"},"finish_reason":"stop"}]}"#),
            json!({"type": "model.response", "output": {"error": "boom", "message": "boom", "text": "no"}}),
            json!({"type": "model.response", "output": {"status_code": 200, "error": "cut off",
                "content_type": "text/event-stream", "content": "data: {\"type\":\"response.created\"}\n\n"}}),
        ] {
            let steps = json!([answer(200, r#"{"choices":[{"message":{"content":"last"}}]}"#), failed]);
            let described = described(&steps);
            assert!(described.contains(&"last_answer last".to_owned()), "{described:?}");
            assert!(described.contains(&"errors 1".to_owned()), "{described:?}");
        }
    }

    #[test]
    fn streams_are_decoded() {
        let event = |delta: Json| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
        let call = json!({"index": 0, "id": "call-1", "function": {"name": "read", "arguments": "{}"}});
        let answer = |content: String| {
            json!({"type": "model.response",
                "output": {"status_code": 200, "content_type": "text/event-stream", "content": content}})
        };
        let steps = json!([
            answer(event(json!({"role": "assistant", "tool_calls": [call]}))),
            answer(event(json!({"content": "do"})) + &event(json!({"content": "ne"})) + "data: [DONE]\n\n"),
        ]);
        assert_eq!(described(&steps), ["last_answer done", "tool read", "tool_calls 1"]);
    }
}

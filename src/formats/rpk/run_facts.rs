//! The attributes of runs that follow from the messages of their steps.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::calls::{CallIds, is_of_protocol, tools};
use super::envelope::step_type;
use super::messages::{answered, asked};
use super::texts::{self, StepTextRole};
use super::{exchanges, metrics};
use crate::artifact::{AttributeInfo, Draft, Responder};
use crate::conversation::facts::{CalledTool, ConversationFacts};
use crate::conversation::providers::mcp::is_name_of;
use crate::json::{Object, Value};

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
        if let Some(answer) = answered(step) {
            facts.answered(&answer);
        } else if let Some(text) = texts::carried(step, StepTextRole::Responses).last() {
            facts.answered_text(text);
        }
        if metrics::is_error(step) {
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

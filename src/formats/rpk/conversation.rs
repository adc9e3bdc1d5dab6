//! The conversation in a run whose recorder states its steps, and not the bodies of responses as they were sent.

use std::collections::{HashMap, HashSet};

use super::calls::{self, CallIds, StepCall};
use super::envelope::{at, step_type, steps, texts_at};
use super::messages::{answered, asked};
use super::pending_requests::RequestMatcher;
use super::texts::{self, StepTextRole};
use super::transcript::MODELS;
use super::{exchanges, metrics, requests};
use crate::artifact::{Responder, Timestamp};
use crate::conversation::message::{
    ConversationMessage, MessagePart, MessageRole, MessageToolCall, MessageToolResult,
};
use crate::conversation::reader::{
    AnsweredMessages, CallHead, Conversation, ConversationReader, DecodedCall, RequestedMessages,
};
use crate::json::reader::ReadError;
use crate::json::{Value, compact};

/// Returns the conversation in the parts of a run; `None` if no model is called, or the run has steps that belong to no call.
pub(crate) fn read(parts: &[&[u8]]) -> Result<Option<Conversation>, ReadError> {
    let roots = parts.iter().map(|document| requests::read(document)).collect::<Result<Vec<_>, _>>()?;
    let steps: Vec<&Value<'_>> = roots.iter().flat_map(|root| steps(root)).collect();
    let mut matcher = RequestMatcher::default();
    let followed = steps.iter().enumerate().map(|(index, step)| (index, matcher.follow(index, step)));
    let endings = followed.filter_map(|(index, request)| Some((request?, index))).collect();
    let run = StepsOfRun { steps, endings };
    if !run.consists_of_calls() {
        return Ok(None);
    }
    let mut reader = ConversationReader::default();
    let mut stated = HashSet::new();
    for (index, step) in run.steps.iter().enumerate() {
        match step_type(step) {
            "model.request" => {
                let call = run.model_call(index, step);
                stated
                    .extend(call.answer.messages.iter().flat_map(|message| &message.parts).filter_map(id_of));
                reader.add_decoded(call);
            }
            "tool.request" => {
                let call = run.tool_call(index, step);
                if call.id.as_ref().is_none_or(|id| !stated.contains(id)) {
                    reader.add_tool_call(call);
                }
            }
            _ => {}
        }
    }
    Ok(Some(reader.finish()).filter(|conversation| !conversation.calls.is_empty()))
}

fn id_of(part: &MessagePart) -> Option<String> {
    match part {
        MessagePart::ToolCall(MessageToolCall { id, .. }) => id.clone(),
        _ => None,
    }
}

/// The steps of a run, and the numbers of those that end a call, by the number of its request.
struct StepsOfRun<'v> {
    steps: Vec<&'v Value<'v>>,
    endings: HashMap<usize, usize>,
}

impl<'v> StepsOfRun<'v> {
    /// Returns whether the first call is one of a model, and each step makes a call, ends one, or repeats what a call has.
    fn consists_of_calls(&self) -> bool {
        let ends: HashSet<usize> = self.endings.values().copied().collect();
        let is_of_call = |(index, step): (usize, &&Value<'_>)| match step_type(step) {
            "model.request" | "tool.request" => true,
            "tool.response" if at(step, &["metadata", "derived_from"]).is_some() => true,
            _ => ends.contains(&index),
        };
        self.steps.first().is_some_and(|step| step_type(step) == "model.request")
            && self.steps.iter().enumerate().all(is_of_call)
    }

    /// Returns the step that ends the call with this request.
    fn ending(&self, request: usize) -> Option<&'v Value<'v>> {
        self.steps.get(*self.endings.get(&request)?).copied()
    }

    fn model_call(&self, index: usize, step: &'v Value<'v>) -> DecodedCall<'v> {
        let ending = self.ending(index);
        let error = ending.filter(|step| metrics::is_error(step));
        let error = error.map(|step| exchanges::message(step).unwrap_or("the call failed"));
        let head = CallHead {
            step: index as u64,
            provider: texts_at(step, &[&["metadata", "provider"], &["input", "provider"]])
                .next()
                .unwrap_or_default(),
            endpoint: texts_at(step, &[&["input", "path"], &["metadata", "path"]]).next().unwrap_or_default(),
            model: texts_at(step, MODELS).next().unwrap_or_default(),
            prompt_hash: requests::prompt_hash(step).or_else(|| calls::prompts(step).pop()),
            requested_at: metrics::time(step).map(Timestamp),
            duration_ms: ending.and_then(metrics::duration).and_then(|number| u64::try_from(number).ok()),
            error,
            ..CallHead::default()
        };
        DecodedCall {
            head,
            request: asked(step).unwrap_or_else(|| RequestedMessages {
                messages: messages(MessageRole::User, step, "input"),
                ..RequestedMessages::default()
            }),
            answer: ending.map(answer_of).unwrap_or_default(),
            tokens: ending.map(metrics::tokens).unwrap_or_default().map(|number| u64::try_from(number?).ok()),
            continues: false,
        }
    }

    fn tool_call(&self, index: usize, step: &'v Value<'v>) -> MessageToolCall {
        let StepCall { tool, names, arguments, .. } = StepCall::from_request(Responder::Tool, step);
        let result = self.ending(index).map(|ending| {
            let output = ending.get("output");
            let content = output.and_then(|output| output.get("result")).or(output);
            let text =
                content.map(|value| value.as_str().map_or_else(|| compact::text(value), str::to_owned));
            MessageToolResult {
                id: None,
                name: None,
                parts: text.map(MessagePart::text).into_iter().collect(),
                is_error: metrics::is_error(ending),
            }
        });
        MessageToolCall {
            id: CallIds::from_step(Responder::Tool, step).call,
            name: tool.or_else(|| names.into_iter().next()).unwrap_or_default(),
            arguments: arguments.map(|it| it.as_json().to_owned()).unwrap_or_default(),
            result,
        }
    }
}

fn answer_of(step: &Value<'_>) -> AnsweredMessages {
    answered(step).unwrap_or_else(|| AnsweredMessages {
        messages: if step_type(step) == "model.response" {
            messages(MessageRole::Assistant, step, "output")
        } else {
            Vec::new()
        },
        ..AnsweredMessages::default()
    })
}

/// Returns the texts of a step as messages, or a member of it if there are none.
fn messages(role: MessageRole, step: &Value<'_>, member: &str) -> Vec<ConversationMessage> {
    let carries = if role == MessageRole::User { StepTextRole::Prompts } else { StepTextRole::Responses };
    let mut parts: Vec<MessagePart> =
        texts::carried(step, carries).into_iter().map(MessagePart::text).collect();
    if parts.is_empty() {
        parts.extend(step.get(member).filter(|value| !value.is_null()).map(MessagePart::other));
    }
    if parts.is_empty() { Vec::new() } else { vec![ConversationMessage::new(role, parts)] }
}

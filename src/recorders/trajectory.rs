//! Writes a conversation as a trajectory in the Agent Trajectory Interchange Format, version 1.7.

use crate::artifact::timestamp_text;
use crate::conversation::message::{
    ConversationMessage, MessagePart, MessageRole, MessageToolCall, MessageToolResult,
};
use crate::conversation::reader::{Conversation, ConversationCall};
use crate::json::members::{integer, object, text};
use crate::json::reader::{self, Limits};
use crate::json::{Value, compact};

/// What a trajectory states of its agent and its session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrajectoryHead {
    /// The id of the session.
    pub session_id: String,
    /// The name of the agent; "unknown" takes the place of one that is not recorded.
    pub agent: Option<String>,
    /// The version of the agent; "unknown" takes the place of one that is not recorded.
    pub version: Option<String>,
}

/// The members of an object.
type Members = Vec<(&'static str, Value<'static>)>;

/// Returns the longest thread of a conversation as a trajectory, and the number of calls in other threads, which it has no
/// place for; `None` if there is no call.
///
/// Media of messages are stated by their type and size: the format names files, and a recording has none.
#[must_use]
pub fn trajectory(conversation: &Conversation, head: &TrajectoryHead) -> Option<(String, u64)> {
    let threads = conversation.threads.iter().enumerate();
    // Of equally long threads, the first one.
    let (main, _) = threads.rev().max_by_key(|(_, thread)| thread.calls)?;
    let calls: Vec<&ConversationCall> =
        conversation.calls.iter().filter(|call| call.thread == main as u64).collect();
    let mut steps: Vec<Members> = Vec::new();
    for call in &calls {
        steps.extend(call.messages.iter().filter_map(said));
        steps.push(answered(call));
    }
    let unknown = || "unknown".to_owned();
    let mut agent = vec![
        ("name", text(head.agent.clone().unwrap_or_else(unknown))),
        ("version", text(head.version.clone().unwrap_or_else(unknown))),
    ];
    let model = calls.iter().map(|call| &call.model).find(|model| !model.is_empty());
    agent.extend(model.map(|model| ("model_name", text(model.clone()))));
    let total = |of: fn(&ConversationCall) -> Option<u64>| {
        calls.iter().filter_map(|call| of(call)).reduce(u64::saturating_add).map(integer)
    };
    let mut metrics = vec![("total_steps", integer(steps.len() as u64))];
    metrics.extend(total(|call| call.tokens_in).map(|total| ("total_prompt_tokens", total)));
    metrics.extend(total(|call| call.tokens_out).map(|total| ("total_completion_tokens", total)));
    let numbered =
        (1..).zip(steps).map(|(number, step)| object([("step_id", integer(number))].into_iter().chain(step)));
    let document = object([
        ("schema_version", text("ATIF-v1.7")),
        ("session_id", text(head.session_id.clone())),
        ("agent", object(agent)),
        ("steps", Value::Array(numbered.collect())),
        ("final_metrics", object(metrics)),
    ]);
    let others = conversation.calls.len() - calls.len();
    (!calls.is_empty()).then(|| (compact::text(&document) + "\n", others as u64))
}

/// Returns the step with a message of a request; `None` if it says nothing.
fn said(message: &ConversationMessage) -> Option<Members> {
    let source = match message.role {
        MessageRole::System => "system",
        MessageRole::User | MessageRole::Tool => "user",
        MessageRole::Assistant => "agent",
    };
    let spoken = texts(&message.parts);
    let mut more = Members::new();
    if message.role == MessageRole::Assistant {
        // The program put it into the conversation, and no model answered it.
        more.push(("llm_call_count", integer(0)));
        more.extend(calls_of(&message.parts));
    } else {
        let results: Vec<Value<'static>> =
            results(&message.parts).map(|result| object([("content", text(texts(&result.parts)))])).collect();
        more.extend(observation(results));
    }
    let is_empty = spoken.is_empty() && more.is_empty();
    let step = [("source", text(source)), ("message", text(spoken))].into_iter().chain(more);
    (!is_empty).then(|| step.collect())
}

/// Returns the step with the answer of a call: the first one, if several were asked for.
fn answered(call: &ConversationCall) -> Members {
    let parts = call.answers.first().map(|answer| answer.parts.as_slice()).unwrap_or_default();
    let message = match &call.error {
        Some(error) if parts.is_empty() => error.clone(),
        _ => texts(parts),
    };
    let mut step = vec![("source", text("agent")), ("message", text(message))];
    step.extend(call.requested_at.map(|at| ("timestamp", text(timestamp_text(at.0)))));
    step.extend((!call.model.is_empty()).then(|| ("model_name", text(call.model.clone()))));
    let thought: Vec<&str> = parts.iter().filter_map(thought).collect();
    step.extend((!thought.is_empty()).then(|| ("reasoning_content", text(thought.join("\n")))));
    step.extend(calls_of(parts));
    let metrics = [("prompt_tokens", call.tokens_in), ("completion_tokens", call.tokens_out)];
    let metrics: Members =
        metrics.into_iter().filter_map(|(name, count)| Some((name, integer(count?)))).collect();
    step.extend((!metrics.is_empty()).then(|| ("metrics", object(metrics))));
    step
}

/// Returns the members with the calls of tools, and with their results.
fn calls_of(parts: &[MessagePart]) -> Members {
    let calls = parts.iter().filter_map(|part| match part {
        MessagePart::ToolCall(call) => Some(call),
        _ => None,
    });
    let (mut called, mut returned) = (Vec::new(), Vec::new());
    for (number, call) in (1..).zip(calls) {
        let id = call.id.clone().unwrap_or_else(|| format!("call-{number}"));
        if let Some(result) = &call.result {
            let content = text(texts(&result.parts));
            returned.push(object([("source_call_id", text(id.clone())), ("content", content)]));
        }
        called.push(object([
            ("tool_call_id", text(id)),
            ("function_name", text(call.name.clone())),
            ("arguments", arguments(call)),
        ]));
    }
    let calls = (!called.is_empty()).then_some(("tool_calls", Value::Array(called)));
    calls.into_iter().chain(observation(returned)).collect()
}

fn observation(results: Vec<Value<'static>>) -> Option<(&'static str, Value<'static>)> {
    (!results.is_empty()).then(|| ("observation", object([("results", Value::Array(results))])))
}

/// Returns the arguments of a call as an object, which the format demands.
fn arguments(call: &MessageToolCall) -> Value<'static> {
    match reader::read(call.arguments.as_bytes(), &Limits::most()) {
        Ok(arguments @ Value::Object(_)) => arguments.to_owned_value(),
        Ok(other) => object([("input", other.to_owned_value())]),
        Err(_) => object([("input", text(call.arguments.clone()))]),
    }
}

fn results(parts: &[MessagePart]) -> impl Iterator<Item = &MessageToolResult> {
    parts.iter().filter_map(|part| match part {
        MessagePart::ToolResult(result) => Some(result),
        _ => None,
    })
}

fn thought(part: &MessagePart) -> Option<&str> {
    match part {
        MessagePart::Thinking { text } if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// Returns what is said, without thoughts and calls of tools.
fn texts(parts: &[MessagePart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        MessagePart::Text { text } | MessagePart::Refusal { text } => Some(text.clone()),
        MessagePart::Media(media) => {
            let size = media.size.map(|size| format!(", {size} bytes")).unwrap_or_default();
            let location =
                media.location.as_ref().map(|location| format!(", {location}")).unwrap_or_default();
            Some(format!("[{}{size}{location}]", media.media_type))
        }
        MessagePart::Unrecorded { digest } => Some(format!("[{digest}]")),
        MessagePart::Other { value } => Some(value.clone()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

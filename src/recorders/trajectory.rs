//! Writes a conversation as a trajectory in the Agent Trajectory Interchange Format, version 1.7.

use serde_json::{Map, Value as Json, json};

use crate::conversation::message::{
    ConversationMessage, MessagePart, MessageRole, MessageToolCall, MessageToolResult,
};
use crate::conversation::reader::{Conversation, ConversationCall};

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

/// Returns the longest thread of a conversation as a trajectory, and the number of calls in other threads, which it has no
/// place for; `None` if there is no call.
///
/// Media of messages are stated by their type and size: the format names files, and a recording has none.
#[must_use]
pub fn trajectory(conversation: &Conversation, head: &TrajectoryHead) -> Option<(Json, u64)> {
    let threads = conversation.threads.iter().enumerate();
    // Of equally long threads, the first one.
    let (main, _) = threads.rev().max_by_key(|(_, thread)| thread.calls)?;
    let calls: Vec<&ConversationCall> =
        conversation.calls.iter().filter(|call| call.thread == main as u64).collect();
    let mut steps: Vec<Json> = Vec::new();
    for call in &calls {
        for message in &call.messages {
            steps.extend(said(message));
        }
        steps.push(answered(call));
    }
    for (number, step) in (1..).zip(&mut steps) {
        step["step_id"] = json!(number);
    }
    let unknown = || "unknown".to_owned();
    let mut agent = json!({
        "name": head.agent.clone().unwrap_or_else(unknown),
        "version": head.version.clone().unwrap_or_else(unknown),
    });
    let model = calls.iter().map(|call| call.model.as_str()).find(|model| !model.is_empty());
    insert(&mut agent, "model_name", model.map(Json::from));
    let total = |of: fn(&ConversationCall) -> Option<u64>| {
        calls.iter().filter_map(|call| of(call)).reduce(u64::saturating_add)
    };
    let mut metrics = json!({"total_steps": steps.len()});
    insert(&mut metrics, "total_prompt_tokens", total(|call| call.tokens_in).map(Json::from));
    insert(&mut metrics, "total_completion_tokens", total(|call| call.tokens_out).map(Json::from));
    let document = json!({
        "schema_version": "ATIF-v1.7",
        "session_id": head.session_id,
        "agent": agent,
        "steps": steps,
        "final_metrics": metrics,
    });
    let others = conversation.calls.len() - calls.len();
    (!calls.is_empty()).then_some((document, others as u64))
}

fn insert(object: &mut Json, name: &str, value: Option<Json>) {
    if let (Some(object), Some(value)) = (object.as_object_mut(), value) {
        object.insert(name.to_owned(), value);
    }
}

/// Returns the step with a message of a request; `None` if it says nothing.
fn said(message: &ConversationMessage) -> Option<Json> {
    let source = match message.role {
        MessageRole::System => "system",
        MessageRole::User | MessageRole::Tool => "user",
        MessageRole::Assistant => "agent",
    };
    let mut step = json!({"source": source, "message": texts(&message.parts)});
    if message.role == MessageRole::Assistant {
        // The program put it into the conversation, and no model answered it.
        step["llm_call_count"] = json!(0);
        add_calls(&mut step, &message.parts);
    } else {
        let results: Vec<Json> =
            results(&message.parts).map(|result| json!({"content": texts(&result.parts)})).collect();
        insert(&mut step, "observation", (!results.is_empty()).then(|| json!({"results": results})));
    }
    let is_empty = step["message"] == "" && step.as_object().map(Map::len) == Some(2);
    (!is_empty).then_some(step)
}

/// Returns the step with the answer of a call: the first one, if several were asked for.
fn answered(call: &ConversationCall) -> Json {
    let parts = call.answers.first().map(|answer| answer.parts.as_slice()).unwrap_or_default();
    let message = match &call.error {
        Some(error) if parts.is_empty() => error.clone(),
        _ => texts(parts),
    };
    let mut step = json!({"source": "agent", "message": message});
    insert(&mut step, "timestamp", call.requested_at.map(|at| json!(at)));
    insert(&mut step, "model_name", (!call.model.is_empty()).then(|| json!(call.model)));
    let thought: Vec<&str> = parts.iter().filter_map(thought).collect();
    insert(&mut step, "reasoning_content", (!thought.is_empty()).then(|| json!(thought.join("\n"))));
    add_calls(&mut step, parts);
    let mut metrics = json!({});
    insert(&mut metrics, "prompt_tokens", call.tokens_in.map(Json::from));
    insert(&mut metrics, "completion_tokens", call.tokens_out.map(Json::from));
    let has_metrics = metrics.as_object().is_some_and(|metrics| !metrics.is_empty());
    insert(&mut step, "metrics", has_metrics.then_some(metrics));
    step
}

/// Adds the calls of tools, and their results.
fn add_calls(step: &mut Json, parts: &[MessagePart]) {
    let calls = parts.iter().filter_map(|part| match part {
        MessagePart::ToolCall(call) => Some(call),
        _ => None,
    });
    let (mut called, mut returned) = (Vec::new(), Vec::new());
    for (number, call) in (1..).zip(calls) {
        let id = call.id.clone().unwrap_or_else(|| format!("call-{number}"));
        called.push(json!({"tool_call_id": id, "function_name": call.name, "arguments": arguments(call)}));
        let result = call.result.as_ref();
        returned.extend(result.map(|result| json!({"source_call_id": id, "content": texts(&result.parts)})));
    }
    insert(step, "tool_calls", (!called.is_empty()).then(|| json!(called)));
    insert(step, "observation", (!returned.is_empty()).then(|| json!({"results": returned})));
}

/// Returns the arguments of a call as an object, which the format demands.
fn arguments(call: &MessageToolCall) -> Json {
    match serde_json::from_str(&call.arguments) {
        Ok(arguments @ Json::Object(_)) => arguments,
        Ok(other) => json!({"input": other}),
        Err(_) => json!({"input": call.arguments}),
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

//! Trajectories in the Agent Trajectory Interchange Format: an agent, and the numbered steps of what it did.

use std::borrow::Cow;

use super::form::{AgentDialect, HeaderMembers, RecordLayout, RecordedAnswer, SessionRecord, count};
use crate::artifact::attribute::parse_millionths;
use crate::artifact::{MissingOffset, parse_timestamp};
use crate::conversation::message::{ConversationMessage, MessagePart, MessageRole, MessageToolResult};
use crate::conversation::providers::{media, parts, said_message, tool_call};
use crate::json::Value;
use crate::json::members::{at, word};

pub(super) const ATIF: AgentDialect = AgentDialect {
    name: "atif",
    layout: RecordLayout::Document {
        // The sums over all steps change with each step.
        header: HeaderMembers { of: None, only: None, but: &["steps", "final_metrics"] },
        list: "steps",
    },
    copies_sessions: false,
    counts_tokens: true,
    recognizes: |head| head.has(&["schema_version", "steps"]) && head.text.contains("\"ATIF-v"),
    read,
};

/// The versions that are known.
const VERSIONS: [&str; 9] = [
    "ATIF-v1.0",
    "ATIF-v1.1",
    "ATIF-v1.2",
    "ATIF-v1.3",
    "ATIF-v1.4",
    "ATIF-v1.5",
    "ATIF-v1.6",
    "ATIF-v1.7",
    "ATIF-v1.8",
];

fn read<'v>(value: &'v Value<'v>) -> SessionRecord<'v> {
    let Some(source) = word(value, "source") else { return header(value) };
    let record = SessionRecord {
        record_type: Cow::Borrowed(source),
        is_known: true,
        number: value.get("step_id").and_then(count),
        time: word(value, "timestamp").and_then(|text| parse_timestamp(text, MissingOffset::Utc)),
        ..SessionRecord::default()
    };
    let said = parts(value.get("message"), part);
    let results =
        || at(value, &["observation", "results"]).and_then(Value::as_array).unwrap_or_default().iter();
    match source {
        "agent" => answered(value, said, results().map(result).collect(), record),
        "user" | "system" => {
            let observed: Vec<MessagePart> = results().map(result).collect();
            let observed = ConversationMessage::new(MessageRole::Tool, observed);
            let asked = [said_message(Some(source), said), observed];
            let asked = asked.into_iter().filter(|message| !message.parts.is_empty());
            SessionRecord { asked: asked.collect(), ..record }
        }
        _ => SessionRecord { is_known: false, ..record },
    }
}

fn header<'v>(root: &'v Value<'v>) -> SessionRecord<'v> {
    let version = word(root, "schema_version");
    SessionRecord {
        record_type: Cow::Borrowed("trajectory"),
        is_known: true,
        session: word(root, "session_id").or_else(|| word(root, "trajectory_id")),
        program: at(root, &["agent", "name"]).and_then(Value::as_str),
        version: at(root, &["agent", "version"]).and_then(Value::as_str),
        model: at(root, &["agent", "model_name"]).and_then(Value::as_str),
        unknown_version: version.filter(|version| !VERSIONS.contains(version)).map(str::to_owned),
        ..SessionRecord::default()
    }
}

fn answered<'v>(
    step: &'v Value<'v>,
    said: Vec<MessagePart>,
    results: Vec<MessagePart>,
    record: SessionRecord<'v>,
) -> SessionRecord<'v> {
    let thought = word(step, "reasoning_content").map(|text| MessagePart::Thinking { text: text.to_owned() });
    let calls = step.get("tool_calls").and_then(Value::as_array).unwrap_or_default().iter().map(|call| {
        tool_call(word(call, "tool_call_id"), word(call, "function_name"), call.get("arguments"))
    });
    let parts = thought.into_iter().chain(said).chain(calls).chain(results);
    let metric = |name: &str| at(step, &["metrics", name]);
    let tokens = ["prompt_tokens", "completion_tokens"].map(|name| metric(name).and_then(count));
    SessionRecord {
        answer: Some(RecordedAnswer {
            parts: parts.collect(),
            is_complete: true,
            ..RecordedAnswer::default()
        }),
        model: word(step, "model_name"),
        tokens: step.get("metrics").map(|_| tokens),
        cost: metric("cost_usd").and_then(parse_millionths),
        ..record
    }
}

fn result(result: &Value<'_>) -> MessagePart {
    MessagePart::ToolResult(MessageToolResult {
        id: word(result, "source_call_id").map(str::to_owned),
        name: None,
        parts: parts(result.get("content"), part),
        is_error: false,
    })
}

fn part(part: &Value<'_>) -> Option<MessagePart> {
    match word(part, "type")? {
        "text" => Some(MessagePart::text(word(part, "text")?)),
        "image" | "audio" => {
            let source = part.get("source")?;
            Some(media(word(source, "media_type")?, None, word(source, "path")))
        }
        _ => None,
    }
}

//! Transcripts of Claude Code: a record on each line, which names the record that it follows.
//!
//! An answer of the model is recorded block by block, with the same message id and usage.

use std::borrow::Cow;

use super::form::{AgentDialect, RecordLayout, RecordedAnswer, SessionRecord, has_all};
use crate::artifact::{MissingOffset, parse_timestamp};
use crate::conversation::message::{ConversationMessage, MessagePart};
use crate::conversation::providers::{anthropic_part, parts, said_message};
use crate::conversation::reader::unsigned_tokens;
use crate::json::Value;
use crate::json::members::{at, word};
use crate::json::reader::MemberNames;

pub(super) const CLAUDE_CODE: AgentDialect = AgentDialect {
    name: "claude-code",
    layout: RecordLayout::Lines,
    copies_sessions: false,
    counts_tokens: false,
    recognizes: |head| {
        head.any_line(|_, names| {
            names.has("type")
                && (names.has("leafUuid")
                    || [["uuid", "sessionId"], ["messageId", "snapshot"]]
                        .iter()
                        .any(|both| has_all(names, both)))
        }) && !head.any_line(is_of_qwen_code)
    },
    read,
};

/// Returns whether a line is one of Qwen Code, which names records in the same way, and whose messages are those of Gemini.
fn is_of_qwen_code(line: &str, names: &mut MemberNames<'_>) -> bool {
    let message = line.split_once("\"message\":").map(|(_, message)| message);
    names.has("systemPayload") || message.is_some_and(|message| MemberNames::new(message).has("parts"))
}

/// Types of records that are not part of the conversation.
const OTHER_TYPES: [&str; 24] = [
    "agent-color",
    "agent-name",
    "agent-setting",
    "ai-title",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "attachment",
    "bridge-session",
    "cost-state",
    "custom-title",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "summary",
    "system",
    "tag",
    "tools-used",
    "worktree-state",
];

/// The model of answers that the program makes itself.
const SYNTHETIC: &str = "<synthetic>";

fn read<'v>(value: &'v Value<'v>) -> SessionRecord<'v> {
    let string = |name: &str| word(value, name);
    let record_type = string("type").unwrap_or_default();
    let is_sidechain = value.get("isSidechain") == Some(&Value::Bool(true));
    let record = SessionRecord {
        record_type: Cow::Borrowed(record_type),
        is_known: ["user", "assistant"].contains(&record_type) || OTHER_TYPES.contains(&record_type),
        id: string("uuid"),
        parent: string("parentUuid"),
        session: string("sessionId"),
        agent: string("agentId").filter(|_| is_sidechain),
        time: string("timestamp").and_then(|text| parse_timestamp(text, MissingOffset::Utc)),
        version: string("version"),
        directory: string("cwd"),
        forked_from: at(value, &["forkedFrom", "sessionId"])
            .and_then(Value::as_str)
            .or_else(|| string("requestSessionId")),
        branch: string("gitBranch").filter(|branch| !branch.is_empty()),
        ..SessionRecord::default()
    };
    let Some(message) = value.get("message").filter(|message| message.as_object().is_some()) else {
        return SessionRecord { asked: queued(value), error: failure(value), ..record };
    };
    match record_type {
        "user" => SessionRecord { asked: asked(word(message, "role"), message.get("content")), ..record },
        "assistant" => answered(value, message, record),
        _ => record,
    }
}

/// Returns what a user asked while the model was answering, of which there is no other record.
fn queued(value: &Value<'_>) -> Vec<ConversationMessage> {
    let attachment = value.get("attachment");
    let attachment = attachment.filter(|attachment| word(attachment, "type") == Some("queued_command"));
    asked(Some("user"), attachment.and_then(|attachment| attachment.get("prompt")))
}

/// Returns a message to the model, unless it is empty.
fn asked(role: Option<&str>, content: Option<&Value<'_>>) -> Vec<ConversationMessage> {
    let parts = parts(content, anthropic_part);
    if parts.is_empty() { Vec::new() } else { vec![said_message(role, parts)] }
}

fn answered<'v>(
    value: &'v Value<'v>,
    message: &'v Value<'v>,
    record: SessionRecord<'v>,
) -> SessionRecord<'v> {
    let parts = parts(message.get("content"), anthropic_part);
    let model = word(message, "model").filter(|model| *model != SYNTHETIC);
    if value.get("isApiErrorMessage") == Some(&Value::Bool(true)) {
        let text = parts.iter().find_map(MessagePart::as_text).unwrap_or("the call failed").to_owned();
        return SessionRecord { error: Some(Cow::Owned(text)), ..record };
    }
    let id = word(message, "id").or_else(|| word(value, "requestId"));
    let answer =
        RecordedAnswer { id, parts, finish_reason: word(message, "stop_reason"), is_complete: false };
    SessionRecord {
        answer: Some(answer),
        model,
        tokens: message.get("usage").filter(|_| model.is_some()).map(unsigned_tokens),
        ..record
    }
}

/// Returns why a call failed, if the record is about that.
fn failure<'v>(value: &'v Value<'v>) -> Option<Cow<'v, str>> {
    let is_error = word(value, "subtype") == Some("api_error");
    let stated =
        [&["error", "error", "message"][..], &["error", "message"], &["cause", "code"], &["content"]];
    let text = stated.iter().find_map(|path| at(value, path)?.as_str());
    is_error.then(|| Cow::Borrowed(text.unwrap_or("the call failed")))
}

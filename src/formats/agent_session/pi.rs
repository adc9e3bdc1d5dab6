//! Sessions of Pi: a header, and an entry on each line, which names the entry that it follows.

use std::borrow::Cow;

use super::form::{AgentDialect, RecordLayout, RecordedAnswer, SessionRecord, count, has_all};
use crate::artifact::attribute::parse_millionths;
use crate::artifact::{MissingOffset, parse_timestamp};
use crate::conversation::message::{ConversationMessage, MessagePart, MessageRole, MessageToolResult};
use crate::conversation::providers::{encoded_media, parts, said_message, tool_call};
use crate::json::Value;
use crate::json::members::{at, word};

pub(super) const PI: AgentDialect = AgentDialect {
    name: "pi",
    layout: RecordLayout::Lines,
    copies_sessions: false,
    counts_tokens: true,
    recognizes: |head| {
        head.first_line(|line, names| {
            has_all(names, &["type", "id", "timestamp", "cwd"]) && line.contains("\"session\"")
        })
    },
    read,
};

/// Types of entries that are not part of the conversation.
const OTHER_TYPES: [&str; 5] = ["thinking_level_change", "custom", "label", "session_info", "model_change"];

/// The latest version of the format that is known.
const LATEST: i64 = 3;

fn read<'v>(value: &'v Value<'v>) -> SessionRecord<'v> {
    let string = |name: &str| word(value, name);
    let record_type = string("type").unwrap_or_default();
    let record = SessionRecord {
        record_type: Cow::Borrowed(record_type),
        is_known: true,
        id: string("id"),
        parent: string("parentId"),
        time: string("timestamp").and_then(|text| parse_timestamp(text, MissingOffset::Utc)),
        ..SessionRecord::default()
    };
    match record_type {
        "session" => header(value, record),
        "message" => match value.get("message") {
            Some(message) => said(message, record),
            None => record,
        },
        "compaction" | "branch_summary" => SessionRecord { asked: noted(string("summary")), ..record },
        "custom_message" => {
            let parts = parts(value.get("content"), part);
            SessionRecord { asked: vec![said_message(Some("user"), parts)], ..record }
        }
        "model_change" => SessionRecord { model: string("modelId"), ..record },
        other => SessionRecord { is_known: OTHER_TYPES.contains(&other), ..record },
    }
}

fn header<'v>(value: &'v Value<'v>, record: SessionRecord<'v>) -> SessionRecord<'v> {
    // The path of a file whose name ends with the id.
    let origin = ["parentSession", "branchedFrom"].into_iter().find_map(|name| word(value, name));
    let origin = origin.and_then(|path| path.strip_suffix(".jsonl")?.rsplit_once('_').map(|(_, id)| id));
    let version = value.get("version").and_then(Value::as_number).and_then(|it| it.literal().parse().ok());
    SessionRecord {
        id: None,
        session: record.id,
        forked_from: origin,
        directory: word(value, "cwd"),
        model: word(value, "modelId"),
        unknown_version: version.filter(|version: &i64| *version > LATEST).map(|version| version.to_string()),
        ..record
    }
}

fn said<'v>(message: &'v Value<'v>, record: SessionRecord<'v>) -> SessionRecord<'v> {
    let content = || parts(message.get("content"), part);
    let string = |name: &str| word(message, name);
    match string("role") {
        Some("assistant") => answered(message, content(), record),
        Some("toolResult") => {
            let result = MessageToolResult {
                id: string("toolCallId").map(str::to_owned),
                name: string("toolName").map(str::to_owned),
                parts: content(),
                is_error: message.get("isError") == Some(&Value::Bool(true)),
            };
            let parts = vec![MessagePart::ToolResult(result)];
            SessionRecord { asked: vec![ConversationMessage::new(MessageRole::Tool, parts)], ..record }
        }
        Some("bashExecution") => {
            let run = format!(
                "$ {}\n{}",
                string("command").unwrap_or_default(),
                string("output").unwrap_or_default()
            );
            SessionRecord { asked: noted(Some(&run)), ..record }
        }
        role => {
            let asked = vec![said_message(role, content())];
            SessionRecord { asked, is_known: role.is_some(), ..record }
        }
    }
}

fn answered<'v>(
    message: &'v Value<'v>,
    parts: Vec<MessagePart>,
    record: SessionRecord<'v>,
) -> SessionRecord<'v> {
    let reason = word(message, "stopReason");
    let failed = ["error", "aborted"].contains(&reason.unwrap_or_default());
    let usage = |name: &str| at(message, &["usage", name]).and_then(count);
    SessionRecord {
        answer: Some(RecordedAnswer {
            id: word(message, "responseId"),
            parts,
            finish_reason: reason,
            is_complete: true,
        }),
        error: failed.then(|| word(message, "errorMessage").or(reason)).flatten().map(Cow::Borrowed),
        model: word(message, "model"),
        tokens: message.get("usage").map(|_| ["input", "output"].map(usage)),
        cost: at(message, &["usage", "cost", "total"]).and_then(parse_millionths),
        ..record
    }
}

fn noted(text: Option<&str>) -> Vec<ConversationMessage> {
    let message = |text| ConversationMessage::new(MessageRole::User, vec![MessagePart::text(text)]);
    text.filter(|text| !text.is_empty()).map(message).into_iter().collect()
}

fn part(block: &Value<'_>) -> Option<MessagePart> {
    let string = |name: &str| word(block, name);
    Some(match string("type")? {
        "text" => MessagePart::text(string("text")?),
        "thinking" => MessagePart::Thinking { text: string("thinking").unwrap_or_default().to_owned() },
        "toolCall" => tool_call(string("id"), string("name"), block.get("arguments")),
        "image" => encoded_media(string("mimeType"), "image", string("data").unwrap_or_default()),
        _ => return None,
    })
}

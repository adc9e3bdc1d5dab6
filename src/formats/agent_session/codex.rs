//! Rollouts of Codex: a record on each line, with the items of the Responses API and events of the program.
//!
//! Events repeat what items say, so messages are read from items only.

use std::borrow::Cow;

use super::form::{AgentDialect, RecordLayout, RecordedAnswer, SessionRecord, count, has_all};
use crate::artifact::{MissingOffset, parse_timestamp};
use crate::conversation::message::{ConversationMessage, MessagePart, MessageRole};
use crate::conversation::providers::responses_item;
use crate::conversation::reader::unsigned_tokens;
use crate::json::members::{at, word};
use crate::json::reader::{self, Limits};
use crate::json::{Object, Value};

pub(super) const CODEX: AgentDialect = AgentDialect {
    name: "codex",
    layout: RecordLayout::Lines,
    copies_sessions: true,
    counts_tokens: false,
    recognizes: |head| {
        head.first_line(|line, names| {
            has_all(names, &["timestamp", "type", "payload"]) && line.contains("\"session_meta\"")
                || has_all(names, &["id", "timestamp", "instructions"]) && !names.has("type")
        })
    },
    read,
};

fn read<'v>(value: &'v Value<'v>) -> SessionRecord<'v> {
    let time = word(value, "timestamp").and_then(|text| parse_timestamp(text, MissingOffset::Utc));
    let Some(payload) = value.get("payload") else { return SessionRecord { time, ..read_bare(value) } };
    let record_type = word(value, "type").unwrap_or_default();
    let payload_type = word(payload, "type");
    let record = match record_type {
        "session_meta" => header(payload.get("meta").unwrap_or(payload)),
        "response_item" => item(payload),
        "event_msg" => event(payload),
        "turn_context" => SessionRecord {
            model: word(payload, "model"),
            directory: word(payload, "cwd"),
            is_known: true,
            ..SessionRecord::default()
        },
        "compacted" => compacted(payload),
        _ => SessionRecord { is_known: OTHER_TYPES.contains(&record_type), ..SessionRecord::default() },
    };
    let record_type = match payload_type {
        Some(payload_type) => Cow::Owned(format!("{record_type} {payload_type}")),
        None => Cow::Borrowed(record_type),
    };
    SessionRecord { record_type, time, number: value.get("ordinal").and_then(count), ..record }
}

/// Types of records that state nothing of the conversation.
const OTHER_TYPES: [&str; 5] = [
    "inter_agent_communication",
    "inter_agent_communication_metadata",
    "session_state",
    "token_usage_record",
    "world_state",
];

/// Reads a record of the first versions, which has no payload: the header, or an item.
fn read_bare<'v>(value: &'v Value<'v>) -> SessionRecord<'v> {
    if let Some(record_type) = word(value, "type") {
        return SessionRecord { record_type: Cow::Borrowed(record_type), ..item(value) };
    }
    let record_type = word(value, "record_type").unwrap_or("session_meta");
    let record = if value.get("id").is_some() { header(value) } else { SessionRecord::default() };
    SessionRecord { record_type: Cow::Borrowed(record_type), is_known: true, ..record }
}

fn header<'v>(meta: &'v Value<'v>) -> SessionRecord<'v> {
    let string = |name: &str| word(meta, name);
    let instructions = [&["instructions"][..], &["base_instructions", "text"], &["base_instructions"]];
    let said = instructions.iter().find_map(|path| at(meta, path)?.as_non_empty_str());
    let message = |text: &str| ConversationMessage::new(MessageRole::System, vec![MessagePart::text(text)]);
    SessionRecord {
        is_known: true,
        session: string("id").or_else(|| string("session_id")),
        forked_from: string("forked_from_id"),
        started_by: string("parent_thread_id").or_else(|| {
            at(meta, &["source", "subagent", "thread_spawn", "parent_thread_id"]).and_then(Value::as_str)
        }),
        version: string("cli_version"),
        directory: string("cwd"),
        branch: at(meta, &["git", "branch"]).and_then(Value::as_str),
        commit: at(meta, &["git", "commit_hash"]).and_then(Value::as_str),
        asked: said.map(message).into_iter().collect(),
        ..SessionRecord::default()
    }
}

/// Reads an item of the Responses API.
fn item<'v>(item: &'v Value<'v>) -> SessionRecord<'v> {
    let record = SessionRecord { is_known: true, ..SessionRecord::default() };
    if ["ghost_snapshot", "additional_tools"].contains(&word(item, "type").unwrap_or_default()) {
        return record;
    }
    let mut message = responses_item(item);
    if message.role == MessageRole::User && message.parts.iter().all(is_context) {
        message.role = MessageRole::System;
    }
    if message.role == MessageRole::Assistant {
        let answer = RecordedAnswer { parts: message.parts, ..RecordedAnswer::default() };
        return SessionRecord { answer: Some(answer), ..record };
    }
    for part in &mut message.parts {
        if let MessagePart::ToolResult(result) = part {
            result.is_error |= result.parts.iter().filter_map(MessagePart::as_text).any(has_failed);
        }
    }
    SessionRecord { asked: vec![message], ..record }
}

/// What is before the exit code of a command in a line of its output.
const EXITS: [&str; 2] = ["Process exited with code ", "Exit code: "];

/// Returns whether the output of a command states that it failed: in a line before the output, or, in earlier versions, in an
/// object.
fn has_failed(output: &str) -> bool {
    let head = output.split("\nOutput:").next().unwrap_or_default();
    let code = head.lines().find_map(|line| EXITS.iter().find_map(|before| line.strip_prefix(before)));
    let is_failure = |code: &str| code.trim().parse::<i64>().is_ok_and(|code| code != 0);
    code.is_some_and(is_failure) || {
        let stated =
            output.trim_start().starts_with('{').then(|| reader::read(output.as_bytes(), &Limits::most()));
        let code = stated.and_then(Result::ok).and_then(|value| {
            Some(at(&value, &["metadata", "exit_code"])?.as_number()?.literal().to_owned())
        });
        code.as_deref().is_some_and(is_failure)
    }
}

/// The beginnings of messages in the role of the user that the program writes itself.
const CONTEXTS: [&str; 6] = [
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<skill>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
];

fn is_context(part: &MessagePart) -> bool {
    part.as_text()
        .is_some_and(|text| CONTEXTS.iter().any(|beginning| text.trim_start().starts_with(beginning)))
}

fn event<'v>(event: &'v Value<'v>) -> SessionRecord<'v> {
    let event_type = word(event, "type").unwrap_or_default();
    let is_failure = ["error", "stream_error"].contains(&event_type);
    let failure = word(event, "message").filter(|_| is_failure);
    let failure = failure.or_else(|| at(event, &["error", "message"]).and_then(Value::as_str));
    let changes =
        [&["changes"][..], &["item", "changes"]].iter().find_map(|path| at(event, path)?.as_object());
    SessionRecord {
        files: changes.into_iter().flat_map(Object::iter).map(|(path, _)| path).collect(),
        is_known: true,
        tokens: at(event, &["info", "last_token_usage"])
            .filter(|_| event_type == "token_count")
            .map(unsigned_tokens),
        error: failure.map(Cow::Borrowed),
        ..SessionRecord::default()
    }
}

/// Reads the record of a compaction, after which the history is what the record states.
fn compacted<'v>(payload: &'v Value<'v>) -> SessionRecord<'v> {
    let message = |text: &str| ConversationMessage::new(MessageRole::User, vec![MessagePart::text(text)]);
    let asked = word(payload, "message").filter(|text| !text.is_empty()).map(message);
    SessionRecord { is_known: true, asked: asked.into_iter().collect(), ..SessionRecord::default() }
}

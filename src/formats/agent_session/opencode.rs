//! Exports of opencode: a session, and its messages with their parts.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use super::form::{AgentDialect, HeaderMembers, RecordLayout, RecordedAnswer, SessionRecord, count};
use crate::artifact::attribute::{parse_millionths, parse_milliseconds};
use crate::conversation::message::{MessagePart, MessageToolResult};
use crate::conversation::providers::{media, said_message, tool_call};
use crate::json::Value;
use crate::json::members::{at, word};

pub(super) const OPENCODE: AgentDialect = AgentDialect {
    name: "opencode",
    layout: RecordLayout::Document {
        // Titles, summaries and times of a session change with each message.
        header: HeaderMembers {
            of: Some("info"),
            only: Some(&["id", "parentID", "directory", "version"]),
            but: &[],
        },
        list: "messages",
    },
    copies_sessions: false,
    counts_tokens: true,
    recognizes: |head| head.has(&["info", "messages"]) && head.text.contains("\"ses_"),
    read,
};

fn read<'v>(value: &'v Value<'v>) -> SessionRecord<'v> {
    let Some(info) = value.get("info") else { return header(value) };
    let role = word(info, "role").unwrap_or_default();
    let parts: Vec<MessagePart> =
        value.get("parts").and_then(Value::as_array).unwrap_or_default().iter().flat_map(part).collect();
    let record = SessionRecord {
        record_type: Cow::Borrowed(role),
        is_known: true,
        session: word(info, "sessionID"),
        time: time(info, "created"),
        ended: time(info, "completed"),
        directory: at(info, &["path", "cwd"]).and_then(Value::as_str),
        ..SessionRecord::default()
    };
    match role {
        "user" => SessionRecord { asked: vec![said_message(Some(role), parts)], ..record },
        "assistant" => {
            let tokens = |name: &str| at(info, &["tokens", name]).and_then(count);
            SessionRecord {
                answer: Some(RecordedAnswer {
                    id: None,
                    parts,
                    finish_reason: word(info, "finish"),
                    is_complete: true,
                }),
                error: info.get("error").filter(|error| !error.is_null()).map(failure),
                model: word(info, "modelID"),
                tokens: info.get("tokens").map(|_| ["input", "output"].map(tokens)),
                cost: info.get("cost").and_then(parse_millionths),
                ..record
            }
        }
        _ => SessionRecord { is_known: false, ..record },
    }
}

fn header<'v>(info: &'v Value<'v>) -> SessionRecord<'v> {
    SessionRecord {
        record_type: Cow::Borrowed("session"),
        is_known: true,
        session: word(info, "id"),
        started_by: word(info, "parentID"),
        version: word(info, "version"),
        directory: word(info, "directory"),
        ..SessionRecord::default()
    }
}

fn time(info: &Value<'_>, name: &str) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(at(info, &["time", name]).and_then(parse_milliseconds)?)
}

fn failure<'v>(error: &'v Value<'v>) -> Cow<'v, str> {
    let message = at(error, &["data", "message"]).and_then(Value::as_str).or_else(|| word(error, "name"));
    Cow::Borrowed(message.unwrap_or("the call failed"))
}

/// Parts that state how a message was made.
const OF_PROCESS: [&str; 6] = ["step-start", "step-finish", "snapshot", "patch", "retry", "compaction"];

fn part(part: &Value<'_>) -> Vec<MessagePart> {
    let string = |name: &str| word(part, name);
    match string("type").unwrap_or_default() {
        "text" => vec![MessagePart::text(string("text").unwrap_or_default())],
        "reasoning" => vec![MessagePart::Thinking { text: string("text").unwrap_or_default().to_owned() }],
        "file" => vec![media(string("mime").unwrap_or("file"), string("filename"), string("url"))],
        "tool" => called(part),
        name if OF_PROCESS.contains(&name) => Vec::new(),
        _ => vec![MessagePart::other(part)],
    }
}

/// Returns the call of a tool, and its result if it has ended.
fn called(part: &Value<'_>) -> Vec<MessagePart> {
    let (id, name) = (word(part, "callID"), word(part, "tool"));
    let state = part.get("state").unwrap_or(&Value::Null);
    let result = ["output", "error"].into_iter().find_map(|member| Some((member, word(state, member)?)));
    let result = result.map(|(member, text)| {
        MessagePart::ToolResult(MessageToolResult {
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            parts: vec![MessagePart::text(text)],
            is_error: member == "error",
        })
    });
    [Some(tool_call(id, name, state.get("input"))), result].into_iter().flatten().collect()
}

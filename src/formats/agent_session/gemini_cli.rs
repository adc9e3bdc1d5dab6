//! Chats of Gemini CLI: one JSON document that is written again with each message, or, in later versions, a record on each
//! line.
//!
//! A message with the calls of tools contains their results. A line with the id of an earlier message replaces that.

use std::borrow::Cow;

use super::form::{AgentDialect, HeaderMembers, RecordLayout, RecordedAnswer, SessionRecord, count, has_all};
use crate::artifact::{MissingOffset, parse_timestamp};
use crate::conversation::message::{MessagePart, MessageToolResult};
use crate::conversation::providers::{gemini_part, parts, said_message, tool_call};
use crate::digest::Digest;
use crate::json::Value;
use crate::json::members::{at, word};

/// Members of the document, and of the first line.
const HEADER: [&str; 2] = ["sessionId", "projectHash"];

pub(super) const DOCUMENT: AgentDialect = AgentDialect {
    name: "gemini-cli",
    layout: RecordLayout::Document {
        header: HeaderMembers { of: None, only: Some(&["sessionId", "projectHash", "startTime"]), but: &[] },
        list: "messages",
    },
    copies_sessions: false,
    counts_tokens: false,
    recognizes: |head| head.has(&HEADER) && head.has(&["messages"]),
    read,
};

pub(super) const LINES: AgentDialect = AgentDialect {
    layout: RecordLayout::Lines,
    recognizes: |head| head.first_line(|_, names| has_all(names, &HEADER)),
    ..DOCUMENT
};

fn read<'v>(value: &'v Value<'v>) -> SessionRecord<'v> {
    let string = |name: &str| word(value, name);
    let record_type = string("type").unwrap_or_else(|| change_type(value));
    let record = SessionRecord {
        record_type: Cow::Borrowed(record_type),
        is_known: TYPES.contains(&record_type),
        session: string("sessionId"),
        directory_hash: string("projectHash").and_then(Digest::parse_hex),
        time: ["timestamp", "startTime"]
            .into_iter()
            .find_map(string)
            .and_then(|text| parse_timestamp(text, MissingOffset::Utc)),
        ..SessionRecord::default()
    };
    let said = || parts(value.get("content"), gemini_part);
    match record_type {
        "user" => SessionRecord { asked: vec![said_message(Some("user"), said())], ..record },
        "error" => {
            let text = said().iter().find_map(MessagePart::as_text).unwrap_or("an error").to_owned();
            SessionRecord { error: Some(Cow::Owned(text)), ..record }
        }
        "gemini" => {
            let answer = RecordedAnswer {
                id: string("id"),
                parts: answered(value, said()),
                is_complete: true,
                ..RecordedAnswer::default()
            };
            SessionRecord {
                answer: Some(answer),
                model: string("model"),
                tokens: value.get("tokens").filter(|tokens| !tokens.is_null()).map(counted),
                ..record
            }
        }
        _ => record,
    }
}

/// Returns the numbers of tokens in the request and in the answer. The program copies those of the API, which counts the results
/// of its own tools and what the model thought apart.
fn counted(tokens: &Value<'_>) -> [Option<u64>; 2] {
    let stated = |name: &str| tokens.get(name).and_then(count);
    let sum = |name, apart| stated(name).map(|number| number.saturating_add(stated(apart).unwrap_or(0)));
    [sum("input", "tool"), sum("output", "thoughts")]
}

/// The types of messages, and of records that are none.
const TYPES: [&str; 8] = ["user", "gemini", "info", "error", "warning", "session", "$set", "$rewindTo"];

/// Returns the type of a record that is not a message.
fn change_type(value: &Value<'_>) -> &'static str {
    let changes = ["$set", "$rewindTo"];
    let change = changes.into_iter().find(|name| value.get(name).is_some());
    change.or(value.get("sessionId").map(|_| "session")).unwrap_or_default()
}

/// Returns the parts of an answer: what the model thought, what it said, and the calls of tools with their results.
fn answered(value: &Value<'_>, said: Vec<MessagePart>) -> Vec<MessagePart> {
    let list = |name: &str| value.get(name).and_then(Value::as_array).unwrap_or_default();
    let thought = |thought: &Value<'_>| {
        let texts = ["subject", "description"].into_iter().filter_map(|name| word(thought, name));
        MessagePart::Thinking { text: texts.collect::<Vec<_>>().join("\n") }
    };
    let called = |call: &Value<'_>| {
        let id = word(call, "id");
        let call_part = tool_call(id, word(call, "name"), call.get("args"));
        [Some(call_part), result(call).map(MessagePart::ToolResult)].into_iter().flatten().collect::<Vec<_>>()
    };
    let thoughts = list("thoughts").iter().map(thought);
    thoughts.chain(said).chain(list("toolCalls").iter().flat_map(called)).collect()
}

/// Returns the result of a call of a tool, if it has ended.
fn result(call: &Value<'_>) -> Option<MessageToolResult> {
    let is_error = ["error", "cancelled"].contains(&word(call, "status").unwrap_or_default());
    let content = call.get("result").filter(|result| !result.is_null());
    let content = content.or(call.get("resultDisplay").filter(|_| is_error))?;
    let parts = parts(Some(content), output).into_iter().flat_map(|part| match part {
        MessagePart::ToolResult(result) => result.parts,
        part => vec![part],
    });
    let parts: Vec<MessagePart> = parts.collect();
    Some(MessageToolResult {
        id: word(call, "id").map(str::to_owned),
        name: word(call, "name").map(str::to_owned),
        is_error: is_error || parts.iter().filter_map(MessagePart::as_text).any(has_failed),
        parts,
    })
}

/// Returns whether the output of a command states that it failed.
fn has_failed(output: &str) -> bool {
    let code = output.lines().find_map(|line| line.strip_prefix("Exit Code: "));
    code.is_some_and(|code| code.trim().parse::<i64>().is_ok_and(|code| code != 0))
}

/// Returns a part of the result of a tool, without the object that its text is in.
fn output(part: &Value<'_>) -> Option<MessagePart> {
    let text = at(part, &["functionResponse", "response", "output"]).and_then(Value::as_str);
    text.map(MessagePart::text).or_else(|| gemini_part(part))
}

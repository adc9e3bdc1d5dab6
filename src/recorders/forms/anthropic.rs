//! The messages of Anthropic.

use super::turns::{ChatRole, Turn, TurnPart, turns};
use crate::calls::values::{integer, object, text};
use crate::json::{Value, compact};
use crate::recorders::chat::{Chat, ChatChoice, TokenCounts};
use crate::recorders::exchange::{ImportedRequest, ImportedResponse};
use crate::recorders::target::ApiTarget;

/// The types of blocks that a file may state in the form of this API.
const BLOCKS: &[&str] = &[
    "document",
    "image",
    "redacted_thinking",
    "server_tool_use",
    "text",
    "thinking",
    "tool_result",
    "tool_use",
    "web_search_tool_result",
];

/// Returns the request. What has no place in it is added to `unmapped`.
pub(super) fn request(chat: &Chat, target: ApiTarget, unmapped: &mut Vec<String>) -> ImportedRequest {
    let turns = turns(&chat.messages);
    let (system, turns): (Vec<_>, Vec<_>) = turns.into_iter().partition(|turn| turn.role == ChatRole::System);
    let messages = messages(&turns, unmapped);
    let mut members = vec![("model", text(chat.model.clone())), ("messages", Value::Array(messages))];
    match system.as_slice() {
        [] => {}
        [Turn { is_plain: true, parts, .. }] if let [TurnPart::Text(said)] = parts.as_slice() => {
            members.push(("system", text((*said).to_owned())));
        }
        turns => {
            let parts = turns.iter().flat_map(|turn| &turn.parts);
            members.push(("system", Value::Array(parts.map(|part| block(part, unmapped)).collect())));
        }
    }
    for (name, value) in &chat.members {
        match *name {
            "temperature" | "top_p" | "top_k" | "max_tokens" => members.push((name, value.clone())),
            "stop" => members.push(("stop_sequences", listed(value))),
            "tools" => members.push(("tools", tools(value))),
            "n" if value.as_number().is_some_and(|count| count.literal() == "1") => {}
            _ => unmapped.push(format!("{name} has no place in a request to this API")),
        }
    }
    if !members.iter().any(|(name, _)| *name == "max_tokens") {
        unmapped.push(
            "it does not state max_tokens, which clients send: ignore this member to replay it".to_owned(),
        );
    }
    if chat.is_stream {
        members.push(("stream", Value::Bool(true)));
    }
    ImportedRequest::Json { target, body: object(members) }
}

/// Returns a value as a list.
fn listed(value: &Value<'static>) -> Value<'static> {
    if value.as_array().is_some() { value.clone() } else { Value::Array(vec![value.clone()]) }
}

/// Returns messages. What tools answer, and what a person says after it, is one message of the person.
fn messages(turns: &[Turn<'_>], unmapped: &mut Vec<String>) -> Vec<Value<'static>> {
    let mut messages: Vec<(&str, Value<'static>)> = Vec::new();
    let mut is_after_tool = false;
    for turn in turns {
        let role = if turn.role == ChatRole::Assistant { "assistant" } else { "user" };
        let content = match turn.parts.as_slice() {
            [TurnPart::Text(said)] if turn.is_plain && !(is_after_tool && role == "user") => {
                text((*said).to_owned())
            }
            [] if turn.is_plain => text(""),
            parts => Value::Array(parts.iter().map(|part| block(part, unmapped)).collect()),
        };
        match (messages.last_mut(), content) {
            (Some(("user", Value::Array(blocks))), Value::Array(more)) if is_after_tool && role == "user" => {
                blocks.extend(more);
            }
            (_, content) => messages.push((role, content)),
        }
        is_after_tool = turn.role == ChatRole::Tool;
    }
    messages.into_iter().map(|(role, content)| object([("role", text(role)), ("content", content)])).collect()
}

fn block(part: &TurnPart<'_>, unmapped: &mut Vec<String>) -> Value<'static> {
    let word = |word: &str| text(word.to_owned());
    let image = |source| object([("type", text("image")), ("source", source)]);
    match part {
        TurnPart::Text(said) => object([("type", text("text")), ("text", word(said))]),
        TurnPart::Data { media_type, base64 } => image(object([
            ("type", text("base64")),
            ("media_type", word(media_type)),
            ("data", word(base64)),
        ])),
        TurnPart::Link { url, .. } => image(object([("type", text("url")), ("url", word(url))])),
        TurnPart::Call { id, name, arguments } => object([
            ("type", text("tool_use")),
            ("id", word(id)),
            ("name", word(name)),
            ("input", arguments.clone()),
        ]),
        TurnPart::Answer { id, content, .. } => {
            object([("type", text("tool_result")), ("tool_use_id", word(id)), ("content", word(content))])
        }
        TurnPart::Other(part) => {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
            if !BLOCKS.contains(&kind) {
                unmapped.push(format!(
                    "a part of the type {kind:?} has no form in this API; it is kept as it is"
                ));
            }
            (*part).clone()
        }
    }
}

fn tools(tools: &Value<'static>) -> Value<'static> {
    let tool = |tool: &Value<'static>| {
        let Some(function) = tool.get("function") else { return tool.clone() };
        let names = [("name", "name"), ("description", "description"), ("parameters", "input_schema")];
        object(names.into_iter().filter_map(|(from, to)| Some((to, function.get(from)?.clone()))))
    };
    Value::Array(tools.as_array().unwrap_or_default().iter().map(tool).collect())
}

/// Returns the response. What has no place in it is added to `unmapped`.
pub(super) fn reply(chat: &Chat, unmapped: &mut Vec<String>) -> ImportedResponse {
    let Some(choice) = chat.choices.first() else {
        return ImportedResponse::Unmapped("there is no answer".to_owned());
    };
    if chat.choices.len() > 1 {
        unmapped.push("a message has one answer: the others are not mapped".to_owned());
    }
    let turns = turns(std::slice::from_ref(&choice.message));
    let parts = turns.iter().flat_map(|turn| &turn.parts);
    let blocks: Vec<_> = parts.map(|part| block(part, unmapped)).collect();
    if !chat.is_stream {
        return ImportedResponse::json(200, &message(chat, Some(choice), blocks));
    }
    let mut events =
        vec![object([("type", text("message_start")), ("message", message(chat, None, Vec::new()))])];
    for (index, block) in blocks.iter().enumerate() {
        events.extend(in_events(index as u64, block));
    }
    let delta =
        object([("stop_reason", text(stop_reason(&choice.finish_reason))), ("stop_sequence", Value::Null)]);
    let usage = object([("output_tokens", count(chat.usage.output))]);
    events.push(object([("type", text("message_delta")), ("delta", delta), ("usage", usage)]));
    events.push(object([("type", text("message_stop"))]));
    let name = |event: &Value<'_>| event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let events =
        events.iter().map(|event| format!("event: {}\ndata: {}\n\n", name(event), compact::text(event)));
    ImportedResponse::stream(events.collect())
}

/// Returns a message; without an answer it is the beginning of a stream.
fn message(chat: &Chat, choice: Option<&ChatChoice>, blocks: Vec<Value<'static>>) -> Value<'static> {
    let TokenCounts { input, output } = chat.usage;
    // The last events of a stream state those of the answer.
    let usage = object([
        ("input_tokens", count(input)),
        ("output_tokens", count(output.filter(|_| choice.is_some()))),
    ]);
    let reason = choice.map_or(Value::Null, |choice| text(stop_reason(&choice.finish_reason)));
    object([
        ("id", text(chat.id.clone().unwrap_or_else(|| "imported".to_owned()))),
        ("type", text("message")),
        ("role", text("assistant")),
        ("model", text(chat.response_model.as_ref().unwrap_or(&chat.model).clone())),
        ("content", Value::Array(blocks)),
        ("stop_reason", reason),
        ("stop_sequence", Value::Null),
        ("usage", usage),
    ])
}

/// Returns a number of tokens. The API requires the member, also if the number is not known.
fn count(tokens: Option<u64>) -> Value<'static> {
    tokens.map_or(Value::Null, integer)
}

/// Returns the events of a block: its beginning, all of its content, and its end.
fn in_events(index: u64, block: &Value<'static>) -> impl Iterator<Item = Value<'static>> {
    let at = |name: &str| block.get(name).cloned().unwrap_or(Value::Null);
    let (begun, delta) = match block.get("type").and_then(Value::as_str) {
        Some("text") => (
            object([("type", text("text")), ("text", text(""))]),
            Some(object([("type", text("text_delta")), ("text", at("text"))])),
        ),
        Some("tool_use") => (
            object([("type", at("type")), ("id", at("id")), ("name", at("name")), ("input", object([]))]),
            Some(object([
                ("type", text("input_json_delta")),
                ("partial_json", text(compact::text(&at("input")))),
            ])),
        ),
        _ => (block.clone(), None),
    };
    let event = |kind: &'static str, content: Option<(&'static str, Value<'static>)>| {
        object([("type", text(kind)), ("index", integer(index))].into_iter().chain(content))
    };
    [
        Some(event("content_block_start", Some(("content_block", begun)))),
        delta.map(|delta| event("content_block_delta", Some(("delta", delta)))),
        Some(event("content_block_stop", None)),
    ]
    .into_iter()
    .flatten()
}

fn stop_reason(reason: &str) -> String {
    match reason {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" | "tool_call" | "function_call" => "tool_use",
        "content_filter" => "refusal",
        other => other,
    }
    .to_owned()
}

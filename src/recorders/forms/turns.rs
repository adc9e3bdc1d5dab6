//! The messages of a chat, independent of an API.

use std::borrow::Cow;

use crate::calls::values::{at, object, text};
use crate::json::Value;
use crate::json::reader::{self, Limits};

/// A message.
#[derive(Debug)]
pub(super) struct Turn<'c> {
    pub(super) role: ChatRole,
    /// Whether its content is a text, not a list.
    pub(super) is_plain: bool,
    pub(super) parts: Vec<TurnPart<'c>>,
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChatRole {
    System,
    User,
    Assistant,
    Tool,
}

/// A part of a message.
#[derive(Debug)]
pub(super) enum TurnPart<'c> {
    Text(&'c str),
    /// Bytes in Base64, with their media type.
    Data {
        media_type: &'c str,
        base64: &'c str,
    },
    Link {
        media_type: Option<&'c str>,
        url: &'c str,
    },
    /// The model calls a tool.
    Call {
        id: &'c str,
        name: &'c str,
        arguments: Value<'static>,
    },
    /// The result of a tool call.
    Answer {
        id: &'c str,
        name: &'c str,
        content: Cow<'c, str>,
    },
    /// Something else, as the file states it.
    Other(&'c Value<'static>),
}

/// Reads messages in the form of chat completions.
pub(super) fn turns<'c>(messages: &'c [Value<'static>]) -> Vec<Turn<'c>> {
    let mut called: Vec<(&str, &str)> = Vec::new();
    let mut read = Vec::new();
    for message in messages {
        let word = |name: &str| message.get(name).and_then(Value::as_str);
        let role = match word("role").unwrap_or("user") {
            "system" | "developer" => ChatRole::System,
            "assistant" | "model" => ChatRole::Assistant,
            "tool" | "function" => ChatRole::Tool,
            _ => ChatRole::User,
        };
        let content = message.get("content").unwrap_or(&Value::Null);
        if role == ChatRole::Tool {
            let id = word("tool_call_id").unwrap_or_default();
            // Calls without an id are answered in their order.
            let number = called.iter().position(|(other, _)| *other == id);
            let name = number.map_or("", |number| called.remove(number).1);
            let answer = TurnPart::Answer { id, name, content: said(content) };
            read.push(Turn { role, is_plain: false, parts: vec![answer] });
            continue;
        }
        let mut parts = parts(content);
        let is_plain = matches!(content, Value::String(_));
        for call in message.get("tool_calls").and_then(Value::as_array).unwrap_or_default() {
            let call = called_tool(call);
            if let TurnPart::Call { id, name, .. } = &call {
                called.push((*id, *name));
            }
            parts.push(call);
        }
        read.push(Turn { role, is_plain: is_plain && parts.len() <= 1, parts });
    }
    read
}

fn parts<'c>(content: &'c Value<'static>) -> Vec<TurnPart<'c>> {
    match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![TurnPart::Text(text)],
        Value::Array(parts) => parts.iter().map(part).collect(),
        Value::Null => Vec::new(),
        other => vec![TurnPart::Other(other)],
    }
}

/// Returns a part in the form of chat completions, of OpenTelemetry or of Inspect.
fn part<'c>(value: &'c Value<'static>) -> TurnPart<'c> {
    let word = |name: &str| value.get(name).and_then(Value::as_str);
    let kind = word("type").unwrap_or_default();
    let media_type = word("mime_type");
    let found = match kind {
        "text" if value.get("cache_control").is_none() => {
            word("text").or_else(|| word("content")).map(TurnPart::Text)
        }
        "blob" => {
            word("content").zip(media_type).map(|(base64, media_type)| TurnPart::Data { media_type, base64 })
        }
        "uri" => word("uri").map(|url| TurnPart::Link { media_type, url }),
        "image" => word("image").map(linked),
        "image_url" => at(value, &["image_url", "url"]).and_then(Value::as_str).map(linked),
        _ => None,
    };
    found.unwrap_or(TurnPart::Other(value))
}

/// Returns what a URL refers to; a `data:` URL contains it.
fn linked(url: &str) -> TurnPart<'_> {
    let data = url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
    match data {
        Some((media_type, base64)) => TurnPart::Data { media_type, base64 },
        None => TurnPart::Link { media_type: None, url },
    }
}

fn called_tool<'c>(call: &'c Value<'static>) -> TurnPart<'c> {
    let word = |path: &[&str]| at(call, path).and_then(Value::as_str);
    let Some(name) = word(&["function", "name"]) else { return TurnPart::Other(call) };
    let arguments_text = word(&["function", "arguments"]).unwrap_or_default();
    let arguments = reader::read(arguments_text.as_bytes(), &Limits::default()).ok();
    let arguments = arguments.filter(|arguments| arguments.as_object().is_some());
    let arguments =
        arguments.map_or_else(|| arguments_of(arguments_text), |arguments| arguments.to_owned_value());
    TurnPart::Call { id: word(&["id"]).unwrap_or_default(), name, arguments }
}

/// Returns arguments that are not an object.
fn arguments_of(arguments_text: &str) -> Value<'static> {
    if arguments_text.is_empty() || arguments_text == "null" {
        return object([]);
    }
    object([("arguments", text(arguments_text.to_owned()))])
}

/// Returns a text, or the texts of parts.
fn said<'c>(content: &'c Value<'static>) -> Cow<'c, str> {
    match content {
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(crate::json::compact::text(other)),
    }
}

//! Conversations that a file states in a form of its own. Their messages have the form of chat completions.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use super::decoding::type_of;
use crate::json::members::{at, integer, object, text, word};
use crate::json::reader::{self, Limits};
use crate::json::{Value, compact};

/// A request and its response, as a file states them.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) messages: Vec<Value<'static>>,
    /// Other members of the request.
    pub(crate) members: Vec<(&'static str, Value<'static>)>,
    pub(crate) choices: Vec<ChatChoice>,
    pub(crate) id: Option<String>,
    pub(crate) response_model: Option<String>,
    pub(crate) ended_at: Option<DateTime<Utc>>,
    pub(crate) usage: TokenCounts,
    pub(crate) is_stream: bool,
    /// What the texts of the messages were embedded as, if that is stated.
    pub(crate) embedded: EmbeddedTexts,
}

/// The vectors of texts.
#[derive(Debug, Default)]
pub(crate) struct EmbeddedTexts {
    /// Whether a request has its only text in a list.
    pub(crate) are_list: bool,
    /// Each is a list of numbers.
    pub(crate) vectors: Vec<Value<'static>>,
}

impl Chat {
    /// Adds the tools that the model may call, if there are any.
    pub(crate) fn add_tools(&mut self, tools: impl Iterator<Item = Value<'static>>) {
        let tools: Vec<_> = tools.collect();
        if !tools.is_empty() {
            self.members.push(("tools", Value::Array(tools)));
        }
    }

    /// Returns the model that answered, as far as that is stated.
    pub(crate) fn response_model(&self) -> &str {
        self.response_model.as_ref().unwrap_or(&self.model)
    }

    /// Returns the id of the response, or one for clients that require it.
    pub(super) fn response_id(&self) -> Value<'static> {
        text(self.id.clone().unwrap_or_else(|| "imported".to_owned()))
    }
}

/// The numbers of tokens of the input and of the output, as far as a file states them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokenCounts {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
}

impl TokenCounts {
    /// Returns the members with these names: those of the input, the output and their sum. A number that is not stated has
    /// none.
    pub(crate) fn members(self, names: [&'static str; 3]) -> Option<Value<'static>> {
        let total = self.input.zip(self.output).map(|(input, output)| input.saturating_add(output));
        let stated = names.into_iter().zip([self.input, self.output, total]);
        let stated: Vec<_> = stated.filter_map(|(name, count)| Some((name, integer(count?)))).collect();
        (!stated.is_empty()).then(|| object(stated))
    }
}

/// An answer of the model.
#[derive(Debug)]
pub(crate) struct ChatChoice {
    pub(crate) message: Value<'static>,
    pub(crate) finish_reason: String,
}

impl ChatChoice {
    pub(crate) fn new(message: Value<'static>, finish_reason: &str) -> Self {
        Self { message, finish_reason: finish_reason.to_owned() }
    }
}

/// Returns a message.
pub(crate) fn message(
    role: &str,
    content: Value<'static>,
    tool_calls: Vec<Value<'static>>,
    tool_call_id: Option<&str>,
) -> Value<'static> {
    let is_empty = matches!(&content, Value::String(text) if text.is_empty());
    let content = if is_empty && !tool_calls.is_empty() { Value::Null } else { content };
    let calls = (!tool_calls.is_empty()).then_some(("tool_calls", Value::Array(tool_calls)));
    let id = tool_call_id.map(|id| ("tool_call_id", text(id.to_owned())));
    object([("role", text(role.to_owned())), ("content", content)].into_iter().chain(calls).chain(id))
}

/// Returns a call of a tool, whose arguments are an object or its text.
pub(crate) fn tool_call(id: &str, name: &str, arguments: &Value<'_>) -> Value<'static> {
    let arguments = match arguments {
        Value::String(text) => text.clone().into_owned(),
        other => compact::text(other),
    };
    let function = object([("name", text(name.to_owned())), ("arguments", text(arguments))]);
    object([("id", text(id.to_owned())), ("type", text("function")), ("function", function)])
}

/// Returns a tool that the model may call.
pub(crate) fn tool(name: &str, description: Option<&str>, parameters: Option<&Value<'_>>) -> Value<'static> {
    let description = description.map(|description| ("description", text(description.to_owned())));
    let parameters = parameters.map(|parameters| ("parameters", parameters.to_owned_value()));
    let members = [("name", text(name.to_owned()))].into_iter().chain(description).chain(parameters);
    object([("type", text("function")), ("function", object(members))])
}

/// Returns a tool that an object describes, in one of the forms of several programs; `None` if it has no name, or is a tool of
/// the provider.
pub(crate) fn tool_of(stated: &Value<'_>) -> Option<Value<'static>> {
    if !matches!(type_of(stated), "" | "function" | "custom") {
        return None;
    }
    let schemas = ["parameters", "input_schema", "inputSchema"];
    let parameters = schemas.into_iter().find_map(|name| stated.get(name));
    Some(tool(word(stated, "name")?, word(stated, "description"), parameters))
}

/// A message.
#[derive(Debug)]
pub(crate) struct Turn<'c> {
    pub(crate) role: ChatRole,
    /// Whether its content is a text, not a list.
    pub(crate) is_plain: bool,
    pub(crate) parts: Vec<TurnPart<'c>>,
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChatRole {
    System,
    User,
    Assistant,
    Tool,
}

/// A part of a message.
#[derive(Debug)]
pub(crate) enum TurnPart<'c> {
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

/// The messages of a chat, of which some APIs state those of the system apart.
pub(crate) struct Turns<'c> {
    pub(crate) system: Vec<Turn<'c>>,
    pub(crate) others: Vec<Turn<'c>>,
}

impl<'c> Turns<'c> {
    pub(crate) fn read(messages: &'c [Value<'static>]) -> Self {
        let (system, others) = turns(messages).into_iter().partition(|turn| turn.role == ChatRole::System);
        Self { system, others }
    }
}

/// Returns what is said of a member of a request that an API does not have.
pub(crate) fn no_place(name: &str) -> String {
    format!("{name} has no place in a request to this API")
}

/// Returns what is said of a part that an API does not have.
pub(crate) fn unknown_part(part: &Value<'_>) -> String {
    format!("a part of the type {:?} has no form in this API; it is kept as it is", type_of(part))
}

/// Reads messages in the form of chat completions.
pub(crate) fn turns<'c>(messages: &'c [Value<'static>]) -> Vec<Turn<'c>> {
    let mut called: Vec<(&str, &str)> = Vec::new();
    let mut read = Vec::new();
    for message in messages {
        let role = match word(message, "role").unwrap_or("user") {
            "system" | "developer" => ChatRole::System,
            "assistant" | "model" => ChatRole::Assistant,
            "tool" | "function" => ChatRole::Tool,
            _ => ChatRole::User,
        };
        let content = message.get("content").unwrap_or(&Value::Null);
        if role == ChatRole::Tool {
            let id = word(message, "tool_call_id").unwrap_or_default();
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
    let word = |name: &str| word(value, name);
    let media_type = word("mime_type");
    let found = match type_of(value) {
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
    let Some(function) = call.get("function") else { return TurnPart::Other(call) };
    let Some(name) = word(function, "name") else { return TurnPart::Other(call) };
    let stated = word(function, "arguments").unwrap_or_default();
    let arguments = match reader::read(stated.as_bytes(), &Limits::default()) {
        Ok(arguments @ Value::Object(_)) => arguments.to_owned_value(),
        _ if stated.is_empty() || stated == "null" => object([]),
        _ => object([("arguments", text(stated.to_owned()))]),
    };
    TurnPart::Call { id: word(call, "id").unwrap_or_default(), name, arguments }
}

/// Returns a text, or the texts of parts.
fn said<'c>(content: &'c Value<'static>) -> Cow<'c, str> {
    match content {
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(parts) => parts.iter().filter_map(|part| word(part, "text")).collect(),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(compact::text(other)),
    }
}

#[cfg(test)]
impl Chat {
    /// A chat in which a tool is called, which answers.
    pub(crate) fn sample(provider: &str, is_stream: bool) -> Self {
        let number = |text: &'static str| reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let calls = vec![tool_call("w_0", "w", &object([("city", text("Paris"))]))];
        let parameters = object([("type", text("object"))]);
        let tools = vec![tool("w", Some("Tells the weather"), Some(&parameters))];
        Self {
            provider: provider.to_owned(),
            model: "m".to_owned(),
            messages: vec![
                message("system", text("be short"), Vec::new(), None),
                message("user", text("the weather?"), Vec::new(), None),
                message("assistant", text(""), calls.clone(), None),
                message("tool", text("rain"), Vec::new(), Some("w_0")),
                message("user", text("so?"), Vec::new(), None),
            ],
            members: vec![
                ("max_tokens", number("9")),
                ("seed", number("3")),
                ("stop", Value::Array(vec![text("x")])),
                ("tools", Value::Array(tools)),
            ],
            choices: vec![ChatChoice {
                message: message("assistant", text("wait"), calls, None),
                finish_reason: "tool_calls".to_owned(),
            }],
            usage: TokenCounts { input: Some(1), output: Some(2) },
            is_stream,
            ..Self::default()
        }
    }

    /// Returns the path, the request, the response and what has no place in them, as text.
    pub(crate) fn formed(&self) -> (String, String, String, Vec<String>) {
        let super::FormedChat { path, request, response, unmapped, .. } = super::FormedChat::new(self);
        let response = match response {
            super::ChatResponse::Whole(body) => compact::text(&body),
            super::ChatResponse::Stream(events) => events,
            super::ChatResponse::Missing => String::new(),
        };
        (path, compact::text(&request), response, unmapped)
    }
}

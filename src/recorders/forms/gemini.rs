//! The requests of Gemini to generate content.

use super::turns::{ChatRole, Turn, TurnPart, turns};
use crate::calls::values::{integer, object, text};
use crate::json::reader::{self, Limits};
use crate::json::{Value, compact};
use crate::recorders::chat::{Chat, ChatChoice};
use crate::recorders::exchange::{ImportedRequest, ImportedResponse};
use crate::recorders::target::ApiTarget;

/// The options of chat completions, and what they are in `generationConfig`.
const OPTIONS: &[(&str, &str)] = &[
    ("temperature", "temperature"),
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("max_tokens", "maxOutputTokens"),
    ("seed", "seed"),
    ("stop", "stopSequences"),
    ("frequency_penalty", "frequencyPenalty"),
    ("presence_penalty", "presencePenalty"),
    ("n", "candidateCount"),
];

/// Returns the request. What has no place in it is added to `unmapped`.
pub(super) fn request(chat: &Chat, target: ApiTarget, unmapped: &mut Vec<String>) -> ImportedRequest {
    let turns = turns(&chat.messages);
    let (system, turns): (Vec<_>, Vec<_>) = turns.into_iter().partition(|turn| turn.role == ChatRole::System);
    let mut members = vec![("contents", Value::Array(contents(&turns, unmapped)))];
    if !system.is_empty() {
        let parts = system.iter().flat_map(|turn| &turn.parts);
        let parts: Vec<_> = parts.map(|part| part_of(part, unmapped)).collect();
        // The clients of Gemini state this role.
        members.push(("systemInstruction", content("user", parts)));
    }
    let mut options = Vec::new();
    for (name, value) in &chat.members {
        match OPTIONS.iter().find(|(from, _)| from == name) {
            Some((_, to)) => options.push((*to, value.clone())),
            None if *name == "tools" => members.push(("tools", tools(value))),
            None => unmapped.push(format!("{name} has no place in a request to this API")),
        }
    }
    // The client for Python sends it, empty, with everything that it calls a configuration.
    if !options.is_empty() || members.len() > 1 {
        members.push(("generationConfig", object(options)));
    }
    ImportedRequest::Json { target, body: object(members) }
}

fn content(role: &'static str, parts: Vec<Value<'static>>) -> Value<'static> {
    object([("role", text(role)), ("parts", Value::Array(parts))])
}

/// Returns contents. Messages of the same role that follow each other are one, as clients send them.
fn contents(turns: &[Turn<'_>], unmapped: &mut Vec<String>) -> Vec<Value<'static>> {
    let mut contents: Vec<(&'static str, Vec<Value<'static>>)> = Vec::new();
    for turn in turns {
        let role = if turn.role == ChatRole::Assistant { "model" } else { "user" };
        let parts = turn.parts.iter().map(|part| part_of(part, unmapped));
        match contents.last_mut() {
            Some((last, before)) if *last == role => before.extend(parts),
            _ => contents.push((role, parts.collect())),
        }
    }
    contents.into_iter().map(|(role, parts)| content(role, parts)).collect()
}

fn part_of(part: &TurnPart<'_>, unmapped: &mut Vec<String>) -> Value<'static> {
    let word = |text: &str| Value::String(text.to_owned().into());
    match part {
        TurnPart::Text(said) => object([("text", word(said))]),
        TurnPart::Data { media_type, base64 } => {
            object([("inlineData", object([("mimeType", word(media_type)), ("data", word(base64))]))])
        }
        TurnPart::Link { media_type, url } => {
            let media_type = media_type.map(|media_type| ("mimeType", word(media_type)));
            object([("fileData", object([("fileUri", word(url))].into_iter().chain(media_type)))])
        }
        TurnPart::Call { id, name, arguments } => {
            let members = [("name", word(name)), ("args", arguments.clone())];
            let id = id_of(id, name).map(|id| ("id", word(id)));
            object([("functionCall", object(members.into_iter().chain(id)))])
        }
        TurnPart::Answer { id, name, content } => {
            let members = [("name", word(name)), ("response", response(content))];
            let id = id_of(id, name).map(|id| ("id", word(id)));
            object([("functionResponse", object(members.into_iter().chain(id)))])
        }
        TurnPart::Other(part) => {
            if part.get("type").is_some() {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
                unmapped.push(format!(
                    "a part of the type {kind:?} has no form in this API; it is kept as it is"
                ));
            }
            (*part).clone()
        }
    }
}

/// Returns the id of a call, unless a recorder made it of the name and a number because there was none.
fn id_of<'i>(id: &'i str, name: &str) -> Option<&'i str> {
    let number = id.strip_prefix(name).and_then(|rest| rest.strip_prefix('_'));
    let is_made = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    (!id.is_empty() && !is_made).then_some(id)
}

/// Returns what a function answered: an object, or the text as its result.
fn response(content: &str) -> Value<'static> {
    let read = reader::read(content.as_bytes(), &Limits::default()).ok();
    let read = read.filter(|read| read.as_object().is_some());
    read.map_or_else(|| object([("result", text(content.to_owned()))]), |read| read.to_owned_value())
}

/// Returns tools: all functions are in one.
fn tools(tools: &Value<'static>) -> Value<'static> {
    let (mut functions, mut others) = (Vec::new(), Vec::new());
    for tool in tools.as_array().unwrap_or_default() {
        match (tool.get("function"), tool.get("function_declarations")) {
            (Some(function), _) => functions.push(function.clone()),
            (None, Some(functions)) => others.push(object([("functionDeclarations", functions.clone())])),
            (None, None) => others.push(tool.clone()),
        }
    }
    let functions =
        (!functions.is_empty()).then(|| object([("functionDeclarations", Value::Array(functions))]));
    Value::Array(functions.into_iter().chain(others).collect())
}

/// Returns the response.
pub(super) fn reply(chat: &Chat, unmapped: &mut Vec<String>) -> ImportedResponse {
    let candidates =
        chat.choices.iter().enumerate().map(|(index, choice)| candidate(index, choice, unmapped));
    let mut members = vec![("candidates", Value::Array(candidates.collect()))];
    let usage = chat.usage.members(["promptTokenCount", "candidatesTokenCount", "totalTokenCount"]);
    members.extend(usage.map(|usage| ("usageMetadata", usage)));
    members.push(("modelVersion", text(chat.response_model.as_ref().unwrap_or(&chat.model).clone())));
    members.extend(chat.id.clone().map(|id| ("responseId", text(id))));
    let body = object(members);
    if chat.is_stream {
        return ImportedResponse::stream(format!("data: {}\r\n\r\n", compact::text(&body)));
    }
    ImportedResponse::json(200, &body)
}

fn candidate(index: usize, choice: &ChatChoice, unmapped: &mut Vec<String>) -> Value<'static> {
    let turns = turns(std::slice::from_ref(&choice.message));
    let parts = turns.iter().flat_map(|turn| &turn.parts).map(|part| part_of(part, unmapped));
    object([
        ("content", content("model", parts.collect())),
        ("finishReason", text(finish_reason(&choice.finish_reason))),
        ("index", integer(index as u64)),
    ])
}

fn finish_reason(reason: &str) -> String {
    match reason {
        "stop" | "end_turn" | "tool_calls" | "tool_call" | "function_call" | "tool_use" => "STOP".to_owned(),
        "length" => "MAX_TOKENS".to_owned(),
        "content_filter" => "SAFETY".to_owned(),
        other => other.to_ascii_uppercase(),
    }
}

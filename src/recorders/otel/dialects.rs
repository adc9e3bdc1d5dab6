//! The messages of spans in the attributes of several instrumentations: the AI SDK of Vercel, `OpenInference`, and Logfire.

use super::messages::{numbers, parsed, parsed_value};
use super::reading::OtelAttributes;
use crate::calls::values::{at, object, text};
use crate::json::{Object, Value};
use crate::recorders::chat::{Chat, ChatChoice, TokenCounts, message, tool, tool_call};

fn word<'v>(value: &'v Value<'_>, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

/// Returns a value as the content of a tool message.
fn content_of(value: &Value<'_>) -> Value<'static> {
    match value {
        Value::String(_) => value.to_owned_value(),
        other => text(crate::json::compact::text(other)),
    }
}

/// Reads the attributes of the AI SDK. The error names the attribute that cannot be read.
pub(super) fn ai_sdk(attributes: &OtelAttributes, chat: &mut Chat) -> Result<(), String> {
    for one in parsed(attributes, "ai.prompt.messages")? {
        ai_sdk_message(&one, &mut chat.messages);
    }
    if chat.messages.is_empty() {
        return Ok(());
    }
    let mut tools = Vec::new();
    for one in parsed(attributes, "ai.prompt.tools")? {
        let read = one.as_str().and_then(parsed_value);
        let one = read.as_ref().unwrap_or(&one);
        if let Some(name) = word(one, "name") {
            let parameters = one.get("parameters").or_else(|| one.get("inputSchema"));
            tools.push(tool(name, word(one, "description"), parameters));
        }
    }
    if !tools.is_empty() {
        chat.members.push(("tools", Value::Array(tools)));
    }
    let said = ["ai.response.text", "ai.response.object"].into_iter().find_map(|name| attributes.get(name));
    let mut calls = Vec::new();
    for call in parsed(attributes, "ai.response.toolCalls")? {
        calls.extend(ai_sdk_call(&call));
    }
    if said.is_some() || !calls.is_empty() {
        let reason = attributes.get("ai.response.finishReason").and_then(Value::as_str).unwrap_or("stop");
        let finish_reason = reason.replace('-', "_");
        let content = said.map_or_else(|| text(""), content_of);
        chat.choices.push(ChatChoice { message: message("assistant", content, calls, None), finish_reason });
    }
    Ok(())
}

fn ai_sdk_call(part: &Value<'_>) -> Option<Value<'static>> {
    let arguments = part.get("input").or_else(|| part.get("args")).unwrap_or(&Value::Null);
    Some(tool_call(word(part, "toolCallId").unwrap_or_default(), word(part, "toolName")?, arguments))
}

/// Adds a message of the AI SDK. Each result of a tool is a message of its own.
fn ai_sdk_message(one: &Value<'_>, messages: &mut Vec<Value<'static>>) {
    let role = word(one, "role").unwrap_or("user");
    let Some(parts) = one.get("content").and_then(Value::as_array) else {
        let content = one.get("content").map_or_else(|| text(""), Value::to_owned_value);
        messages.push(message(role, content, Vec::new(), None));
        return;
    };
    let (mut shown, mut calls, mut has_results) = (Vec::new(), Vec::new(), false);
    for part in parts {
        match word(part, "type") {
            Some("tool-call") => calls.extend(ai_sdk_call(part)),
            Some("tool-result") => {
                let result = part.get("output").or_else(|| part.get("result")).unwrap_or(&Value::Null);
                // Version 5 states the type of a result beside it.
                let result = result.get("value").filter(|_| result.get("type").is_some()).unwrap_or(result);
                messages.push(message("tool", content_of(result), Vec::new(), word(part, "toolCallId")));
                has_results = true;
            }
            Some("reasoning") => {}
            _ => shown.push(part.to_owned_value()),
        }
    }
    if !(has_results && shown.is_empty() && calls.is_empty()) {
        messages.push(message(role, joined(shown), calls, None));
    }
}

/// Returns the text of parts that are one text, or the parts.
fn joined(parts: Vec<Value<'static>>) -> Value<'static> {
    match parts.as_slice() {
        [] => text(""),
        [only] if let Some(said) = word(only, "text") => text(said.to_owned()),
        _ => Value::Array(parts),
    }
}

/// Reads the numbered attributes of `OpenInference`: `llm.input_messages.0.message.role`.
pub(super) fn openinference(attributes: &OtelAttributes, chat: &mut Chat) {
    let all = |prefix: &'static str| {
        numbers(attributes, prefix).into_iter().map(move |number| {
            let prefix = format!("{prefix}.{number}.message");
            openinference_message(attributes, &prefix)
        })
    };
    chat.messages.extend(all("llm.input_messages"));
    chat.choices.extend(all("llm.output_messages").map(|message| {
        let finish_reason = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
        ChatChoice { message, finish_reason: finish_reason.to_owned() }
    }));
    let mut tools = Vec::new();
    for number in numbers(attributes, "llm.tools") {
        let schema = attributes.get(&format!("llm.tools.{number}.tool.json_schema"));
        tools.extend(schema.and_then(Value::as_str).and_then(parsed_value));
    }
    if !tools.is_empty() {
        chat.members.push(("tools", Value::Array(tools)));
    }
    let parameters =
        attributes.get("llm.invocation_parameters").and_then(Value::as_str).and_then(parsed_value);
    let parameters = parameters.as_ref().and_then(Value::as_object).into_iter().flat_map(Object::iter);
    for (name, value) in parameters {
        if let Some(known) = INVOCATION_PARAMETERS.iter().find(|known| **known == name) {
            chat.members.push((*known, value.to_owned_value()));
        }
        chat.is_stream |= name == "stream" && *value == Value::Bool(true);
    }
}

/// The parameters of invocations that are members of chat completions.
const INVOCATION_PARAMETERS: &[&str] = &[
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "max_completion_tokens",
    "seed",
    "stop",
    "frequency_penalty",
    "presence_penalty",
    "n",
    "tool_choice",
    "response_format",
];

fn openinference_message(attributes: &OtelAttributes, prefix: &str) -> Value<'static> {
    let at = |name: &str| attributes.get(&format!("{prefix}.{name}"));
    let word = |name: &str| at(name).and_then(Value::as_str);
    let mut parts = Vec::new();
    for number in numbers(attributes, &format!("{prefix}.contents")) {
        let part = |name: &str| at(&format!("contents.{number}.message_content.{name}"));
        let said = part("text").and_then(Value::as_str).map(|said| ("text", text(said.to_owned())));
        let url = part("image.image.url").map(|url| ("image_url", object([("url", url.clone())])));
        if let Some((kind, value)) = said.or(url) {
            parts.push(object([("type", text(kind)), (kind, value)]));
        }
    }
    let mut calls = Vec::new();
    for number in numbers(attributes, &format!("{prefix}.tool_calls")) {
        let call = |name: &str| at(&format!("tool_calls.{number}.tool_call.{name}"));
        if let Some(name) = call("function.name").and_then(Value::as_str) {
            let id = call("id").and_then(Value::as_str).unwrap_or_default();
            calls.push(tool_call(id, name, call("function.arguments").unwrap_or(&Value::Null)));
        }
    }
    if let Some(name) = word("function_call_name") {
        calls.push(tool_call("", name, at("function_call_arguments_json").unwrap_or(&Value::Null)));
    }
    let content = at("content").cloned().unwrap_or_else(|| joined(parts));
    message(word("role").unwrap_or("user"), content, calls, word("tool_call_id"))
}

/// Reads the bodies of Logfire: `request_data` is the body of a request, `response_data` has the message of the response.
pub(super) fn logfire(attributes: &OtelAttributes, chat: &mut Chat) -> Result<(), String> {
    let document = |name: &str| match attributes.get(name) {
        Some(Value::String(said)) => {
            parsed_value(said).map(Some).ok_or_else(|| super::messages::not_json(name, said))
        }
        other => Ok(other.cloned()),
    };
    let Some(request) = document("request_data")?.filter(|request| request.get("messages").is_some()) else {
        return Ok(());
    };
    if let Some(system) = request.get("system") {
        chat.messages.push(message("system", system.to_owned_value(), Vec::new(), None));
    }
    let messages = request.get("messages").and_then(Value::as_array).unwrap_or_default();
    chat.messages.extend(messages.iter().map(Value::to_owned_value));
    for name in INVOCATION_PARAMETERS.iter().chain(&["tools"]) {
        if let Some(value) = request.get(name)
            && !chat.members.iter().any(|(known, _)| known == name)
        {
            chat.members.push((*name, value.to_owned_value()));
        }
    }
    chat.is_stream |= request.get("stream") == Some(&Value::Bool(true));
    if let Some(response) = document("response_data")? {
        logfire_response(&response, chat);
    }
    Ok(())
}

fn logfire_response(response: &Value<'_>, chat: &mut Chat) {
    let answered = response.get("message").filter(|answered| !answered.is_null());
    let said = response.get("combined_chunk_content").and_then(Value::as_str);
    if let Some(answered) = answered {
        let calls = answered.get("tool_calls").and_then(Value::as_array).unwrap_or_default();
        let calls: Vec<_> = calls.iter().map(Value::to_owned_value).collect();
        let finish_reason = if calls.is_empty() { "stop" } else { "tool_calls" }.to_owned();
        let content = answered.get("content").filter(|content| !content.is_null());
        let content = content.map_or_else(|| text(""), Value::to_owned_value);
        chat.choices.push(ChatChoice { message: message("assistant", content, calls, None), finish_reason });
    } else if let Some(said) = said {
        let message = message("assistant", text(said.to_owned()), Vec::new(), None);
        chat.choices.push(ChatChoice { message, finish_reason: "stop".to_owned() });
    }
    let tokens = |names: [&str; 2]| {
        let count = names.iter().find_map(|name| at(response, &["usage", name]))?;
        count.as_number()?.literal().parse().ok()
    };
    let TokenCounts { input, output } = chat.usage;
    chat.usage = TokenCounts {
        input: input.or_else(|| tokens(["prompt_tokens", "input_tokens"])),
        output: output.or_else(|| tokens(["completion_tokens", "output_tokens"])),
    };
}

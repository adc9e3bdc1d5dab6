//! The messages of a span, in each form in which instrumentations write them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::reading::OtelAttributes;
use crate::calls::events;
use crate::calls::providers::chat::{Chat, ChatChoice, TokenCounts, message, tool, tool_call};
use crate::calls::{at, object, text};
use crate::json::reader::{self, Limits};
use crate::json::{Object, Value, compact};

/// Returns the value of a text that is JSON.
pub(super) fn parsed_value(said: &str) -> Option<Value<'static>> {
    reader::read(said.as_bytes(), &Limits::default()).ok().map(Value::into_owned_value)
}

/// Returns why an attribute that has JSON as its text is not read.
pub(super) fn not_json(name: &str, said: &str) -> String {
    let why = if events::is_cut_off(said) { "it was cut off" } else { "its text has another form" };
    format!("the attribute {name} is not JSON: {why}")
}

/// Returns the elements of an attribute that is a list, or the text of one.
///
/// # Errors
/// Returns the reason if it is the text of something else.
pub(super) fn parsed(attributes: &OtelAttributes, name: &str) -> Result<Vec<Value<'static>>, String> {
    match attributes.get(name) {
        Some(Value::String(said)) if !said.trim().is_empty() => match parsed_value(said) {
            Some(Value::Array(elements)) => Ok(elements),
            Some(one @ Value::Object(_)) => Ok(vec![one]),
            _ => Err(not_json(name, said)),
        },
        Some(Value::Array(elements)) => Ok(elements.iter().map(Value::to_owned_value).collect()),
        _ => Ok(Vec::new()),
    }
}

/// Reads the attributes that have all messages in parts. The error names the attribute that cannot be read.
pub(super) fn in_parts(attributes: &OtelAttributes, chat: &mut Chat) -> Result<(), String> {
    let instructions = parsed(attributes, "gen_ai.system_instructions")?;
    let input = parsed(attributes, "gen_ai.input.messages")?;
    if input.is_empty() {
        return Ok(());
    }
    if !instructions.is_empty() {
        chat.messages.push(message("system", content(&instructions), Vec::new(), None));
    }
    for one in &input {
        of_parts(one, &mut chat.messages);
    }
    for one in parsed(attributes, "gen_ai.output.messages")? {
        let reason = one.get("finish_reason").and_then(Value::as_str).unwrap_or("stop").to_owned();
        let mut messages = Vec::new();
        of_parts(&one, &mut messages);
        let finish_reason = if reason == "tool_call" { "tool_calls".to_owned() } else { reason };
        chat.choices.extend(
            messages.into_iter().map(|message| ChatChoice { message, finish_reason: finish_reason.clone() }),
        );
    }
    let tools = parsed(attributes, "gen_ai.tool.definitions")?;
    if !tools.is_empty() {
        let tools = tools.iter().map(|one| match one.get("name").and_then(Value::as_str) {
            Some(name) => {
                let parameters = one.get("parameters").or_else(|| one.get("input_schema"));
                tool(name, one.get("description").and_then(Value::as_str), parameters)
            }
            None => one.to_owned_value(),
        });
        chat.members.push(("tools", Value::Array(tools.collect())));
    }
    numbered_beside(attributes, chat);
    Ok(())
}

/// Adds the tools and the calls of tools that only numbered attributes state.
fn numbered_beside(attributes: &OtelAttributes, chat: &mut Chat) {
    for (number, choice) in chat.choices.iter_mut().enumerate() {
        let calls = numbered_calls(attributes, &format!("gen_ai.completion.{number}"));
        if choice.message.get("tool_calls").is_none() && !calls.is_empty() {
            let said = choice.message.get("content").map_or_else(|| text(""), Value::to_owned_value);
            choice.message = message("assistant", said, calls, None);
        }
    }
    if !chat.members.iter().any(|(name, _)| *name == "tools") {
        chat.members.extend(numbered_tools(attributes));
    }
}

/// Returns the content of parts: a text if it is the only one.
fn content(parts: &[Value<'_>]) -> Value<'static> {
    let said = |part: &Value<'_>| {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
        let said = part.get("content").and_then(Value::as_str).filter(|_| kind == "text");
        said.map(str::to_owned)
    };
    match parts {
        [] => text(""),
        [only] if let Some(said) = said(only) => text(said),
        parts => Value::Array(
            parts
                .iter()
                .map(|part| {
                    let part_of_text = |said| object([("type", text("text")), ("text", text(said))]);
                    said(part).map_or_else(|| part.to_owned_value(), part_of_text)
                })
                .collect(),
        ),
    }
}

/// Adds a message in parts. Each response of a tool is a message of its own.
fn of_parts(one: &Value<'_>, messages: &mut Vec<Value<'static>>) {
    let role = one.get("role").and_then(Value::as_str).unwrap_or("user");
    let parts = one.get("parts").and_then(Value::as_array).unwrap_or_default();
    let kind = |part: &Value<'_>| part.get("type").and_then(Value::as_str).unwrap_or("text").to_owned();
    let word =
        |part: &Value<'_>, name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (mut shown, mut calls, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match kind(part).as_str() {
            "tool_call" => {
                let arguments = part.get("arguments").unwrap_or(&Value::Null);
                calls.push(tool_call(&word(part, "id"), &word(part, "name"), arguments));
            }
            "tool_call_response" => {
                let response = part.get("response").or_else(|| part.get("result"));
                let response = response.map_or(text(""), |response| match response {
                    Value::String(_) => response.to_owned_value(),
                    other => text(compact::text(other)),
                });
                answers.push(message("tool", response, Vec::new(), Some(&word(part, "id"))));
            }
            "reasoning" | "thinking" => {}
            _ => shown.push(part.to_owned_value()),
        }
    }
    let is_empty = shown.is_empty() && calls.is_empty() && !answers.is_empty();
    // Tools answer before anything else is said.
    messages.extend(answers);
    if !is_empty {
        messages.push(message(role, content(&shown), calls, None));
    }
}

/// Returns the numbers after a prefix in the names of attributes, in their order. Instrumentations with a limit of
/// attributes leave some out.
pub(super) fn numbers(attributes: &OtelAttributes, prefix: &str) -> BTreeSet<usize> {
    let prefix = format!("{prefix}.");
    let names = attributes.range(prefix.clone()..).map_while(|(name, _)| name.strip_prefix(&prefix));
    names.filter_map(|rest| rest.split('.').next()?.parse().ok()).collect()
}

/// Reads the attributes of messages that are numbered: `gen_ai.prompt.0.role`.
pub(super) fn numbered(attributes: &OtelAttributes, chat: &mut Chat) {
    let read = |prefix: &str, number: usize| {
        let at = |name: &str| attributes.get(&format!("{prefix}.{number}.{name}"));
        let word = |name: &str| at(name).and_then(Value::as_str);
        let calls = numbered_calls(attributes, &format!("{prefix}.{number}"));
        let content = at("content");
        if content.is_none() && calls.is_empty() && word("role").is_none() {
            return None;
        }
        let content = match content {
            // Contents of several parts are recorded as JSON.
            Some(Value::String(text)) => match reader::read(text.as_bytes(), &Limits::default()) {
                Ok(parts @ Value::Array(_)) => parts.to_owned_value(),
                _ => Value::String(Cow::Owned(text.clone().into_owned())),
            },
            other => other.map_or(text(""), Value::to_owned_value),
        };
        let reason = word("finish_reason").unwrap_or("stop").to_owned();
        let role = word("role").unwrap_or(if prefix == "gen_ai.completion" { "assistant" } else { "user" });
        Some((message(role, content, calls, word("tool_call_id")), reason))
    };
    let all = |prefix| numbers(attributes, prefix).into_iter().filter_map(move |number| read(prefix, number));
    chat.messages.extend(all("gen_ai.prompt").map(|(message, _)| message));
    chat.choices.extend(
        all("gen_ai.completion").map(|(message, finish_reason)| ChatChoice { message, finish_reason }),
    );
    chat.members.extend(numbered_tools(attributes));
}

/// Returns the calls of tools of a numbered message, of which older instrumentations state one as the call of a function.
fn numbered_calls(attributes: &OtelAttributes, prefix: &str) -> Vec<Value<'static>> {
    let places = numbers(attributes, &format!("{prefix}.tool_calls")).into_iter();
    let places = places.map(|number| format!("{prefix}.tool_calls.{number}"));
    let calls = places.chain([format!("{prefix}.function_call")]).filter_map(|place| {
        let at = |name: &str| attributes.get(&format!("{place}.{name}"));
        let id = at("id").and_then(Value::as_str).unwrap_or_default();
        Some(tool_call(id, at("name")?.as_str()?, at("arguments").unwrap_or(&Value::Null)))
    });
    calls.collect()
}

/// Returns the member with the tools that are numbered, if there are any.
fn numbered_tools(attributes: &OtelAttributes) -> Option<(&'static str, Value<'static>)> {
    let tools = numbers(attributes, "llm.request.functions").into_iter().filter_map(|number| {
        let at = |name: &str| attributes.get(&format!("llm.request.functions.{number}.{name}"));
        let parameters = at("parameters").or_else(|| at("input_schema"));
        let parameters =
            parameters.and_then(|stated| stated.as_str().map_or(Some(stated.clone()), parsed_value));
        Some(tool(at("name")?.as_str()?, at("description").and_then(Value::as_str), parameters.as_ref()))
    });
    let tools: Vec<_> = tools.collect();
    (!tools.is_empty()).then_some(("tools", Value::Array(tools)))
}

/// Returns the attributes of an event, with the members of the message that one of them has as JSON.
pub(super) fn of_event_content(attributes: &OtelAttributes) -> Cow<'_, OtelAttributes> {
    let Some(said) = attributes.get("gen_ai.event.content").and_then(Value::as_str) else {
        return Cow::Borrowed(attributes);
    };
    let mut all = attributes.clone();
    match reader::read(said.as_bytes(), &Limits::default()) {
        Ok(Value::Object(members)) => {
            all.extend(members.iter().map(|(name, value)| (name.to_owned(), value.to_owned_value())));
        }
        _ => {
            all.insert("content".to_owned(), text(said.to_owned()));
        }
    }
    Cow::Owned(all)
}

/// Returns the elements of a list, or of the text of one.
pub(super) fn listed(value: Option<&Value<'_>>) -> Vec<Value<'static>> {
    match value {
        Some(Value::Array(elements)) => elements.iter().map(Value::to_owned_value).collect(),
        Some(Value::String(said)) => match parsed_value(said) {
            Some(Value::Array(elements)) => elements,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Returns the message of an event; `None` if its content was not recorded.
pub(super) fn of_event(role: &str, attributes: &OtelAttributes) -> Option<Value<'static>> {
    let calls = listed(attributes.get("tool_calls"));
    let content = recorded(attributes.get("content"), &calls)?;
    let id = attributes.get("id").and_then(Value::as_str).filter(|_| role == "tool");
    Some(message(role, content, calls, id))
}

/// Returns a content, which is empty beside calls of tools.
fn recorded(content: Option<&Value<'_>>, calls: &[Value<'_>]) -> Option<Value<'static>> {
    content.map(Value::to_owned_value).or_else(|| (!calls.is_empty()).then(|| text("")))
}

/// Returns the choice of an event, whose message is an object, the JSON of one or of its parts, or the text of the answer;
/// `None` if its content was not recorded.
pub(super) fn choice_of(attributes: &OtelAttributes) -> Option<ChatChoice> {
    let stated = attributes.get("message");
    let read = stated
        .and_then(Value::as_str)
        .and_then(|text| reader::read(text.as_bytes(), &Limits::default()).ok());
    // An answer can be JSON as well.
    let is_part = |part: &Value<'_>| part.get("text").or_else(|| part.get("type")).is_some();
    let read = read.filter(|read| match read {
        Value::Array(parts) => !parts.is_empty() && parts.iter().all(is_part),
        read => ["content", "tool_calls"].iter().any(|name| read.get(name).is_some()),
    });
    let stated = read.as_ref().or(stated);
    let at = |name: &str| stated.and_then(|message| message.get(name));
    let content = at("content").or_else(|| attributes.get("content"));
    let content = content.or_else(|| stated.filter(|message| message.as_object().is_none()));
    let calls = listed(at("tool_calls").or_else(|| attributes.get("tool_calls")));
    let content = recorded(content, &calls)?;
    let role = at("role").and_then(Value::as_str).unwrap_or("assistant");
    let reason = attributes.get("finish_reason").and_then(Value::as_str).unwrap_or("stop");
    Some(ChatChoice { message: message(role, content, calls, None), finish_reason: reason.to_owned() })
}

fn word<'v>(value: &'v Value<'_>, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

/// Returns a value as the content of a tool message.
fn content_of(value: &Value<'_>) -> Value<'static> {
    match value {
        Value::String(_) => value.to_owned_value(),
        other => text(compact::text(other)),
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
        Some(Value::String(said)) => parsed_value(said).map(Some).ok_or_else(|| not_json(name, said)),
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

//! The messages of a span, in each form in which instrumentations write them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::OtelAttributes;
use crate::conversation::events;
use crate::conversation::providers::chat::{
    Chat, ChatChoice, TokenCounts, message, tool, tool_call, tool_of,
};
use crate::json::members::{at, object, text, word};
use crate::json::reader::{self, Limits};
use crate::json::{Object, Value, compact};

/// The attributes with the parameters of a call as JSON.
pub(super) const PARAMETERS: &[&str] = &["llm.invocation_parameters", "embedding.invocation_parameters"];

/// Returns the value of a text that is JSON.
pub(super) fn parsed_value(said: &str) -> Option<Value<'static>> {
    reader::read(said.as_bytes(), &Limits::default()).ok().map(Value::into_owned_value)
}

/// Returns why an attribute that has JSON as its text is not read.
fn not_json(name: &str, said: &str) -> String {
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
        other => Ok(other.and_then(Value::as_array).unwrap_or_default().to_vec()),
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
    let reasons = parsed(attributes, "gen_ai.response.finish_reasons")?;
    for (number, one) in parsed(attributes, "gen_ai.output.messages")?.into_iter().enumerate() {
        // Messages state their reasons in older versions of the conventions.
        let reason = word(&one, "finish_reason").or_else(|| reasons.get(number)?.as_str()).unwrap_or("stop");
        let reason = if reason == "tool_call" { "tool_calls" } else { reason };
        let mut messages = Vec::new();
        of_parts(&one, &mut messages);
        chat.choices.extend(messages.into_iter().map(|message| ChatChoice::new(message, reason)));
    }
    let tools = parsed(attributes, "gen_ai.tool.definitions")?;
    chat.add_tools(tools.iter().map(|one| tool_of(one).unwrap_or_else(|| one.clone())));
    add_numbered_beside(attributes, chat);
    Ok(())
}

/// Adds the tools and the calls of tools that only numbered attributes state.
fn add_numbered_beside(attributes: &OtelAttributes, chat: &mut Chat) {
    for (number, choice) in chat.choices.iter_mut().enumerate() {
        let calls = Numbered::new(attributes, format!("gen_ai.completion.{number}")).calls();
        if choice.message.get("tool_calls").is_none() && !calls.is_empty() {
            let said = choice.message.get("content").cloned().unwrap_or_else(|| text(""));
            choice.message = message("assistant", said, calls, None);
        }
    }
    if !chat.members.iter().any(|(name, _)| *name == "tools") {
        add_numbered_tools(attributes, chat);
    }
}

/// Returns the content of parts: a text if it is the only one.
fn content(parts: &[Value<'static>]) -> Value<'static> {
    let said = |part: &Value<'_>| {
        let said = word(part, "content").filter(|_| word(part, "type").unwrap_or("text") == "text");
        said.map(|said| text(said.to_owned()))
    };
    match parts {
        [] => text(""),
        [only] if let Some(said) = said(only) => said,
        parts => {
            let part_of_text = |said| object([("type", text("text")), ("text", said)]);
            let shown = parts.iter().map(|part| said(part).map_or_else(|| part.clone(), part_of_text));
            Value::Array(shown.collect())
        }
    }
}

/// Adds a message in parts. Each response of a tool is a message of its own.
fn of_parts(one: &Value<'static>, messages: &mut Vec<Value<'static>>) {
    let (mut shown, mut calls, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for part in one.get("parts").and_then(Value::as_array).unwrap_or_default() {
        let id = word(part, "id").unwrap_or_default();
        match word(part, "type") {
            Some("tool_call") => {
                let arguments = part.get("arguments").unwrap_or(&Value::Null);
                calls.push(tool_call(id, word(part, "name").unwrap_or_default(), arguments));
            }
            Some("tool_call_response") => {
                let response = part.get("response").or_else(|| part.get("result"));
                let response = response.map_or_else(|| text(""), content_of);
                answers.push(message("tool", response, Vec::new(), Some(id)));
            }
            Some("reasoning" | "thinking") => {}
            _ => shown.push(part.clone()),
        }
    }
    let is_empty = shown.is_empty() && calls.is_empty() && !answers.is_empty();
    // Tools answer before anything else is said.
    messages.extend(answers);
    if !is_empty {
        messages.push(message(word(one, "role").unwrap_or("user"), content(&shown), calls, None));
    }
}

/// The attributes whose names begin with a prefix.
#[derive(Clone)]
struct Numbered<'a> {
    attributes: &'a OtelAttributes,
    prefix: String,
}

impl<'a> Numbered<'a> {
    fn new(attributes: &'a OtelAttributes, prefix: String) -> Self {
        Self { attributes, prefix }
    }

    /// Returns the numbers after a prefix in the names of attributes, in their order. Instrumentations with a limit of
    /// attributes leave some out.
    fn all(attributes: &'a OtelAttributes, prefix: &str) -> impl Iterator<Item = Self> + use<'a> {
        let prefix = format!("{prefix}.");
        let names = attributes.range(prefix.clone()..).map_while(|(name, _)| name.strip_prefix(&prefix));
        let numbers: BTreeSet<usize> =
            names.filter_map(|rest| rest.split('.').next()?.parse().ok()).collect();
        numbers.into_iter().map(move |number| Self::new(attributes, format!("{prefix}{number}")))
    }

    /// Returns those that are numbered inside this prefix.
    fn inside(&self, name: &str) -> impl Iterator<Item = Self> + use<'a> {
        Self::all(self.attributes, &format!("{}.{name}", self.prefix))
    }

    fn get(&self, name: &str) -> Option<&'a Value<'static>> {
        self.attributes.get(&format!("{}.{name}", self.prefix))
    }

    fn word(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(Value::as_str)
    }

    /// Returns the call of a tool whose members begin with `part`.
    fn call(&self, part: &str) -> Option<Value<'static>> {
        let arguments = self.get(&format!("{part}arguments")).unwrap_or(&Value::Null);
        Some(tool_call(self.word("id").unwrap_or_default(), self.word(&format!("{part}name"))?, arguments))
    }

    /// Returns the calls of tools of a message, of which older instrumentations state one as the call of a function.
    fn calls(&self) -> Vec<Value<'static>> {
        let function = Self::new(self.attributes, format!("{}.function_call", self.prefix));
        self.inside("tool_calls").chain([function]).filter_map(|call| call.call("")).collect()
    }

    /// Returns the message, with the reason why it ended.
    fn message(&self, role: &str) -> Option<ChatChoice> {
        let (calls, stated) = (self.calls(), self.get("content"));
        if stated.is_none() && calls.is_empty() && self.word("role").is_none() {
            return None;
        }
        // Contents of several parts are recorded as JSON.
        let parts = stated.and_then(Value::as_str).and_then(parsed_value);
        let parts = parts.filter(|parts| parts.as_array().is_some());
        let content = parts.or_else(|| stated.cloned()).unwrap_or_else(|| text(""));
        let role = self.word("role").unwrap_or(role);
        let message = message(role, content, calls, self.word("tool_call_id"));
        Some(ChatChoice::new(message, self.word("finish_reason").unwrap_or("stop")))
    }
}

/// Reads the attributes of messages that are numbered: `gen_ai.prompt.0.role`.
pub(super) fn numbered(attributes: &OtelAttributes, chat: &mut Chat) {
    let all = |prefix, role: &'static str| {
        Numbered::all(attributes, prefix).filter_map(move |one| one.message(role))
    };
    chat.messages.extend(all("gen_ai.prompt", "user").map(|one| one.message));
    chat.choices.extend(all("gen_ai.completion", "assistant"));
    add_numbered_tools(attributes, chat);
}

/// Adds the tools that are numbered.
fn add_numbered_tools(attributes: &OtelAttributes, chat: &mut Chat) {
    let tools = Numbered::all(attributes, "llm.request.functions").filter_map(|one| {
        let parameters = one.get("parameters").or_else(|| one.get("input_schema"));
        let parameters =
            parameters.and_then(|stated| stated.as_str().map_or(Some(stated.clone()), parsed_value));
        Some(tool(one.word("name")?, one.word("description"), parameters.as_ref()))
    });
    chat.add_tools(tools);
}

/// Reads the events with a message each, and those with all messages as JSON. Returns `None` if the content of one of them
/// was not recorded.
pub(super) fn in_events<'e>(
    events: impl Iterator<Item = &'e (String, OtelAttributes)>,
    chat: &mut Chat,
) -> Option<()> {
    for (name, attributes) in events {
        let attributes = &*of_event_content(attributes);
        let role = match name.as_str() {
            "gen_ai.system.message" => "system",
            "gen_ai.user.message" => "user",
            "gen_ai.assistant.message" => "assistant",
            "gen_ai.tool.message" => "tool",
            "gen_ai.choice" => {
                chat.choices.push(choice_of(attributes)?);
                continue;
            }
            "gen_ai.content.prompt" => {
                chat.messages.extend(listed(attributes.get("gen_ai.prompt")));
                continue;
            }
            "gen_ai.content.completion" => {
                let all = listed(attributes.get("gen_ai.completion")).into_iter();
                chat.choices.extend(all.map(|one| ChatChoice::new(one, "stop")));
                continue;
            }
            _ => continue,
        };
        let role = attributes.get("role").and_then(Value::as_str).unwrap_or(role);
        chat.messages.push(of_event(role, attributes)?);
    }
    Some(())
}

/// Returns the attributes of an event, with the members of the message that one of them has as JSON.
fn of_event_content(attributes: &OtelAttributes) -> Cow<'_, OtelAttributes> {
    let Some(said) = attributes.get("gen_ai.event.content").and_then(Value::as_str) else {
        return Cow::Borrowed(attributes);
    };
    let mut all = attributes.clone();
    match parsed_value(said) {
        Some(Value::Object(members)) => {
            all.extend(members.into_members().into_iter().map(|(name, value)| (name.into_owned(), value)));
        }
        _ => drop(all.insert("content".to_owned(), text(said.to_owned()))),
    }
    Cow::Owned(all)
}

/// Returns the elements of a list, or of the text of one.
fn listed(value: Option<&Value<'static>>) -> Vec<Value<'static>> {
    match value.and_then(Value::as_str).and_then(parsed_value) {
        Some(Value::Array(elements)) => elements,
        Some(_) => Vec::new(),
        None => value.and_then(Value::as_array).unwrap_or_default().to_vec(),
    }
}

/// Returns the message of an event; `None` if its content was not recorded.
fn of_event(role: &str, attributes: &OtelAttributes) -> Option<Value<'static>> {
    let calls = listed(attributes.get("tool_calls"));
    let content = recorded(attributes.get("content"), &calls)?;
    let id = attributes.get("id").and_then(Value::as_str).filter(|_| role == "tool");
    Some(message(role, content, calls, id))
}

/// Returns a content, which is empty beside calls of tools.
fn recorded(content: Option<&Value<'static>>, calls: &[Value<'_>]) -> Option<Value<'static>> {
    content.cloned().or_else(|| (!calls.is_empty()).then(|| text("")))
}

/// Returns the choice of an event, whose message is an object, the JSON of one or of its parts, or the text of the answer;
/// `None` if its content was not recorded.
fn choice_of(attributes: &OtelAttributes) -> Option<ChatChoice> {
    let stated = attributes.get("message");
    // An answer can be JSON as well.
    let is_part = |part: &Value<'_>| part.get("text").or_else(|| part.get("type")).is_some();
    let read = stated.and_then(Value::as_str).and_then(parsed_value).filter(|read| match read {
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
    Some(ChatChoice::new(message(role, content, calls, None), reason))
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
    let tools = parsed(attributes, "ai.prompt.tools")?.into_iter();
    let read = |one: Value<'static>| one.as_str().and_then(parsed_value).unwrap_or(one);
    chat.add_tools(tools.map(|one| {
        let one = read(one);
        tool_of(&one).unwrap_or(one)
    }));
    let said = ["ai.response.text", "ai.response.object"].into_iter().find_map(|name| attributes.get(name));
    let calls = parsed(attributes, "ai.response.toolCalls")?;
    let calls: Vec<_> = calls.iter().filter_map(ai_sdk_call).collect();
    if said.is_some() || !calls.is_empty() {
        let reason = attributes.get("ai.response.finishReason").and_then(Value::as_str).unwrap_or("stop");
        let message = message("assistant", said.map_or_else(|| text(""), content_of), calls, None);
        chat.choices.push(ChatChoice::new(message, &reason.replace('-', "_")));
    }
    if let Some(choice) =
        attributes.get("ai.prompt.toolChoice").and_then(Value::as_str).and_then(parsed_value)
    {
        let named = word(&choice, "toolName").map(|name| object([("name", text(name.to_owned()))]));
        let named = named.map(|function| object([("type", text("function")), ("function", function)]));
        let stated = named.or_else(|| word(&choice, "type").map(|name| text(name.to_owned())));
        // This is what a model does without it.
        let stated = stated.filter(|stated| stated.as_str() != Some("auto"));
        chat.members.extend(stated.map(|stated| ("tool_choice", stated)));
    }
    Ok(())
}

/// Reads the texts and vectors of embeddings: those of the AI SDK, and the numbered ones of `OpenInference`.
pub(super) fn embedded(attributes: &OtelAttributes, chat: &mut Chat) {
    let listed = |name: &str| attributes.get(name).and_then(Value::as_array).unwrap_or_default().iter();
    let of_text = |value: &Value<'static>| value.as_str().and_then(parsed_value);
    let said = |content: Value<'static>| message("user", content, Vec::new(), None);
    chat.messages.extend(listed("ai.values").filter_map(of_text).map(said));
    chat.embedded.vectors.extend(listed("ai.embeddings").filter_map(of_text));
    chat.embedded.are_list = !chat.messages.is_empty();
    for one in Numbered::all(attributes, "embedding.embeddings") {
        chat.messages.extend(one.get("embedding.text").cloned().map(said));
        chat.embedded.vectors.extend(one.get("embedding.vector").cloned());
        let input = attributes.get("input.value").and_then(Value::as_str);
        chat.embedded.are_list = input.is_some_and(|input| input.starts_with('['));
    }
    add_parameters(attributes, EMBEDDING_PARAMETERS, chat);
}

fn ai_sdk_call(part: &Value<'static>) -> Option<Value<'static>> {
    let arguments = part.get("input").or_else(|| part.get("args")).unwrap_or(&Value::Null);
    Some(tool_call(word(part, "toolCallId").unwrap_or_default(), word(part, "toolName")?, arguments))
}

/// Adds a message of the AI SDK. Each result of a tool is a message of its own.
fn ai_sdk_message(one: &Value<'static>, messages: &mut Vec<Value<'static>>) {
    let role = word(one, "role").unwrap_or("user");
    let Some(parts) = one.get("content").and_then(Value::as_array) else {
        let content = one.get("content").cloned().unwrap_or_else(|| text(""));
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
            _ => shown.push(part.clone()),
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
    let all = |prefix| Numbered::all(attributes, prefix).map(|one| openinference_message(&one));
    chat.messages.extend(all("llm.input_messages"));
    let document = |said: Option<&Value<'_>>| said.and_then(Value::as_str).and_then(parsed_value);
    if let Some(exact) = document(attributes.get("input.value")).and_then(|input| exact_messages(&input))
        && exact.len() == chat.messages.len()
    {
        chat.messages = exact;
    }
    let reason = attributes.get("llm.finish_reason").and_then(Value::as_str);
    chat.choices.extend(all("llm.output_messages").map(|message| {
        let of_message = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
        ChatChoice::new(message, reason.unwrap_or(of_message))
    }));
    let tools = Numbered::all(attributes, "llm.tools");
    chat.add_tools(tools.filter_map(|one| document(one.get("tool.json_schema"))));
    add_parameters(attributes, INVOCATION_PARAMETERS, chat);
}

/// Returns the messages of an input, if they have the form of chat completions: numbered ones lack some of their members.
fn exact_messages(input: &Value<'static>) -> Option<Vec<Value<'static>>> {
    let messages = input.get("messages")?.as_array()?;
    let has_form = |message: &Value<'_>| {
        let are_parts = |parts: &[Value<'_>]| parts.iter().all(|part| part.get("type").is_some());
        let content = message.get("content").unwrap_or(&Value::Null);
        let has_content =
            content.is_null() || content.as_str().is_some() || content.as_array().is_some_and(are_parts);
        word(message, "role").is_some() && has_content
    };
    messages.iter().all(has_form).then(|| messages.to_vec())
}

/// Adds the members that are in the parameters of a call.
fn add_parameters(attributes: &OtelAttributes, known: &[&'static str], chat: &mut Chat) {
    let parameters = PARAMETERS.iter().find_map(|name| parsed_value(attributes.get(*name)?.as_str()?));
    for (name, value) in parameters.as_ref().and_then(Value::as_object).into_iter().flat_map(Object::iter) {
        let known = known.iter().find(|known| **known == name);
        chat.members.extend(known.map(|known| (*known, value.clone())));
        chat.is_stream |= name == "stream" && *value == Value::Bool(true);
    }
}

/// The parameters of embeddings that are members of requests.
const EMBEDDING_PARAMETERS: &[&str] = &["dimensions", "encoding_format", "user"];

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

fn openinference_message(place: &Numbered<'_>) -> Value<'static> {
    let place = Numbered::new(place.attributes, format!("{}.message", place.prefix));
    // Thoughts are no part of what a model said.
    let is_said = |part: &Numbered<'_>| part.word("message_content.type") != Some("reasoning");
    let parts = place.inside("contents").filter(is_said).filter_map(|part| {
        let said = part.word("message_content.text").map(|said| ("text", text(said.to_owned())));
        let url = part.get("message_content.image.image.url");
        let url = url.map(|url| ("image_url", object([("url", url.clone())])));
        let (kind, value) = said.or(url)?;
        Some(object([("type", text(kind)), (kind, value)]))
    });
    let calls = place.inside("tool_calls").filter_map(|call| {
        Numbered::new(call.attributes, format!("{}.tool_call", call.prefix)).call("function.")
    });
    let mut calls: Vec<_> = calls.collect();
    if let Some(name) = place.word("function_call_name") {
        let arguments = place.get("function_call_arguments_json").unwrap_or(&Value::Null);
        calls.push(tool_call("", name, arguments));
    }
    let content = place.get("content").cloned().unwrap_or_else(|| joined(parts.collect()));
    message(place.word("role").unwrap_or("user"), content, calls, place.word("tool_call_id"))
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
        chat.messages.push(message("system", system.clone(), Vec::new(), None));
    }
    chat.messages.extend_from_slice(request.get("messages").and_then(Value::as_array).unwrap_or_default());
    for name in INVOCATION_PARAMETERS.iter().chain(&["tools"]) {
        if let Some(value) = request.get(name)
            && !chat.members.iter().any(|(known, _)| known == name)
        {
            chat.members.push((*name, value.clone()));
        }
    }
    chat.is_stream |= request.get("stream") == Some(&Value::Bool(true));
    if let Some(response) = document("response_data")? {
        logfire_response(&response, chat);
    }
    Ok(())
}

fn logfire_response(response: &Value<'static>, chat: &mut Chat) {
    let answered = response.get("message").filter(|answered| !answered.is_null());
    let said = response.get("combined_chunk_content").filter(|said| said.as_str().is_some());
    if answered.is_some() || said.is_some() {
        let calls = answered.and_then(|answered| answered.get("tool_calls")?.as_array()).unwrap_or_default();
        let content = answered.map_or(said, |answered| answered.get("content"));
        let content = content.filter(|content| !content.is_null()).cloned().unwrap_or_else(|| text(""));
        let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
        chat.choices.push(ChatChoice::new(message("assistant", content, calls.to_vec(), None), reason));
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

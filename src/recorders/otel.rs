//! Spans of OpenTelemetry with the attributes and events of generative AI: `docs/import.md`, "OpenTelemetry".

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use chrono::{DateTime, Utc};

use super::chat::{Chat, Choice, message, tool, tool_call};
use super::documents::documents;
use super::error::{Fault, Result, SHAPE};
use super::exchange::{Exchange, Reply};
use super::node::Node;
use super::recording::{RecordedRun, Recording};
use crate::calls::values::text;
use crate::json::reader::{self, Limits};
use crate::json::{Number, Object, Value};

/// The attributes of requests that are members of chat completions.
const OPTIONS: &[(&str, &str)] = &[
    ("gen_ai.request.temperature", "temperature"),
    ("gen_ai.request.top_p", "top_p"),
    ("gen_ai.request.max_tokens", "max_tokens"),
    ("gen_ai.request.seed", "seed"),
    ("gen_ai.request.stop_sequences", "stop"),
    ("gen_ai.request.frequency_penalty", "frequency_penalty"),
    ("gen_ai.request.presence_penalty", "presence_penalty"),
    ("gen_ai.request.choice.count", "n"),
];

/// The operations that are answers to messages.
const OPERATIONS: &[&str] = &["chat", "text_completion", "generate_content", "completion"];

/// Attributes by name.
type Attributes = BTreeMap<String, Value<'static>>;

/// A span.
struct Span {
    location: String,
    trace: String,
    started: Option<DateTime<Utc>>,
    ended: Option<DateTime<Utc>>,
    attributes: Attributes,
    /// Events by name, with their attributes and bodies.
    events: Vec<(String, Attributes)>,
    /// The message of the status, if it is an error.
    failure: Option<String>,
}

/// Reads spans and log records: one JSON text, or one in each line.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Recording> {
    let mut spans: Vec<(String, Span)> = Vec::new();
    let mut records: Vec<(String, String, String, Attributes)> = Vec::new();
    for (number, document) in documents(bytes, limits)? {
        let root = Node::new(&document, format!("line {number}"));
        for scope in in_resources(&root, "resourceSpans", "scopeSpans")? {
            for span in scope.member("spans").iter().flat_map(Node::elements).flatten() {
                spans.push(read_span(&span)?);
            }
        }
        for scope in in_resources(&root, "resourceLogs", "scopeLogs")? {
            for record in scope.member("logRecords").iter().flat_map(Node::elements).flatten() {
                records.extend(read_record(&record)?);
            }
        }
    }
    Ok(recording(spans, records))
}

/// Returns the scopes of all resources.
fn in_resources<'v>(root: &Node<'v>, resources: &str, scopes: &str) -> Result<Vec<Node<'v>>> {
    let mut found = Vec::new();
    let Some(resources) = root.member(resources) else { return Ok(found) };
    for resource in resources.elements()? {
        if let Some(scopes) = resource.member(scopes) {
            found.extend(scopes.elements()?);
        }
    }
    Ok(found)
}

fn recording(
    mut spans: Vec<(String, Span)>,
    records: Vec<(String, String, String, Attributes)>,
) -> Recording {
    let mut recording = Recording::default();
    for (location, id, name, attributes) in records {
        match spans.iter_mut().find(|(other, span)| *other == id && span.is_call()) {
            Some((_, span)) => span.events.push((name, attributes)),
            None => recording.unmapped.push((
                0,
                location,
                format!("{name} is not an event of a span that is a call of a model"),
            )),
        }
    }
    // Exporters write spans when they end.
    spans.sort_by_key(|(_, span)| span.started);
    let mut runs: Vec<RecordedRun> = Vec::new();
    for (_, span) in spans {
        let operation = span.text("gen_ai.operation.name").unwrap_or("chat").to_owned();
        if !span.is_call() {
            let reason = "the span is not a call of a model";
            recording.unmapped.push((0, span.location, reason.to_owned()));
        } else if !OPERATIONS.contains(&operation.as_str()) {
            let reason =
                format!("the span has no complete request and response: its operation is {operation}");
            recording.unmapped.push((0, span.location, reason));
        } else {
            let trace = span.trace.clone();
            match span.into_exchange() {
                Ok(exchange) => {
                    let of_trace = |run: &&mut RecordedRun| run.name.as_deref() == Some(&trace);
                    match runs.iter_mut().find(of_trace) {
                        Some(run) => run.exchanges.push((0, exchange)),
                        None => runs.push(RecordedRun {
                            name: Some(trace.clone()),
                            details: vec![("trace_id", text(trace))],
                            exchanges: vec![(0, exchange)],
                        }),
                    }
                }
                Err((location, reason)) => recording.unmapped.push((0, location, reason)),
            }
        }
    }
    Recording { runs, unmapped: recording.unmapped }
}

fn read_span(node: &Node<'_>) -> Result<(String, Span)> {
    let id = identifier(&node.required("spanId")?)?;
    let mut events = Vec::new();
    for event in node.member("events").iter().flat_map(Node::elements).flatten() {
        events.push((event.required("name")?.text()?.to_owned(), attributes(&event)?));
    }
    let status = node.member("status");
    let code = status.as_ref().and_then(|status| status.member("code"));
    let is_error = code.is_some_and(|code| {
        code.integer().is_ok_and(|code| code == 2) || code.value.as_str() == Some("STATUS_CODE_ERROR")
    });
    let why = status.as_ref().and_then(|status| status.member("message")).and_then(|why| why.value.as_str());
    let span = Span {
        location: node.location.clone(),
        trace: identifier(&node.required("traceId")?)?,
        started: nanoseconds(node, "startTimeUnixNano")?,
        ended: nanoseconds(node, "endTimeUnixNano")?,
        attributes: attributes(node)?,
        events,
        failure: is_error.then(|| why.unwrap_or("the span has the status of an error").to_owned()),
    };
    Ok((id, span))
}

/// Reads a log record: its location, its span, the name of the event and its attributes. Records without a span or a name
/// are not events.
fn read_record(node: &Node<'_>) -> Result<Option<(String, String, String, Attributes)>> {
    let mut attributes = attributes(node)?;
    let named = node.member("eventName").map(|name| name.text().map(str::to_owned)).transpose()?;
    let named = named.or_else(|| attributes.get("event.name").and_then(Value::as_str).map(str::to_owned));
    let span = node.member("spanId").filter(|span| span.value.as_non_empty_str().is_some());
    let (Some(name), Some(span)) = (named.filter(|name| name.starts_with("gen_ai.")), span) else {
        return Ok(None);
    };
    if let Some(body) = node.member("body")
        && let Value::Object(members) = any_value(&body)?
    {
        attributes.extend(members.iter().map(|(name, value)| (name.to_owned(), value.to_owned_value())));
    }
    Ok(Some((node.location.clone(), identifier(&span)?, name, attributes)))
}

/// Returns an identifier in hexadecimal digits: OTLP writes those, the JSON mapping of Protocol Buffers Base64.
fn identifier(node: &Node<'_>) -> Result<String> {
    let stated = node.text()?;
    if [16, 32].contains(&stated.len()) && stated.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(stated.to_ascii_lowercase());
    }
    let bytes = super::binary::base64(stated).filter(|bytes| [8, 16].contains(&bytes.len()));
    let bytes = bytes.ok_or_else(|| node.fault("must be 8 or 16 bytes, in hexadecimal digits or Base64"))?;
    let mut digits = String::new();
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    Ok(digits)
}

fn nanoseconds(node: &Node<'_>, name: &str) -> Result<Option<DateTime<Utc>>> {
    let Some(time) = node.member(name) else { return Ok(None) };
    Ok(i64::try_from(time.integer()?).ok().map(DateTime::from_timestamp_nanos))
}

fn attributes(node: &Node<'_>) -> Result<Attributes> {
    let mut found = Attributes::new();
    for attribute in node.member("attributes").iter().flat_map(Node::elements).flatten() {
        let value = attribute.member("value").map_or(Ok(Value::Null), |value| any_value(&value))?;
        found.insert(attribute.required("key")?.text()?.to_owned(), value);
    }
    Ok(found)
}

/// Returns the value of an attribute or a body.
fn any_value(node: &Node<'_>) -> Result<Value<'static>> {
    let Some((name, value)) = node.members()?.next() else { return Ok(Value::Null) };
    Ok(match name {
        "stringValue" | "boolValue" | "doubleValue" | "bytesValue" => value.value.to_owned_value(),
        "intValue" => match value.value {
            // 64 bits are a string in the JSON mapping.
            Value::String(digits) if digits.parse::<i64>().is_ok() => {
                Value::Number(Number::from_literal(digits.clone().into_owned()))
            }
            Value::Number(_) => value.value.to_owned_value(),
            _ => return Err(value.fault("must be a whole number")),
        },
        "arrayValue" => {
            let mut elements = Vec::new();
            for element in value.member("values").iter().flat_map(Node::elements).flatten() {
                elements.push(any_value(&element)?);
            }
            Value::Array(elements)
        }
        "kvlistValue" => {
            let mut members: Vec<(Cow<'static, str>, Value<'static>)> = Vec::new();
            for member in value.member("values").iter().flat_map(Node::elements).flatten() {
                let key = member.required("key")?.text()?;
                if members.iter().any(|(other, _)| other == key) {
                    return Err(member.fault("the key is not unique"));
                }
                let value = member.member("value").map_or(Ok(Value::Null), |value| any_value(&value))?;
                members.push((Cow::Owned(key.to_owned()), value));
            }
            Value::Object(Object::from_members(members))
        }
        _ => return Err(Fault::new(SHAPE, value.location, "is not a known type of value")),
    })
}

impl Span {
    fn is_call(&self) -> bool {
        let has = |name: &str| self.attributes.contains_key(name);
        has("gen_ai.request.model") || has("gen_ai.operation.name") && has("gen_ai.response.model")
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).and_then(Value::as_str)
    }

    fn integer(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.attributes.get(*name)?.as_number()?.literal().parse().ok())
    }

    /// Returns the exchange. The error has the location, and says what is missing.
    fn into_exchange(self) -> std::result::Result<Exchange, (String, String)> {
        let mut chat = Chat {
            provider: self
                .text("gen_ai.provider.name")
                .or_else(|| self.text("gen_ai.system"))
                .unwrap_or("unknown")
                .to_owned(),
            model: self
                .text("gen_ai.request.model")
                .or_else(|| self.text("gen_ai.response.model"))
                .unwrap_or_default()
                .to_owned(),
            id: self.text("gen_ai.response.id").map(str::to_owned),
            response_model: self.text("gen_ai.response.model").map(str::to_owned),
            ended_at: self.ended,
            is_stream: ["gen_ai.is_streaming", "llm.is_streaming", "gen_ai.request.stream"]
                .iter()
                .any(|name| self.attributes.get(*name) == Some(&Value::Bool(true))),
            ..Chat::default()
        };
        let asked = self.integer(&["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]);
        let answered = self.integer(&["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"]);
        chat.usage = asked.zip(answered);
        for (attribute, member) in OPTIONS {
            if let Some(value) = self.attributes.get(*attribute) {
                chat.members.push((*member, value.clone()));
            }
        }
        self.messages(&mut chat);
        let location = self.location;
        if chat.messages.is_empty() {
            return Err((
                location,
                "the messages are not in the span: its content was not recorded".to_owned(),
            ));
        }
        let reply = match (self.failure, chat.choices.is_empty()) {
            (Some(reason), _) => Reply::Failed(reason),
            (None, false) => chat.reply(),
            (None, true) => return Err((location, "the span has no answer of the model".to_owned())),
        };
        let latency =
            self.started.zip(self.ended).map(|(started, ended)| (ended - started).num_milliseconds());
        let latency_ms = latency.and_then(|latency| u64::try_from(latency).ok()).unwrap_or(0);
        Ok(Exchange { location, request: chat.request(), reply, at: self.started, latency_ms })
    }

    /// Reads the messages in the first form that the span has.
    fn messages(&self, chat: &mut Chat) {
        let details =
            self.events.iter().find(|(name, _)| name == "gen_ai.client.inference.operation.details");
        for attributes in
            [Some(&self.attributes), details.map(|(_, attributes)| attributes)].into_iter().flatten()
        {
            in_parts(attributes, chat);
            if !chat.messages.is_empty() {
                return;
            }
        }
        numbered(&self.attributes, chat);
        if chat.messages.is_empty() {
            self.in_events(chat);
        }
    }

    /// Reads the events with a message each, and those with all messages as JSON.
    fn in_events(&self, chat: &mut Chat) {
        for (name, attributes) in &self.events {
            let role = match name.as_str() {
                "gen_ai.system.message" => "system",
                "gen_ai.user.message" => "user",
                "gen_ai.assistant.message" => "assistant",
                "gen_ai.tool.message" => "tool",
                "gen_ai.choice" => {
                    chat.choices.push(choice_of(attributes));
                    continue;
                }
                "gen_ai.content.prompt" => {
                    for one in parsed(attributes.get("gen_ai.prompt")) {
                        chat.messages.push(one);
                    }
                    continue;
                }
                "gen_ai.content.completion" => {
                    for one in parsed(attributes.get("gen_ai.completion")) {
                        chat.choices.push(Choice { message: one, finish_reason: "stop".to_owned() });
                    }
                    continue;
                }
                _ => continue,
            };
            let stated = attributes.get("role").and_then(Value::as_str).unwrap_or(role);
            chat.messages.push(of_event(stated, attributes));
        }
    }
}

/// Returns the elements of an attribute that is a list, or the text of one.
fn parsed(value: Option<&Value<'_>>) -> Vec<Value<'static>> {
    match value {
        Some(Value::Array(elements)) => elements.iter().map(Value::to_owned_value).collect(),
        Some(Value::String(text)) => match reader::read(text.as_bytes(), &Limits::default()) {
            Ok(Value::Array(elements)) => elements.iter().map(Value::to_owned_value).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Reads the attributes that have all messages in parts.
fn in_parts(attributes: &Attributes, chat: &mut Chat) {
    let instructions = parsed(attributes.get("gen_ai.system_instructions"));
    let input = parsed(attributes.get("gen_ai.input.messages"));
    if input.is_empty() {
        return;
    }
    if !instructions.is_empty() {
        chat.messages.push(message("system", content(&instructions), Vec::new(), None));
    }
    for one in &input {
        of_parts(one, &mut chat.messages);
    }
    for one in parsed(attributes.get("gen_ai.output.messages")) {
        let reason = one.get("finish_reason").and_then(Value::as_str).unwrap_or("stop").to_owned();
        let mut messages = Vec::new();
        of_parts(&one, &mut messages);
        let finish_reason = if reason == "tool_call" { "tool_calls".to_owned() } else { reason };
        chat.choices.extend(
            messages.into_iter().map(|message| Choice { message, finish_reason: finish_reason.clone() }),
        );
    }
    let tools = parsed(attributes.get("gen_ai.tool.definitions"));
    if !tools.is_empty() {
        let tools = tools.iter().map(|one| match one.get("name").and_then(Value::as_str) {
            Some(name) => tool(name, one.get("description").and_then(Value::as_str), one.get("parameters")),
            None => one.to_owned_value(),
        });
        chat.members.push(("tools", Value::Array(tools.collect())));
    }
}

/// Returns the content of parts: a text if all are texts.
fn content(parts: &[Value<'_>]) -> Value<'static> {
    let texts: Option<String> =
        parts.iter().map(|part| part.get("content").and_then(Value::as_str)).collect();
    texts.map_or_else(|| Value::Array(parts.iter().map(Value::to_owned_value).collect()), text)
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
                    other => text(crate::json::compact::text(other)),
                });
                answers.push(message("tool", response, Vec::new(), Some(&word(part, "id"))));
            }
            "reasoning" | "thinking" => {}
            _ => shown.push(part.to_owned_value()),
        }
    }
    if !shown.is_empty() || !calls.is_empty() || answers.is_empty() {
        messages.push(message(role, content(&shown), calls, None));
    }
    messages.extend(answers);
}

/// Reads the attributes of messages that are numbered: `gen_ai.prompt.0.role`.
fn numbered(attributes: &Attributes, chat: &mut Chat) {
    let read = |prefix: &str, number: usize| {
        let at = |name: &str| attributes.get(&format!("{prefix}.{number}.{name}"));
        let word = |name: &str| at(name).and_then(Value::as_str);
        let mut calls = Vec::new();
        while let Some(name) = word(&format!("tool_calls.{}.name", calls.len())) {
            let call = |name: &str| at(&format!("tool_calls.{}.{name}", calls.len()));
            let id = call("id").and_then(Value::as_str).unwrap_or_default();
            calls.push(tool_call(id, name, call("arguments").unwrap_or(&Value::Null)));
        }
        let stated = at("content");
        if stated.is_none() && calls.is_empty() && word("role").is_none() {
            return None;
        }
        let content = match stated {
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
    while let Some((message, _)) = read("gen_ai.prompt", chat.messages.len()) {
        chat.messages.push(message);
    }
    while let Some((message, finish_reason)) = read("gen_ai.completion", chat.choices.len()) {
        chat.choices.push(Choice { message, finish_reason });
    }
    let mut tools = Vec::new();
    loop {
        let at = |name: &str| attributes.get(&format!("llm.request.functions.{}.{name}", tools.len()));
        let Some(name) = at("name").and_then(Value::as_str) else { break };
        let parameters = at("parameters").and_then(Value::as_str);
        let parameters = parameters.and_then(|text| reader::read(text.as_bytes(), &Limits::default()).ok());
        tools.push(tool(name, at("description").and_then(Value::as_str), parameters.as_ref()));
    }
    if !tools.is_empty() {
        chat.members.push(("tools", Value::Array(tools)));
    }
}

/// Returns the message of an event.
fn of_event(role: &str, attributes: &Attributes) -> Value<'static> {
    let content = attributes.get("content").map_or(text(""), Value::clone);
    let calls = parsed(attributes.get("tool_calls"));
    message(role, content, calls, attributes.get("id").and_then(Value::as_str).filter(|_| role == "tool"))
}

fn choice_of(attributes: &Attributes) -> Choice {
    let stated = attributes.get("message");
    let at = |name: &str| stated.and_then(|message| message.get(name));
    let content = at("content").map_or(text(""), Value::to_owned_value);
    let calls = parsed(at("tool_calls").or_else(|| attributes.get("tool_calls")));
    let role = at("role").and_then(Value::as_str).unwrap_or("assistant");
    let reason = attributes.get("finish_reason").and_then(Value::as_str).unwrap_or("stop");
    Choice { message: message(role, content, calls, None), finish_reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::Request;
    use super::*;
    use crate::json::compact;

    fn attribute(key: &str, value: &str) -> String {
        format!(
            "{{\"key\":\"{key}\",\"value\":{{\"stringValue\":{}}}}}",
            compact::text(&Value::String(value.into()))
        )
    }

    fn bodies(attributes: &[(&str, &str)], rest: &str) -> (String, String) {
        let attributes: Vec<String> = attributes.iter().map(|(key, value)| attribute(key, value)).collect();
        let spans = format!(
            "{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"Qb0gB21/lKoiFN9/5ARKLg==\",\"spanId\":\"fyNy6v6rexc=\",\
             \"startTimeUnixNano\":\"1000000000\",\"endTimeUnixNano\":\"1002000000\",\"attributes\":[{}]{rest}}}]}}]}}]}}",
            attributes.join(",")
        );
        let recording = read(spans.as_bytes(), &Limits::default())
            .unwrap_or_else(|fault| panic!("{}", fault.in_file("o")));
        let run = recording.runs.first().unwrap_or_else(|| panic!("{recording:?}"));
        assert_eq!(run.name.as_deref(), Some("41bd20076d7f94aa2214df7fe4044a2e"));
        let (_, exchange) = &run.exchanges[0];
        let (Request::Json { body, .. }, Reply::Answer { body: answer, .. }) =
            (&exchange.request, &exchange.reply)
        else {
            panic!("{exchange:?}")
        };
        assert_eq!(exchange.latency_ms, 2);
        (compact::text(body), String::from_utf8_lossy(answer).into_owned())
    }

    const MODEL: (&str, &str) = ("gen_ai.request.model", "m");

    #[test]
    fn messages_in_parts_numbered_and_in_events_are_the_same() {
        let parts = bodies(
            &[
                MODEL,
                ("gen_ai.input.messages", r#"[{"role":"user","parts":[{"type":"text","content":"hi"}]}]"#),
                (
                    "gen_ai.output.messages",
                    r#"[{"role":"assistant","parts":[{"type":"text","content":"yes"}],"finish_reason":"stop"}]"#,
                ),
            ],
            "",
        );
        let numbered = bodies(
            &[
                MODEL,
                ("gen_ai.prompt.0.role", "user"),
                ("gen_ai.prompt.0.content", "hi"),
                ("gen_ai.completion.0.content", "yes"),
                ("gen_ai.completion.0.finish_reason", "stop"),
            ],
            "",
        );
        let event = |name: &str, attributes: &[String]| {
            format!("{{\"name\":\"{name}\",\"attributes\":[{}]}}", attributes.join(","))
        };
        let choice = "{\"key\":\"message\",\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"content\",\"value\":{\"stringValue\":\"yes\"}}]}}}";
        let events = [
            event("gen_ai.user.message", &[attribute("content", "hi")]),
            event("gen_ai.choice", &[choice.to_owned()]),
        ];
        let in_events = bodies(&[MODEL], &format!(",\"events\":[{}]", events.join(",")));
        assert_eq!(parts.0, r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#);
        assert!(
            parts.1.contains(r#""message":{"role":"assistant","content":"yes"},"finish_reason":"stop""#),
            "{}",
            parts.1
        );
        assert_eq!(parts, numbered);
        assert_eq!(parts, in_events);
    }

    #[test]
    fn calls_of_tools_are_mapped() {
        let asked = r#"[{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f","arguments":{"a":1}}]},
            {"role":"tool","parts":[{"type":"tool_call_response","id":"c","response":"rain"}]}]"#;
        let answered = r#"[{"role":"assistant","parts":[{"type":"text","content":"yes"}]}]"#;
        let (request, _) =
            bodies(&[MODEL, ("gen_ai.input.messages", asked), ("gen_ai.output.messages", answered)], "");
        assert_eq!(
            request,
            r#"{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","content":"rain","tool_call_id":"c"}]}"#
        );
    }

    #[test]
    fn other_spans_are_listed() {
        let spans = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"41bd20076d7f94aa2214df7fe4044a2e","spanId":"7f2372eafeab7b17"}]}]}]}"#;
        let recording = read(spans.as_bytes(), &Limits::default())
            .unwrap_or_else(|fault| panic!("{}", fault.in_file("o")));
        assert!(recording.runs.is_empty() && recording.unmapped[0].2 == "the span is not a call of a model");
        let fault = read(spans.replace("41bd", "41b").as_bytes(), &Limits::default())
            .unwrap_err()
            .in_file("o")
            .to_string();
        assert_eq!(
            fault,
            "o: line 1.resourceSpans[0].scopeSpans[0].spans[0].traceId: must be 8 or 16 bytes, in hexadecimal digits or Base64 (rule IM3)"
        );
    }
}

//! Anthropic: messages, and the completions before them.

use serde_json::json;

use super::chat::{
    Chat, ChatChoice, ChatRole, TokenCounts, Turn, TurnPart, Turns, no_place, turns, unknown_part,
};
use super::decoding::{
    AnswerDecoder, MessageForm, PieceKind, RequestedMessages, blocks, encoded_media, inner, instructions,
    media, number, parameters, parts, said_message, states, tool_call, tool_names, type_of,
};
use super::provider::{AnswerForm, ChatForm, ChatResponse, Endpoint, MemberRoles, MetadataForm, Provider};
use crate::conversation::message::{MessagePart, MessageToolResult};
use crate::json::members::{integer, object, text, word};
use crate::json::{Value, compact};

/// Members of requests that do not change the answer.
pub(super) const TRANSPORT: &[&str] = &["metadata", "service_tier", "stream"];

/// The path of messages.
const MESSAGES: &str = "/v1/messages";

pub(super) const ANTHROPIC: Provider = Provider {
    name: "anthropic",
    url: "https://api.anthropic.com",
    version: "v1",
    base_urls: &[("ANTHROPIC_BASE_URL", ""), ("ANTHROPIC_API_BASE", "")],
    keys: &["ANTHROPIC_API_KEY"],
    endpoints: &[
        Endpoint::new("messages", "/messages", TRANSPORT),
        Endpoint {
            count: Some("input_tokens"),
            ..Endpoint::new("messages.count_tokens", "/messages/count_tokens", TRANSPORT)
        },
    ],
    aliases: &["anthropic"],
    paths: &["/complete"],
    path_of_bodies: |request, response| {
        let is_message = type_of(response?) == "message" && request.get("messages").is_some();
        is_message.then_some(MESSAGES)
    },
    names: MemberRoles {
        repeated: &["stop_reason"],
        descriptions: &["input_schema"],
        end_reasons: &["stop_reason"],
        cut_off: &["max_tokens", "model_context_window_exceeded"],
        tool_values: &["input"],
        generated: &["id", "signature"],
        ..MemberRoles::NONE
    },
    answers: AnswerForm {
        texts: &[&["content"], &["completion"]],
        deltas: &[&["delta", "text"], &["content_block", "text"]],
        usages: &[&["message", "usage"]],
        event_types: &["message_", "content_block_"],
        last_events: &["message_stop"],
        follow: |progress, event| {
            let is_completion = type_of(event) == "completion";
            progress.has_ended |= is_completion && states(event, "stop_reason");
            is_completion
        },
        ..AnswerForm::NONE
    },
    messages: MessageForm { request: requested, answer: answered },
    chat: Some(ChatForm { path: |_| MESSAGES.to_owned(), request, response }),
    metadata: MetadataForm {
        model: |_, name| json!({"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}),
        models: |all, names| json!({"data": all, "first_id": names.first(), "last_id": names.last(), "has_more": false}),
        complete_error: |document, _| {
            if let Some(members) = document.as_object_mut() {
                members.insert("type".to_owned(), json!("error"));
            }
        },
    },
    ..Provider::UNKNOWN
};

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

fn request(chat: &Chat, unmapped: &mut Vec<String>) -> Value<'static> {
    let Turns { system, others } = Turns::read(&chat.messages);
    let messages = messages(&others, unmapped);
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
            _ => unmapped.push(no_place(name)),
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
    object(members)
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
            if !BLOCKS.contains(&type_of(part)) {
                unmapped.push(unknown_part(part));
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

fn response(chat: &Chat, unmapped: &mut Vec<String>) -> ChatResponse {
    let Some(choice) = chat.choices.first() else { return ChatResponse::Missing };
    if chat.choices.len() > 1 {
        unmapped.push("a message has one answer: the others are not mapped".to_owned());
    }
    let turns = turns(std::slice::from_ref(&choice.message));
    let parts = turns.iter().flat_map(|turn| &turn.parts);
    let blocks: Vec<_> = parts.map(|part| block(part, unmapped)).collect();
    if !chat.is_stream {
        return ChatResponse::Whole(message(chat, Some(choice), blocks));
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
    let events =
        events.iter().map(|event| format!("event: {}\ndata: {}\n\n", type_of(event), compact::text(event)));
    ChatResponse::Stream(events.collect())
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
        ("id", chat.response_id()),
        ("type", text("message")),
        ("role", text("assistant")),
        ("model", text(chat.response_model().to_owned())),
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
    let (begun, delta) = match type_of(block) {
        "text" => (
            object([("type", text("text")), ("text", text(""))]),
            Some(object([("type", text("text_delta")), ("text", at("text"))])),
        ),
        "tool_use" => (
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

/// Returns what a request of messages asks. Other chats have neither its instructions nor its blocks and tools.
fn requested(body: &Value<'_>) -> Option<RequestedMessages> {
    let listed = body.get("messages").and_then(Value::as_array)?;
    let has_blocks = blocks(listed).any(|block| match type_of(block) {
        "tool_use" | "tool_result" => true,
        // Cohere and Mistral have such parts without a signature.
        "thinking" => block.get("signature").is_some(),
        _ => block.get("source").is_some(),
    });
    let tools = body.get("tools").and_then(Value::as_array).unwrap_or_default();
    let is_message = body.get("system").is_some()
        || has_blocks
        || tools.iter().any(|tool| tool.get("input_schema").is_some());
    if !is_message {
        return None;
    }
    let system = instructions(body.get("system"), part);
    let messages = listed.iter().map(|one| said_message(word(one, "role"), parts(one.get("content"), part)));
    let named = |tool: &Value<'_>| word(tool, "name").map(str::to_owned).into_iter().collect();
    Some(RequestedMessages {
        messages: system.into_iter().chain(messages).collect(),
        tools: tool_names(body.get("tools"), named),
        parameters: parameters(body, &["messages", "system", "model", "tools", "stream"]),
        previous_answer: None,
    })
}

/// Returns a block of a message.
pub(crate) fn part(block: &Value<'_>) -> Option<MessagePart> {
    let string = |name: &str| word(block, name);
    Some(match type_of(block) {
        "text" => MessagePart::text(string("text")?),
        "thinking" => MessagePart::Thinking { text: string("thinking")?.to_owned() },
        "redacted_thinking" => MessagePart::Thinking { text: String::new() },
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            tool_call(string("id"), string("name"), block.get("input"))
        }
        "image" | "document" => {
            let source = block.get("source")?;
            let (name, kind) = (string("title"), type_of(block));
            match (word(source, "data"), type_of(source)) {
                (Some(data), "base64") => encoded_media(word(source, "media_type"), kind, data),
                _ => media(kind, name, word(source, "url").or_else(|| word(source, "file_id"))),
            }
        }
        name if name.ends_with("tool_result") => MessagePart::ToolResult(MessageToolResult {
            id: string("tool_use_id").map(str::to_owned),
            name: None,
            parts: parts(block.get("content"), part),
            is_error: block.get("is_error") == Some(&Value::Bool(true))
                || block.get("content").is_some_and(|content| is_error(type_of(content))),
        }),
        name if is_error(name) => {
            MessagePart::text(string("error_message").or_else(|| string("error_code"))?)
        }
        _ => return None,
    })
}

/// Returns whether blocks of this type state why a tool that the server runs has failed, such as
/// `web_search_tool_result_error`. Their results have no member that says so.
fn is_error(block_type: &str) -> bool {
    block_type.contains("_tool_") && block_type.ends_with("_error")
}

/// Reads a message, or the events of one.
fn answered(decoder: &mut AnswerDecoder, document: &Value<'_>) -> bool {
    let index = number(document, "index").unwrap_or(0);
    match type_of(document) {
        "message" => {
            decoder.identified(word(document, "id"));
            decoder.finished(word(document, "stop_reason"));
            for part in parts(document.get("content"), part) {
                decoder.part(0, part);
            }
        }
        "message_start" => decoder.identified(inner(document, "message", "id")),
        "message_delta" => decoder.finished(inner(document, "delta", "stop_reason")),
        "content_block_start" => {
            let Some(block) = document.get("content_block") else { return true };
            match type_of(block) {
                "text" => decoder.piece((0, index, 0), PieceKind::Text, word(block, "text")),
                "thinking" => decoder.piece((0, index, 0), PieceKind::Thinking, word(block, "thinking")),
                "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                    decoder.tool((0, index, 0), word(block, "id"), word(block, "name"), None);
                }
                _ => decoder.part_at((0, index, 0), part(block).unwrap_or_else(|| MessagePart::other(block))),
            }
        }
        "content_block_delta" => {
            let Some(delta) = document.get("delta") else { return true };
            let (kind, name) = match type_of(delta) {
                "thinking_delta" => (PieceKind::Thinking, "thinking"),
                "input_json_delta" => (PieceKind::Text, "partial_json"),
                _ => (PieceKind::Text, "text"),
            };
            decoder.piece((0, index, 0), kind, word(delta, name));
        }
        // The completions before messages.
        _ => match document.get("completion").and_then(Value::as_str) {
            Some(text) => {
                decoder.append(0, PieceKind::Text, Some(text));
                decoder.finished(word(document, "stop_reason"));
            }
            None => return ["content_block_stop", "message_stop", "ping"].contains(&type_of(document)),
        },
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::assembled::read;
    use crate::conversation::assembled::testing::{answer, failure, stream, texts, usage};
    use crate::conversation::providers::AnswerFailure;

    #[test]
    fn chats_become_blocks() {
        let (path, request, answer, unmapped) = Chat::sample("Anthropic", false).formed();
        assert_eq!(path, "/v1/messages");
        assert_eq!(
            request,
            "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"the weather?\"},{\"role\":\"assistant\",\
             \"content\":[{\"type\":\"tool_use\",\"id\":\"w_0\",\"name\":\"w\",\"input\":{\"city\":\"Paris\"}}]},\
             {\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"w_0\",\"content\":\"rain\"},\
             {\"type\":\"text\",\"text\":\"so?\"}]}],\"system\":\"be short\",\"max_tokens\":9,\"stop_sequences\":[\"x\"],\
             \"tools\":[{\"name\":\"w\",\"description\":\"Tells the weather\",\"input_schema\":{\"type\":\"object\"}}]}"
        );
        assert_eq!(
            answer,
            "{\"id\":\"imported\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[{\"type\":\"text\",\
             \"text\":\"wait\"},{\"type\":\"tool_use\",\"id\":\"w_0\",\"name\":\"w\",\"input\":{\"city\":\"Paris\"}}],\
             \"stop_reason\":\"tool_use\",\"stop_sequence\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}"
        );
        assert_eq!(unmapped, ["seed has no place in a request to this API"]);
        let (_, request, answer, _) = Chat::sample("anthropic", true).formed();
        assert!(request.ends_with(",\"stream\":true}"), "{request}");
        let input =
            "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"city\\\":\\\"Paris\\\"}\"}}";
        assert!(
            answer.contains(input)
                && answer.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
            "{answer}"
        );
    }

    #[test]
    fn answers_have_texts_and_tokens() {
        for body in [
            r#"{"content":[{"type":"text","text":"a"},{"type":"tool_use"},{"type":"text","text":"b"}]}"#,
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"ab\"}}\n\n",
        ] {
            assert_eq!(texts(body), ["ab"], "{body}");
        }
        let blocks = [(1, "c"), (0, "a"), (1, "d"), (0, "b")].map(|(index, text)| {
            format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"text":"{text}"}}}}"#)
        });
        assert_eq!(read(&stream(&blocks.each_ref().map(String::as_str))).texts, ["abcd"]);
        let events = [
            r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":10,"output_tokens":1}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}"#,
        ];
        assert_eq!(usage(&stream(&events)).unwrap(), r#"{"input_tokens":10,"output_tokens":4}"#);
    }

    #[test]
    fn errors_and_ends_are_recognized() {
        let start = r#"{"type":"message_start","message":{}}"#;
        let error = r#"{"type":"error","error":{"message":"no"}}"#;
        for response in [stream(&[start, error]), answer(200, None, error)] {
            assert_eq!(failure(&response).as_deref(), Some("no"));
        }
        for events in [
            &[start, r#"{"type":"content_block_stop","index":0}"#][..],
            &[r#"{"type":"completion","completion":"a","stop_reason":null}"#],
        ] {
            assert_eq!(read(&stream(events)).failure, Some(AnswerFailure::NoEnd), "{events:?}");
        }
        assert_eq!(failure(&stream(&[start, r#"{"type":"message_stop"}"#])), None);
    }
}

//! `OpenAI`: chat completions, completions, responses and embeddings. Most other servers have its API.

use std::borrow::Cow;

use super::chat::{Chat, ChatChoice};
use super::decoding::{
    AnswerDecoder, AnswerReader, MessageForm, PieceKind, RequestedMessages, StreamProgress, embeddings,
    encoded_media, indexed, inner, instructions, joined, media, number, parameters, parts, role,
    stated_error, states, tool_call, tool_names, type_of,
};
use super::provider::{AnswerForm, ChatForm, ChatResponse, Endpoint, MemberRoles, Provider};
use crate::conversation::message::{ConversationMessage, MessagePart, MessageRole, MessageToolResult};
use crate::json::members::{integer, object, text, word};
use crate::json::{Object, Value, compact};

/// Members of requests that do not change the answer. Codex sends `client_metadata`.
pub(super) const TRANSPORT: &[&str] = &[
    "client_metadata",
    "metadata",
    "prompt_cache_key",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_id",
    "stream_options",
    "user",
];

/// The requests over realtime connections. Clients can give their messages random ids.
pub(super) const REALTIME: Endpoint = Endpoint {
    transport_inside: &[&["frames", "*", "event_id"]],
    ..Endpoint::new("realtime", "/realtime", &["stream"])
};

pub(super) const OPENAI: Provider = Provider {
    name: "openai",
    url: "https://api.openai.com",
    version: "v1",
    base_urls: &[("OPENAI_BASE_URL", "/v1"), ("OPENAI_API_BASE", "/v1")],
    keys: &["OPENAI_API_KEY"],
    endpoints: &[
        Endpoint::new("chat.completions", "/chat/completions", TRANSPORT),
        Endpoint::new("completions", "/completions", TRANSPORT),
        Endpoint {
            // Codex states the times and ids of its turns there.
            transport_inside: &[&["input", "*", "internal_chat_message_metadata_passthrough"]],
            ..Endpoint::new("responses", "/responses", TRANSPORT)
        },
        Endpoint {
            count: Some("input_tokens"),
            ..Endpoint::new("responses.input_tokens", "/responses/input_tokens", TRANSPORT)
        },
        Endpoint::new("embeddings", "/embeddings", TRANSPORT),
        REALTIME,
    ],
    aliases: &["openai", "azure", "azure.ai.openai", "az.ai.openai", "openai-api"],
    paths: &[
        "/audio/speech",
        "/audio/transcriptions",
        "/audio/translations",
        "/images/edits",
        "/images/generations",
        "/images/variations",
        "/moderations",
    ],
    path_of_bodies,
    names: MemberRoles {
        conversation: &["messages", "input", "prompt"],
        generated: &["id", "call_id", "item_id", "response_id", "encrypted_content"],
        messages: &[
            "content",
            "delta",
            "input_text",
            "output_text",
            "prompt",
            "refusal",
            "text",
            "transcript",
        ],
        repeated: &[
            "call_id",
            "created_at",
            "finish_reason",
            "id",
            "item_id",
            "model",
            "name",
            "obfuscation",
            "object",
            "role",
            "status",
            "system_fingerprint",
            "tool_call_id",
            "type",
        ],
        descriptions: &[
            "functions",
            "json_schema",
            "metadata",
            "parameters",
            "response_format",
            "schema",
            "tools",
        ],
        probabilities: &["logprobs"],
        alternatives: &["choices"],
        end_reasons: &["finish_reason", "reason"],
        cut_off: &["length", "max_output_tokens", "model_length"],
        tool_values: &["arguments", "data", "output", "result"],
    },
    answers: AnswerForm {
        read,
        usages: &[&["usage"], &["response", "usage"]],
        created: &[&["created"], &["created_at"], &["response", "created_at"]],
        event_types: &["response."],
        last_events: &["response.completed", "response.failed", "response.incomplete"],
        follow,
        ..AnswerForm::NONE
    },
    messages: MessageForm { request: requested, answer: answered },
    ..Provider::UNKNOWN
};

/// Azure, whose paths name a deployment in the place of the model.
pub(super) const AZURE: Provider = Provider {
    name: "azure",
    base_urls: &[("AZURE_OPENAI_ENDPOINT", ""), ("AZURE_API_BASE", "")],
    endpoints: &[
        Endpoint::of_model("chat.completions", "/chat/completions", TRANSPORT),
        Endpoint::of_model("completions", "/completions", TRANSPORT),
        Endpoint::of_model("responses", "/responses", TRANSPORT),
        Endpoint::of_model("embeddings", "/embeddings", TRANSPORT),
    ],
    hosts: &[".openai.azure.", ".cognitiveservices.azure.", ".services.ai.azure."],
    path_parts: &["/openai/deployments/"],
    ..Provider::UNKNOWN
};

/// The form of chat completions, which is that of all providers without another one.
pub(super) const CHAT: ChatForm =
    ChatForm { path: |_| "/v1/chat/completions".to_owned(), request: chat_request, response: chat_response };

fn path_of_bodies(request: &Value<'_>, response: Option<&Value<'_>>) -> Option<&'static str> {
    let object = response.and_then(|response| response.get("object")).and_then(Value::as_str);
    let answers = |name: &str| response.is_some_and(|response| response.get(name).is_some());
    let asks = |name: &str| request.get(name).is_some();
    Some(match object {
        Some("chat.completion") => "/v1/chat/completions",
        Some("text_completion") => "/v1/completions",
        Some("response") => "/v1/responses",
        Some("list") if asks("input") => "/v1/embeddings",
        _ if asks("messages") => "/v1/chat/completions",
        _ if asks("prompt") && answers("choices") => "/v1/completions",
        _ if asks("input") && answers("data") => "/v1/embeddings",
        _ if asks("input") && answers("output") => "/v1/responses",
        _ => return None,
    })
}

fn read(reader: &mut AnswerReader, document: &Value<'_>) -> bool {
    if document.get("choices").is_some() {
        read_choices(reader, document);
    } else if type_of(document).starts_with("response.") {
        read_response_event(reader, document);
    } else if document.get("output").and_then(Value::as_array).is_some()
        || word(document, "object") == Some("response")
    {
        read_response(reader, document);
    } else {
        return false;
    }
    true
}

/// Reads the choices of a chat or of a completion, whole or a part of a stream.
fn read_choices(reader: &mut AnswerReader, document: &Value<'_>) {
    for (index, choice) in indexed(document, "choices") {
        let message = choice.get("delta").or_else(|| choice.get("message"));
        let content = message.and_then(|message| message.get("content"));
        reader.add((index, 0, 0), content.or_else(|| choice.get("text")));
        let is_error = word(choice, "finish_reason") == Some("error");
        if let Some(error) = stated_error(choice).or(is_error.then_some(choice)) {
            reader.fail(error);
        }
    }
}

/// The events with a part of the text of a response, or of what it says aloud.
const TEXT_DELTAS: [&str; 4] = [
    "response.output_text.delta",
    "response.text.delta",
    "response.output_audio_transcript.delta",
    "response.audio_transcript.delta",
];

fn read_response_event(reader: &mut AnswerReader, event: &Value<'_>) {
    let place = (0, number(event, "output_index").unwrap_or(0), number(event, "content_index").unwrap_or(0));
    match (type_of(event), event.get("response")) {
        (name, _) if TEXT_DELTAS.contains(&name) => reader.add(place, event.get("delta")),
        ("response.failed" | "response.cancelled", response) => {
            reader.fail(response.and_then(stated_error).unwrap_or(event));
        }
        ("response.completed" | "response.incomplete", Some(response)) if !reader.has_texts() => {
            read_response(reader, response);
        }
        _ => {}
    }
}

/// Reads the messages of a response.
fn read_response(reader: &mut AnswerReader, response: &Value<'_>) {
    let status = word(response, "status");
    if matches!(status, Some("failed" | "cancelled")) {
        reader.fail(stated_error(response).unwrap_or(response));
    }
    let items = response.get("output").and_then(Value::as_array).unwrap_or_default();
    for (position, item) in (0..).zip(items).filter(|(_, item)| type_of(item) != "reasoning") {
        reader.add((0, position, 0), item.get("content"));
    }
}

/// Follows a stream of choices, which can also end with `[DONE]` alone.
fn follow(progress: &mut StreamProgress, event: &Value<'_>) -> bool {
    for (index, choice) in indexed(event, "choices") {
        if states(choice, "finish_reason") {
            progress.open.remove(&index);
            progress.has_ended |= progress.open.is_empty();
        } else {
            progress.open.insert(index);
            progress.has_ended = false;
        }
    }
    event.get("choices").is_some()
}

fn chat_request(chat: &Chat, _: &mut Vec<String>) -> Value<'static> {
    let stream = chat.is_stream.then_some(("stream", Value::Bool(true)));
    let members = [("model", text(chat.model.clone())), ("messages", Value::Array(chat.messages.clone()))];
    object(members.into_iter().chain(chat.members.clone()).chain(stream))
}

/// Returns the request for the embeddings of the texts in the messages of a chat. The error says why there is none.
pub(super) fn embedding_request(chat: &Chat) -> Result<Value<'static>, String> {
    let texts: Option<Vec<_>> = chat
        .messages
        .iter()
        .map(|message| message.get("content").filter(|content| content.as_str().is_some()).cloned())
        .collect();
    let texts = texts.ok_or("the span does not contain the texts that were embedded")?;
    let input = match <[_; 1]>::try_from(texts) {
        Ok([only]) if !chat.embedded.are_list => only,
        Ok(only) => Value::Array(only.into()),
        Err(texts) => Value::Array(texts),
    };
    let members = chat.members.iter().map(|(name, value)| match value {
        Value::Array(formats) if *name == "encoding_format" => {
            (*name, formats.first().cloned().unwrap_or(Value::Null))
        }
        other => (*name, other.clone()),
    });
    Ok(object([("model", text(chat.model.clone())), ("input", input)].into_iter().chain(members)))
}

/// Returns the response with the vectors of the texts, if all of them are known.
pub(super) fn embedding_response(chat: &Chat) -> ChatResponse {
    let vectors = &chat.embedded.vectors;
    if vectors.is_empty() || vectors.len() != chat.messages.len() {
        return ChatResponse::Missing;
    }
    let data = vectors.iter().enumerate().map(|(index, vector)| {
        object([
            ("object", text("embedding")),
            ("index", integer(index as u64)),
            ("embedding", vector.clone()),
        ])
    });
    let members = [
        ("object", text("list")),
        ("data", Value::Array(data.collect())),
        ("model", text(chat.response_model().to_owned())),
    ];
    let usage = chat.usage.input.map(|count| {
        ("usage", object([("prompt_tokens", integer(count)), ("total_tokens", integer(count))]))
    });
    ChatResponse::Whole(object(members.into_iter().chain(usage)))
}

fn chat_response(chat: &Chat, _: &mut Vec<String>) -> ChatResponse {
    if !chat.is_stream {
        let message = |choice: &ChatChoice| in_one_text(&choice.message);
        return ChatResponse::Whole(completion(chat, "chat.completion", true, message));
    }
    let kind = "chat.completion.chunk";
    let deltas = completion(chat, kind, false, |choice| as_delta(&in_one_text(&choice.message)));
    // Clients that do not ask for it ignore the usage; one of them reads no chunk without a choice.
    let ends = completion(chat, kind, true, |_| object([]));
    let [deltas, ends] = [deltas, ends].map(|chunk| compact::text(&chunk));
    ChatResponse::Stream(format!("data: {deltas}\n\ndata: {ends}\n\ndata: [DONE]\n\n"))
}

/// Returns a completion, or a part of a stream of one. The last part states why it ended, and the tokens.
fn completion(
    chat: &Chat,
    kind: &'static str,
    is_last: bool,
    content: impl Fn(&ChatChoice) -> Value<'static>,
) -> Value<'static> {
    let name = if chat.is_stream { "delta" } else { "message" };
    let choices = (0..).zip(&chat.choices).map(|(index, choice)| {
        let reason = if is_last { text(choice.finish_reason.clone()) } else { Value::Null };
        object([("index", integer(index)), (name, content(choice)), ("finish_reason", reason)])
    });
    let created = chat.ended_at.and_then(|at| u64::try_from(at.timestamp()).ok()).unwrap_or(0);
    let members = [
        ("id", chat.response_id()),
        ("object", text(kind)),
        ("created", integer(created)),
        ("model", text(chat.response_model().to_owned())),
        ("choices", Value::Array(choices.collect())),
    ];
    let usage = chat.usage.members(["prompt_tokens", "completion_tokens", "total_tokens"]);
    object(members.into_iter().chain(usage.filter(|_| is_last).map(|usage| ("usage", usage))))
}

/// Returns an answer whose texts are one: answers of this API have no list of them.
fn in_one_text(message: &Value<'static>) -> Value<'static> {
    with_members(message, |name, value| {
        let parts = value.as_array().filter(|_| name == "content")?;
        let said: Option<String> = parts.iter().map(|part| part.get("text")?.as_str()).collect();
        said.map(text)
    })
}

/// Returns a message as the only part of a stream: tool calls are numbered there.
fn as_delta(message: &Value<'static>) -> Value<'static> {
    with_members(message, |name, value| {
        let calls = value.as_array().filter(|_| name == "tool_calls")?;
        let numbered = (0..).zip(calls).map(|(index, call)| {
            let members = call.as_object().into_iter().flat_map(Object::iter);
            let members = members.map(|(name, value)| (name, value.to_owned_value()));
            object([("index", integer(index))].into_iter().chain(members)).into_owned_value()
        });
        Some(Value::Array(numbered.collect()))
    })
}

/// Returns an object in which members have the values that `changed` returns for them.
fn with_members(
    message: &Value<'static>,
    changed: impl Fn(&str, &Value<'static>) -> Option<Value<'static>>,
) -> Value<'static> {
    let Value::Object(members) = message else { return message.clone() };
    let members = members.iter().map(|(name, value)| {
        (Cow::Owned(name.to_owned()), changed(name, value).unwrap_or_else(|| value.clone()))
    });
    Value::Object(Object::from_members(members.collect()))
}

/// Returns what a request asks: a chat, a response, a completion, or embeddings.
fn requested(body: &Value<'_>) -> Option<RequestedMessages> {
    let others = [
        "messages",
        "input",
        "prompt",
        "instructions",
        "model",
        "tools",
        "functions",
        "stream",
        "previous_response_id",
    ];
    let (messages, chat) =
        (body.get("messages").and_then(Value::as_array), body.get("input").or(body.get("prompt")));
    let messages = match (messages, chat) {
        (Some(messages), _) => messages.iter().map(message).collect(),
        (None, Some(asked)) => {
            instructions(body.get("instructions"), part).into_iter().chain(items(asked)).collect()
        }
        (None, None) => return None,
    };
    let named = |tool: &Value<'_>| {
        let name = inner(tool, "function", "name").or(word(tool, "name")).or(word(tool, "type"));
        name.map(str::to_owned).into_iter().collect()
    };
    Some(RequestedMessages {
        messages,
        tools: tool_names(body.get("tools").or(body.get("functions")), named),
        parameters: parameters(body, &others),
        previous_answer: word(body, "previous_response_id").map(str::to_owned),
    })
}

/// Returns a message of a chat. Several servers state what the model thought beside the content.
pub(super) fn message(message: &Value<'_>) -> ConversationMessage {
    let author = role(word(message, "role"));
    let content = parts(message.get("content"), part);
    if author == MessageRole::Tool {
        let result = MessageToolResult {
            id: word(message, "tool_call_id").map(str::to_owned),
            name: word(message, "name").or(word(message, "tool_name")).map(str::to_owned),
            parts: content,
            // Chats have no such member: imported logs of evaluations have.
            is_error: message.get("is_error") == Some(&Value::Bool(true)),
        };
        return ConversationMessage::new(author, vec![MessagePart::ToolResult(result)]);
    }
    let thought = thoughts(message).map(|text| MessagePart::Thinking { text: text.to_owned() });
    let refused = word(message, "refusal").map(|text| MessagePart::Refusal { text: text.to_owned() });
    let spoken = inner(message, "audio", "transcript").filter(|text| !text.is_empty());
    let calls = message.get("tool_calls").and_then(Value::as_array).unwrap_or_default().iter().map(call);
    let old_call = message.get("function_call").filter(|call| !call.is_null());
    let old_call = old_call.map(|call| tool_call(None, word(call, "name"), call.get("arguments")));
    let said = thought.into_iter().chain(content).chain(spoken.map(MessagePart::text)).chain(refused);
    let all = said.chain(images(message)).chain(calls).chain(old_call);
    ConversationMessage::new(author, all.collect())
}

/// Returns what the model thought, under the names that servers give it.
fn thoughts<'v>(message: &'v Value<'_>) -> Option<&'v str> {
    let names = ["reasoning_content", "reasoning", "thinking", "tool_plan"];
    names.iter().find_map(|name| message.get(name).and_then(Value::as_non_empty_str))
}

/// Returns the images beside the content: those that Ollama is asked about, which are Base64, or that `OpenRouter` returns, which
/// are parts.
fn images<'v>(message: &'v Value<'_>) -> impl Iterator<Item = MessagePart> + 'v {
    let images = message.get("images").and_then(Value::as_array).unwrap_or_default().iter();
    images.filter_map(|image| match image {
        Value::String(data) => Some(encoded_media(None, "image", data)),
        image => part(image),
    })
}

/// Returns what the model thought, as a part of a content states it: as a text, or Mistral as a list of parts.
fn thought(part: &Value<'_>) -> Option<String> {
    match part.get("thinking")? {
        Value::String(text) => Some(text.clone().into_owned()),
        stated => Some(stated.as_array()?.iter().filter_map(|part| word(part, "text")).collect()),
    }
}

/// Returns a call of a tool in a message.
fn call(call: &Value<'_>) -> MessagePart {
    let called = call.get("function").or_else(|| call.get("custom")).unwrap_or(call);
    tool_call(word(call, "id"), word(called, "name"), called.get("arguments").or(called.get("input")))
}

/// Returns a part of a content.
fn part(part: &Value<'_>) -> Option<MessagePart> {
    let string = |name: &str| word(part, name);
    Some(match type_of(part) {
        "text" | "input_text" | "output_text" | "summary_text" => MessagePart::text(string("text")?),
        // What a program printed that the server ran.
        "logs" => MessagePart::text(string("logs")?),
        "reasoning_text" => MessagePart::Thinking { text: string("text")?.to_owned() },
        "thinking" => MessagePart::Thinking { text: thought(part)? },
        // What the realtime API says.
        "audio" | "output_audio" => MessagePart::text(string("transcript")?),
        "refusal" => MessagePart::Refusal { text: string("refusal")?.to_owned() },
        "image_url" | "input_image" => {
            let url = inner(part, "image_url", "url").or_else(|| string("image_url"));
            media("image", None, url.or_else(|| string("file_id")))
        }
        "input_audio" => {
            let data = inner(part, "input_audio", "data").or_else(|| string("data"))?;
            encoded_media(inner(part, "input_audio", "format"), "audio", data)
        }
        "file" | "input_file" => {
            let file = part.get("file").unwrap_or(part);
            let content = ["file_data", "file_url", "file_id"].iter().find_map(|name| word(file, name));
            media("file", word(file, "filename"), content)
        }
        _ => return None,
    })
}

/// Returns the messages of an input, or of an output: each item is one.
fn items(input: &Value<'_>) -> Vec<ConversationMessage> {
    match input {
        // An answer of several items is one message.
        Value::Array(items) => joined(items.iter().map(item), Vec::push),
        asked => vec![ConversationMessage::new(MessageRole::User, parts(Some(asked), part))],
    }
}

/// Returns the items of a document of an answer by their ids: those of a response, the one that an event completes, and the
/// messages that are said aloud.
pub(crate) fn output_items<'v, 'a>(
    document: &'v Value<'a>,
) -> impl Iterator<Item = (&'v str, &'v Value<'a>)> {
    let response = document.get("response").unwrap_or(document);
    let items = response.get("output").and_then(Value::as_array).unwrap_or_default().iter();
    let done = document.get("item").filter(|_| type_of(document) == "response.output_item.done");
    let items = items.chain(done).filter_map(|item| Some((word(item, "id")?, item)));
    let choices = document.get("choices").and_then(Value::as_array).unwrap_or_default().iter();
    let messages = choices.filter_map(|choice| choice.get("message"));
    items.chain(messages.filter_map(|message| Some((inner(message, "audio", "id")?, message))))
}

/// Returns the id of the item that an element of a request refers to, instead of repeating it.
pub(crate) fn referenced_item<'v>(element: &'v Value<'_>) -> Option<&'v str> {
    match type_of(element) {
        "item_reference" => word(element, "id"),
        _ => inner(element, "audio", "id"),
    }
}

pub(crate) fn item(item: &Value<'_>) -> ConversationMessage {
    let id = word(item, "call_id");
    let assistant = |part| ConversationMessage::new(MessageRole::Assistant, vec![part]);
    match type_of(item) {
        "function_call" => assistant(tool_call(id, word(item, "name"), item.get("arguments"))),
        "custom_tool_call" => assistant(tool_call(id, word(item, "name"), item.get("input"))),
        "local_shell_call" | "shell_call" => {
            assistant(tool_call(id, Some(type_of(item)), item.get("action")))
        }
        name if name.ends_with("_call") => {
            ConversationMessage::new(MessageRole::Assistant, hosted_call(item, name))
        }
        name if name.ends_with("_output") => {
            let result = MessageToolResult {
                id: id.map(str::to_owned),
                name: None,
                parts: parts(item.get("output"), part),
                is_error: word(item, "status") == Some("failed"),
            };
            ConversationMessage::new(MessageRole::Tool, vec![MessagePart::ToolResult(result)])
        }
        "reasoning" => {
            let stated = ["summary", "content"].into_iter().flat_map(|name| parts(item.get(name), part));
            let texts: Vec<String> = stated
                .filter_map(|part| match part {
                    MessagePart::Text { text } | MessagePart::Thinking { text } => Some(text),
                    _ => None,
                })
                .collect();
            assistant(MessagePart::Thinking { text: texts.join("\n\n") })
        }
        "" | "message" if item.get("role").is_some() => message(item),
        _ => match item {
            Value::String(text) => {
                ConversationMessage::new(MessageRole::User, vec![MessagePart::text(text.as_ref())])
            }
            item => {
                let author = word(item, "role").map_or(MessageRole::Assistant, |name| role(Some(name)));
                ConversationMessage::new(author, vec![MessagePart::other(item)])
            }
        },
    }
}

/// Returns a call of a tool that the server of the model runs itself, and what it returned, as far as that is stated.
fn hosted_call(item: &Value<'_>, item_type: &str) -> Vec<MessagePart> {
    let first = |names: &[&str]| names.iter().find_map(|name| item.get(name).filter(|it| !it.is_null()));
    let id = word(item, "call_id").or_else(|| word(item, "id"));
    let name = word(item, "name").unwrap_or_else(|| item_type.trim_end_matches("_call"));
    let called = tool_call(id, Some(name), first(&["arguments", "action", "code", "queries"]));
    let image = word(item, "result").map(|data| encoded_media(word(item, "output_format"), "image", data));
    let is_error = first(&["error"]).is_some() || word(item, "status") == Some("failed");
    let returned = parts(first(&["error", "output", "outputs", "results"]), part);
    let returned: Vec<MessagePart> = image.into_iter().chain(returned).collect();
    let result = (is_error || !returned.is_empty()).then(|| {
        let id = id.map(str::to_owned);
        MessagePart::ToolResult(MessageToolResult { id, name: None, parts: returned, is_error })
    });
    std::iter::once(called).chain(result).collect()
}

/// Reads choices, a response or its events, or embeddings.
fn answered(decoder: &mut AnswerDecoder, document: &Value<'_>) -> bool {
    if document.get("choices").is_some() {
        decoder.identified(word(document, "id"));
        for (index, choice) in indexed(document, "choices") {
            answered_choice(decoder, index, choice);
        }
    } else if type_of(document).starts_with("response.") {
        answered_event(decoder, document);
    } else if document.get("output").and_then(Value::as_array).is_some() {
        answered_response(decoder, document);
    } else if let Some(vectors) = document.get("data").and_then(Value::as_array)
        && let Some(part) = embeddings(vectors.iter().filter_map(|one| one.get("embedding")))
    {
        decoder.part(0, part);
    } else {
        return false;
    }
    true
}

/// The places of the parts of a message in a stream: what was thought, the text, what is said aloud, a refusal, images, and the
/// calls of tools.
const THOUGHT: u64 = 0;
const TEXT: u64 = 1;
const SPOKEN: u64 = 2;
const REFUSAL: u64 = 3;
const IMAGES: u64 = 4;
const TOOLS: u64 = 5;

fn answered_choice(decoder: &mut AnswerDecoder, index: u64, choice: &Value<'_>) {
    decoder.finished(word(choice, "finish_reason"));
    decoder.piece((index, TEXT, 0), PieceKind::Text, word(choice, "text"));
    if let Some(whole) = choice.get("message") {
        for part in message(whole).parts {
            decoder.part(index, part);
        }
    }
    let Some(delta) = choice.get("delta") else { return };
    decoder.piece((index, THOUGHT, 0), PieceKind::Thinking, thoughts(delta));
    decoder.piece((index, TEXT, 0), PieceKind::Text, word(delta, "content"));
    for content in delta.get("content").and_then(Value::as_array).unwrap_or_default() {
        decoder.piece((index, THOUGHT, 0), PieceKind::Thinking, thought(content).as_deref());
        decoder.piece((index, TEXT, 0), PieceKind::Text, word(content, "text"));
    }
    decoder.piece((index, SPOKEN, 0), PieceKind::Text, inner(delta, "audio", "transcript"));
    images(delta).for_each(|image| decoder.part_in(index, IMAGES, image));
    decoder.piece((index, REFUSAL, 0), PieceKind::Refusal, word(delta, "refusal"));
    for (tool, call) in indexed(delta, "tool_calls") {
        let called = call.get("function").or_else(|| call.get("custom"));
        let string = |name: &str| called.and_then(|called| word(called, name));
        let arguments = string("arguments").or_else(|| string("input"));
        decoder.tool((index, TOOLS, tool), word(call, "id"), string("name"), arguments);
    }
    if let Some(call) = delta.get("function_call") {
        decoder.tool((index, TOOLS, 0), None, word(call, "name"), word(call, "arguments"));
    }
}

fn answered_event(decoder: &mut AnswerDecoder, event: &Value<'_>) {
    let output = number(event, "output_index").unwrap_or(0);
    let place = (0, output, number(event, "content_index").unwrap_or(0));
    match (type_of(event), event.get("response"), event.get("item")) {
        (name, ..) if TEXT_DELTAS.contains(&name) => {
            decoder.piece(place, PieceKind::Text, word(event, "delta"));
        }
        ("response.refusal.delta", ..) => decoder.piece(place, PieceKind::Refusal, word(event, "delta")),
        ("response.reasoning_text.delta" | "response.reasoning_summary_text.delta", ..) => {
            decoder.piece(place, PieceKind::Thinking, word(event, "delta"));
        }
        ("response.output_item.done", _, Some(done)) => {
            for (index, part) in (0..).zip(item(done).parts) {
                decoder.part_at((0, output, index), part);
            }
        }
        (
            "response.created"
            | "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.done",
            Some(response),
            _,
        ) => {
            answered_response(decoder, response);
        }
        _ => {}
    }
}

/// Reads a response. Those that events state repeat the items before them.
fn answered_response(decoder: &mut AnswerDecoder, response: &Value<'_>) {
    decoder.identified(word(response, "id"));
    let reason = inner(response, "incomplete_details", "reason");
    decoder.finished(reason.or_else(|| word(response, "status").filter(|status| *status != "in_progress")));
    let output = response.get("output").and_then(Value::as_array).unwrap_or_default();
    for (position, one) in (0..).zip(output) {
        for (index, part) in (0..).zip(item(one).parts) {
            decoder.part_at((0, position, index), part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::assembled::read;
    use crate::conversation::assembled::testing::{answer, failure, stream, texts, usage};
    use crate::conversation::providers::AnswerFailure;
    use crate::conversation::providers::chat::{TokenCounts, message, tool_call};

    fn chat(is_stream: bool) -> Chat {
        let calls = vec![tool_call("c", "weather", &object([("city", text("Paris"))]))];
        let answer = message("assistant", text(""), calls, None);
        Chat {
            provider: "OpenAI".to_owned(),
            model: "m".to_owned(),
            messages: vec![message("user", text("hi"), Vec::new(), None)],
            choices: vec![ChatChoice { message: answer, finish_reason: "tool_calls".to_owned() }],
            is_stream,
            usage: TokenCounts { input: Some(1), output: Some(2) },
            ..Chat::default()
        }
    }

    #[test]
    fn chats_have_the_form_of_chat_completions() {
        let call = r#"{"id":"c","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}"#;
        let (path, _, answer, _) = chat(false).formed();
        assert_eq!(path, "/v1/chat/completions");
        assert_eq!(
            answer,
            format!(
                "{{\"id\":\"imported\",\"object\":\"chat.completion\",\"created\":0,\"model\":\"m\",\"choices\":[{{\"index\":0,\
                 \"message\":{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{call}]}},\"finish_reason\":\"tool_calls\"}}],\
                 \"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":3}}}}"
            )
        );
        let (_, request, stream, _) = chat(true).formed();
        assert!(
            stream.contains("\"tool_calls\":[{\"index\":0,\"id\":\"c\"") && stream.ends_with("[DONE]\n\n"),
            "{stream}"
        );
        assert_eq!(request, r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#);
    }

    #[test]
    fn answers_have_texts_and_tokens() {
        for body in [
            r#"{"choices":[{"message":{"content":"ab"}}]}"#,
            r#"{"choices":[{"text":"ab"}]}"#,
            r#"{"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"ab"}]}]}"#,
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\ndata: [DONE]\n\n",
            "event: x\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\r\n\r\n\
             data: {\"type\":\"response.output_text.delta\",\"delta\":\"b\"}\n\n\
             data: {\"type\":\"response.completed\",\"response\":{}}\n\n",
        ] {
            assert_eq!(texts(body), ["ab"], "{body}");
        }
        assert_eq!(texts(r#"{"choices":[{"message":{"content":null}}]}"#), [""; 0]);
        for (events, expected) in [
            (
                &[
                    r#"{"choices":[{"delta":{"content":"a"}}],"usage":null}"#,
                    r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4}}"#,
                ],
                r#"{"completion_tokens":4,"prompt_tokens":10}"#,
            ),
            (
                &[
                    r#"{"type":"response.created","response":{"usage":null}}"#,
                    r#"{"type":"response.completed","response":{"usage":{"input_tokens":10,"output_tokens":4}}}"#,
                ],
                r#"{"input_tokens":10,"output_tokens":4}"#,
            ),
        ] {
            assert_eq!(usage(&stream(events)).as_deref(), Some(expected));
        }
        assert_eq!(usage(&stream(&[r#"{"choices":[]}"#])), None);
    }

    #[test]
    fn choices_have_a_text_each() {
        let chunk = |member: &str, choices: &[(u64, &str)]| {
            let choices = choices.iter().map(|(index, text)| match member {
                "text" => format!(r#"{{"index":{index},"text":"{text}"}}"#),
                _ => format!(r#"{{"index":{index},"delta":{{"content":"{text}"}}}}"#),
            });
            format!(r#"{{"choices":[{}]}}"#, choices.collect::<Vec<_>>().join(","))
        };
        for member in ["text", "delta"] {
            let alternating =
                [(1, "Yes"), (0, "Not"), (0, " now."), (1, " sure.")].map(|choice| chunk(member, &[choice]));
            let together = [[(0, "Not"), (1, "Yes")], [(1, " sure."), (0, " now.")]]
                .map(|choices| chunk(member, &choices));
            for events in [alternating.as_slice(), &together] {
                let events: Vec<&str> = events.iter().map(String::as_str).chain(["[DONE]"]).collect();
                let content = read(&stream(&events));
                assert_eq!(
                    (content.texts, content.failure),
                    (vec!["Not now.".to_owned(), "Yes sure.".to_owned()], None)
                );
            }
        }
        let whole =
            r#"{"choices":[{"index":1,"message":{"content":"b"}},{"index":0,"message":{"content":"a"}}]}"#;
        assert_eq!(texts(whole), ["a", "b"]);
    }

    #[test]
    fn errors_and_ends_are_recognized() {
        for events in [
            &[r#"{"choices":[{"delta":{"content":"a"}}]}"#, r#"{"error":{"message":"no"}}"#, "[DONE]"][..],
            &[r#"{"type":"response.failed","response":{"status":"failed","error":{"message":"no"}}}"#],
            &[r#"{"type":"response.created"}"#, r#"{"type":"error","message":"no"}"#],
            &[r#"{"choices":[{"delta":{},"finish_reason":"error","error":{"message":"no"}}]}"#, "[DONE]"],
        ] {
            assert_eq!(failure(&stream(events)).as_deref(), Some("no"), "{events:?}");
        }
        for body in [
            r#"{"object":"response","status":"failed","error":{"message":"no"},"output":[]}"#,
            r#"{"choices":[{"message":{},"error":{"message":"no"}}]}"#,
        ] {
            assert_eq!(failure(&answer(200, None, body)).as_deref(), Some("no"), "{body}");
        }
        for events in [
            r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"finish_reason":"stop"},{"index":1,"delta":{}}]}"#,
            r#"{"type":"response.created"}"#,
        ] {
            assert_eq!(read(&stream(&[events])).failure, Some(AnswerFailure::NoEnd), "{events:?}");
        }
        for events in [
            [r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#, "[DONE]"],
            [
                r#"{"choices":[],"prompt_filter_results":[]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
            ],
            [r#"{"type":"response.created"}"#, r#"{"type":"response.incomplete","response":{}}"#],
        ] {
            assert_eq!(failure(&stream(&events)), None, "{events:?}");
        }
        let completed = r#"{"error":null,"object":"response","status":"completed","output":[]}"#;
        assert_eq!(failure(&answer(200, Some("application/json"), completed)), None);
    }
}

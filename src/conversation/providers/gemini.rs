//! Gemini, and the models of other providers on Vertex AI.

use serde_json::{Value as Json, json};

use super::chat::{Chat, ChatChoice, ChatRole, Turn, TurnPart, Turns, no_place, turns, unknown_part};
use super::decoding::{
    AnswerDecoder, AnswerReader, MessageForm, PieceKind, RequestedMessages, StreamProgress, embeddings,
    encoded_media, indexed, instructions, joined, media, parameters, parts, said_message, states, tool_call,
    tool_names,
};
use super::provider::{
    AnswerForm, ChatForm, ChatResponse, Endpoint, MODELS, MemberRoles, MetadataForm, Provider,
};
use super::{anthropic, openai};
use crate::conversation::message::{MessagePart, MessageToolResult};
use crate::json::members::{at, integer, object, text, word};
use crate::json::reader::{self, Limits};
use crate::json::{Value, compact};

/// The requests over live connections.
pub(super) const LIVE: Endpoint = Endpoint::new("live", ".BidiGenerateContent", &["stream"]);

pub(super) const GEMINI: Provider = Provider {
    name: "gemini",
    url: "https://generativelanguage.googleapis.com",
    version: "v1beta",
    base_urls: &[("GOOGLE_GEMINI_BASE_URL", ""), ("GEMINI_API_BASE", "")],
    keys: &["GEMINI_API_KEY"],
    endpoints: &[
        endpoint("generateContent", ":generateContent"),
        endpoint("generateContent", ":streamGenerateContent"),
        endpoint("embedContent", ":embedContent"),
        endpoint("batchEmbedContents", ":batchEmbedContents"),
        Endpoint { count: Some("totalTokens"), ..endpoint("countTokens", ":countTokens") },
        LIVE,
    ],
    aliases: &[
        "gcp.gemini",
        "gcp.gen_ai",
        "gcp.vertex_ai",
        "gemini",
        "google",
        "google_genai",
        "vertex_ai",
        "vertexai",
    ],
    names: MemberRoles {
        conversation: &["contents"],
        repeated: &["finishReason", "modelVersion", "responseId"],
        descriptions: &["responseSchema"],
        probabilities: &["logprobsResult"],
        alternatives: &["candidates"],
        end_reasons: &["finishReason"],
        cut_off: &["MAX_TOKENS"],
        tool_values: &["args", "functionCall", "functionResponse", "function_call", "function_response"],
        generated: &["responseId", "thoughtSignature", "thought_signature"],
        ..MemberRoles::NONE
    },
    answers: AnswerForm {
        read,
        deltas: &[
            &["serverContent", "modelTurn", "parts"],
            &["serverContent", "outputTranscription", "text"],
        ],
        usages: &[&["usageMetadata"]],
        follow,
        ..AnswerForm::NONE
    },
    messages: MessageForm { request: requested, answer: answered },
    chat: Some(ChatForm { path, request, response }),
    metadata: MetadataForm {
        model: |_, name| {
            let methods = ["generateContent", "countTokens", "embedContent"];
            json!({"name": format!("{MODELS}/{name}"), "displayName": name, "supportedGenerationMethods": methods})
        },
        models: |all, _| json!({"models": all}),
        complete_error,
    },
    ..Provider::UNKNOWN
};

pub(super) const VERTEX: Provider = Provider {
    name: "vertex",
    version: "v1",
    base_urls: &[("GOOGLE_VERTEX_BASE_URL", ""), ("ANTHROPIC_VERTEX_BASE_URL", "/v1")],
    endpoints: &[
        endpoint("generateContent", ":generateContent"),
        endpoint("generateContent", ":streamGenerateContent"),
        endpoint("embedContent", ":embedContent"),
        endpoint("predict", ":predict"),
        Endpoint { count: Some("totalTokens"), ..endpoint("countTokens", ":countTokens") },
        // The model is in the body.
        Endpoint {
            count: Some("input_tokens"),
            ..Endpoint::new("count-tokens", "/count-tokens:rawPredict", anthropic::TRANSPORT)
        },
        Endpoint::of_model("rawPredict", ":rawPredict", anthropic::TRANSPORT),
        Endpoint::of_model("rawPredict", ":streamRawPredict", anthropic::TRANSPORT),
        Endpoint::new("chat.completions", "/chat/completions", openai::TRANSPORT),
    ],
    hosts: &["aiplatform."],
    has_only_models: true,
    paths: &[":predict", ":rawPredict", ":streamRawPredict"],
    metadata: GEMINI.metadata,
    ..Provider::UNKNOWN
};

const fn endpoint(name: &'static str, path: &'static str) -> Endpoint {
    Endpoint {
        // The API does not need these ids, so that several clients invent random ones where it sends none.
        transport_inside: &[
            &["contents", "*", "parts", "*", "functionCall", "id"],
            &["contents", "*", "parts", "*", "functionResponse", "id"],
            // LiteLLM writes names in the other way that the API accepts.
            &["contents", "*", "parts", "*", "function_call", "id"],
            &["contents", "*", "parts", "*", "function_response", "id"],
        ],
        has_model_in_path: true,
        ..Endpoint::new(name, path, &[])
    }
}

fn read(reader: &mut AnswerReader, document: &Value<'_>) -> bool {
    for (index, candidate) in indexed(document, "candidates") {
        reader.add((index, 0, 0), at(candidate, &["content", "parts"]));
    }
    document.get("candidates").is_some()
}

/// Follows a stream of candidates. More of one that has ended can be stated afterwards, such as its sources.
fn follow(progress: &mut StreamProgress, event: &Value<'_>) -> bool {
    for (index, candidate) in indexed(event, "candidates") {
        if states(candidate, "finishReason") {
            progress.ended.insert(index);
        }
        progress.open.insert(index);
        // Recordings of streams without any reason are complete as often as not.
        progress.has_ended = progress.ended.is_empty() || progress.open.is_subset(&progress.ended);
    }
    event.get("candidates").is_some()
}

fn complete_error(document: &mut Json, status: u16) {
    let name = match status {
        400 => "INVALID_ARGUMENT",
        404 => "NOT_FOUND",
        502 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    if let Some(error) = document.get_mut("error").and_then(Json::as_object_mut) {
        error.extend([("code".to_owned(), json!(status)), ("status".to_owned(), json!(name))]);
    }
}

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

/// Returns the path of a request, which has the model.
fn path(chat: &Chat) -> String {
    let model = chat.model.rsplit('/').next().unwrap_or_default();
    let method = if chat.is_stream { "streamGenerateContent" } else { "generateContent" };
    format!("/v1beta/models/{model}:{method}")
}

fn request(chat: &Chat, unmapped: &mut Vec<String>) -> Value<'static> {
    let Turns { system, others } = Turns::read(&chat.messages);
    let mut members = vec![("contents", Value::Array(contents(&others, unmapped)))];
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
            None => unmapped.push(no_place(name)),
        }
    }
    // The client for Python sends it, empty, with everything that it calls a configuration.
    if !options.is_empty() || members.len() > 1 {
        members.push(("generationConfig", object(options)));
    }
    object(members)
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
    let word = |word: &str| text(word.to_owned());
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
            let members = [("name", word(name)), ("response", function_response(content))];
            let id = id_of(id, name).map(|id| ("id", word(id)));
            object([("functionResponse", object(members.into_iter().chain(id)))])
        }
        TurnPart::Other(part) => {
            if part.get("type").is_some() {
                unmapped.push(unknown_part(part));
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
fn function_response(content: &str) -> Value<'static> {
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

fn response(chat: &Chat, unmapped: &mut Vec<String>) -> ChatResponse {
    let candidates =
        chat.choices.iter().enumerate().map(|(index, choice)| candidate(index, choice, unmapped));
    let mut members = vec![("candidates", Value::Array(candidates.collect()))];
    let usage = chat.usage.members(["promptTokenCount", "candidatesTokenCount", "totalTokenCount"]);
    members.extend(usage.map(|usage| ("usageMetadata", usage)));
    members.push(("modelVersion", text(chat.response_model().to_owned())));
    members.extend(chat.id.clone().map(|id| ("responseId", text(id))));
    let body = object(members);
    if chat.is_stream {
        return ChatResponse::Stream(format!("data: {}\r\n\r\n", compact::text(&body)));
    }
    ChatResponse::Whole(body)
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

/// Returns what a request asks: contents, or the embeddings of some.
fn requested(body: &Value<'_>) -> Option<RequestedMessages> {
    let several = body.get("requests").and_then(Value::as_array).unwrap_or_default();
    let contents: Vec<&Value<'_>> = match body.get("contents") {
        Some(Value::Array(contents)) => contents.iter().collect(),
        Some(content) => vec![content],
        None => several.iter().chain([body]).filter_map(|request| request.get("content")).collect(),
    };
    if contents.is_empty() {
        return embedded(body);
    }
    if contents.iter().any(|content| content.get("parts").is_none()) {
        return None;
    }
    let system = body.get("systemInstruction").or_else(|| body.get("system_instruction"));
    let system = instructions(system.and_then(|content| content.get("parts")), part);
    let said = contents.into_iter().map(|one| said_message(word(one, "role"), parts(one.get("parts"), part)));
    // Clients repeat each event of a stream as a content of its own.
    let messages = joined(said, add_piece);
    let named = |tool: &Value<'_>| {
        let declared = tool.get("functionDeclarations").or_else(|| tool.get("function_declarations"));
        let declared = declared.and_then(Value::as_array).unwrap_or_default().iter();
        declared.filter_map(|one| word(one, "name")).map(str::to_owned).collect()
    };
    let others =
        ["contents", "content", "requests", "systemInstruction", "system_instruction", "model", "tools"];
    Some(RequestedMessages {
        messages: system.into_iter().chain(messages).collect(),
        tools: tool_names(body.get("tools"), named),
        parameters: parameters(body, &others),
        previous_answer: None,
    })
}

/// Adds a part of an answer to those before it, which it continues if it is of the same kind.
fn add_piece(parts: &mut Vec<MessagePart>, part: MessagePart) {
    match (parts.last_mut(), part) {
        (Some(MessagePart::Text { text: said }), MessagePart::Text { text })
        | (Some(MessagePart::Thinking { text: said }), MessagePart::Thinking { text }) => {
            said.push_str(&text);
        }
        // The last event of a stream often has no text.
        (_, MessagePart::Text { text }) if text.is_empty() => {}
        (_, part) => parts.push(part),
    }
}

/// Returns the texts of which Vertex is asked for embeddings.
fn embedded(body: &Value<'_>) -> Option<RequestedMessages> {
    let instances = body.get("instances").and_then(Value::as_array)?.iter();
    let message = |instance| Some(said_message(None, vec![MessagePart::text(word(instance, "content")?)]));
    let messages: Vec<_> = instances.map(message).collect::<Option<_>>()?;
    let parameters = parameters(body, &["instances"]);
    let asked = RequestedMessages { messages, parameters, ..RequestedMessages::default() };
    (!asked.messages.is_empty()).then_some(asked)
}

/// Returns a part of a content.
pub(crate) fn part(part: &Value<'_>) -> Option<MessagePart> {
    let member = |camel: &str, snake: &str| part.get(camel).or_else(|| part.get(snake));
    if let Some(text) = word(part, "text") {
        let text = text.to_owned();
        let is_thought = part.get("thought") == Some(&Value::Bool(true));
        return Some(if is_thought { MessagePart::Thinking { text } } else { MessagePart::Text { text } });
    }
    if let Some(call) = member("functionCall", "function_call") {
        return Some(tool_call(word(call, "id"), word(call, "name"), call.get("args")));
    }
    if let Some(response) = member("functionResponse", "function_response") {
        return Some(result(response));
    }
    // The server runs programs that the model writes.
    if let Some(program) = member("executableCode", "executable_code") {
        return Some(tool_call(word(program, "id"), Some("code_execution"), program.get("code")));
    }
    if let Some(run) = member("codeExecutionResult", "code_execution_result") {
        return Some(MessagePart::ToolResult(MessageToolResult {
            id: word(run, "id").map(str::to_owned),
            name: Some("code_execution".to_owned()),
            parts: parts(run.get("output"), |_| None),
            is_error: word(run, "outcome").is_some_and(|outcome| outcome != "OUTCOME_OK"),
        }));
    }
    if let Some(data) = member("inlineData", "inline_data") {
        let media_type = word(data, "mimeType").or_else(|| word(data, "mime_type"));
        return Some(encoded_media(media_type, "file", word(data, "data")?));
    }
    let file = member("fileData", "file_data")?;
    let media_type = word(file, "mimeType").or_else(|| word(file, "mime_type")).unwrap_or("file");
    Some(media(media_type, None, word(file, "fileUri").or_else(|| word(file, "file_uri"))))
}

/// Returns the result of a call of a tool.
pub(super) fn result(result: &Value<'_>) -> MessagePart {
    let response = result.get("response");
    MessagePart::ToolResult(MessageToolResult {
        id: word(result, "id").map(str::to_owned),
        name: word(result, "name").map(str::to_owned),
        parts: parts(response, |_| None),
        is_error: response.is_some_and(|response| response.get("error").is_some()),
    })
}

/// Reads a message of a live connection. Returns false if it is not one.
fn answered_live(decoder: &mut AnswerDecoder, message: &Value<'_>) -> bool {
    for part in parts(at(message, &["serverContent", "modelTurn", "parts"]), part) {
        match part {
            MessagePart::Text { text } => decoder.append(0, PieceKind::Text, Some(&text)),
            MessagePart::Media(_) => {}
            part => decoder.part(0, part),
        }
    }
    let said = at(message, &["serverContent", "outputTranscription"]);
    decoder.append(0, PieceKind::Text, said.and_then(|said| word(said, "text")));
    let calls = at(message, &["toolCall", "functionCalls"]).and_then(Value::as_array);
    for call in calls.unwrap_or_default() {
        decoder.part(0, tool_call(word(call, "id"), word(call, "name"), call.get("args")));
    }
    ["serverContent", "toolCall", "setupComplete"].iter().any(|name| message.get(name).is_some())
}

/// Reads candidates, whole or those of an event, or embeddings.
fn answered(decoder: &mut AnswerDecoder, document: &Value<'_>) -> bool {
    for (index, candidate) in indexed(document, "candidates") {
        decoder.finished(word(candidate, "finishReason"));
        for part in parts(at(candidate, &["content", "parts"]), part) {
            match part {
                MessagePart::Text { text } => decoder.append(index, PieceKind::Text, Some(&text)),
                MessagePart::Thinking { text } => decoder.append(index, PieceKind::Thinking, Some(&text)),
                part => decoder.part(index, part),
            }
        }
    }
    decoder.identified(word(document, "responseId"));
    let is_blocked = answered_blocked(decoder, document);
    let several = document.get("embeddings").and_then(Value::as_array).unwrap_or_default();
    let predictions = document.get("predictions").and_then(Value::as_array).unwrap_or_default();
    let predicted = predictions.iter().filter_map(|prediction| prediction.get("embeddings"));
    let vectors = several.iter().chain(document.get("embedding")).chain(predicted);
    let vectors = vectors.filter_map(|one| one.get("values"));
    if let Some(part) = embeddings(vectors) {
        decoder.part(0, part);
        return true;
    }
    answered_live(decoder, document)
        || is_blocked
        || document.get("candidates").is_some()
        || document.get("usageMetadata").is_some()
}

/// Reads why a prompt is not answered. Returns false if that is not stated.
fn answered_blocked(decoder: &mut AnswerDecoder, document: &Value<'_>) -> bool {
    let Some(feedback) = document.get("promptFeedback") else { return false };
    let reason = word(feedback, "blockReason");
    // Several events of a stream can state it.
    let is_first = reason.is_some() && decoder.finish_reason.is_none();
    decoder.finished(reason);
    if let Some(text) = word(feedback, "blockReasonMessage").filter(|_| is_first) {
        decoder.part(0, MessagePart::Refusal { text: text.to_owned() });
    }
    reason.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::assembled::read;
    use crate::conversation::assembled::testing::{answer, failure, stream, texts, usage};
    use crate::conversation::providers::AnswerFailure;

    #[test]
    fn chats_become_contents() {
        let (path, request, answer, unmapped) = Chat::sample("gcp.gemini", false).formed();
        assert_eq!(path, "/v1beta/models/m:generateContent");
        assert_eq!(
            request,
            "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"the weather?\"}]},{\"role\":\"model\",\"parts\":[\
             {\"functionCall\":{\"name\":\"w\",\"args\":{\"city\":\"Paris\"}}}]},{\"role\":\"user\",\"parts\":[{\"functionResponse\":\
             {\"name\":\"w\",\"response\":{\"result\":\"rain\"}}},{\"text\":\"so?\"}]}],\"systemInstruction\":{\"role\":\"user\",\
             \"parts\":[{\"text\":\"be short\"}]},\"tools\":[{\"functionDeclarations\":[{\"name\":\"w\",\
             \"description\":\"Tells the weather\",\"parameters\":{\"type\":\"object\"}}]}],\"generationConfig\":{\
             \"maxOutputTokens\":9,\"seed\":3,\"stopSequences\":[\"x\"]}}"
        );
        assert_eq!(
            answer,
            "{\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"wait\"},{\"functionCall\":{\"name\":\"w\",\
             \"args\":{\"city\":\"Paris\"}}}]},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":1,\
             \"candidatesTokenCount\":2,\"totalTokenCount\":3},\"modelVersion\":\"m\"}"
        );
        assert_eq!(unmapped, Vec::<String>::new());
        let (path, _, answer, _) = Chat::sample("google", true).formed();
        assert_eq!(path, "/v1beta/models/m:streamGenerateContent");
        assert!(answer.starts_with("data: {\"candidates\"") && answer.ends_with("}\r\n\r\n"), "{answer}");
    }

    #[test]
    fn one_tool_or_turn_needs_no_list() {
        let body =
            br#"{"contents":{"parts":[{"text":"a"}]},"tools":{"functionDeclarations":[{"name":"w"}]}}"#;
        let request = requested(&reader::read(body, &Limits::default()).unwrap()).unwrap();
        assert_eq!((request.messages.len(), request.tools), (1, vec!["w".to_owned()]));
    }

    #[test]
    fn answers_have_texts_and_tokens() {
        for body in [
            r#"{"candidates":[{"content":{"parts":[{"text":"no","thought":true},{"text":"ab"}]}}]}"#,
            r#"[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},{"candidates":[{"content":{"parts":[{"text":"b"}]}}]}]"#,
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"},{\"text\":\"b\"}]}}]}\n\n",
        ] {
            assert_eq!(texts(body), ["ab"], "{body}");
        }
        let candidate = |index: u64, text: &str| {
            format!(r#"{{"candidates":[{{"index":{index},"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#)
        };
        let events = [candidate(1, "b"), candidate(0, "a"), candidate(1, "d"), candidate(0, "c")];
        let events = events.each_ref().map(String::as_str);
        assert_eq!(read(&stream(&events)).texts, ["ac", "bd"]);
        assert_eq!(texts(&format!("[{}]", events.join(","))), ["ac", "bd"]);
        let events = [
            r#"{"candidates":[],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1}}"#,
            r#"{"candidates":[],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":4}}"#,
        ];
        let expected = r#"{"candidatesTokenCount":4,"promptTokenCount":10}"#;
        assert_eq!(usage(&stream(&events)).as_deref(), Some(expected));
    }

    #[test]
    fn errors_and_ends_are_recognized() {
        let events = [r#"{"candidates":[]}"#, r#"{"error":{"code":503,"message":"no"}}"#];
        assert_eq!(failure(&stream(&events)).as_deref(), Some("no"));
        let body = r#"[{"candidates":[]},{"error":{"message":"no"}}]"#;
        assert_eq!(failure(&answer(200, None, body)).as_deref(), Some("no"));
        let events =
            [r#"{"candidates":[{"index":0,"finishReason":"STOP"}]}"#, r#"{"candidates":[{"index":1}]}"#];
        assert_eq!(read(&stream(&events)).failure, Some(AnswerFailure::NoEnd));
        for events in [
            &[
                r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#,
                r#"{"candidates":[{"groundingMetadata":{}}]}"#,
                r#"{"usageMetadata":{}}"#,
            ][..],
            &[
                r#"{"candidates":[{"index":1,"finishReason":"STOP"}]}"#,
                r#"{"candidates":[{"index":0,"finishReason":"MAX_TOKENS"}]}"#,
            ],
            &[r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#],
            &[r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#, r#"{"usageMetadata":{}}"#],
            &[r#"{"candidates":[{"finishReason":null}]}"#],
        ] {
            assert_eq!(failure(&stream(events)), None, "{events:?}");
        }
    }
}

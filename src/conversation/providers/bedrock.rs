//! Bedrock of Amazon: Converse, and the forms of models that are invoked.

use serde_json::Value as Json;

use super::anthropic;
use super::decoding::{
    AnswerDecoder, AnswerReader, MessageForm, PieceKind, RequestedMessages, StreamProgress, blocks,
    encoded_media, inner, instructions, number, parameters, parts, said_message, tool_call, tool_names,
};
use super::provider::{AnswerForm, Endpoint, MemberRoles, MetadataForm, Provider};
use crate::conversation::message::{MessagePart, MessageToolResult};
use crate::json::Value;
use crate::json::members::{at, word};

pub(super) const BEDROCK: Provider = Provider {
    name: "bedrock",
    base_urls: &[("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", ""), ("ANTHROPIC_BEDROCK_BASE_URL", "")],
    endpoints: &[
        Endpoint::of_model("converse", "/converse", &["requestMetadata"]),
        Endpoint::of_model("converse", "/converse-stream", &["requestMetadata"]),
        // Bodies are those of the models, most of them of Anthropic.
        Endpoint::of_model("invoke", "/invoke", anthropic::TRANSPORT),
        Endpoint::of_model("invoke", "/invoke-with-response-stream", anthropic::TRANSPORT),
        Endpoint { count: Some("inputTokens"), ..Endpoint::of_model("count-tokens", "/count-tokens", &[]) },
    ],
    hosts: &["bedrock-runtime", "bedrock-agent-runtime"],
    has_only_models: true,
    paths: &["/converse", "/converse-stream", "/invoke", "/invoke-with-response-stream"],
    names: MemberRoles {
        end_reasons: &["stopReason"],
        generated: &["toolUseId", "signature"],
        ..MemberRoles::NONE
    },
    answers: AnswerForm {
        read,
        texts: &[&["output", "message", "content"], &["generated_text"], &["results", "0", "outputText"]],
        usages: &[&["metadata", "usage"]],
        follow,
        ..AnswerForm::NONE
    },
    messages: MessageForm { request: requested, answer: answered },
    metadata: MetadataForm { complete_error, ..MetadataForm::OPENAI },
    ..Provider::UNKNOWN
};

/// The events of a stream. Some models send an event as the member of an object that has its name.
const EVENTS: [&str; 6] =
    ["messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"];

/// Returns what an event states.
fn stated<'v, 'a>(event: &'v Value<'a>) -> &'v Value<'a> {
    EVENTS.iter().find_map(|name| event.get(name)).unwrap_or(event)
}

fn read(reader: &mut AnswerReader, event: &Value<'_>) -> bool {
    let event = stated(event);
    let index = number(event, "contentBlockIndex");
    if let Some(index) = index {
        reader.add((0, index, 0), at(event, &["delta", "text"]));
    }
    index.is_some()
}

/// Follows a stream. Its numbers of tokens come after its end.
fn follow(progress: &mut StreamProgress, event: &Value<'_>) -> bool {
    let event = stated(event);
    let has_ended = word(event, "stopReason").is_some();
    let is_start =
        || word(event, "role").is_some() && ["content", "type"].iter().all(|name| event.get(name).is_none());
    progress.has_ended |= has_ended;
    has_ended || number(event, "contentBlockIndex").is_some() || is_start()
}

/// Adds what the SDKs of AWS show of an error.
fn complete_error(document: &mut Json, _: u16) {
    let error = document.get("error");
    let [message, name] = ["message", "type"].map(|name| error.and_then(|error| error.get(name)).cloned());
    if let Some(members) = document.as_object_mut() {
        members.extend(message.map(|message| ("message".to_owned(), message)));
        members.extend(name.map(|name| ("__type".to_owned(), name)));
    }
}

/// Returns what a request of Converse asks: the blocks of its messages state no type.
fn requested(body: &Value<'_>) -> Option<RequestedMessages> {
    let listed = body.get("messages").and_then(Value::as_array)?;
    let mut blocks = blocks(listed).peekable();
    let is_block = |block: &Value<'_>| block.get("type").is_none() && block.as_object().is_some();
    if blocks.peek().is_none() || !blocks.all(is_block) {
        return None;
    }
    let system = instructions(body.get("system"), part);
    let messages = listed.iter().map(|one| said_message(word(one, "role"), parts(one.get("content"), part)));
    let named = |tool: &Value<'_>| {
        at(tool, &["toolSpec", "name"]).and_then(Value::as_str).map(str::to_owned).into_iter().collect()
    };
    Some(RequestedMessages {
        messages: system.into_iter().chain(messages).collect(),
        tools: tool_names(at(body, &["toolConfig", "tools"]), named),
        parameters: parameters(body, &["messages", "system", "toolConfig", "modelId"]),
        previous_answer: None,
    })
}

/// Returns a block of a message.
fn part(block: &Value<'_>) -> Option<MessagePart> {
    if let Some(text) = word(block, "text") {
        return Some(MessagePart::text(text));
    }
    if let Some(thought) = block.get("reasoningContent") {
        let text = at(thought, &["reasoningText", "text"]).and_then(Value::as_str).unwrap_or_default();
        return Some(MessagePart::Thinking { text: text.to_owned() });
    }
    if let Some(call) = block.get("toolUse") {
        return Some(tool_call(word(call, "toolUseId"), word(call, "name"), call.get("input")));
    }
    if let Some(result) = block.get("toolResult") {
        return Some(MessagePart::ToolResult(MessageToolResult {
            id: word(result, "toolUseId").map(str::to_owned),
            name: None,
            parts: parts(result.get("content"), |part_of| match part_of.get("json") {
                Some(value) => Some(MessagePart::other(value)),
                None => part(part_of),
            }),
            is_error: word(result, "status") == Some("error"),
        }));
    }
    let (kind, media) =
        ["image", "document", "video"].iter().find_map(|kind| Some((*kind, block.get(kind)?)))?;
    let data = inner(media, "source", "bytes").unwrap_or_default();
    Some(encoded_media(word(media, "format"), kind, data))
}

/// Reads an answer of Converse, or an event of one.
fn answered(decoder: &mut AnswerDecoder, document: &Value<'_>) -> bool {
    if let Some(said) = at(document, &["output", "message"]) {
        for part in parts(said.get("content"), part) {
            decoder.part(0, part);
        }
        decoder.finished(word(document, "stopReason"));
        return true;
    }
    let event = stated(document);
    let reason = word(event, "stopReason");
    decoder.finished(reason);
    let Some(index) = number(event, "contentBlockIndex") else { return reason.is_some() };
    let place = (0, index, 0);
    if let Some(call) = at(event, &["start", "toolUse"]) {
        decoder.tool(place, word(call, "toolUseId"), word(call, "name"), None);
    }
    if let Some(delta) = event.get("delta") {
        decoder.piece(place, PieceKind::Text, word(delta, "text"));
        decoder.piece(place, PieceKind::Thinking, inner(delta, "reasoningContent", "text"));
        decoder.piece(place, PieceKind::Text, inner(delta, "toolUse", "input"));
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::conversation::assembled::read;
    use crate::conversation::assembled::testing::{stream, texts, usage};
    use crate::conversation::providers::AnswerFailure;
    use crate::conversation::reader::decode_answer;
    use crate::json::compact;

    #[test]
    fn answers_are_read() {
        for body in [
            r#"{"output":{"message":{"role":"assistant","content":[{"text":"a"},{"text":"b"}]}}}"#,
            r#"{"generated_text":"ab"}"#,
            r#"{"results":[{"outputText":"ab"}]}"#,
        ] {
            assert_eq!(texts(body), ["ab"], "{body}");
        }
    }

    /// The events of a stream that thinks, answers and calls a tool.
    const STREAM: [&str; 9] = [
        r#"{"role":"assistant","p":"abc"}"#,
        r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}}}"#,
        r#"{"contentBlockIndex":1,"delta":{"text":"It "}}"#,
        r#"{"contentBlockIndex":1,"delta":{"text":"rains."},"p":"a"}"#,
        r#"{"contentBlockIndex":1}"#,
        r#"{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"t-1","name":"weather"}}}"#,
        r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"city\":"}}}"#,
        r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":"\"Paris\"}"}}}"#,
        r#"{"stopReason":"tool_use"}"#,
    ];

    #[test]
    fn events_make_a_message() {
        let metadata =
            r#"{"metrics":{"latencyMs":1},"usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7}}"#;
        let events: Vec<&str> = STREAM.iter().copied().chain([metadata]).collect();
        let answer = stream(&events);
        let said = decode_answer(&answer);
        assert_eq!(
            serde_json::to_string(&said.messages[0].parts).unwrap(),
            "[{\"type\":\"thinking\",\"text\":\"hm\"},{\"type\":\"text\",\"text\":\"It rains.\"},\
             {\"type\":\"tool-call\",\"id\":\"t-1\",\"name\":\"weather\",\"arguments\":\"{\\\"city\\\":\\\"Paris\\\"}\"}]"
        );
        assert_eq!(said.finish_reason.as_deref(), Some("tool_use"));
        let content = read(&answer);
        assert_eq!((content.texts, content.failure), (vec!["It rains.".to_owned()], None));
        assert_eq!(usage(&answer).unwrap(), r#"{"inputTokens":3,"outputTokens":4,"totalTokens":7}"#);
    }

    #[test]
    fn events_can_have_names() {
        let events = [
            r#"{"messageStart":{"role":"assistant"}}"#,
            r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"a"}}}"#,
            r#"{"messageStop":{"stopReason":"end_turn"}}"#,
            r#"{"metadata":{"usage":{"inputTokens":1}}}"#,
        ];
        let content = read(&stream(&events));
        assert_eq!((content.texts, content.failure), (vec!["a".to_owned()], None));
        assert_eq!(compact::text(&content.usage.unwrap()), r#"{"inputTokens":1}"#);
    }

    #[test]
    fn a_stream_without_its_last_event_is_a_failure() {
        for length in 1..STREAM.len() {
            let failure = read(&stream(&STREAM[..length])).failure;
            assert_eq!(failure, Some(AnswerFailure::NoEnd), "{length}");
        }
    }
}

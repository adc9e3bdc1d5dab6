//! Cohere, in the versions 1 and 2 of its API.

use super::decoding::{
    AnswerDecoder, MessageForm, PieceKind, RequestedMessages, embeddings, inner, instructions, number,
    parameters, parts, role, tool_call, type_of,
};
use super::openai;
use super::provider::{AnswerForm, Provider};
use crate::conversation::message::{ConversationMessage, MessageRole};
use crate::json::Value;
use crate::json::members::{at, word};

pub(super) const COHERE: Provider = Provider {
    name: "cohere",
    paths: &["/rerank"],
    answers: AnswerForm {
        texts: &[&["text"]],
        deltas: &[&["delta", "message", "content", "text"]],
        usages: &[&["delta", "usage"], &["meta", "billed_units"], &["response", "meta", "billed_units"]],
        event_types: &["message-", "content-"],
        last_events: &["message-end"],
        // The events of version 1.
        follow: |progress, event| {
            let kind = event.get("event_type");
            progress.has_ended |= kind.and_then(Value::as_str) == Some("stream-end");
            kind.is_some()
        },
        ..AnswerForm::NONE
    },
    messages: MessageForm { request: requested, answer: answered },
    ..Provider::UNKNOWN
};

/// Returns what a request of version 1 asks, or the texts of which embeddings are asked for. Chats of version 2 have the form of
/// those of `OpenAI`.
fn requested(body: &Value<'_>) -> Option<RequestedMessages> {
    let said = |author, content| ConversationMessage::new(author, parts(content, |_| None));
    let history = body.get("chat_history").and_then(Value::as_array).unwrap_or_default().iter();
    let history = history.map(|one| said(role(word(one, "role")), one.get("message")));
    let preamble = instructions(body.get("preamble"), |_| None);
    let asked = body.get("message").or_else(|| body.get("texts"))?;
    let messages = preamble.into_iter().chain(history).chain([said(MessageRole::User, Some(asked))]);
    Some(RequestedMessages {
        messages: messages.collect(),
        parameters: parameters(body, &["message", "texts", "chat_history", "preamble", "model", "stream"]),
        ..RequestedMessages::default()
    })
}

/// The places of the parts of a message in a stream: texts, and the calls of tools.
const TEXTS: u64 = 0;
const TOOLS: u64 = 1;

/// Reads an answer in one piece, or an event of a stream, of both versions.
fn answered(decoder: &mut AnswerDecoder, document: &Value<'_>) -> bool {
    let index = number(document, "index").unwrap_or(0);
    let delta = |path: &[&str]| at(document, path).and_then(Value::as_str).map(str::to_owned);
    match type_of(document) {
        "content-start" | "content-delta" => {
            let texts = [("text", PieceKind::Text), ("thinking", PieceKind::Thinking)];
            for (name, kind) in texts {
                decoder.piece(
                    (0, TEXTS, index),
                    kind,
                    delta(&["delta", "message", "content", name]).as_deref(),
                );
            }
        }
        "tool-plan-delta" => {
            decoder.piece(
                (0, TEXTS, 0),
                PieceKind::Thinking,
                delta(&["delta", "message", "tool_plan"]).as_deref(),
            );
        }
        "tool-call-start" | "tool-call-delta" => {
            let called = |path: &[&str]| delta(&[&["delta", "message", "tool_calls"], path].concat());
            let (id, name) = (called(&["id"]), called(&["function", "name"]));
            let arguments = called(&["function", "arguments"]);
            decoder.tool((0, TOOLS, index), id.as_deref(), name.as_deref(), arguments.as_deref());
        }
        "message-start" => decoder.identified(word(document, "id")),
        "message-end" => decoder.finished(inner(document, "delta", "finish_reason")),
        _ => return answered_whole(decoder, document),
    }
    true
}

fn answered_whole(decoder: &mut AnswerDecoder, document: &Value<'_>) -> bool {
    if let Some(event) = word(document, "event_type") {
        if event == "text-generation" {
            decoder.append(0, PieceKind::Text, word(document, "text"));
        }
        decoder.finished(word(document, "finish_reason"));
        return true;
    }
    let states =
        |message: &&Value<'_>| message.get("content").is_some() || message.get("tool_calls").is_some();
    let is_own = type_of(document).is_empty() && document.get("done").is_none();
    if let Some(message) = document.get("message").filter(states).filter(|_| is_own) {
        openai::message(message).parts.into_iter().for_each(|part| decoder.part(0, part));
    } else if let Some(vectors) = at(document, &["embeddings", "float"]).and_then(Value::as_array) {
        if let Some(part) = embeddings(vectors.iter()) {
            decoder.part(0, part);
        }
    } else if let (Some(said), Some(_)) = (word(document, "text"), document.get("generation_id")) {
        decoder.append(0, PieceKind::Text, Some(said));
        for call in document.get("tool_calls").and_then(Value::as_array).unwrap_or_default() {
            decoder.part(0, tool_call(None, word(call, "name"), call.get("parameters")));
        }
    } else {
        return false;
    }
    decoder.identified(word(document, "id"));
    decoder.finished(word(document, "finish_reason"));
    true
}

#[cfg(test)]
mod tests {
    use crate::conversation::assembled::read;
    use crate::conversation::assembled::testing::{stream, texts, usage};
    use crate::conversation::providers::AnswerFailure;

    #[test]
    fn answers_are_read() {
        for body in [
            r#"{"message":{"content":[{"type":"text","text":"ab"}]}}"#,
            r#"{"text":"ab"}"#,
            "data: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\"ab\"}}}}\n\n",
        ] {
            assert_eq!(texts(body), ["ab"], "{body}");
        }
        for [event, last] in [
            [r#"{"type":"message-start"}"#, r#"{"type":"message-end","delta":{"usage":{"input":1}}}"#],
            [r#"{"event_type":"stream-start"}"#, r#"{"event_type":"stream-end"}"#],
        ] {
            assert_eq!(read(&stream(&[event])).failure, Some(AnswerFailure::NoEnd), "{event}");
            assert_eq!(read(&stream(&[event, last])).failure, None, "{last}");
        }
        let last = stream(&[r#"{"type":"message-end","delta":{"usage":{"input":1}}}"#]);
        assert_eq!(usage(&last).as_deref(), Some(r#"{"input":1}"#));
    }
}

//! Ollama, a server of its own at any host.

use super::decoding::{
    AnswerDecoder, MessageForm, PieceKind, RequestedMessages, embeddings, indexed, instructions, parameters,
    parts,
};
use super::openai;
use super::provider::{AnswerForm, MemberRoles, Provider};
use crate::conversation::message::{ConversationMessage, MessagePart, MessageRole};
use crate::json::Value;
use crate::json::members::word;

pub(super) const OLLAMA: Provider = Provider {
    name: "ollama",
    hosts: &["ollama"],
    paths: &["/api/chat", "/api/embed", "/api/embeddings", "/api/generate"],
    // The programs of a chat have such paths, too, with members of their own.
    members: &[
        "context",
        "dimensions",
        "format",
        "images",
        "input",
        "keep_alive",
        "logprobs",
        "messages",
        "model",
        "options",
        "prompt",
        "raw",
        "shift",
        "stream",
        "suffix",
        "system",
        "template",
        "think",
        "tools",
        "top_logprobs",
        "truncate",
    ],
    names: MemberRoles { end_reasons: &["done_reason"], tool_values: &["response"], ..MemberRoles::NONE },
    answers: AnswerForm {
        texts: &[&["message", "content"], &["response"]],
        counts: &[("prompt_eval_count", "input_tokens"), ("eval_count", "output_tokens")],
        follow: |progress, event| {
            let is_done = event.get("done");
            progress.has_ended |= is_done == Some(&Value::Bool(true));
            matches!(is_done, Some(Value::Bool(_)))
        },
        ..AnswerForm::NONE
    },
    messages: MessageForm { request: requested, answer: answered },
    ..Provider::UNKNOWN
};

/// Returns what a request to generate a text asks. Its chats have the form of those of `OpenAI`.
fn requested(body: &Value<'_>) -> Option<RequestedMessages> {
    let is_generation =
        ["options", "keep_alive", "raw", "template"].iter().any(|name| body.get(name).is_some());
    let prompt = body.get("prompt").filter(|_| is_generation || body.get("system").is_some())?;
    let asked = ConversationMessage::new(MessageRole::User, parts(Some(prompt), |_| None));
    Some(RequestedMessages {
        messages: instructions(body.get("system"), |_| None).into_iter().chain([asked]).collect(),
        parameters: parameters(body, &["prompt", "system", "model", "stream"]),
        ..RequestedMessages::default()
    })
}

/// Reads an answer, or a line of a stream.
fn answered(decoder: &mut AnswerDecoder, document: &Value<'_>) -> bool {
    let is_own = document.get("done").is_some() || document.get("embeddings").is_some();
    if !is_own {
        return false;
    }
    decoder.finished(word(document, "done_reason"));
    decoder.append(0, PieceKind::Text, word(document, "response"));
    if let Some(message) = document.get("message") {
        decoder.append(0, PieceKind::Thinking, message.get("thinking").and_then(Value::as_str));
        decoder.append(0, PieceKind::Text, word(message, "content"));
        let calls = indexed(message, "tool_calls").count() > 0;
        let called = openai::message(message).parts.into_iter().filter(|_| calls);
        called.filter(|part| matches!(part, MessagePart::ToolCall(_))).for_each(|part| decoder.part(0, part));
    }
    let vectors = document.get("embeddings").and_then(Value::as_array).unwrap_or_default();
    if let Some(part) = embeddings(vectors.iter().filter(|one| one.as_array().is_some())) {
        decoder.part(0, part);
        return true;
    }
    document.get("done").is_some()
}

#[cfg(test)]
mod tests {
    use crate::conversation::assembled::read;
    use crate::conversation::assembled::testing::{answer, failure, stream, texts, usage};
    use crate::conversation::providers::AnswerFailure;

    #[test]
    fn answers_are_read() {
        for body in [
            r#"{"message":{"role":"assistant","content":"ab"}}"#,
            "{\"message\":{\"content\":\"a\"}}\n{\"message\":{\"content\":\"b\"},\"done\":true}\n",
        ] {
            assert_eq!(texts(body), ["ab"], "{body}");
        }
        let lines = "{\"response\":\"a\",\"done\":false}\n{\"response\":\"\",\"done\":true,\"prompt_eval_count\":10,\"eval_count\":4}\n";
        assert_eq!(usage(&answer(200, None, lines)).unwrap(), r#"{"input_tokens":10,"output_tokens":4}"#);
        let error = "{\"response\":\"a\",\"done\":false}\n{\"error\":\"no\"}\n";
        assert_eq!(failure(&answer(200, None, error)).as_deref(), Some("no"));
        let event = |done: &str| stream(&[&format!(r#"{{"message":{{"content":"a"}},"done":{done}}}"#)]);
        assert_eq!(read(&event("false")).failure, Some(AnswerFailure::NoEnd));
        assert_eq!(read(&event("true")).failure, None);
    }
}

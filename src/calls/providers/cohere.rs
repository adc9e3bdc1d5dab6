//! Cohere, in the versions 1 and 2 of its API.

use super::provider::{AnswerForm, Provider};
use crate::json::Value;

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
    ..Provider::UNKNOWN
};

#[cfg(test)]
mod tests {
    use crate::calls::assembled::read;
    use crate::calls::assembled::testing::{stream, texts, usage};
    use crate::calls::providers::AnswerFailure;

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

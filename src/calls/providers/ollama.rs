//! Ollama, a server of its own at any host.

use super::provider::{AnswerForm, MemberRoles, Provider};
use crate::json::Value;

pub(super) const OLLAMA: Provider = Provider {
    name: "ollama",
    paths: &["/api/chat", "/api/embed", "/api/embeddings", "/api/generate"],
    is_at_any_host: true,
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
    ..Provider::UNKNOWN
};

#[cfg(test)]
mod tests {
    use crate::calls::assembled::read;
    use crate::calls::assembled::testing::{answer, failure, stream, texts, usage};
    use crate::calls::providers::AnswerFailure;

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

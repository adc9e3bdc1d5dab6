//! Bedrock of Amazon: Converse, and the forms of models that are invoked.

use super::provider::{AnswerForm, MemberRoles, Provider};

pub(super) const BEDROCK: Provider = Provider {
    name: "bedrock",
    hosts: &["bedrock-runtime", "bedrock-agent-runtime"],
    paths: &["/converse", "/converse-stream", "/invoke", "/invoke-with-response-stream"],
    names: MemberRoles { end_reasons: &["stopReason"], ..MemberRoles::NONE },
    answers: AnswerForm {
        texts: &[&["output", "message", "content"], &["generated_text"], &["results", "0", "outputText"]],
        ..AnswerForm::NONE
    },
    ..Provider::UNKNOWN
};

#[cfg(test)]
mod tests {
    use crate::calls::assembled::testing::texts;

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
}

//! Where steps carry the texts of prompts and responses.

use std::collections::BTreeSet;

use crate::canonical::Value;

/// Where to look for texts.
pub struct Places {
    /// Places by step type. A place is a JSON Pointer into the step in which `*` stands for every element of a list.
    ///
    /// At a place, a string is a text; of a list, every string and every member `text` of its objects is one. Empty
    /// texts are passed over.
    pub by_step_type: &'static [(&'static str, &'static [&'static str])],
    /// Objects whose member `role` is one of these are not looked into.
    pub passed_over_roles: &'static [&'static str],
}

/// Where prompts are looked for. Messages that repeat what was not asked by the caller are no prompts.
pub const PROMPT_PLACES: Places = Places {
    passed_over_roles: &["assistant", "tool", "function"],
    by_step_type: &[
        (
            "prompt.render",
            &[
                "/output",
                "/output/prompt",
                "/output/text",
                "/output/content",
                "/output/rendered",
                "/output/rendered_prompt",
                "/output/messages/*/content",
            ],
        ),
        (
            "model.request",
            &[
                "/input",
                "/input/prompt",
                "/input/text",
                "/input/content",
                "/input/system",
                "/input/instructions",
                "/input/messages/*/content",
                "/input/input",
                "/input/input/prompt",
                "/input/input/messages/*/content",
                "/input/input/*/content",
                "/input/payload/prompt",
                "/input/payload/system",
                "/input/payload/instructions",
                "/input/payload/messages/*/content",
                "/input/payload/input",
                "/input/payload/input/*/content",
            ],
        ),
    ],
};

/// Where responses are looked for.
pub const RESPONSE_PLACES: Places = Places {
    passed_over_roles: &[],
    by_step_type: &[
        (
            "model.response",
            &[
                "/output",
                "/output/content",
                "/output/text",
                "/output/assembled_text",
                "/output/output_text",
                "/output/response",
                "/output/completion",
                "/output/message/content",
                "/output/choices/*/message/content",
                "/output/choices/*/text",
                "/output/output",
                "/output/output/content",
                "/output/output/text",
                "/output/output/output_text",
                "/output/output/message/content",
                "/output/output/choices/*/message/content",
                "/output/output/choices/*/text",
                "/output/output/output/*/content",
            ],
        ),
        (
            "output.final",
            &[
                "/output",
                "/output/text",
                "/output/content",
                "/output/output",
                "/output/result",
                "/output/answer",
                "/output/response",
                "/output/message",
            ],
        ),
    ],
};

/// The texts that `step` carries at the `places` of its type.
pub(super) fn carried<'v>(step: &'v Value<'v>, places: &Places) -> BTreeSet<&'v str> {
    let step_type = step.get("type").and_then(Value::as_str);
    let of_type = places.by_step_type.iter().filter(|(name, _)| Some(*name) == step_type);
    let mut texts = BTreeSet::new();
    for pointer in of_type.flat_map(|(_, pointers)| *pointers) {
        let tokens: Vec<&str> = pointer.split('/').skip(1).collect();
        select(step, &tokens, places.passed_over_roles, &mut texts);
    }
    texts
}

fn select<'v>(value: &'v Value<'v>, tokens: &[&str], passed_over: &[&str], texts: &mut BTreeSet<&'v str>) {
    if is_passed_over(value, passed_over) {
        return;
    }
    match (tokens, value) {
        ([], Value::String(text)) => insert(text, texts),
        ([], Value::Array(parts)) => {
            for part in parts.iter().filter(|part| !is_passed_over(part, passed_over)) {
                let text = part.get("text").unwrap_or(part);
                insert(text.as_str().unwrap_or_default(), texts);
            }
        }
        (["*", rest @ ..], Value::Array(elements)) => {
            for element in elements {
                select(element, rest, passed_over, texts);
            }
        }
        ([name, rest @ ..], Value::Object(object)) => {
            if let Some(member) = object.get(name) {
                select(member, rest, passed_over, texts);
            }
        }
        _ => {}
    }
}

fn is_passed_over(value: &Value<'_>, roles: &[&str]) -> bool {
    value.get("role").and_then(Value::as_str).is_some_and(|role| roles.contains(&role))
}

fn insert<'v>(text: &'v str, texts: &mut BTreeSet<&'v str>) {
    if !text.is_empty() {
        texts.insert(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::reader::{self, Limits};

    fn texts(step: &str, places: &Places) -> Vec<String> {
        let value = reader::read(step.as_bytes(), &Limits::default()).unwrap();
        carried(&value, places).into_iter().map(str::to_owned).collect()
    }

    /// A step that carries a text at `pointer` and nowhere else.
    fn step_with_text_at(step_type: &str, pointer: &str) -> String {
        let mut value = "\"the text\"".to_owned();
        for token in pointer.split('/').skip(1).collect::<Vec<_>>().into_iter().rev() {
            value = if token == "*" { format!("[{value}]") } else { format!("{{\"{token}\":{value}}}") };
        }
        format!("{{\"type\":\"{step_type}\",{}", &value[1..])
    }

    #[test]
    fn every_listed_place_is_looked_at() {
        for places in [&PROMPT_PLACES, &RESPONSE_PLACES] {
            for (step_type, pointers) in places.by_step_type {
                for pointer in *pointers {
                    let step = step_with_text_at(step_type, pointer);
                    assert_eq!(texts(&step, places), ["the text"], "{step}");
                    let other_type = step.replace(step_type, "error.event");
                    assert!(texts(&other_type, places).is_empty(), "{other_type}");
                }
            }
        }
    }

    #[test]
    fn parts_of_a_list_and_roles() {
        let step = r#"{"type": "model.request", "input": {"messages": [
            {"role": "system", "content": "be brief"},
            {"role": "assistant", "content": "an earlier answer"},
            {"role": "user", "content": [{"type": "input_text", "text": "hello"}, "plain", {"image": "x"}, ""]},
            {"role": "tool", "content": "42"}]}}"#;
        assert_eq!(texts(step, &PROMPT_PLACES), ["be brief", "hello", "plain"]);
        let listed = r#"{"type": "model.request", "input": {"input": [
            {"role": "user", "text": "asked"}, {"role": "assistant", "text": "not asked"}]}}"#;
        assert_eq!(texts(listed, &PROMPT_PLACES), ["asked"]);
        let answer = r#"{"type": "model.response", "output": {"content": "hi", "output": {"choices": [
            {"message": {"role": "assistant", "content": "hi there"}}]}}}"#;
        assert_eq!(texts(answer, &RESPONSE_PLACES), ["hi", "hi there"]);
    }
}

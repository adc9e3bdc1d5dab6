//! The searchable texts of a run: prompts, responses, tool calls, and step names.

use super::provider_shapes::StepTextRole;
use super::roles::STEP;
use super::{requests, texts};
use crate::artifact::{Field, Passage, PassageCollector, words_of};
use crate::json::Value;

/// Members of steps that are searched, by step type.
const MEMBERS: &[(&str, &str, Field)] = &[
    ("agent.command", "input", Field::STEP),
    ("agent.command", "output", Field::OUTPUT),
    ("tool.request", "input", Field::TOOL),
    ("tool.response", "output", Field::OUTPUT),
    ("error.event", "input", Field::OUTPUT),
    ("error.event", "output", Field::OUTPUT),
];

/// Members that contain prompts or responses, by step type. If none are found in the known shapes, all of their words
/// are searched.
const CARRIERS: &[(&str, &str, Field)] = &[
    ("prompt.render", "output", Field::PROMPT),
    ("model.request", "input", Field::PROMPT),
    ("model.response", "output", Field::RESPONSE),
    ("output.final", "output", Field::RESPONSE),
];

pub(super) fn extract(steps: &[Value<'_>]) -> Vec<Passage> {
    let mut passages = PassageCollector::default();
    for (index, step) in steps.iter().enumerate() {
        let mut add = |field, text: String| passages.add_at(field, STEP.unit, index, text);
        add(Field::STEP, name(step));
        let carried = [(Field::PROMPT, StepTextRole::Prompts), (Field::RESPONSE, StepTextRole::Responses)]
            .map(|(field, carries)| (field, texts::carried(step, carries)));
        let has_carried = carried.iter().any(|(_, texts)| !texts.is_empty());
        for (field, text) in
            carried.into_iter().flat_map(|(field, texts)| texts.into_iter().map(move |text| (field, text)))
        {
            add(field, text.to_owned());
        }
        let step_type = step.get("type").and_then(Value::as_str).unwrap_or_default();
        let carriers = CARRIERS.iter().filter(|_| !has_carried);
        for (_, member, field) in MEMBERS.iter().chain(carriers).filter(|(name, ..)| *name == step_type) {
            let words = if *member == "input" { requests::asked(step) } else { step.get(member) };
            add(*field, words.map(words_of).unwrap_or_default());
        }
    }
    passages.into_vec()
}

/// Returns the name and description of a step.
fn name(step: &Value<'_>) -> String {
    let id = step.get("id").and_then(Value::as_str).unwrap_or_default();
    let metadata = step.get("metadata").map(words_of).unwrap_or_default();
    format!("{id}\n{metadata}").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    #[test]
    fn steps_are_searched_by_what_they_asked_answered_called_and_are_called() {
        let steps = r#"[
            {"id": "one", "type": "model.request", "input": {"prompt": "asked", "model": "m"}, "output": "sent",
             "metadata": {"provider": "p"}},
            {"id": "two", "type": "model.response", "input": {}, "output": {"content": "answered"}, "metadata": {}},
            {"id": "three", "type": "model.response", "input": {}, "output": {"other": {"place": "told"}}, "metadata": {}},
            {"id": "", "type": "tool.request", "input": {"tool": "weather", "args": {"city": "Paris"}}, "output": null,
             "metadata": {}},
            {"id": "", "type": "tool.response", "input": {"tool": "weather"}, "output": {"sky": "clear"}, "metadata": {}},
            {"id": "", "type": "error.event", "input": null, "output": {"message": "failed"}, "metadata": {}}]"#;
        let value = reader::read(steps.as_bytes(), &Limits::default()).unwrap();
        let extracted: Vec<String> = extract(value.as_array().unwrap())
            .into_iter()
            .map(|Passage { field, unit, place, text }| format!("{unit} {place} {}: {text}", field.name()))
            .collect();
        assert_eq!(
            extracted,
            [
                "step 0 step: one\nprovider: p",
                "step 0 prompt: asked",
                "step 1 step: two",
                "step 1 response: answered",
                "step 2 step: three",
                "step 2 response: place: told",
                "step 3 tool: tool: weather\ncity: Paris",
                "step 4 output: sky: clear",
                "step 5 output: message: failed",
            ]
        );
    }
}

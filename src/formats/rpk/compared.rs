//! The form in which the steps of recorded calls of models are compared: what was asked and what was answered, without what
//! differs in every answer.

use super::envelope::{at, step_type};
use super::messages::{answered, recorded_response};
use crate::conversation::comparison::{GeneratedValues, add_answer};
use crate::conversation::reader::AnsweredMessages;
use crate::json::Value;
use crate::json::reader::{self, Limits};

/// Members of an output that state what was sent and how long it is.
const SENT: [&str; 4] = ["content", "output", "assembled_text", "usage"];

/// Puts the steps of recorded calls, whose requests are complete, into the form.
pub(super) fn compare_messages(steps: &mut [Value<'_>]) {
    let mut generated = GeneratedValues::default();
    for step in steps {
        match step_type(step) {
            "model.request" => compare_request(step, &generated),
            "model.response" => compare_answer(step, &mut generated),
            _ => {}
        }
    }
}

fn compare_request(step: &mut Value<'_>, generated: &GeneratedValues) {
    let prompt = at(step, &["input", "prompt"]).and_then(Value::as_str);
    let prompt = prompt.and_then(|text| reader::read(text.as_bytes(), &Limits::most()).ok());
    let prompt = prompt.map(|prompt| generated.replace_in(prompt.to_owned_value()));
    if let Some(payload) = step.at_pointer_mut("/input/payload") {
        *payload = generated.replace_in(std::mem::replace(payload, Value::Null));
    }
    if let (Some(prompt), Some(stated)) = (prompt, step.at_pointer_mut("/input/prompt")) {
        *stated = prompt;
    }
}

fn compare_answer(step: &mut Value<'_>, generated: &mut GeneratedValues) {
    let Some(response) = step.get("output").and_then(recorded_response) else { return };
    generated.add(&response);
    let Some(answer) = answered(step).and_then(AnsweredMessages::comparable) else { return };
    let Some(Value::Object(output)) = step.at_pointer_mut("/output") else { return };
    add_answer(output, answer, |name| SENT.contains(&name));
}

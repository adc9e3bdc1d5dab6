//! The messages in the steps of calls of models.

use super::envelope::{at, step_type};
use crate::conversation::message::{ConversationMessage, MessagePart};
use crate::conversation::reader::{
    AnsweredMessages, RequestedMessages, decode_answer, read_answer, read_request,
};
use crate::conversation::response::{CallResponse, ResponseForm, RetryHeaders};
use crate::json::Value;

/// Returns the messages of a request of a model that are new in it, as far as they are in a known form.
pub(super) fn asked(step: &Value<'_>) -> Option<RequestedMessages> {
    if step_type(step) != "model.request" {
        return None;
    }
    let bodies: [&[&str]; 3] = [&["input", "payload"], &["input", "input"], &["input"]];
    bodies.iter().find_map(|names| read_request(at(step, names)?)).filter(|it| are_known(&it.messages))
}

/// Returns the messages of an answer of a model, as far as they are in a known form.
pub(super) fn answered(step: &Value<'_>) -> Option<AnsweredMessages> {
    if step_type(step) != "model.response" {
        return None;
    }
    let output = step.get("output")?;
    let read = match output.get("output") {
        Some(body) => read_answer(body),
        None => recorded_response(output).as_ref().map(decode_answer),
    };
    read.or_else(|| read_answer(output)).filter(|it| are_known(&it.messages))
}

/// Returns whether messages are more than values of unknown form.
fn are_known(messages: &[ConversationMessage]) -> bool {
    let mut parts = messages.iter().flat_map(|message| &message.parts);
    messages.is_empty() || parts.any(|part| !matches!(part, MessagePart::Other { .. }))
}

/// Returns the text of an answer that is recorded as a stream.
pub(super) fn assembled_text(output: &Value<'_>) -> Option<String> {
    let answer = recorded_response(output).filter(|answer| answer.form() == ResponseForm::Stream)?;
    let messages = decode_answer(&answer).messages;
    let parts = messages.iter().flat_map(|message| &message.parts);
    let texts: Vec<&str> = parts.filter_map(MessagePart::as_text).collect();
    (!texts.is_empty()).then(|| texts.concat())
}

/// Returns the answer that an output contains as a text.
pub(super) fn recorded_response(output: &Value<'_>) -> Option<CallResponse> {
    let text = |name: &str| output.get(name).and_then(Value::as_str).map(str::to_owned);
    let status = output.get("status_code")?.as_number()?.literal().parse().ok()?;
    Some(CallResponse {
        status,
        content_type: text("content_type"),
        retry: RetryHeaders::default(),
        body: text("content")?,
        chunks: Vec::new(),
    })
}

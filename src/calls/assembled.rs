//! The text of an answer, assembled from the members of a body or the events of a stream.

use super::call::{CallResponse, ResponseForm};
use super::values::at;
use crate::json::Value;
use crate::json::reader::{self, Limits};

/// The locations of the text in the events of streams.
const IN_EVENTS: &[&[&str]] = &[
    &["choices", "0", "delta", "content"],
    &["choices", "0", "text"],
    &["delta", "text"],
    &["message", "content"],
];

/// Returns the text of an answer; `None` if it has none, such as an answer that only calls tools.
pub(crate) fn text(answer: &CallResponse) -> Option<String> {
    of(ResponseForm::of(answer.content_type.as_deref()), &answer.body)
}

/// Returns the texts of a body in each form that it has.
pub(crate) fn in_all_forms(body: &str) -> impl Iterator<Item = String> {
    [ResponseForm::Stream, ResponseForm::Whole].into_iter().filter_map(move |form| of(form, body))
}

/// Returns the text of a body that has a form.
fn of(form: ResponseForm, body: &str) -> Option<String> {
    let text = match form {
        ResponseForm::Stream => events(body).map(|event| of_event(&event)).collect(),
        ResponseForm::Whole => of_body(&reader::read(body.as_bytes(), &Limits::default()).ok()?),
    };
    Some(text).filter(|text: &String| !text.is_empty())
}

/// Returns the data of the events of a stream that are JSON, or its lines that are.
pub(crate) fn events(body: &str) -> impl Iterator<Item = Value<'_>> {
    let data =
        body.lines().filter_map(|line| line.strip_prefix("data:").or(line.starts_with('{').then_some(line)));
    data.filter_map(|data| reader::read(data.trim().as_bytes(), &Limits::default()).ok())
}

fn of_event(event: &Value<'_>) -> String {
    if event.get("type").and_then(Value::as_str) == Some("response.output_text.delta") {
        return event.get("delta").and_then(Value::as_str).unwrap_or_default().to_owned();
    }
    let found = IN_EVENTS.iter().find_map(|path| at(event, path).and_then(Value::as_str));
    found.map_or_else(|| of_candidates(event), str::to_owned)
}

fn of_body(body: &Value<'_>) -> String {
    if let Value::Array(events) = body {
        return events.iter().map(of_event).collect();
    }
    let of_choice = [["choices", "0", "message", "content"].as_slice(), &["choices", "0", "text"]];
    let of_message = ["message", "content"].as_slice();
    if let Some(text) =
        of_choice.iter().chain([&of_message]).find_map(|path| at(body, path).and_then(Value::as_str))
    {
        return text.to_owned();
    }
    let output = body.get("output").and_then(Value::as_array).unwrap_or_default();
    let messages: String = output.iter().filter_map(|item| item.get("content")).map(texts).collect();
    if !messages.is_empty() {
        return messages;
    }
    match body.get("content").or_else(|| at(body, of_message)) {
        Some(content) => texts(content),
        None => of_candidates(body),
    }
}

/// Returns the texts of a list of blocks, without what the model thought.
fn texts(blocks: &Value<'_>) -> String {
    let blocks = blocks.as_array().unwrap_or_default().iter();
    let shown = blocks.filter(|block| block.get("thought") != Some(&Value::Bool(true)));
    shown.filter_map(|block| block.get("text").and_then(Value::as_str)).collect()
}

fn of_candidates(value: &Value<'_>) -> String {
    at(value, &["candidates", "0", "content", "parts"]).map(texts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::call::RetryHeaders;

    fn assembled(content_type: &str, body: &str) -> Option<String> {
        let content_type = Some(content_type.to_owned());
        let body = body.to_owned();
        text(&CallResponse {
            status: 200,
            content_type,
            retry: RetryHeaders::default(),
            body,
            chunks: Vec::new(),
        })
    }

    #[test]
    fn streams_are_assembled() {
        for stream in [
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\ndata: [DONE]\n\n",
            "event: x\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\r\n\r\n\
             data: {\"type\":\"response.output_text.delta\",\"delta\":\"b\"}\n\n\
             data: {\"type\":\"response.completed\",\"response\":{}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"ab\"}}\n\n",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"},{\"text\":\"b\"}]}}]}\n\n",
        ] {
            assert_eq!(
                assembled("text/event-stream; charset=utf-8", stream).as_deref(),
                Some("ab"),
                "{stream}"
            );
        }
    }

    #[test]
    fn lines_are_assembled() {
        let lines = "{\"message\":{\"content\":\"a\"}}\n{\"message\":{\"content\":\"b\"},\"done\":true}\n";
        assert_eq!(assembled("application/x-ndjson", lines).as_deref(), Some("ab"));
    }

    #[test]
    fn bodies_have_a_text() {
        for body in [
            r#"{"choices":[{"message":{"content":"ab"}}]}"#,
            r#"{"choices":[{"text":"ab"}]}"#,
            r#"{"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"ab"}]}]}"#,
            r#"{"content":[{"type":"text","text":"a"},{"type":"tool_use"},{"type":"text","text":"b"}]}"#,
            r#"{"message":{"role":"assistant","content":"ab"}}"#,
            r#"{"message":{"content":[{"type":"text","text":"ab"}]}}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"no","thought":true},{"text":"ab"}]}}]}"#,
            r#"[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},{"candidates":[{"content":{"parts":[{"text":"b"}]}}]}]"#,
        ] {
            assert_eq!(assembled("application/json", body).as_deref(), Some("ab"), "{body}");
        }
        assert_eq!(assembled("application/json", r#"{"choices":[{"message":{"content":null}}]}"#), None);
        assert_eq!(assembled("text/plain", "not JSON"), None);
    }
}

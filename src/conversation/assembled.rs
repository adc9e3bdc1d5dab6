//! The content of an answer: its texts, its numbers of tokens, and whether it is an error or was broken off.

use std::borrow::Cow;

use super::events::{self, StreamEvent};
use super::providers::{
    AnswerContent, AnswerFailure, AnswerReader, answer_forms, number, stated_error, type_of,
};
use super::response::{CallResponse, ResponseForm};
use crate::json::members::{at, integer};
use crate::json::tokens::DocumentBuilder;
use crate::json::{Object, Value};

impl CallResponse {
    /// Returns why it is not an answer; `None` if it is one. This is the definition of a failed call for sessions, run packs,
    /// imports and gateways: an error status; an error that the body or an event of a stream states, whatever the status; a
    /// stream without the event that ends it in its API; a body that ends inside a JSON document; or no body, although its
    /// type has one. Reads all of the body.
    pub(crate) fn failure(&self) -> Option<AnswerFailure> {
        read_without_texts(self).failure
    }
}

/// Returns the content of an answer.
pub(crate) fn read(answer: &CallResponse) -> AnswerContent {
    content(answer, AnswerReader::default(), None)
}

/// Returns the content of an answer without its texts, which can have about as many bytes as the answer.
pub(crate) fn read_without_texts(answer: &CallResponse) -> AnswerContent {
    content(answer, AnswerReader::without_texts(), None)
}

/// Returns what [`read_without_texts`] returns, and calls `visit` with each of the documents of the answer, which are read once:
/// the body, or those of the events of a stream.
pub(super) fn read_visiting(answer: &CallResponse, visit: &mut DocumentVisitor<'_>) -> AnswerContent {
    content(answer, AnswerReader::without_texts(), Some(visit))
}

/// Is called with a document of an answer.
type DocumentVisitor<'v> = dyn FnMut(&Value<'_>) + 'v;

fn content(
    answer: &CallResponse,
    mut reader: AnswerReader,
    visit: Option<&mut DocumentVisitor<'_>>,
) -> AnswerContent {
    match answer.form() {
        ResponseForm::Stream => read_stream(&mut reader, &answer.body, visit),
        ResponseForm::Whole => read_whole(&mut reader, &answer.body, visit),
    }
    reader.failure = match reader.failure.take() {
        _ if answer.is_of_live_connection() => None,
        Some(failure @ AnswerFailure::Error(_)) => Some(failure),
        _ if !answer.has_success_status() => Some(AnswerFailure::Status(answer.status)),
        Some(AnswerFailure::CutOff) if answer.is_plain_text() => None,
        None if is_empty(answer) => Some(AnswerFailure::Empty),
        failure => failure,
    };
    let has_halves = ["\\ud", "\\uD"].iter().any(|half| answer.body.contains(half));
    reader.finish(|text| if has_halves { events::with_characters(text) } else { text })
}

/// Returns whether a response of a type that always has content has none.
fn is_empty(answer: &CallResponse) -> bool {
    let is_json = answer.media_type().eq_ignore_ascii_case("application/json");
    (is_json || answer.form() == ResponseForm::Stream)
        && answer.body.trim().is_empty()
        && answer.status != 204
}

fn read_whole(reader: &mut AnswerReader, body: &str, visit: Option<&mut DocumentVisitor<'_>>) {
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    // Gemini sends a stream as an array of events.
    let is_read = if reader.leaves_out_texts && visit.is_none() {
        let new = || (DocumentBuilder::outline(), AnswerReader::without_texts());
        let read = events::collect(body, new, |(builder, reader), token| {
            if let Some(document) = builder.add(token) {
                read_document(reader, &document);
            }
        });
        read.map(|(_, read)| *reader = read).is_some()
    } else {
        let document = events::read(body);
        if let (Some(document), Some(visit)) = (&document, visit) {
            visit(document);
        }
        match &document {
            Some(Value::Array(events)) => events.iter().for_each(|event| read_document(reader, event)),
            Some(document) => read_document(reader, document),
            None => {}
        }
        document.is_some()
    };
    if !is_read && events::is_cut_off(body) {
        reader.failure = Some(AnswerFailure::CutOff);
    }
}

fn read_stream(reader: &mut AnswerReader, body: &str, mut visit: Option<&mut DocumentVisitor<'_>>) {
    let is_outline = reader.leaves_out_texts && visit.is_none();
    events::visit(body, is_outline, |event| match event {
        StreamEvent::Json(name, value) => {
            if let Some(visit) = &mut visit {
                visit(&value);
            }
            let is_error = name == Some("error") || type_of(&value) == "error";
            if is_error && stated_error(&value).is_none() {
                reader.fail(&value);
            }
            read_document(reader, &value);
            follow(reader, &value);
        }
        StreamEvent::Text(Some("error"), text) => reader.fail(&Value::String(Cow::Borrowed(text))),
        StreamEvent::Text(..) => {}
        StreamEvent::Done => reader.progress.has_ended = true,
        StreamEvent::CutOff => reader.failure = reader.failure.take().or(Some(AnswerFailure::CutOff)),
    });
    if reader.progress.is_ended_by_event && !reader.progress.has_ended {
        reader.failure.get_or_insert(AnswerFailure::NoEnd);
    }
}

/// Follows whether a stream has ended.
fn follow(reader: &mut AnswerReader, event: &Value<'_>) {
    let event_type = type_of(event);
    for form in answer_forms() {
        let is_typed = form.has_event(event_type);
        if is_typed || (form.follow)(&mut reader.progress, event) {
            reader.progress.is_ended_by_event = true;
            reader.progress.has_ended |= is_typed && form.is_last_event(event_type);
            return;
        }
    }
}

/// Reads an event, or a body in one piece.
fn read_document(reader: &mut AnswerReader, value: &Value<'_>) {
    if let Some(error) = stated_error(value) {
        reader.fail(error);
    }
    read_tokens(reader, value);
    if reader.created.is_none() {
        let created = answer_forms().flat_map(|form| form.created).find_map(|path| at(value, path));
        reader.created = created.map(Value::to_owned_value);
    }
    if answer_forms().any(|form| (form.read)(reader, value)) {
        return;
    }
    let delta = answer_forms().flat_map(|form| form.deltas).find_map(|path| at(value, path));
    if delta.is_some() {
        return reader.add((0, number(value, "index").unwrap_or(0), 0), delta);
    }
    let is_text = |text: &&Value<'_>| matches!(text, Value::String(_) | Value::Array(_));
    let said = answer_forms().flat_map(|form| form.texts).find_map(|path| at(value, path).filter(is_text));
    reader.add((0, 0, 0), said);
}

/// Reads the numbers of tokens. Events of streams state those up to then, or some of them.
fn read_tokens(reader: &mut AnswerReader, value: &Value<'_>) {
    let usage = answer_forms().flat_map(|form| form.usages).find_map(|path| at(value, path)?.as_object());
    let counts = usage.into_iter().flat_map(Object::iter).filter(|(_, count)| !count.is_null());
    reader.usage.extend(counts.map(|(name, count)| (name.to_owned(), count.to_owned_value())));
    for (name, count) in answer_forms().flat_map(|form| form.counts) {
        if let Some(number) = number(value, name) {
            reader.usage.insert((*count).to_owned(), integer(number));
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::conversation::response::RetryHeaders;
    use crate::json::compact;

    pub(crate) fn answer(status: u16, content_type: Option<&str>, body: &str) -> CallResponse {
        let content_type = content_type.map(str::to_owned);
        let body = body.to_owned();
        CallResponse { status, content_type, retry: RetryHeaders::default(), body, chunks: Vec::new() }
    }

    /// Returns a stream of events with this data.
    pub(crate) fn stream(events: &[&str]) -> CallResponse {
        let lines: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        answer(200, Some("text/event-stream; charset=utf-8"), &lines.concat())
    }

    pub(crate) fn texts(body: &str) -> Vec<String> {
        read(&answer(200, None, body)).texts
    }

    pub(crate) fn usage(answer: &CallResponse) -> Option<String> {
        read(answer).usage.map(|usage| compact::text(&usage))
    }

    /// Returns why an answer is a failure.
    pub(crate) fn failure(answer: &CallResponse) -> Option<String> {
        read(answer).failure.map(|failure| failure.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{answer, failure, stream, texts};
    use super::*;
    use crate::json::compact;

    #[test]
    fn characters_that_are_split_over_events_are_whole() {
        for [first, second] in [
            [
                r#"{"choices":[{"delta":{"content":"\ud83d"}}]}"#,
                r#"{"choices":[{"delta":{"content":"\ude00 ok"}}]}"#,
            ],
            [r#"{"choices":[{"text":"\uD83D"}]}"#, r#"{"choices":[{"text":"\uDE00 ok"}]}"#],
            [
                r#"{"type":"content_block_delta","delta":{"text":"\ud83d"}}"#,
                r#"{"delta":{"text":"\ude00 ok"}}"#,
            ],
            [
                r#"{"type":"response.output_text.delta","delta":"\ud83d"}"#,
                r#"{"type":"response.output_text.delta","delta":"\ude00 ok"}"#,
            ],
            [
                r#"{"candidates":[{"content":{"parts":[{"text":"\ud83d"}]}}]}"#,
                r#"{"candidates":[{"content":{"parts":[{"text":"\ude00 ok"}]}}]}"#,
            ],
        ] {
            assert_eq!(read(&stream(&[first, second])).texts, ["\u{1f600} ok"], "{first}");
        }
    }

    #[test]
    fn long_texts_are_decoded() {
        let written = "a\\n".repeat(3 << 20);
        for body in [
            format!(r#"{{"choices":[{{"message":{{"content":"{written}"}}}}]}}"#),
            format!(r#"[{{"candidates":[{{"content":{{"parts":[{{"text":"{written}"}}]}}}}]}}]"#),
            format!(r#"data: {{"choices":[{{"delta":{{"content":"{written}"}}}}]}}"#),
        ] {
            let [text] = &read(&answer(200, None, &body)).texts[..] else { panic!() };
            assert!(*text == "a\n".repeat(3 << 20), "{}", text.len());
        }
    }

    #[test]
    fn outlines_state_errors_and_tokens() {
        let many = format!("[{}]", vec![r#"{"token":"a","bytes":[97]}"#; 50_000].join(","));
        for (content_type, body) in [
            (
                None,
                format!(
                    r#"{{"choices":[{{"logprobs":{{"content":{many}}}}}],"error":"no","usage":{{"total_tokens":3}}}}"#
                ),
            ),
            (None, format!(r#"[{{"candidates":{many}}},{{"error":"no","usage":{{"total_tokens":3}}}}]"#)),
            (
                Some("text/event-stream"),
                format!(
                    "data: {{\"response\":{{\"output\":{many},\"usage\":{{\"total_tokens\":3}}}},\"error\":\"no\"}}\n\n"
                ),
            ),
        ] {
            let content = read_without_texts(&answer(200, content_type, &body));
            assert_eq!(
                content.failure.map(|failure| failure.to_string()).as_deref(),
                Some("no"),
                "{content_type:?}"
            );
            assert_eq!(content.usage.map(|usage| compact::text(&usage)).unwrap(), r#"{"total_tokens":3}"#);
        }
    }

    #[test]
    fn errors_in_responses_with_a_status_of_success_are_failures() {
        for body in [r#"{"error":{"message":"no"}}"#, r#"{"error":"no"}"#, "event: error\ndata: no\n\n"] {
            assert_eq!(failure(&answer(200, None, body)).as_deref(), Some("no"), "{body}");
        }
        assert_eq!(failure(&answer(429, None, "slow down")).as_deref(), Some("HTTP status 429"));
        assert_eq!(failure(&answer(429, None, r#"{"error":{"message":"no"}}"#)).as_deref(), Some("no"));
    }

    #[test]
    fn answers_that_were_broken_off_are_failures() {
        for (content_type, body) in [
            (None, "{\"choices\":[{\"message\":{\"content\":\"a"),
            (Some("application/json"), "[{\"candidates\":[]},\n"),
            (Some("text/event-stream"), "data: {\"candidates\":[]}\n\ndata: {\"candidates\":[{"),
            (None, "{\"done\":false}\n{\"done\":tr"),
        ] {
            assert_eq!(read(&answer(200, content_type, body)).failure, Some(AnswerFailure::CutOff), "{body}");
        }
        for content_type in ["application/json", "text/event-stream; charset=utf-8"] {
            assert_eq!(read(&answer(200, Some(content_type), "\n")).failure, Some(AnswerFailure::Empty));
        }
    }

    #[test]
    fn other_bodies_are_not_failures() {
        for (content_type, body) in [
            (Some("application/json"), r#"{"error":0.5}"#),
            (Some("text/plain"), "[unfinished"),
            (None, "text"),
            (None, ""),
        ] {
            assert_eq!(failure(&answer(200, content_type, body)), None, "{body}");
        }
        assert_eq!(failure(&stream(&["[DONE]"])), None);
        assert_eq!(texts("not JSON"), [""; 0]);
    }
}

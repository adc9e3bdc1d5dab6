//! What an answer says: its texts, its numbers of tokens, and whether it is an error or was broken off. APIs are recognized
//! by the form of the body, because many servers have the API of another provider.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::call::{CallResponse, ResponseForm};
use super::events::{self, StreamEvent};
use super::values::{at, integer, object};
use crate::json::{Object, Value};

/// The content of an answer.
#[derive(Debug, Default)]
pub(crate) struct AnswerContent {
    /// The text of each choice or candidate that has one, in the order of their indexes.
    pub(crate) texts: Vec<String>,
    /// The numbers of tokens, in the members in which the API states them.
    pub(crate) usage: Option<Value<'static>>,
    /// Why it is not an answer.
    pub(crate) failure: Option<AnswerFailure>,
}

/// The reason that a response is not an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AnswerFailure {
    /// The server states an error, whatever the status.
    Error(Value<'static>),
    /// The status is not one of success.
    Status(u16),
    /// The stream has no event that ends it.
    NoEnd,
    /// It ends inside a JSON document.
    CutOff,
    /// It is of a type that has content, and has none.
    Empty,
}

impl AnswerFailure {
    /// Returns the error, or the reason as a text.
    pub(crate) fn to_value(&self) -> Value<'static> {
        match self {
            Self::Error(error) => error.clone(),
            other => Value::String(Cow::Owned(other.to_string())),
        }
    }
}

impl fmt::Display for AnswerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error(error) => {
                let message = error.get("message").unwrap_or(error);
                message.as_str().unwrap_or("the server states an error")
            }
            Self::Status(status) => return write!(f, "HTTP status {status}"),
            Self::NoEnd => "the stream was broken off: it has no event that ends it",
            Self::CutOff => "the response was broken off inside a JSON document",
            Self::Empty => "the response is empty",
        })
    }
}

/// The API of an event of a stream, as far as its end depends on that.
struct StreamApi {
    /// Returns whether it is an event of the API.
    is_event: fn(&Value<'_>) -> bool,
    /// Returns whether it is the last event of the stream, or of the choices that are in it.
    is_end: fn(&Value<'_>) -> bool,
}

/// The APIs whose streams have an event that ends them. Gemini has none: the last event has a reason only if the model
/// states one. Streams of `OpenAI` can also end with `[DONE]`.
const STREAM_APIS: &[StreamApi] = &[
    // Chat completions and completions of OpenAI: see `AnswerReader::choices`.
    StreamApi { is_event: |event| event.get("choices").is_some(), is_end: |_| false },
    // Responses of OpenAI.
    StreamApi {
        is_event: |event| kind(event).starts_with("response."),
        is_end: |event| matches!(kind(event), "response.completed" | "response.incomplete"),
    },
    // Messages of Anthropic.
    StreamApi {
        is_event: |event| kind(event).starts_with("message_") || kind(event).starts_with("content_block_"),
        is_end: |event| kind(event) == "message_stop",
    },
    // Completions of Anthropic.
    StreamApi {
        is_event: |event| kind(event) == "completion",
        is_end: |event| event.get("stop_reason").is_some_and(|reason| !reason.is_null()),
    },
    // Ollama.
    StreamApi {
        is_event: |event| matches!(event.get("done"), Some(Value::Bool(_))),
        is_end: |event| event.get("done") == Some(&Value::Bool(true)),
    },
    // Cohere, version 2 and version 1.
    StreamApi {
        is_event: |event| kind(event).starts_with("message-") || kind(event).starts_with("content-"),
        is_end: |event| kind(event) == "message-end",
    },
    StreamApi {
        is_event: |event| event.get("event_type").is_some(),
        is_end: |event| event.get("event_type").and_then(Value::as_str) == Some("stream-end"),
    },
];

/// The members in which answers of several APIs have their text: a string, or a list of parts.
const TEXTS: &[&[&str]] = &[
    // Anthropic; Ollama and Cohere; Converse of Bedrock.
    &["content"],
    &["message", "content"],
    &["output", "message", "content"],
    // Ollama, Anthropic, transcripts, text generation.
    &["response"],
    &["completion"],
    &["text"],
    &["generated_text"],
    &["results", "0", "outputText"],
];

/// The members of events with a part of a text: of Anthropic, Cohere and Converse of Bedrock.
const DELTAS: &[&[&str]] =
    &[&["delta", "text"], &["content_block", "text"], &["delta", "message", "content", "text"]];

/// The members with the numbers of tokens.
const USAGES: &[&[&str]] = &[
    &["usage"],
    &["usageMetadata"],
    &["message", "usage"],
    &["response", "usage"],
    &["delta", "usage"],
    &["meta", "billed_units"],
    &["response", "meta", "billed_units"],
];

/// Returns the content of an answer.
pub(crate) fn read(answer: &CallResponse) -> AnswerContent {
    let mut content = of(answer.form(), &answer.body);
    content.failure = match content.failure {
        Some(failure @ AnswerFailure::Error(_)) => Some(failure),
        _ if !answer.has_success_status() => Some(AnswerFailure::Status(answer.status)),
        Some(AnswerFailure::CutOff) if answer.is_plain_text() => None,
        None if is_empty(answer) => Some(AnswerFailure::Empty),
        failure => failure,
    };
    content
}

/// Returns whether a response of a type that always has content has none.
fn is_empty(answer: &CallResponse) -> bool {
    let is_json = answer.media_type().eq_ignore_ascii_case("application/json");
    (is_json || answer.form() == ResponseForm::Stream)
        && answer.body.trim().is_empty()
        && answer.status != 204
}

/// Returns the content of a body that has a form.
fn of(form: ResponseForm, body: &str) -> AnswerContent {
    let mut reader = AnswerReader::default();
    match form {
        ResponseForm::Stream => {
            events::visit(body, |event| reader.event(&event));
            reader.end_of_stream();
        }
        ResponseForm::Whole => reader.whole(body),
    }
    reader.finish(body)
}

/// The place of a part of a text: the index of its choice, and of the part in that.
type TextPlace = (u64, u64, u64);

#[derive(Default)]
struct AnswerReader {
    texts: BTreeMap<TextPlace, String>,
    usage: BTreeMap<String, Value<'static>>,
    failure: Option<AnswerFailure>,
    /// Whether there was an event of an API whose streams have an end.
    is_ended_by_event: bool,
    has_ended: bool,
    /// The choices that have begun and not ended.
    open: BTreeSet<u64>,
}

impl AnswerReader {
    fn whole(&mut self, body: &str) {
        let body = body.strip_prefix('\u{feff}').unwrap_or(body);
        match events::read(body) {
            // Gemini sends a stream as an array of events.
            Some(Value::Array(events)) => events.iter().for_each(|event| self.document(event)),
            Some(document) => self.document(&document),
            None if events::is_cut_off(body) => {
                self.failure = Some(AnswerFailure::CutOff);
            }
            None => {}
        }
    }

    fn event(&mut self, event: &StreamEvent<'_>) {
        match event {
            StreamEvent::Json(name, value) => {
                let is_error = *name == Some("error") || kind(value) == "error";
                if is_error && stated_error(value).is_none() {
                    self.fail(value);
                }
                self.document(value);
                self.follow(value);
            }
            StreamEvent::Text(Some("error"), text) => {
                self.fail(&Value::String(Cow::Borrowed(text)));
            }
            StreamEvent::Text(..) => {}
            StreamEvent::Done => self.has_ended = true,
            StreamEvent::CutOff => self.failure = self.failure.take().or(Some(AnswerFailure::CutOff)),
        }
    }

    fn fail(&mut self, error: &Value<'_>) {
        self.failure.get_or_insert_with(|| AnswerFailure::Error(error.to_owned_value()));
    }

    /// Follows whether a stream has ended.
    fn follow(&mut self, event: &Value<'_>) {
        let Some(api) = STREAM_APIS.iter().find(|api| (api.is_event)(event)) else { return };
        self.is_ended_by_event = true;
        self.has_ended |= (api.is_end)(event);
        for (index, choice) in elements(event, "choices").enumerate() {
            let number = number(choice, "index").unwrap_or(index as u64);
            if choice.get("finish_reason").is_some_and(|reason| !reason.is_null()) {
                self.open.remove(&number);
                self.has_ended |= self.open.is_empty();
            } else {
                self.open.insert(number);
                self.has_ended = false;
            }
        }
    }

    fn end_of_stream(&mut self) {
        if self.is_ended_by_event && !self.has_ended && self.failure.is_none() {
            self.failure = Some(AnswerFailure::NoEnd);
        }
    }

    /// Reads an event, or a body in one piece.
    fn document(&mut self, value: &Value<'_>) {
        if let Some(error) = stated_error(value) {
            self.fail(error);
        }
        self.tokens(value);
        if value.get("choices").is_some() {
            self.choices(value);
        } else if value.get("candidates").is_some() {
            for (index, candidate) in elements(value, "candidates").enumerate() {
                let number = number(candidate, "index").unwrap_or(index as u64);
                self.add((number, 0, 0), at(candidate, &["content", "parts"]));
            }
        } else if kind(value).starts_with("response.") {
            self.response_event(value);
        } else if value.get("output").and_then(Value::as_array).is_some()
            || value.get("object").and_then(Value::as_str) == Some("response")
        {
            self.outputs(value);
        } else if let Some(text) = DELTAS.iter().find_map(|path| at(value, path)) {
            self.add((0, number(value, "index").unwrap_or(0), 0), Some(text));
        } else {
            let text = TEXTS.iter().find_map(|path| at(value, path).filter(|text| is_text(text)));
            self.add((0, 0, 0), text);
        }
    }

    /// Reads the choices of `OpenAI`: of a chat or of a completion, whole or a part of a stream.
    fn choices(&mut self, value: &Value<'_>) {
        for (index, choice) in elements(value, "choices").enumerate() {
            let number = number(choice, "index").unwrap_or(index as u64);
            let message = choice.get("delta").or_else(|| choice.get("message"));
            let content = message.and_then(|message| message.get("content"));
            self.add((number, 0, 0), content.or_else(|| choice.get("text")));
            let is_error = choice.get("finish_reason").and_then(Value::as_str) == Some("error");
            if let Some(error) = stated_error(choice).or(is_error.then_some(choice)) {
                self.fail(error);
            }
        }
    }

    /// Reads an event of the responses of `OpenAI`.
    fn response_event(&mut self, event: &Value<'_>) {
        let place =
            (0, number(event, "output_index").unwrap_or(0), number(event, "content_index").unwrap_or(0));
        match (kind(event), event.get("response")) {
            ("response.output_text.delta", _) => self.add(place, event.get("delta")),
            ("response.failed" | "response.cancelled", response) => {
                self.fail(response.and_then(stated_error).unwrap_or(event));
            }
            ("response.completed" | "response.incomplete", Some(response)) if self.texts.is_empty() => {
                self.outputs(response);
            }
            _ => {}
        }
    }

    /// Reads the messages of a response of `OpenAI`.
    fn outputs(&mut self, response: &Value<'_>) {
        let status = response.get("status").and_then(Value::as_str);
        if matches!(status, Some("failed" | "cancelled")) {
            self.fail(stated_error(response).unwrap_or(response));
        }
        for (index, item) in elements(response, "output").enumerate() {
            if kind(item) != "reasoning" {
                self.add((0, index as u64, 0), item.get("content"));
            }
        }
    }

    /// Adds a text, or the texts of parts, without what the model thought.
    fn add(&mut self, place: TextPlace, content: Option<&Value<'_>>) {
        let said = self.texts.entry(place).or_default();
        match content {
            Some(Value::String(text)) => said.push_str(text),
            Some(Value::Array(parts)) => {
                let shown = parts.iter().filter(|part| part.get("thought") != Some(&Value::Bool(true)));
                said.extend(shown.filter_map(|part| part.get("text").and_then(Value::as_str)));
            }
            _ => {}
        }
    }

    /// Reads the numbers of tokens. Events of streams state those up to then, or some of them.
    fn tokens(&mut self, value: &Value<'_>) {
        let usage = USAGES.iter().find_map(|path| at(value, path)?.as_object());
        let counts = usage.into_iter().flat_map(Object::iter);
        let counts = counts.filter(|(_, count)| !count.is_null());
        self.usage.extend(counts.map(|(name, count)| (name.to_owned(), count.to_owned_value())));
        for (name, count) in [("prompt_eval_count", "input_tokens"), ("eval_count", "output_tokens")] {
            if let Some(number) = number(value, name) {
                self.usage.insert(count.to_owned(), integer(number));
            }
        }
    }

    fn finish(self, body: &str) -> AnswerContent {
        let mut texts: BTreeMap<u64, String> = BTreeMap::new();
        for ((choice, ..), text) in self.texts {
            texts.entry(choice).or_default().push_str(&text);
        }
        let texts = texts.into_values().filter(|text| !text.is_empty());
        let has_halves = ["\\ud", "\\uD"].iter().any(|half| body.contains(half));
        let whole = |text| if has_halves { events::with_characters(text) } else { text };
        let usage = object(self.usage.iter().map(|(name, count)| (name.as_str(), count.clone())));
        let usage = (!self.usage.is_empty()).then(|| usage.to_owned_value());
        AnswerContent { texts: texts.map(whole).collect(), usage, failure: self.failure }
    }
}

/// Returns the error that a document states beside what it would otherwise have.
fn stated_error<'v, 'a>(value: &'v Value<'a>) -> Option<&'v Value<'a>> {
    value.get("error").filter(|error| match error {
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => members.iter().len() > 0,
        other => **other == Value::Bool(true),
    })
}

/// Returns the type of an event.
fn kind<'v>(event: &'v Value<'_>) -> &'v str {
    event.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn is_text(value: &Value<'_>) -> bool {
    matches!(value, Value::String(_) | Value::Array(_))
}

fn elements<'v, 'a>(value: &'v Value<'a>, name: &str) -> impl Iterator<Item = &'v Value<'a>> {
    value.get(name).and_then(Value::as_array).unwrap_or_default().iter()
}

fn number(value: &Value<'_>, name: &str) -> Option<u64> {
    value.get(name)?.as_number()?.literal().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::call::RetryHeaders;

    fn answer(status: u16, content_type: Option<&str>, body: &str) -> CallResponse {
        let content_type = content_type.map(str::to_owned);
        let body = body.to_owned();
        CallResponse { status, content_type, retry: RetryHeaders::default(), body, chunks: Vec::new() }
    }

    fn assembled(content_type: &str, body: &str) -> Option<String> {
        let mut texts = read(&answer(200, Some(content_type), body)).texts;
        assert!(texts.len() < 2, "{texts:?}");
        texts.pop()
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

    fn stream(events: &[&str]) -> CallResponse {
        let lines: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        answer(200, Some("text/event-stream"), &lines.concat())
    }

    #[test]
    fn choices_of_a_stream_have_a_text_each() {
        let chunk = |member: &str, choices: &[(u64, &str)]| {
            let choices = choices.iter().map(|(index, text)| match member {
                "text" => format!(r#"{{"index":{index},"text":"{text}"}}"#),
                _ => format!(r#"{{"index":{index},"delta":{{"content":"{text}"}}}}"#),
            });
            format!(r#"{{"choices":[{}]}}"#, choices.collect::<Vec<_>>().join(","))
        };
        for member in ["text", "delta"] {
            let alternating =
                [(1, "Yes"), (0, "Not"), (0, " now."), (1, " sure.")].map(|choice| chunk(member, &[choice]));
            let together = [[(0, "Not"), (1, "Yes")], [(1, " sure."), (0, " now.")]]
                .map(|choices| chunk(member, &choices));
            for events in [alternating.as_slice(), &together] {
                let events: Vec<&str> = events.iter().map(String::as_str).chain(["[DONE]"]).collect();
                let content = read(&stream(&events));
                assert_eq!(
                    (content.texts, content.failure),
                    (vec!["Not now.".to_owned(), "Yes sure.".to_owned()], None)
                );
            }
        }
        let candidate = |index: u64, text: &str| {
            format!(r#"{{"candidates":[{{"index":{index},"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#)
        };
        let events = [candidate(1, "b"), candidate(0, "a"), candidate(1, "d"), candidate(0, "c")];
        let events = events.each_ref().map(String::as_str);
        assert_eq!(read(&stream(&events)).texts, ["ac", "bd"]);
        let array = answer(200, Some("application/json"), &format!("[{}]", events.join(",")));
        assert_eq!(read(&array).texts, ["ac", "bd"]);
        let whole =
            r#"{"choices":[{"index":1,"message":{"content":"b"}},{"index":0,"message":{"content":"a"}}]}"#;
        assert_eq!(read(&answer(200, None, whole)).texts, ["a", "b"]);
        let blocks = [(1, "c"), (0, "a"), (1, "d"), (0, "b")].map(|(index, text)| {
            format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"text":"{text}"}}}}"#)
        });
        assert_eq!(read(&stream(&blocks.each_ref().map(String::as_str))).texts, ["abcd"]);
    }

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
    fn streams_state_their_tokens() {
        let numbers =
            |answer: &CallResponse| read(answer).usage.map(|usage| crate::json::compact::text(&usage));
        for (events, expected) in [
            (
                &[
                    r#"{"choices":[{"delta":{"content":"a"}}],"usage":null}"#,
                    r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4}}"#,
                ][..],
                r#"{"completion_tokens":4,"prompt_tokens":10}"#,
            ),
            (
                &[
                    r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":10,"output_tokens":1}}}"#,
                    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}"#,
                ],
                r#"{"input_tokens":10,"output_tokens":4}"#,
            ),
            (
                &[
                    r#"{"candidates":[],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1}}"#,
                    r#"{"candidates":[],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":4}}"#,
                ],
                r#"{"candidatesTokenCount":4,"promptTokenCount":10}"#,
            ),
            (
                &[
                    r#"{"type":"response.created","response":{"usage":null}}"#,
                    r#"{"type":"response.completed","response":{"usage":{"input_tokens":10,"output_tokens":4}}}"#,
                ],
                r#"{"input_tokens":10,"output_tokens":4}"#,
            ),
        ] {
            assert_eq!(numbers(&stream(events)).as_deref(), Some(expected));
        }
        let ollama = "{\"response\":\"a\",\"done\":false}\n{\"response\":\"\",\"done\":true,\"prompt_eval_count\":10,\"eval_count\":4}\n";
        assert_eq!(numbers(&answer(200, None, ollama)).unwrap(), r#"{"input_tokens":10,"output_tokens":4}"#);
        assert_eq!(numbers(&stream(&[r#"{"choices":[]}"#])), None);
    }

    /// Returns why an answer is a failure.
    fn failure(answer: &CallResponse) -> Option<String> {
        read(answer).failure.map(|failure| failure.to_string())
    }

    #[test]
    fn errors_in_responses_with_a_status_of_success_are_failures() {
        for events in [
            &[r#"{"type":"message_start","message":{}}"#, r#"{"type":"error","error":{"message":"no"}}"#][..],
            &[r#"{"choices":[{"delta":{"content":"a"}}]}"#, r#"{"error":{"message":"no"}}"#, "[DONE]"],
            &[r#"{"candidates":[]}"#, r#"{"error":{"code":503,"message":"no"}}"#],
            &[r#"{"type":"response.failed","response":{"status":"failed","error":{"message":"no"}}}"#],
            &[r#"{"type":"response.created"}"#, r#"{"type":"error","message":"no"}"#],
            &[r#"{"choices":[{"delta":{},"finish_reason":"error","error":{"message":"no"}}]}"#, "[DONE]"],
        ] {
            assert_eq!(failure(&stream(events)).as_deref(), Some("no"), "{events:?}");
        }
        for body in [
            r#"{"error":{"message":"no"}}"#,
            r#"{"type":"error","error":{"message":"no"}}"#,
            r#"[{"candidates":[]},{"error":{"message":"no"}}]"#,
            r#"{"object":"response","status":"failed","error":{"message":"no"},"output":[]}"#,
            r#"{"choices":[{"message":{},"error":{"message":"no"}}]}"#,
            r#"{"error":"no"}"#,
            "event: error\ndata: no\n\n",
            "{\"response\":\"a\",\"done\":false}\n{\"error\":\"no\"}\n",
        ] {
            assert_eq!(failure(&answer(200, None, body)).as_deref(), Some("no"), "{body}");
        }
        assert_eq!(failure(&answer(429, None, "slow down")).as_deref(), Some("HTTP status 429"));
        assert_eq!(failure(&answer(429, None, r#"{"error":{"message":"no"}}"#)).as_deref(), Some("no"));
    }

    #[test]
    fn answers_that_were_broken_off_are_failures() {
        for events in [
            &[r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#][..],
            &[r#"{"choices":[{"index":0,"finish_reason":"stop"},{"index":1,"delta":{}}]}"#],
            &[r#"{"type":"message_start","message":{}}"#, r#"{"type":"content_block_stop","index":0}"#],
            &[r#"{"type":"response.created"}"#],
            &[r#"{"message":{"content":"a"},"done":false}"#],
            &[r#"{"type":"completion","completion":"a","stop_reason":null}"#],
        ] {
            assert_eq!(read(&stream(events)).failure, Some(AnswerFailure::NoEnd), "{events:?}");
        }
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
    fn complete_answers_are_not_failures() {
        for events in [
            &[r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#, "[DONE]"][..],
            &[
                r#"{"choices":[],"prompt_filter_results":[]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
            ],
            &[r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#],
            &[r#"{"type":"message_start","message":{}}"#, r#"{"type":"message_stop"}"#],
            &[r#"{"type":"response.created"}"#, r#"{"type":"response.incomplete","response":{}}"#],
            &[r#"{"message":{"content":"a"},"done":true}"#],
            &["[DONE]"],
        ] {
            assert_eq!(failure(&stream(events)), None, "{events:?}");
        }
        for (content_type, body) in [
            (
                Some("application/json"),
                r#"{"error":null,"object":"response","status":"completed","output":[]}"#,
            ),
            (Some("application/json"), r#"{"error":0.5}"#),
            (Some("text/plain"), "[unfinished"),
            (None, "text"),
            (None, ""),
        ] {
            assert_eq!(failure(&answer(200, content_type, body)), None, "{body}");
        }
    }
}

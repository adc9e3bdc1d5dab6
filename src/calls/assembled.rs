//! The content of an answer: its texts, its numbers of tokens, and whether it is an error or was broken off. APIs are
//! recognized by the form of the body, because many servers have the API of another provider.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::call::{Call, CallOutcome, CallResponse, ResponseForm};
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
    /// When it was made, as the API states it.
    pub(crate) created: Option<Value<'static>>,
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

/// The APIs whose streams have an event that ends them. Streams of `OpenAI` can also end with `[DONE]`.
const STREAM_APIS: &[StreamApi] = &[
    // Chat completions and completions of OpenAI: see `AnswerReader::follow`.
    StreamApi { is_event: |event| event.get("choices").is_some(), is_end: |_| false },
    // Gemini: see `AnswerReader::follow`, too.
    StreamApi { is_event: |event| event.get("candidates").is_some(), is_end: |_| false },
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

/// The members with the time at which an answer was made.
const CREATED: &[&[&str]] = &[&["created"], &["created_at"], &["response", "created_at"]];

impl CallResponse {
    /// Returns why it is not an answer; `None` if it is one. This is the definition of a failed call for sessions, run packs,
    /// imports and gateways: an error status; an error that the body or an event of a stream states, whatever the status; a
    /// stream without the event that ends it in its API; a body that ends inside a JSON document; or no body, although its
    /// type has one. Reads all of the body.
    pub(crate) fn failure(&self) -> Option<AnswerFailure> {
        read_without_texts(self).failure
    }
}

impl<R> Call<R> {
    /// Returns the answer if it is complete, also if it is an error.
    pub(crate) fn answer(&self) -> Option<&CallResponse> {
        match &self.outcome {
            CallOutcome::Answered(answer) => Some(answer),
            CallOutcome::Failed { .. } => None,
        }
    }

    /// Returns the answer if it is complete and not an error.
    pub(crate) fn success(&self) -> Option<&CallResponse> {
        self.answer().filter(|answer| answer.failure().is_none())
    }
}

/// Returns the content of an answer.
pub(crate) fn read(answer: &CallResponse) -> AnswerContent {
    content(answer, AnswerReader::default())
}

/// Returns the content of an answer without its texts, which can have about as many bytes as the answer.
pub(crate) fn read_without_texts(answer: &CallResponse) -> AnswerContent {
    content(answer, AnswerReader { leaves_out_texts: true, ..AnswerReader::default() })
}

fn content(answer: &CallResponse, reader: AnswerReader) -> AnswerContent {
    let mut content = reader.read(answer.form(), &answer.body);
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

/// The place of a part of a text: the index of its choice, and of the part in that.
type TextPlace = (u64, u64, u64);

#[derive(Default)]
struct AnswerReader {
    texts: BTreeMap<TextPlace, String>,
    usage: BTreeMap<String, Value<'static>>,
    created: Option<Value<'static>>,
    failure: Option<AnswerFailure>,
    /// Whether there was an event of an API whose streams have an end.
    is_ended_by_event: bool,
    has_ended: bool,
    /// The choices and candidates that have begun and not ended.
    open: BTreeSet<u64>,
    /// The candidates that have ended. Gemini can state more of them afterwards, such as their sources.
    ended: BTreeSet<u64>,
    leaves_out_texts: bool,
}

impl AnswerReader {
    /// Reads a body that has a form.
    fn read(mut self, form: ResponseForm, body: &str) -> AnswerContent {
        match form {
            ResponseForm::Stream => {
                events::visit(body, |event| self.event(&event));
                self.end_of_stream();
            }
            ResponseForm::Whole => self.whole(body),
        }
        self.finish(body)
    }

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
        for (index, candidate) in elements(event, "candidates").enumerate() {
            let number = number(candidate, "index").unwrap_or(index as u64);
            if candidate.get("finishReason").is_some_and(|reason| !reason.is_null()) {
                self.ended.insert(number);
            }
            self.open.insert(number);
            // Recordings of streams without any reason are complete as often as not.
            self.has_ended = self.ended.is_empty() || self.open.is_subset(&self.ended);
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
        if self.created.is_none() {
            self.created = CREATED.iter().find_map(|path| at(value, path)).map(Value::to_owned_value);
        }
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
        match content.filter(|_| !self.leaves_out_texts) {
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

    fn finish(mut self, body: &str) -> AnswerContent {
        let mut texts: BTreeMap<u64, String> = BTreeMap::new();
        for ((choice, ..), text) in std::mem::take(&mut self.texts) {
            texts.entry(choice).or_default().push_str(&text);
        }
        let texts = texts.into_values().filter(|text| !text.is_empty());
        let has_halves = ["\\ud", "\\uD"].iter().any(|half| body.contains(half));
        let whole = |text| if has_halves { events::with_characters(text) } else { text };
        let usage = object(self.usage.iter().map(|(name, count)| (name.as_str(), count.clone())));
        let usage = (!self.usage.is_empty()).then(|| usage.to_owned_value());
        let Self { created, failure, .. } = self;
        AnswerContent { texts: texts.map(whole).collect(), usage, created, failure }
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
mod tests;

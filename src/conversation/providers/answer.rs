//! The content of an answer, as far as it has been read.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::json::Value;
use crate::json::members::{object, word};

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

/// The place of a part of a text: the index of its choice, and of the part in that.
type TextPlace = (u64, u64, u64);

/// Reads an answer.
#[derive(Default)]
pub(crate) struct AnswerReader {
    texts: BTreeMap<TextPlace, String>,
    pub(crate) usage: BTreeMap<String, Value<'static>>,
    pub(crate) created: Option<Value<'static>>,
    pub(crate) failure: Option<AnswerFailure>,
    pub(crate) progress: StreamProgress,
    pub(crate) leaves_out_texts: bool,
}

/// How far a stream has come.
#[derive(Default)]
pub(crate) struct StreamProgress {
    /// Whether there was an event of an API whose streams have an end.
    pub(crate) is_ended_by_event: bool,
    pub(crate) has_ended: bool,
    /// The choices and candidates that have begun and not ended.
    pub(super) open: BTreeSet<u64>,
    /// The candidates that have ended.
    pub(super) ended: BTreeSet<u64>,
}

impl AnswerReader {
    pub(crate) fn without_texts() -> Self {
        Self { leaves_out_texts: true, ..Self::default() }
    }

    pub(crate) fn fail(&mut self, error: &Value<'_>) {
        self.failure.get_or_insert_with(|| AnswerFailure::Error(error.to_owned_value()));
    }

    pub(super) fn has_texts(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Adds a text, or the texts of parts, without what the model thought.
    pub(crate) fn add(&mut self, place: TextPlace, content: Option<&Value<'_>>) {
        let said = self.texts.entry(place).or_default();
        match content.filter(|_| !self.leaves_out_texts) {
            Some(Value::String(text)) => said.push_str(text),
            Some(Value::Array(parts)) => {
                let shown = parts.iter().filter(|part| part.get("thought") != Some(&Value::Bool(true)));
                said.extend(shown.filter_map(|part| word(part, "text")));
            }
            _ => {}
        }
    }

    /// Returns what was read. `whole` puts the halves of characters together.
    pub(crate) fn finish(self, whole: impl Fn(String) -> String) -> AnswerContent {
        let mut texts: BTreeMap<u64, String> = BTreeMap::new();
        for ((choice, ..), text) in self.texts {
            texts.entry(choice).or_default().push_str(&text);
        }
        let texts = texts.into_values().filter(|text| !text.is_empty()).map(whole).collect();
        let usage = object(self.usage.iter().map(|(name, count)| (name.as_str(), count.clone())));
        let usage = (!self.usage.is_empty()).then(|| usage.to_owned_value());
        AnswerContent { texts, usage, created: self.created, failure: self.failure }
    }
}

/// Returns the error that a document states beside what it would otherwise have.
pub(crate) fn stated_error<'v, 'a>(value: &'v Value<'a>) -> Option<&'v Value<'a>> {
    value.get("error").filter(|error| match error {
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => members.iter().len() > 0,
        other => **other == Value::Bool(true),
    })
}

/// Returns the type of an event.
pub(crate) fn type_of<'v>(event: &'v Value<'_>) -> &'v str {
    word(event, "type").unwrap_or_default()
}

/// Returns the elements of a list, each with the index that it states, or else with its position.
pub(super) fn indexed<'v, 'a>(
    value: &'v Value<'a>,
    name: &str,
) -> impl Iterator<Item = (u64, &'v Value<'a>)> {
    let elements = value.get(name).and_then(Value::as_array).unwrap_or_default();
    (0..).zip(elements).map(|(position, one)| (number(one, "index").unwrap_or(position), one))
}

/// Returns the number that is a member.
pub(crate) fn number(value: &Value<'_>, name: &str) -> Option<u64> {
    value.get(name)?.as_number()?.literal().parse().ok()
}

/// Returns whether a member states a value.
pub(super) fn states(value: &Value<'_>, name: &str) -> bool {
    value.get(name).is_some_and(|value| !value.is_null())
}

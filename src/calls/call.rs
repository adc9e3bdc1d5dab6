//! A call of a model: what was asked, and what came back.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::events;
use crate::digest::Digest;
use crate::json::Value;
use crate::json::splice::Splice;

/// A call with its complete request.
pub(crate) type CallRecord = Call<CompleteRequest>;

/// A call as it is written to disk before its last byte is sent to the client: what an earlier request of the run has
/// already is left out of its request.
pub(crate) type StoredCall = Call<StoredRequest>;

/// A call, with its request in a form `R`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call<R> {
    /// Its number in the run, in the order in which calls arrived.
    pub(crate) number: u64,
    /// When it was asked, if that is known.
    #[serde(rename = "asked_at")]
    pub(crate) requested_at: Option<DateTime<Utc>>,
    pub(crate) provider: String,
    /// The name of the request in the API.
    pub(crate) endpoint: String,
    pub(crate) path: String,
    /// The digest of the query without keys, if requests of the API are compared by it.
    #[serde(default)]
    pub(crate) query: Option<String>,
    #[serde(flatten)]
    pub(crate) request: R,
    /// How long it took in milliseconds until all of the answer had arrived, if that is known.
    pub(crate) latency_ms: Option<u64>,
    /// Number of earlier requests of the run with the same prompt that were answered from recordings.
    #[serde(default)]
    pub(crate) replayed_before: u64,
    pub(crate) outcome: CallOutcome,
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CompleteRequest {
    /// The text that the request is compared by.
    pub(crate) prompt: String,
    /// The body of the request, as JSON without white space.
    #[serde(rename = "request")]
    pub(crate) payload: String,
}

/// A request without what an earlier one has already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredRequest {
    /// The model that was asked, or the name of the API if the request names none.
    pub(crate) model: String,
    /// The digest of the text that the request is compared by.
    pub(crate) prompt_hash: Digest,
    /// The body, as JSON without white space: complete, or the rest of a difference.
    pub(crate) payload: String,
    /// What the body takes from that of an earlier call.
    #[serde(default)]
    pub(crate) payload_difference: Option<CallDifference>,
    /// The rest of the text that the request is compared by, which is a difference.
    pub(crate) prompt: String,
    /// What that text takes from the one of an earlier call, or from the body of the request if no call is stated.
    pub(crate) prompt_difference: CallDifference,
}

/// What a value takes from that of another call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallDifference {
    /// The number of the call.
    pub(crate) call: Option<u64>,
    pub(crate) splices: Vec<Splice>,
}

/// The response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallOutcome {
    /// The answer, complete.
    Answered(CallResponse),
    /// No answer, or only its beginning.
    Failed {
        /// Why, for people.
        reason: String,
        /// The part of the response that had arrived by then.
        #[serde(with = "pieces")]
        partial: String,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallResponse {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    #[serde(flatten)]
    pub(crate) retry: RetryHeaders,
    #[serde(with = "pieces")]
    pub(crate) body: String,
    /// The parts in which the body arrived.
    pub(crate) chunks: Vec<Chunk>,
}

/// The headers by which clients decide whether and when they ask again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RetryHeaders {
    /// The seconds of `retry-after`, or its date.
    pub(crate) retry_after: Option<String>,
    /// The milliseconds of `retry-after-ms`.
    #[serde(default)]
    pub(crate) retry_after_ms: Option<String>,
    /// The value of `x-should-retry`: `true` or `false`, which clients prefer to what the status means.
    #[serde(default)]
    pub(crate) should_retry: Option<String>,
}

/// A part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunk {
    /// Microseconds from the request to its arrival.
    pub(crate) at_us: u64,
    pub(crate) bytes: u64,
}

/// Long texts as lists of pieces, so that they are not in memory twice while they are read.
mod pieces {
    use std::fmt;

    use serde::de::{Deserializer, Error, SeqAccess, Visitor};
    use serde::ser::{SerializeSeq, Serializer};

    /// The most bytes of a piece.
    const PIECE: usize = 1 << 20;

    pub(super) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        if text.len() <= PIECE {
            return serializer.serialize_str(text);
        }
        let mut list = serializer.serialize_seq(None)?;
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
            list.serialize_element(piece)?;
            rest = after;
        }
        list.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }

    struct TextVisitor;

    impl<'de> Visitor<'de> for TextVisitor {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text, or a list of the pieces of one")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_string<E: Error>(self, text: String) -> Result<String, E> {
            Ok(text)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<String, A::Error> {
            let mut text = String::new();
            while let Some(piece) = list.next_element::<String>()? {
                text.push_str(&piece);
            }
            Ok(text)
        }
    }
}

/// The types of content of streams: events, and JSON documents on lines of their own.
const STREAMS: [&str; 4] =
    ["text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl"];

/// How an answer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResponseForm {
    /// In one piece.
    Whole,
    /// As a stream of events or lines.
    Stream,
}

impl ResponseForm {
    /// Returns the form that an answer with this type of content has.
    pub(crate) fn from_content_type(content_type: Option<&str>) -> Self {
        let media_type = media_type(content_type);
        let is_stream = STREAMS.iter().any(|stream| media_type.eq_ignore_ascii_case(stream));
        if is_stream { Self::Stream } else { Self::Whole }
    }

    /// Returns the form in which a request asks for its answer; `None` if its query says that, and is not known.
    pub(crate) fn from_request(path: &str, query: Option<&str>, body: &Value<'_>) -> Option<Self> {
        let is_stream = if path.contains(":stream") {
            // Without this parameter, Gemini sends the events as one JSON array.
            query?.split('&').any(|parameter| parameter == "alt=sse")
        } else {
            body.get("stream") == Some(&Value::Bool(true))
        };
        Some(if is_stream { Self::Stream } else { Self::Whole })
    }
}

impl StoredCall {
    /// Returns the numbers of the calls from which its request is a difference.
    pub(crate) fn bases(&self) -> impl Iterator<Item = u64> {
        let StoredRequest { payload_difference, prompt_difference, .. } = &self.request;
        payload_difference.iter().chain([prompt_difference]).filter_map(|difference| difference.call)
    }
}

impl<R> Call<R> {
    /// Returns when all of the answer had arrived, or when it was asked if it is not known how long it took.
    pub(crate) fn ended_at(&self) -> Option<DateTime<Utc>> {
        let latency = self.latency_ms.and_then(|latency| i64::try_from(latency).ok());
        let asked = self.requested_at?;
        Some(asked.checked_add_signed(TimeDelta::milliseconds(latency.unwrap_or(0))).unwrap_or(asked))
    }

    /// Returns the call with its request in another form.
    pub(crate) fn with_request<S>(self, request: S) -> Call<S> {
        Call {
            number: self.number,
            requested_at: self.requested_at,
            provider: self.provider,
            endpoint: self.endpoint,
            path: self.path,
            query: self.query,
            request,
            latency_ms: self.latency_ms,
            replayed_before: self.replayed_before,
            outcome: self.outcome,
        }
    }
}

impl RetryHeaders {
    /// Reads the headers with a function that returns the value of a header by its name.
    pub(crate) fn read(header: impl Fn(&str) -> Option<String>) -> Self {
        let mut read = Self::default();
        for (name, _) in Self::default().iter() {
            read.set(name, header(name));
        }
        read
    }

    /// Sets the header with this name in lower case. Returns false if it is none of them.
    pub(crate) fn set(&mut self, name: &str, value: Option<String>) -> bool {
        match name {
            "retry-after" => self.retry_after = value,
            "retry-after-ms" => self.retry_after_ms = value,
            "x-should-retry" => self.should_retry = value,
            _ => return false,
        }
        true
    }

    /// Returns the names and values of the headers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &Option<String>)> {
        let Self { retry_after, retry_after_ms, should_retry } = self;
        let named = [
            ("retry-after", retry_after),
            ("retry-after-ms", retry_after_ms),
            ("x-should-retry", should_retry),
        ];
        named.into_iter()
    }

    /// Returns the headers that are present, with the values that `map` returns for them.
    pub(crate) fn map(&self, map: impl Fn(&str) -> String) -> Self {
        let mut mapped = Self::default();
        for (name, value) in self.iter() {
            mapped.set(name, value.as_deref().map(&map));
        }
        mapped
    }
}

impl CallResponse {
    /// Returns whether the status is one of success. The response may still be an error: see [`CallResponse::failure`].
    pub(crate) fn has_success_status(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the form of the body: that of its type of content, unless it begins like a stream and its type is another one
    /// or not stated.
    pub(crate) fn form(&self) -> ResponseForm {
        let is_unstated = self.content_type.is_none() && events::begins_as_lines(&self.body);
        if is_unstated || events::begins_as_events(&self.body) {
            return ResponseForm::Stream;
        }
        ResponseForm::from_content_type(self.content_type.as_deref())
    }

    /// Returns the type of the content without parameters; empty if it is not stated.
    pub(super) fn media_type(&self) -> &str {
        media_type(self.content_type.as_deref())
    }

    /// Returns whether it states that it is text for people, of which the beginning may look like JSON.
    pub(super) fn is_plain_text(&self) -> bool {
        let media_type = self.media_type().to_ascii_lowercase();
        media_type.starts_with("text/")
            && ResponseForm::from_content_type(Some(&media_type)) == ResponseForm::Whole
    }
}

fn media_type(content_type: Option<&str>) -> &str {
    content_type.and_then(|text| text.split(';').next()).unwrap_or_default().trim()
}

#[cfg(test)]
impl CallRecord {
    /// Returns a call of a test.
    pub(crate) fn sample(number: u64, request: CompleteRequest, outcome: CallOutcome) -> Self {
        Self {
            number,
            requested_at: Some(DateTime::UNIX_EPOCH),
            provider: "openai".to_owned(),
            endpoint: "chat.completions".to_owned(),
            path: "/v1/chat/completions".to_owned(),
            query: None,
            request,
            latency_ms: Some(7),
            replayed_before: 0,
            outcome,
        }
    }
}

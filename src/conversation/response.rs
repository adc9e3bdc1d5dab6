//! A response to a call of a model, as it arrived.

use serde::{Deserialize, Serialize};

use super::events::{self, StreamEvent};
use crate::json::Value;

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

impl CallResponse {
    /// Creates an answer of which only a text is known: the body, or its beginning.
    pub(crate) fn from_text(body: String) -> Self {
        Self { status: 200, content_type: None, retry: RetryHeaders::default(), body, chunks: Vec::new() }
    }
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
pub(crate) mod pieces {
    use std::fmt;

    use serde::de::{Deserializer, Error, SeqAccess, Visitor};
    use serde::ser::{SerializeSeq, Serializer};

    /// The most bytes of a piece.
    const PIECE: usize = 1 << 20;

    pub(crate) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
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

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
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

/// The type of content of the event streams of AWS.
pub(crate) const AWS_EVENTS: &str = "application/vnd.amazon.eventstream";

/// The types of content of streams: events, and JSON documents on lines of their own.
const STREAMS: [&str; 5] =
    ["text/event-stream", AWS_EVENTS, "application/x-ndjson", "application/ndjson", "application/jsonl"];

/// The ends of the paths of requests whose answers are always streams.
const STREAMED_PATHS: [&str; 2] = ["/converse-stream", "/invoke-with-response-stream"];

/// The type of content of what a server sent over a live connection.
pub(crate) const LIVE_CONTENT: &str = "application/x-ndjson; transport=websocket";

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
        let is_stream = if STREAMED_PATHS.iter().any(|end| path.ends_with(end)) {
            true
        } else if path.contains(":streamGenerate") {
            // Without this parameter, Gemini sends the events as one JSON array.
            query?.split('&').any(|parameter| parameter == "alt=sse")
        } else {
            body.get("stream") == Some(&Value::Bool(true))
        };
        Some(if is_stream { Self::Stream } else { Self::Whole })
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

    /// Calls `visit` with the JSON document that the body is, or with those of the events of a stream. Returns false if it is
    /// neither.
    pub(super) fn visit_documents(&self, mut visit: impl FnMut(&Value<'_>)) -> bool {
        match self.form() {
            ResponseForm::Stream => events::visit(&self.body, false, |event| {
                if let StreamEvent::Json(_, document) = event {
                    visit(&document);
                }
            }),
            ResponseForm::Whole => match events::read(self.body.trim_start_matches('\u{feff}')) {
                Some(document) => visit(&document),
                None => return false,
            },
        }
        true
    }

    /// Returns the type of the content without parameters; empty if it is not stated.
    pub(super) fn media_type(&self) -> &str {
        media_type(self.content_type.as_deref())
    }

    /// Returns whether it is a part of what a server sent over a live connection: it ends where the client sent something.
    pub(super) fn is_of_live_connection(&self) -> bool {
        self.content_type.as_deref() == Some(LIVE_CONTENT)
    }

    /// Returns whether it states that it is text for people, of which the beginning may look like JSON.
    pub(super) fn is_plain_text(&self) -> bool {
        let media_type = self.media_type().to_ascii_lowercase();
        media_type.starts_with("text/")
            && ResponseForm::from_content_type(Some(&media_type)) == ResponseForm::Whole
    }
}

/// Returns a type of content without parameters; empty if it is not stated.
pub(crate) fn media_type(content_type: Option<&str>) -> &str {
    content_type.and_then(|text| text.split(';').next()).unwrap_or_default().trim()
}

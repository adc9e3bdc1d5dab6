//! Interactions of HTTP, as several programs record them: their headers, and bodies without their content encodings.

use std::borrow::Cow;
use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::binary::{DecodingBudget, base64};
use super::exchange::{ImportedExchange, ImportedRequest, ImportedResponse, ImportedRun, ImportedRuns};
use super::reading::{LocatedValue, RecorderResult, parse_time};
use crate::conversation::response::RetryHeaders;
use crate::json::Value;
use crate::json::reader;
use crate::yaml::BINARY;

/// The other headers that are mapped, and those that only describe how a body was sent.
const HEADERS: &[&str] = &[
    "content-type",
    "content-encoding",
    "date",
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "host",
    "transfer-encoding",
];

/// Reads the interactions of a file.
pub(super) struct CassetteReader {
    budget: DecodingBudget,
    /// The names of headers that are not mapped.
    headers: BTreeSet<String>,
    unmapped: Vec<(String, String)>,
}

/// A body, as a file states it.
pub(super) enum RecordedBody {
    Missing,
    Bytes(Vec<u8>),
    /// Neither text nor bytes, nor JSON.
    Structure,
}

/// The headers of a message that are mapped.
#[derive(Default)]
pub(super) struct RecordedHeaders {
    content_type: Option<String>,
    content_encoding: String,
    retry: RetryHeaders,
    date: Option<DateTime<Utc>>,
}

/// A request and its response, as a file states them.
pub(super) struct RecordedInteraction {
    pub(super) location: String,
    pub(super) method: String,
    pub(super) url: String,
    pub(super) request: (RecordedHeaders, RecordedBody),
    pub(super) status: u16,
    pub(super) response: (RecordedHeaders, RecordedBody),
    pub(super) at: Option<DateTime<Utc>>,
    pub(super) latency_ms: Option<u64>,
}

impl CassetteReader {
    /// Returns a reader that decompresses at most `limit` bytes.
    pub(super) fn new(limit: u64) -> Self {
        Self { budget: DecodingBudget::new(limit), headers: BTreeSet::new(), unmapped: Vec::new() }
    }

    /// Lists members that are not known.
    pub(super) fn others(&mut self, node: &LocatedValue<'_>, known: &[&str]) {
        for name in node.others(known) {
            let location = if node.location.is_empty() { "the document" } else { &node.location };
            self.unmapped
                .push((location.to_owned(), format!("the member {} is not mapped", reader::excerpt(name))));
        }
    }

    /// Returns the exchange that an interaction is.
    pub(super) fn exchange(&mut self, interaction: RecordedInteraction) -> RecorderResult<ImportedExchange> {
        let RecordedInteraction { location, method, url, request, status, response, at, latency_ms } =
            interaction;
        let (headers, body) = request;
        let (body, request_error) = match self.plain(&headers, body, &location)? {
            Ok(body) => (body.unwrap_or_default(), None),
            Err(reason) => (Vec::new(), Some(format!("the body of the request: {reason}"))),
        };
        let request = ImportedRequest::Http { method, url, body };
        let (headers, body) = response;
        let body = self.plain(&headers, body, &location)?;
        let RecordedHeaders { content_type, retry, date, .. } = headers;
        let reply = match (request_error, body) {
            (Some(reason), _) => ImportedResponse::Unmapped(reason),
            (None, Err(reason)) => ImportedResponse::Unmapped(format!("the body of the response: {reason}")),
            (None, Ok(None)) => ImportedResponse::without_body(status, content_type, retry),
            (None, Ok(Some(body))) => ImportedResponse::Answer { status, content_type, retry, body },
        };
        Ok(ImportedExchange { location, request, reply, at: at.or(date), latency_ms })
    }

    /// Returns a body without its content encoding; `None` if the file states none. The inner error says why it cannot be
    /// decoded.
    fn plain(
        &mut self,
        headers: &RecordedHeaders,
        body: RecordedBody,
        location: &str,
    ) -> RecorderResult<Result<Option<Vec<u8>>, String>> {
        Ok(match body {
            RecordedBody::Missing => Ok(None),
            RecordedBody::Bytes(body) => {
                self.budget.decoded(body, &headers.content_encoding, location)?.map(Some)
            }
            RecordedBody::Structure => Err("it is a structure, not the text that was sent".to_owned()),
        })
    }

    /// Reads the headers of a message: an object, or a list of objects with `name` and `value`.
    pub(super) fn headers(&mut self, message: &LocatedValue<'_>) -> RecorderResult<RecordedHeaders> {
        let mut headers = RecordedHeaders::default();
        let Some(header_member) = message.member("headers") else { return Ok(headers) };
        if header_member.value.as_array().is_some() {
            for header in header_member.elements()? {
                let value = header.member("value").map(|value| first(&value)).transpose()?.flatten();
                self.header(&mut headers, header.required("name")?.text()?, value);
            }
            return Ok(headers);
        }
        for (name, value) in header_member.members()? {
            let value = first(&value)?;
            self.header(&mut headers, name, value);
        }
        Ok(headers)
    }

    fn header(&mut self, headers: &mut RecordedHeaders, name: &str, value: Option<String>) {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "content-type" => headers.content_type = value,
            "content-encoding" => headers.content_encoding = value.unwrap_or_default(),
            "date" => headers.date = value.as_deref().and_then(parse_time),
            other => {
                // Those of HTTP/2 are parts of the request.
                let is_listed = !HEADERS.contains(&other) && !other.starts_with(':');
                if !headers.retry.set(other, value) && is_listed {
                    self.headers.insert(name);
                }
            }
        }
    }

    /// Returns the run of the exchanges. The headers that are not mapped are listed at `location`.
    pub(super) fn into_runs(self, exchanges: Vec<ImportedExchange>, location: &str) -> ImportedRuns {
        let Self { headers, mut unmapped, .. } = self;
        if !headers.is_empty() {
            let names = headers.into_iter().collect::<Vec<_>>().join(", ");
            unmapped.push((location.to_owned(), format!("these headers are not mapped: {names}")));
        }
        let unmapped = unmapped.into_iter().map(|(location, reason)| (0, location, reason)).collect();
        let exchanges = exchanges.into_iter().map(|exchange| (0, exchange)).collect();
        ImportedRuns { runs: vec![ImportedRun { exchanges, ..ImportedRun::default() }], unmapped }
    }
}

impl RecordedBody {
    /// Returns a body: a string, bytes in Base64, an object with one of them, or a list of parts.
    pub(super) fn read(body: &LocatedValue<'_>) -> RecorderResult<Self> {
        if body.value.get("string").is_some_and(Value::is_null) {
            return Ok(Self::Missing);
        }
        Ok(bytes(body)?.map_or(Self::Structure, Self::Bytes))
    }
}

/// Returns the first value of a header.
fn first(value: &LocatedValue<'_>) -> RecorderResult<Option<String>> {
    let text = |value: &LocatedValue<'_>| match value.value {
        Value::Number(number) => Ok(number.literal().to_owned()),
        Value::Object(_) => {
            bytes(value).map(|bytes| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
        }
        _ => value.text().map(str::to_owned),
    };
    match value.value {
        Value::Array(_) => value.elements()?.next().map(|value| text(&value)).transpose(),
        _ => text(value).map(Some),
    }
}

/// Returns the bytes of a body: a string, bytes in Base64, an object with one of them, or a list of parts. Returns `None`
/// if it is something else.
fn bytes(body: &LocatedValue<'_>) -> RecorderResult<Option<Vec<u8>>> {
    Ok(match body.value {
        Value::Null => Some(Vec::new()),
        Value::String(text) => Some(Cow::clone(text).into_owned().into_bytes()),
        Value::Object(_) => match (body.member(BINARY), body.member("string")) {
            (Some(binary), _) => {
                let decoded = base64(binary.text()?);
                Some(decoded.ok_or_else(|| body.fault("the Base64 of !!binary is damaged"))?)
            }
            (None, Some(string)) => bytes(&string)?,
            (None, None) => body.value.get("string").map(|_| Vec::new()),
        },
        Value::Array(_) => {
            let mut all = Some(Vec::new());
            for part in body.elements()? {
                match (&mut all, bytes(&part)?) {
                    (Some(all), Some(part)) => all.extend(part),
                    _ => all = None,
                }
            }
            all
        }
        _ => None,
    })
}

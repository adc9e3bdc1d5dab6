//! The messages of a file: JSON, one or one a line; a message of Protocol Buffers; or messages of either sort with their
//! lengths before them, as the file exporter of the collector writes them, each of which can be compressed.

use super::protobuf;
use super::schema::{LOGS, OtlpMessage, TRACES};
use crate::json::Value;
use crate::json::members::at;
use crate::json::reader::Limits;
use crate::recorders::binary::{DecodingBudget, ZSTD};
use crate::recorders::reading::{self, Fault, RecorderResult, SYNTAX};

/// The number of bytes of a length before a message.
const LENGTH: usize = 4;

/// The first byte of each message of Protocol Buffers: its first field is a message.
const MESSAGE: &[u8] = b"\x0a";

/// Returns the messages of a file, each with its location.
pub(super) fn documents<'b>(bytes: &'b [u8], limits: &Limits) -> RecorderResult<Vec<(String, Value<'b>)>> {
    if let Some(message) = message_of(bytes, limits) {
        return Ok(vec![("message 1".to_owned(), message)]);
    }
    if is_framed(bytes) {
        return framed(bytes, limits);
    }
    let documents = reading::documents(bytes, limits)?.into_iter();
    Ok(documents.map(|(line, document)| (format!("line {line}"), document)).collect())
}

/// Returns whether a file that is not text has such messages.
pub(in crate::recorders) fn is_binary(bytes: &[u8]) -> bool {
    message_of(bytes, &Limits::most()).is_some() || is_framed(bytes)
}

/// Returns the message of Protocol Buffers that bytes are, if it has a span or a log record.
fn message_of(bytes: &[u8], limits: &Limits) -> Option<Value<'static>> {
    let has_id = |read: &Value<'_>, path: &[&str]| {
        at(read, path).and_then(Value::as_str).is_some_and(|id| [16, 32].contains(&id.len()))
    };
    let read = |message: &OtlpMessage| {
        bytes.starts_with(MESSAGE).then(|| protobuf::read(bytes, message, limits).ok()).flatten()
    };
    let span = ["resourceSpans", "0", "scopeSpans", "0", "spans", "0", "spanId"];
    if let Some(traces) = read(&TRACES).filter(|read| has_id(read, &span)) {
        return Some(traces);
    }
    let record = ["resourceLogs", "0", "scopeLogs", "0", "logRecords", "0"];
    read(&LOGS).filter(|read| {
        has_id(read, &[&record[..], &["traceId"]].concat())
            || ["timeUnixNano", "observedTimeUnixNano"]
                .iter()
                .any(|name| at(read, &[&record[..], &[name]].concat()).is_some())
    })
}

/// Returns whether a file begins with the length of a message, and the message.
fn is_framed(bytes: &[u8]) -> bool {
    let Some((first, _)) = split(bytes) else { return false };
    can_be_framed(first) && (!first.starts_with(MESSAGE) || message_of(first, &Limits::most()).is_some())
}

/// Returns whether a file that begins with `head` can have messages of Protocol Buffers, or messages with lengths.
pub(in crate::recorders) fn can_begin(head: &[u8]) -> bool {
    head.starts_with(MESSAGE) || head.get(LENGTH..).is_some_and(can_be_framed)
}

/// Returns whether a message with a length can begin with `head`.
fn can_be_framed(head: &[u8]) -> bool {
    [MESSAGE, b"{", ZSTD].into_iter().any(|start| head.starts_with(start))
}

/// Returns the first message of a file with lengths, and what follows it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(LENGTH)?;
    let length = u32::from_be_bytes(length.try_into().ok()?);
    rest.split_at_checked(usize::try_from(length).ok()?)
}

fn framed(bytes: &[u8], limits: &Limits) -> RecorderResult<Vec<(String, Value<'static>)>> {
    let mut budget = DecodingBudget::new(limits.bytes);
    let (mut found, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let location = format!("message {}", found.len() + 1);
        let fault = |message: String| Fault::new(SYNTAX, location.clone(), message);
        let (message, after) = split(rest).ok_or_else(|| fault("the message is cut off".to_owned()))?;
        rest = after;
        let plain = budget.decoded(message.to_vec(), "zstd", &location)?.map_err(fault)?;
        let read = if plain.starts_with(b"{") {
            let json = reading::documents(&plain, limits).map_err(|fault| fault.inside(&location))?;
            json.into_iter().next().map(|(_, document)| document.into_owned_value())
        } else {
            message_of(&plain, limits)
        };
        let read = read.ok_or_else(|| fault("it is neither spans nor log records".to_owned()))?;
        found.push((location, read));
    }
    Ok(found)
}

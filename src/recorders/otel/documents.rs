//! The messages of a file: JSON, one or one a line; a message of Protocol Buffers; or messages of either sort with their
//! lengths before them, as the file exporter of the collector writes them, each of which can be compressed.
//!
//! Protocol Buffers are read as their JSON. The encoding has five types of fields, so that a reader of those few messages is
//! smaller than the code that is generated for them.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::schema::{LOGS, OtlpField, OtlpForm, OtlpMessage, TRACES, digits, double};
use crate::json::members::{at, text};
use crate::json::reader::{Limit, Limits};
use crate::json::{Number, Object, Value};
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
        bytes.starts_with(MESSAGE).then(|| read(bytes, message, limits).ok()).flatten()
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

/// Reads a message. Fields that are not known are skipped.
pub(super) fn read(bytes: &[u8], message: &OtlpMessage, limits: &Limits) -> RecorderResult<Value<'static>> {
    WireReader { bytes, position: 0, values: limits.values }.message(message, bytes.len(), limits.depth)
}

struct WireReader<'b> {
    bytes: &'b [u8],
    position: usize,
    /// The number of values that may still be read.
    values: usize,
}

/// A value on the wire.
enum WireValue<'b> {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    /// Bytes, with their end.
    Bytes(&'b [u8], usize),
}

impl<'b> WireReader<'b> {
    fn fault(&self, message: &str) -> Fault {
        Fault::new(SYNTAX, format!("byte {}", self.position), message)
    }

    /// Reads the fields up to `end`.
    fn message(&mut self, message: &OtlpMessage, end: usize, depth: usize) -> RecorderResult<Value<'static>> {
        if depth == 0 {
            let location = format!("byte {}", self.position);
            return Err(Fault::beyond(Limit::Depth, location, "the messages are nested too deeply"));
        }
        let mut members: Vec<(&'static str, Value<'static>)> = Vec::new();
        while self.position < end {
            let key = self.varint(end)?;
            let value = self.value(key & 7, end)?;
            let Some(field) = message.fields.iter().find(|field| field.number == key >> 3) else { continue };
            let value = self.field(field, value, depth)?;
            add(&mut members, message, field, value);
        }
        let members = members.into_iter().map(|(name, value)| (Cow::Borrowed(name), value));
        Ok(Value::Object(Object::from_members(members.collect())))
    }

    fn field(
        &mut self,
        field: &OtlpField,
        value: WireValue<'b>,
        depth: usize,
    ) -> RecorderResult<Value<'static>> {
        self.values = self.values.checked_sub(1).ok_or_else(|| {
            let location = format!("byte {}", self.position);
            Fault::beyond(Limit::Values, location, "the message has too many values")
        })?;
        let number = |literal: String| Value::Number(Number::from_literal(literal));
        Ok(match (field.form, value) {
            (OtlpForm::Message(message), WireValue::Bytes(bytes, end)) => {
                let after = std::mem::replace(&mut self.position, end - bytes.len());
                let read = self.message(message, end, depth - 1)?;
                self.position = after;
                read
            }
            (OtlpForm::Text, WireValue::Bytes(bytes, _)) => match std::str::from_utf8(bytes) {
                Ok(said) => text(said.to_owned()),
                Err(_) => return Err(self.fault("a text is not UTF-8")),
            },
            (OtlpForm::Id, WireValue::Bytes(bytes, _)) => text(digits(bytes)),
            (OtlpForm::Bytes, WireValue::Bytes(bytes, _)) => text(STANDARD.encode(bytes)),
            (OtlpForm::Bool, WireValue::Varint(truth)) => Value::Bool(truth != 0),
            (OtlpForm::Number | OtlpForm::Enum(_), WireValue::Varint(value)) => number(value.to_string()),
            (OtlpForm::Long, WireValue::Varint(value)) => text(value.cast_signed().to_string()),
            (OtlpForm::Fixed32, WireValue::Fixed32(bytes)) => number(u32::from_le_bytes(bytes).to_string()),
            (OtlpForm::Fixed64, WireValue::Fixed64(bytes)) => text(u64::from_le_bytes(bytes).to_string()),
            (OtlpForm::Double, WireValue::Fixed64(bytes)) => {
                let value = f64::from_le_bytes(bytes);
                double(value).unwrap_or_else(|| text(not_finite(value)))
            }
            _ => return Err(self.fault(&format!("the field {} has another type", field.name))),
        })
    }

    /// Reads a value of one of the types of fields.
    fn value(&mut self, wire_type: u64, end: usize) -> RecorderResult<WireValue<'b>> {
        match wire_type {
            0 => self.varint(end).map(WireValue::Varint),
            1 => self.array(end).map(WireValue::Fixed64),
            2 => {
                let length = usize::try_from(self.varint(end)?).unwrap_or(usize::MAX);
                let bytes = self.take(length, end)?;
                Ok(WireValue::Bytes(bytes, self.position))
            }
            5 => self.array(end).map(WireValue::Fixed32),
            _ => Err(self.fault("a field has a type that is not known")),
        }
    }

    fn varint(&mut self, end: usize) -> RecorderResult<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array(end)?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.fault("a number has more than 64 bits"))
    }

    fn array<const N: usize>(&mut self, end: usize) -> RecorderResult<[u8; N]> {
        let bytes = self.take(N, end)?;
        bytes.try_into().map_err(|_| self.fault("a field is cut off"))
    }

    fn take(&mut self, length: usize, end: usize) -> RecorderResult<&'b [u8]> {
        let rest = self.bytes.get(self.position..end).unwrap_or_default();
        let bytes = rest.get(..length).ok_or_else(|| self.fault("a field is cut off"))?;
        self.position += length;
        Ok(bytes)
    }
}

/// Adds the value of a field. The last value of a field counts, and of several of which a message has one the last field.
fn add(
    members: &mut Vec<(&'static str, Value<'static>)>,
    message: &OtlpMessage,
    field: &OtlpField,
    value: Value<'static>,
) {
    if field.is_choice {
        members
            .retain(|(name, _)| !message.fields.iter().any(|other| other.name == *name && other.is_choice));
    }
    match members.iter_mut().find(|(name, _)| *name == field.name) {
        Some((_, Value::Array(elements))) if field.is_repeated => elements.push(value),
        Some((_, known)) => *known = value,
        None if field.is_repeated => members.push((field.name, Value::Array(vec![value]))),
        None => members.push((field.name, value)),
    }
}

/// Returns the text of a number that JSON does not have.
fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

//! Spans and log records, as OTLP writes them in JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use chrono::{DateTime, Utc};

use crate::json::{Number, Object, Value};
use crate::recorders::binary::base64;
use crate::recorders::reading::{Fault, LocatedValue, RecorderResult, SHAPE};

/// Attributes by name.
pub(super) type OtelAttributes = BTreeMap<String, Value<'static>>;

/// A span.
pub(super) struct OtelSpan {
    pub(super) location: String,
    pub(super) trace: String,
    pub(super) started: Option<DateTime<Utc>>,
    pub(super) ended: Option<DateTime<Utc>>,
    pub(super) attributes: OtelAttributes,
    /// Events by name, with their attributes and bodies.
    pub(super) events: Vec<(String, OtelAttributes)>,
    /// The message of the status, if it is an error.
    pub(super) failure: Option<String>,
}

/// Reads a span, with its id.
pub(super) fn read_span(node: &LocatedValue<'_>) -> RecorderResult<(String, OtelSpan)> {
    let id = identifier(&node.required("spanId")?)?;
    let mut events = Vec::new();
    for event in node.member("events").iter().flat_map(LocatedValue::elements).flatten() {
        events.push((event.required("name")?.text()?.to_owned(), attributes(&event)?));
    }
    let status = node.member("status");
    let code = status.as_ref().and_then(|status| status.member("code"));
    let is_error = code.is_some_and(|code| {
        code.integer().is_ok_and(|code| code == 2) || code.value.as_str() == Some("STATUS_CODE_ERROR")
    });
    let why = status.as_ref().and_then(|status| status.member("message")).and_then(|why| why.value.as_str());
    let span = OtelSpan {
        location: node.location.clone(),
        trace: identifier(&node.required("traceId")?)?,
        started: nanoseconds(node, "startTimeUnixNano")?,
        ended: nanoseconds(node, "endTimeUnixNano")?,
        attributes: attributes(node)?,
        events,
        failure: is_error.then(|| why.unwrap_or("the status of the span is an error").to_owned()),
    };
    Ok((id, span))
}

/// Reads a log record: its location, its span, the name of the event and its attributes. Records without a span or a name
/// are not events.
pub(super) fn read_record(
    node: &LocatedValue<'_>,
) -> RecorderResult<Option<(String, String, String, OtelAttributes)>> {
    let mut attributes = attributes(node)?;
    let named = node.member("eventName").map(|name| name.text().map(str::to_owned)).transpose()?;
    let named = named.or_else(|| attributes.get("event.name").and_then(Value::as_str).map(str::to_owned));
    let span = node.member("spanId").filter(|span| span.value.as_non_empty_str().is_some());
    let (Some(name), Some(span)) = (named.filter(|name| name.starts_with("gen_ai.")), span) else {
        return Ok(None);
    };
    if let Some(body) = node.member("body")
        && let Value::Object(members) = any_value(&body)?
    {
        attributes.extend(members.iter().map(|(name, value)| (name.to_owned(), value.to_owned_value())));
    }
    Ok(Some((node.location.clone(), identifier(&span)?, name, attributes)))
}

/// Returns an identifier in hexadecimal digits: OTLP writes those, the JSON mapping of Protocol Buffers Base64.
fn identifier(node: &LocatedValue<'_>) -> RecorderResult<String> {
    let text = node.text()?;
    if [16, 32].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    let bytes = base64(text).filter(|bytes| [8, 16].contains(&bytes.len()));
    let bytes = bytes.ok_or_else(|| node.fault("must be 8 or 16 bytes, in hexadecimal digits or Base64"))?;
    let mut digits = String::new();
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    Ok(digits)
}

fn nanoseconds(node: &LocatedValue<'_>, name: &str) -> RecorderResult<Option<DateTime<Utc>>> {
    let Some(time) = node.member(name) else { return Ok(None) };
    // Zero says that the time is unknown.
    let time = i64::try_from(time.integer()?).ok().filter(|time| *time != 0);
    Ok(time.map(DateTime::from_timestamp_nanos))
}

fn attributes(node: &LocatedValue<'_>) -> RecorderResult<OtelAttributes> {
    let mut found = OtelAttributes::new();
    for attribute in node.member("attributes").iter().flat_map(LocatedValue::elements).flatten() {
        let value = attribute.member("value").map_or(Ok(Value::Null), |value| any_value(&value))?;
        found.insert(attribute.required("key")?.text()?.to_owned(), value);
    }
    Ok(found)
}

/// Returns the value of an attribute or a body.
fn any_value(node: &LocatedValue<'_>) -> RecorderResult<Value<'static>> {
    let Some((name, value)) = node.members()?.next() else { return Ok(Value::Null) };
    Ok(match name {
        "stringValue" | "boolValue" | "doubleValue" | "bytesValue" => value.value.to_owned_value(),
        "intValue" => match value.value {
            // 64 bits are a string in the JSON mapping.
            Value::String(digits) if digits.parse::<i64>().is_ok() => {
                Value::Number(Number::from_literal(digits.clone().into_owned()))
            }
            Value::Number(_) => value.value.to_owned_value(),
            _ => return Err(value.fault("must be a whole number")),
        },
        "arrayValue" => {
            let mut elements = Vec::new();
            for element in value.member("values").iter().flat_map(LocatedValue::elements).flatten() {
                elements.push(any_value(&element)?);
            }
            Value::Array(elements)
        }
        "kvlistValue" => {
            let mut members: Vec<(Cow<'static, str>, Value<'static>)> = Vec::new();
            for member in value.member("values").iter().flat_map(LocatedValue::elements).flatten() {
                let key = member.required("key")?.text()?;
                if members.iter().any(|(other, _)| other == key) {
                    return Err(member.fault("the key is not unique"));
                }
                let value = member.member("value").map_or(Ok(Value::Null), |value| any_value(&value))?;
                members.push((Cow::Owned(key.to_owned()), value));
            }
            Value::Object(Object::from_members(members))
        }
        _ => return Err(Fault::new(SHAPE, value.location, "is not a known type of value")),
    })
}

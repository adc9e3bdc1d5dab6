//! Spans of OpenTelemetry with the attributes and events of generative AI: `docs/import.md`, "OpenTelemetry".

mod call;
mod messages;

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;

use chrono::{DateTime, Utc};

use super::binary::base64;
use super::exchange::{ConvertInput, ImportedRun, ImportedRuns};
use super::reading::{ConvertError, Fault, LocatedValue, RecorderResult, SHAPE, documents};
use crate::digest::Digest;
use crate::json::members::text;
use crate::json::reader::Limits;
use crate::json::{Number, Object, Value, compact};

/// A log record that is an event of a span.
struct EventRecord {
    file: usize,
    location: String,
    span: String,
    name: String,
    attributes: OtelAttributes,
}

/// Reads files of spans and log records: one JSON text, or one in each line. A span and its events can be in several files,
/// and a span that was exported several times is one.
pub(super) fn read(inputs: &[ConvertInput], limits: &Limits) -> Result<ImportedRuns, ConvertError> {
    let mut export = OtelExport::default();
    for (file, input) in inputs.iter().enumerate() {
        export.file(file, &input.bytes, limits).map_err(|fault| fault.in_file(&input.name))?;
    }
    Ok(export.runs())
}

/// The spans and log records of files.
#[derive(Default)]
struct OtelExport {
    /// Each with the number of its file, in their order.
    spans: Vec<(usize, OtelSpan)>,
    /// The positions of the spans by trace and id.
    by_id: HashMap<(String, String), usize>,
    records: Vec<EventRecord>,
    /// The digests of the records, which can be exported several times, too.
    seen: HashSet<Digest>,
}

impl OtelExport {
    fn file(&mut self, file: usize, bytes: &[u8], limits: &Limits) -> RecorderResult<()> {
        for (number, document) in documents(bytes, limits)? {
            let root = LocatedValue::new(&document, format!("line {number}"));
            for scope in in_resources(&root, "resourceSpans", "scopeSpans")? {
                for span in scope.list("spans") {
                    self.add(file, OtelSpan::read(&span)?);
                }
            }
            for scope in in_resources(&root, "resourceLogs", "scopeLogs")? {
                for record in scope.list("logRecords") {
                    let digest = Digest::from_content(compact::text(record.value).as_bytes());
                    if self.seen.insert(digest)
                        && let Some(record) = EventRecord::read(file, &record)?
                    {
                        self.records.push(record);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a span. Of one that was exported several times, the most complete is kept.
    fn add(&mut self, file: usize, span: OtelSpan) {
        let content = |span: &OtelSpan| (span.ended.is_some(), span.attributes.len() + span.events.len());
        match self.by_id.entry((span.trace.clone(), span.id.clone())) {
            Entry::Occupied(known) => {
                if let Some(kept) = self.spans.get_mut(*known.get())
                    && content(&span) > content(&kept.1)
                {
                    *kept = (file, span);
                }
            }
            Entry::Vacant(new) => {
                new.insert(self.spans.len());
                self.spans.push((file, span));
            }
        }
    }

    /// Adds the records to their spans, and returns the numbers of the files of each span. Records of no call are listed.
    fn join(&mut self, unmapped: &mut Vec<(usize, String, String)>) -> Vec<BTreeSet<usize>> {
        let mut files: Vec<BTreeSet<usize>> =
            self.spans.iter().map(|(file, _)| BTreeSet::from([*file])).collect();
        let by_span: HashMap<&str, usize> =
            self.by_id.iter().map(|((_, span), position)| (span.as_str(), *position)).collect();
        for EventRecord { file, location, span, name, attributes } in std::mem::take(&mut self.records) {
            let position = by_span.get(span.as_str()).copied().unwrap_or(usize::MAX);
            let known = self.spans.get_mut(position).filter(|(_, span)| span.is_call());
            if let (Some((_, span)), Some(files)) = (known, files.get_mut(position)) {
                span.events.push((name, attributes));
                files.insert(file);
            } else {
                let reason = format!("{name} is not an event of a span that is a call of a model");
                unmapped.push((file, location, reason));
            }
        }
        files
    }

    fn runs(mut self) -> ImportedRuns {
        let mut imported = ImportedRuns::default();
        let files = self.join(&mut imported.unmapped);
        let mut spans: Vec<_> = self.spans.into_iter().zip(files).collect();
        // Exporters write spans when they end.
        spans.sort_by_key(|((_, span), _)| span.started);
        let mut run_by_trace: HashMap<String, usize> = HashMap::new();
        for ((file, span), files) in spans {
            let (trace, location) = (span.trace.clone(), span.location.clone());
            let (exchange, reasons) = match span.into_exchange() {
                Ok((exchange, reasons)) => (Some(exchange), reasons),
                Err(reason) => (None, vec![reason]),
            };
            imported.unmapped.extend(reasons.into_iter().map(|reason| (file, location.clone(), reason)));
            let Some(exchange) = exchange else { continue };
            let position = *run_by_trace.entry(trace).or_insert_with_key(|trace| {
                imported.runs.push(ImportedRun {
                    name: Some(trace.clone()),
                    details: vec![("trace_id", text(trace.clone()))],
                    ..ImportedRun::default()
                });
                imported.runs.len() - 1
            });
            if let Some(run) = imported.runs.get_mut(position) {
                run.exchanges.push((file, exchange));
                run.files.extend(files);
            }
        }
        imported
    }
}

/// Returns the scopes of all resources.
fn in_resources<'v>(
    root: &LocatedValue<'v>,
    resources: &str,
    scopes: &str,
) -> RecorderResult<Vec<LocatedValue<'v>>> {
    let mut found = Vec::new();
    let Some(resources) = root.member(resources) else { return Ok(found) };
    for resource in resources.elements()? {
        if let Some(scopes) = resource.member(scopes) {
            found.extend(scopes.elements()?);
        }
    }
    Ok(found)
}

/// Attributes by name.
pub(super) type OtelAttributes = BTreeMap<String, Value<'static>>;

/// A span.
pub(super) struct OtelSpan {
    pub(super) location: String,
    trace: String,
    id: String,
    pub(super) started: Option<DateTime<Utc>>,
    pub(super) ended: Option<DateTime<Utc>>,
    pub(super) attributes: OtelAttributes,
    /// Events by name, with their attributes and bodies.
    pub(super) events: Vec<(String, OtelAttributes)>,
    /// The message of the status, if it is an error.
    pub(super) failure: Option<String>,
}

impl OtelSpan {
    fn read(node: &LocatedValue<'_>) -> RecorderResult<Self> {
        let mut events = Vec::new();
        for event in node.list("events") {
            events.push((event.required("name")?.text()?.to_owned(), attributes(&event)?));
        }
        let status = node.member("status");
        let code = status.as_ref().and_then(|status| status.member("code"));
        let is_error = code.is_some_and(|code| {
            code.integer().is_ok_and(|code| code == 2) || code.value.as_str() == Some("STATUS_CODE_ERROR")
        });
        let why =
            status.as_ref().and_then(|status| status.member("message")).and_then(|why| why.value.as_str());
        Ok(Self {
            location: node.location.clone(),
            id: identifier(&node.required("spanId")?)?,
            trace: identifier(&node.required("traceId")?)?,
            started: nanoseconds(node, "startTimeUnixNano")?,
            ended: nanoseconds(node, "endTimeUnixNano")?,
            attributes: attributes(node)?,
            events,
            failure: is_error.then(|| why.unwrap_or("the status of the span is an error").to_owned()),
        })
    }
}

impl EventRecord {
    /// Reads a log record of a file. Those without a span or a name are not events.
    fn read(file: usize, node: &LocatedValue<'_>) -> RecorderResult<Option<Self>> {
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
        Ok(Some(Self { file, location: node.location.clone(), span: identifier(&span)?, name, attributes }))
    }
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
    for attribute in node.list("attributes") {
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
            for element in value.list("values") {
                elements.push(any_value(&element)?);
            }
            Value::Array(elements)
        }
        "kvlistValue" => {
            let mut members: Vec<(Cow<'static, str>, Value<'static>)> = Vec::new();
            for member in value.list("values") {
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

#[cfg(test)]
mod tests;

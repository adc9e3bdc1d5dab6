//! Spans of OpenTelemetry with the attributes and events of generative AI: `docs/import.md`, "OpenTelemetry".

mod call;
mod documents;
mod messages;
#[cfg(feature = "gateway")]
pub(crate) mod received;
mod schema;

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};

pub(super) use documents::{can_begin, is_binary};

use super::exchange::{ConvertInput, ImportedRun, ImportedRuns};
use super::reading::{ConvertError, Fault, LocatedValue, RecorderResult, SHAPE};
use crate::digest::Digest;
use crate::json::members::text;
use crate::json::reader::Limits;
use crate::json::{Number, Object, Value};
use schema::{ExportedRecord, LOG_RECORDS, SPANS, TraceTexts, hexadecimal};

/// The name of the spans in which `LiteLLM` repeats the request of the span around them.
const RAW_REQUEST: &str = "raw_gen_ai_request";

/// A span of a file.
struct ExportedSpan {
    file: usize,
    span: OtelSpan,
    /// The line that it is in the text of its trace.
    line: String,
}

/// A log record that is an event of a span.
struct EventRecord {
    file: usize,
    location: String,
    at: Option<DateTime<Utc>>,
    span: String,
    name: String,
    attributes: OtelAttributes,
    line: String,
}

/// Reads files of spans and log records. A span and its events can be in several files, and a span that was exported several
/// times is one. Each trace is a run, whose original is the text of the trace.
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
    /// In the order of the files.
    spans: Vec<ExportedSpan>,
    /// The positions of the spans by trace and id.
    by_id: HashMap<(String, String), usize>,
    records: Vec<EventRecord>,
    /// The digests of the records, which can be exported several times, too.
    seen: HashSet<Digest>,
}

impl OtelExport {
    fn file(&mut self, file: usize, bytes: &[u8], limits: &Limits) -> RecorderResult<()> {
        for (location, document) in documents::documents(bytes, limits)? {
            let root = LocatedValue::new(&document, location);
            for record in ExportedRecord::of_message(&root, &SPANS)? {
                let span = OtelSpan::read(&record.node())?;
                self.add(ExportedSpan { file, span, line: record.line() });
            }
            for record in ExportedRecord::of_message(&root, &LOG_RECORDS)? {
                let line = record.line();
                if self.seen.insert(Digest::from_content(line.as_bytes()))
                    && let Some(event) = EventRecord::read(file, &record.node(), line)?
                {
                    self.records.push(event);
                }
            }
        }
        Ok(())
    }

    /// Adds a span. Of one that was exported several times, the most complete is kept.
    fn add(&mut self, exported: ExportedSpan) {
        let content = |span: &OtelSpan| (span.ended.is_some(), span.attributes.len() + span.events.len());
        match self.by_id.entry((exported.span.trace.clone(), exported.span.id.clone())) {
            Entry::Occupied(known) => {
                if let Some(kept) = self.spans.get_mut(*known.get())
                    && content(&exported.span) > content(&kept.span)
                {
                    *kept = exported;
                }
            }
            Entry::Vacant(new) => {
                new.insert(self.spans.len());
                self.spans.push(exported);
            }
        }
    }

    /// Returns the texts of the traces, and adds the records to their spans. Records of no call are listed.
    fn join(&mut self, unmapped: &mut Vec<(usize, String, String)>) -> TraceTexts {
        // Exporters write spans when they end.
        self.spans.sort_by(|a, b| (a.span.started, &a.span.id).cmp(&(b.span.started, &b.span.id)));
        self.records.sort_by_key(|record| record.at);
        let mut texts = TraceTexts::default();
        for ExportedSpan { span, line, .. } in &mut self.spans {
            texts.add(&span.trace, &std::mem::take(line));
        }
        let by_span: HashMap<String, usize> =
            self.spans.iter().enumerate().map(|(position, one)| (one.span.id.clone(), position)).collect();
        for EventRecord { file, location, span, name, attributes, line, .. } in
            std::mem::take(&mut self.records)
        {
            let known = by_span.get(&span).and_then(|position| self.spans.get_mut(*position));
            if let Some(ExportedSpan { span, .. }) = known.filter(|one| one.span.is_of_model()) {
                span.events.push((name, attributes));
                texts.add(&span.trace, &line);
            } else {
                let reason = format!("{name} is not an event of a span that is a call of a model");
                unmapped.push((file, location, reason));
            }
        }
        texts
    }

    /// Marks the spans that have calls of models or repeated requests inside them.
    fn mark_ancestors(&mut self) {
        let parent_of = |span: &OtelSpan| Some((span.trace.clone(), span.parent.clone()?));
        let parents: HashMap<_, _> = self
            .spans
            .iter()
            .map(|ExportedSpan { span, .. }| ((span.trace.clone(), span.id.clone()), parent_of(span)))
            .collect();
        let mut ancestors = HashSet::new();
        let mut repeated: HashMap<_, usize> = HashMap::new();
        let repeats = self.spans.iter().filter(|one| one.span.name == RAW_REQUEST);
        for parent in repeats.filter_map(|one| parent_of(&one.span)) {
            *repeated.entry(parent).or_default() += 1;
        }
        for ExportedSpan { span, .. } in self.spans.iter().filter(|one| one.span.is_of_model()) {
            let mut ancestor = parent_of(span);
            while let Some(id) = ancestor.filter(|id| !ancestors.contains(id)) {
                ancestor = parents.get(&id).cloned().flatten();
                ancestors.insert(id);
            }
        }
        for ExportedSpan { span, .. } in &mut self.spans {
            let id = (span.trace.clone(), span.id.clone());
            span.contains_calls = ancestors.contains(&id);
            span.raw_requests = repeated.get(&id).copied().unwrap_or_default();
        }
    }

    fn runs(mut self) -> ImportedRuns {
        let mut imported = ImportedRuns::default();
        let mut texts = self.join(&mut imported.unmapped);
        self.mark_ancestors();
        let mut run_by_trace: HashMap<String, usize> = HashMap::new();
        for ExportedSpan { file, span, .. } in self.spans {
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
                    original: texts.take(trace),
                    exchanges: Vec::new(),
                });
                imported.runs.len() - 1
            });
            if let Some(run) = imported.runs.get_mut(position) {
                run.exchanges.push((file, exchange));
            }
        }
        imported
    }
}

/// Attributes by name.
pub(super) type OtelAttributes = BTreeMap<String, Value<'static>>;

/// A span.
pub(super) struct OtelSpan {
    pub(super) location: String,
    trace: String,
    id: String,
    /// The span that it is inside of.
    parent: Option<String>,
    /// Whether calls of models are inside it.
    contains_calls: bool,
    /// How many spans directly inside it repeat a request.
    raw_requests: usize,
    name: String,
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
            parent: node.member("parentSpanId").and_then(|id| hexadecimal(id.value.as_str()?)),
            contains_calls: false,
            raw_requests: 0,
            name: node.member("name").and_then(|name| name.value.as_str()).unwrap_or_default().to_owned(),
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
    fn read(file: usize, node: &LocatedValue<'_>, line: String) -> RecorderResult<Option<Self>> {
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
        let at = nanoseconds(node, "timeUnixNano")?.or(nanoseconds(node, "observedTimeUnixNano")?);
        let (location, span) = (node.location.clone(), identifier(&span)?);
        Ok(Some(Self { file, location, at, span, name, attributes, line }))
    }
}

/// Returns an identifier in hexadecimal digits.
fn identifier(node: &LocatedValue<'_>) -> RecorderResult<String> {
    let id = hexadecimal(node.text()?);
    id.ok_or_else(|| node.fault("must be 8 or 16 bytes, in hexadecimal digits or Base64"))
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

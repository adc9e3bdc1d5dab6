//! Spans of OpenTelemetry with the attributes and events of generative AI: `docs/import.md`, "OpenTelemetry".

mod call;
mod messages;
mod reading;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::exchange::{ConvertInput, ImportedRun, ImportedRuns};
use super::reading::{ConvertError, LocatedValue, RecorderResult, documents};
use crate::calls::text;
use crate::digest::Digest;
use crate::json::compact;
use crate::json::reader::Limits;
use reading::{OtelAttributes, OtelSpan, read_record, read_span};

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
pub(super) fn read(
    inputs: &[ConvertInput],
    limits: &Limits,
) -> std::result::Result<ImportedRuns, ConvertError> {
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
                for span in scope.member("spans").iter().flat_map(LocatedValue::elements).flatten() {
                    self.add(file, read_span(&span)?);
                }
            }
            for scope in in_resources(&root, "resourceLogs", "scopeLogs")? {
                for record in scope.member("logRecords").iter().flat_map(LocatedValue::elements).flatten() {
                    let digest = Digest::from_content(compact::text(record.value).as_bytes());
                    if self.seen.insert(digest)
                        && let Some((location, span, name, attributes)) = read_record(&record)?
                    {
                        self.records.push(EventRecord { file, location, span, name, attributes });
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a span. Of one that was exported several times, the most complete is kept.
    fn add(&mut self, file: usize, (id, span): (String, OtelSpan)) {
        let content = |span: &OtelSpan| (span.ended.is_some(), span.attributes.len() + span.events.len());
        match self.by_id.entry((span.trace.clone(), id)) {
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

#[cfg(test)]
mod tests;

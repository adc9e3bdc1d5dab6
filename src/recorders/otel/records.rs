//! The spans and log records of a message, each as a document of its own in the one form that it has here. Those of a trace
//! together are its text, which does not depend on how they were exported.

use std::collections::HashMap;

use super::schema::{LOGS, OtlpMessage, TRACES, normalized};
use crate::json::members::{at, object};
use crate::json::{Value, compact};
use crate::recorders::reading::{LocatedValue, RecorderResult};

/// The names of the members around records of a sort.
pub(super) struct RecordSort {
    pub(super) message: &'static OtlpMessage,
    resources: &'static str,
    scopes: &'static str,
    records: &'static str,
}

pub(super) static SPANS: RecordSort =
    RecordSort { message: &TRACES, resources: "resourceSpans", scopes: "scopeSpans", records: "spans" };

pub(super) static LOG_RECORDS: RecordSort =
    RecordSort { message: &LOGS, resources: "resourceLogs", scopes: "scopeLogs", records: "logRecords" };

/// A span or a log record.
pub(super) struct ExportedRecord {
    location: String,
    /// A message with this record only.
    document: Value<'static>,
    sort: &'static RecordSort,
}

impl ExportedRecord {
    /// Returns the records of a message.
    pub(super) fn of_message(
        root: &LocatedValue<'_>,
        sort: &'static RecordSort,
    ) -> RecorderResult<Vec<Self>> {
        let mut found = Vec::new();
        let Some(resources) = root.member(sort.resources) else { return Ok(found) };
        for resource in resources.elements()? {
            let Some(scopes) = resource.member(sort.scopes) else { continue };
            for scope in scopes.elements()? {
                for record in scope.list(sort.records) {
                    let inside = beside(&scope, "scope", sort.records, record.value.clone());
                    let document = beside(&resource, "resource", sort.scopes, inside);
                    let document = object([(sort.resources, Value::Array(vec![document]))]);
                    let document = normalized(&document, sort.message);
                    found.push(Self { location: record.location, document, sort });
                }
            }
        }
        Ok(found)
    }

    /// Returns the record itself.
    pub(super) fn node(&self) -> LocatedValue<'_> {
        let RecordSort { resources, scopes, records, .. } = self.sort;
        let record = at(&self.document, &[resources, "0", scopes, "0", records, "0"]);
        LocatedValue::new(record.unwrap_or(&Value::Null), self.location.clone())
    }

    /// Returns it without what rules redact.
    #[cfg(feature = "gateway")]
    pub(super) fn redacted(self, rules: &crate::calls::matching::MatchingRules) -> Self {
        Self { document: rules.redacted_owned(self.document), ..self }
    }

    /// Returns the line that it is in the text of its trace.
    pub(super) fn line(&self) -> String {
        compact::text(&self.document)
    }
}

/// Returns a resource or a scope with only one of the values in it.
fn beside<'v>(node: &LocatedValue<'v>, name: &'static str, list: &'static str, only: Value<'v>) -> Value<'v> {
    let stated =
        [name, "schemaUrl"].into_iter().filter_map(|name| Some((name, node.value.get(name)?.clone())));
    object(stated.chain([(list, Value::Array(vec![only]))]))
}

/// The lines of traces, by their ids.
#[derive(Default)]
pub(super) struct TraceTexts(HashMap<String, Vec<u8>>);

impl TraceTexts {
    pub(super) fn add(&mut self, trace: &str, line: &str) {
        let text = self.0.entry(trace.to_owned()).or_default();
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }

    pub(super) fn take(&mut self, trace: &str) -> Option<Vec<u8>> {
        self.0.remove(trace)
    }
}

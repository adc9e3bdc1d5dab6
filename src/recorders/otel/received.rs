//! Spans and log records that a server receives.

use super::schema::{ExportedRecord, LOG_RECORDS, OtlpMessage, RecordSort, SPANS};
use super::{EventRecord, OtelSpan, documents, identifier};
use crate::calls::matching::MatchingRules;
use crate::json::reader::{self, Limits};
use crate::recorders::reading::{Fault, LocatedValue, RecorderResult};

/// What is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtlpSignal {
    Traces,
    Logs,
}

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtlpEncoding {
    Json,
    Protobuf,
}

/// The records of a message.
#[derive(Debug, Default)]
pub(crate) struct ReceivedRecords {
    pub(crate) records: Vec<ReceivedRecord>,
    /// Why others are not accepted.
    pub(crate) rejected: Vec<String>,
}

/// A span or a log record.
#[derive(Debug)]
pub(crate) struct ReceivedRecord {
    pub(crate) trace: String,
    /// A line of a file of spans with it.
    pub(crate) line: String,
    /// Whether it is a span that is inside no other one: those of a trace that ends last.
    pub(crate) is_root: bool,
}

impl OtlpSignal {
    fn sort(self) -> &'static RecordSort {
        match self {
            Self::Traces => &SPANS,
            Self::Logs => &LOG_RECORDS,
        }
    }
}

/// Reads a message, without what `rules` redact. Log records that are not events of a span are left out.
///
/// # Errors
/// Returns the reason if it is damaged.
pub(crate) fn received(
    body: &[u8],
    encoding: OtlpEncoding,
    signal: OtlpSignal,
    rules: &MatchingRules,
) -> Result<ReceivedRecords, String> {
    let described = |fault: Fault| fault.in_file("the request").to_string();
    let message: &OtlpMessage = signal.sort().message;
    let limits = Limits::default();
    let document = match encoding {
        OtlpEncoding::Protobuf => documents::read(body, message, &limits),
        OtlpEncoding::Json => reader::read(body, &limits).map_err(|error| Fault::of_text(&error, 1)),
    };
    let document = document.map_err(described)?;
    let root = LocatedValue::new(&document, "");
    root.object().map_err(described)?;
    let mut received = ReceivedRecords::default();
    for record in ExportedRecord::of_message(&root, signal.sort()).map_err(described)? {
        match read(&record.redacted(rules), signal) {
            Ok(record) => received.records.extend(record),
            Err(fault) => received.rejected.push(described(fault)),
        }
    }
    Ok(received)
}

fn read(record: &ExportedRecord, signal: OtlpSignal) -> RecorderResult<Option<ReceivedRecord>> {
    let (node, line) = (record.node(), record.line());
    Ok(match signal {
        OtlpSignal::Traces => {
            let OtelSpan { trace, parent, .. } = OtelSpan::read(&node)?;
            Some(ReceivedRecord { trace, line, is_root: parent.is_none() })
        }
        OtlpSignal::Logs => match EventRecord::read(0, &node, line)? {
            Some(EventRecord { line, .. }) => {
                Some(ReceivedRecord { trace: identifier(&node.required("traceId")?)?, line, is_root: false })
            }
            None => None,
        },
    })
}

//! Incremental writing of traces: when a trace is complete, and how a part of a trace continues another.

use super::attributes::{RECORD, STEPS};
use super::record::{digest_of, records};
use crate::artifact::attribute::TimeSpan;
use crate::artifact::{
    AttributeInfo, Completeness, Draft, JoinedDocument, MissingOffset, PredecessorReference, parse_timestamp,
};
use crate::digest::Digest;
use crate::json::Value;
use crate::json::reader::{self, Limits};
use crate::validation::RuleInfo;

/// The rule that is broken by a trace without its beginning.
pub(super) const BEGINNING: RuleInfo = RuleInfo::error(
    "TR10",
    "A trace is complete from its first record.",
    "A file whose first record is a step or a control is a part of a trace: the preceding \
          records, including the header, were lost or are in another file. prev_hash of that \
          record is the missing record_hash. If the vault has the trace up to that point, adding \
          the file stores both as one trace; otherwise add the whole trace, or its parts together.",
);

/// Whether another record can follow those read so far.
///
/// A trace has no end record. After a failed step, the engine writes at most one control; a loop that exceeds its
/// iterations fails the run. Any other record may be followed by another.
#[derive(Default)]
pub(super) struct Growth {
    failed: bool,
    ended: bool,
}

impl Growth {
    /// Processes `record`.
    pub(super) fn follow(&mut self, record: &Value<'_>) {
        let text = |value: &Value<'_>, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let is_control = text(record, "type").as_deref() == Some("control");
        let gave_up = text(record, "action").as_deref() == Some("max_iterations_reached");
        self.ended = is_control && (self.failed || gave_up);
        let status = record.get("result").and_then(|result| text(result, "status"));
        self.failed = !is_control && status.as_deref() == Some("failed");
    }

    /// Returns whether another record can follow.
    pub(super) fn completeness(&self) -> Completeness {
        if self.ended { Completeness::Complete } else { Completeness::MayGrow }
    }
}

/// Returns what a document continues whose first record is not a header.
pub(super) fn continues(document: &[u8], limits: &Limits) -> Option<PredecessorReference> {
    let line = document.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let record = reader::read(line, limits).ok()?;
    let is_rest = matches!(record.get("type").and_then(Value::as_str), Some("step" | "control"));
    let after = record.get("prev_hash").and_then(Value::as_str).and_then(digest_of).filter(|_| is_rest)?;
    let path = "line 1 /prev_hash".to_owned();
    Some(PredecessorReference { after, group: RECORD.group, what: "record", rule: BEGINNING, path })
}

/// Appends `document` to `beginning` after the record with the hash `after`.
pub(super) fn join(beginning: &[u8], after: Digest, document: &[u8]) -> Option<JoinedDocument> {
    let whole = beginning.strip_suffix(b"\n").unwrap_or(beginning);
    let last = whole.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let before = if is_record(last, after) { whole } else { up_to(whole, after)? };
    let mut joined = Vec::with_capacity(before.len() + 1 + document.len());
    joined.extend_from_slice(before);
    joined.push(b'\n');
    joined.extend_from_slice(document);
    let lines = memchr::memchr_iter(b'\n', before).count() + 1;
    Some(JoinedDocument { document: joined, lines })
}

fn is_record(line: &[u8], hash: Digest) -> bool {
    reader::read(line, &Limits::most()).is_ok_and(|record| has_hash(&record, hash))
}

fn has_hash(record: &Value<'_>, hash: Digest) -> bool {
    record.get("record_hash").and_then(Value::as_str).and_then(digest_of) == Some(hash)
}

/// Returns the lines of an admitted trace up to the record with this hash.
fn up_to(trace: &[u8], hash: Digest) -> Option<&[u8]> {
    let mut end = 0;
    for record in records(trace) {
        let (line, record) = record.ok()?;
        end += line.len();
        if has_hash(&record, hash) {
            return trace.get(..end);
        }
        end += 1;
    }
    None
}

/// The sums over the steps of a trace.
#[derive(Default)]
pub(super) struct Metrics {
    steps: usize,
    errors: usize,
    started: TimeSpan,
    finished: TimeSpan,
}

impl Metrics {
    /// Adds a record.
    pub(super) fn follow(&mut self, record: &Value<'_>) {
        if record.get("type").and_then(Value::as_str) != Some("step") {
            return;
        }
        self.steps += 1;
        let text = |name: &str| record.get("result")?.get(name).and_then(Value::as_str);
        self.errors += usize::from(text("status") == Some("failed"));
        // According to the specification, times are in UTC.
        let time = |name: &str| text(name).and_then(|text| parse_timestamp(text, MissingOffset::Utc));
        self.started.add(time("started_at"));
        self.finished.add(time("finished_at"));
    }

    /// Adds the attributes. The duration is from the beginning of the first step to the end of the last.
    pub(super) fn describe(self, draft: &mut Draft) {
        draft.count(STEPS, self.steps);
        draft.count(AttributeInfo::ERRORS, self.errors);
        draft.time(AttributeInfo::FIRST_STEP_AT, self.started.first());
        draft.time(AttributeInfo::FINISHED_AT, self.finished.last());
        let mut span = TimeSpan::default();
        span.add(self.started.first());
        span.add(self.finished.last());
        draft.number(AttributeInfo::DURATION_MS, span.milliseconds());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completeness(records: &[&str]) -> Completeness {
        let mut growth = Growth::default();
        for record in records {
            growth.follow(&reader::read(record.as_bytes(), &Limits::default()).unwrap());
        }
        growth.completeness()
    }

    #[test]
    fn only_the_end_of_a_failed_run_ends_a_trace() {
        let header = r#"{"type":"header"}"#;
        let step = |status: &str| format!(r#"{{"type":"step","result":{{"status":"{status}"}}}}"#);
        let control = |action: &str| format!(r#"{{"type":"control","action":"{action}"}}"#);
        let (success, failed) = (step("success"), step("failed"));
        let (done, repeat, gave_up) = (control("stop"), control("repeat"), control("max_iterations_reached"));
        for records in [
            &[header][..],
            &[header, &success],
            &[header, &success, &done],
            &[header, &success, &repeat],
            &[header, &failed],
        ] {
            assert_eq!(completeness(records), Completeness::MayGrow, "{records:?}");
        }
        for last in [&done, &repeat, &gave_up] {
            assert_eq!(completeness(&[header, &failed, last]), Completeness::Complete);
        }
        assert_eq!(completeness(&[header, &success, &gave_up]), Completeness::Complete);
        assert_eq!(completeness(&[header, &success, &gave_up, &success]), Completeness::MayGrow);
    }

    #[test]
    fn a_part_is_put_after_the_record_that_it_continues() {
        let hash = |text: &str| Digest::from_content(text.as_bytes());
        let line = |text: &str| format!(r#"{{"record_hash": "{}"}}"#, hash(text).hex());
        let beginning = format!("{}\n{}\n{}", line("a"), line("b"), line("c"));
        let join = |after: &str| join(beginning.as_bytes(), hash(after), b"rest\n");
        let text = |joined: JoinedDocument| (String::from_utf8(joined.document).unwrap(), joined.lines);
        assert_eq!(join("c").map(text), Some((format!("{beginning}\nrest\n"), 3)));
        assert_eq!(join("a").map(text), Some((format!("{}\nrest\n", line("a")), 1)));
        assert!(join("d").is_none());
    }
}

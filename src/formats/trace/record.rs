//! The lines of a trace, the records on them, and the constraints that the preceding records impose on a record.

use super::time::has_usual_form;
use crate::artifact::document;
use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::c14n_v1::{self, NonFiniteNumber};
use crate::json::reader::{self, Limits, ReadError, excerpt};
use crate::validation::{Finder, Findings, RuleInfo};

/// The rule for the file as a whole.
pub(super) const LINE_FORMAT: RuleInfo = RuleInfo::error(
    "TR1",
    "Every line holds one record and ends with a line feed only; no line is blank.",
    "Tools that append to traces and compare them rely on one record per line. A carriage return \
          anywhere, a blank line or an empty file is rejected. A last line without a line feed is accepted \
          with a warning: it is complete if its hash matches, but the writer may have been interrupted.",
);

/// The lines of a trace, without their line feeds.
pub(super) struct TraceLines<'a> {
    text: &'a str,
}

/// One line of a trace.
pub(super) struct TraceLine<'a> {
    /// The line number, from 1.
    pub(super) number: usize,
    text: &'a str,
}

impl<'a> TraceLines<'a> {
    /// Splits `bytes` into lines. Returns `None` if they are not text.
    pub(super) fn parse(bytes: &'a [u8], limits: &Limits, findings: &mut Findings) -> Option<Self> {
        let text = reader::utf8(bytes, limits).map_err(|error| document::report(&error, findings)).ok()?;
        let lines = Self { text: text.strip_suffix('\n').unwrap_or(text) };
        lines.check(text, findings);
        Some(lines)
    }

    /// Returns the lines that may be records. Blank lines have been reported; they are not included in the numbering of
    /// records.
    pub(super) fn filled(&self) -> impl Iterator<Item = TraceLine<'a>> {
        self.iter().filter(|line| !line.is_blank())
    }

    fn iter(&self) -> impl Iterator<Item = TraceLine<'a>> {
        self.text.split('\n').enumerate().map(|(index, text)| TraceLine { number: index + 1, text })
    }

    fn check(&self, text: &str, findings: &mut Findings) {
        if text.is_empty() {
            findings
                .for_rule(LINE_FORMAT)
                .add("line 1", "the trace is empty; it must have at least a header");
            return;
        }
        for line in self.iter() {
            let problem = if line.is_blank() {
                "the line is blank; remove it"
            } else if line.text.contains('\r') {
                "the line has a carriage return; lines must end with a line feed only"
            } else {
                continue;
            };
            if findings.is_full() {
                return;
            }
            findings.for_rule(LINE_FORMAT).add(format!("line {}", line.number), problem);
        }
        if !text.ends_with('\n') {
            let last = format!("line {}", self.iter().count());
            let problem = "the last line has no line feed; the writer may have been interrupted";
            findings.for_rule(LINE_FORMAT).warn(last, problem);
        }
    }
}

/// Returns the records of an admitted `document` with their lines, read one at a time.
pub(super) fn records(document: &[u8]) -> impl Iterator<Item = Result<(&[u8], Value<'_>), ReadError>> {
    let lines = document.strip_suffix(b"\n").unwrap_or(document).split(|byte| *byte == b'\n');
    lines.enumerate().map(move |(index, line)| {
        let record =
            reader::read(line, &Limits::most()).map_err(|error| ReadError { line: index + 1, ..error })?;
        Ok((line, record))
    })
}

impl<'a> TraceLine<'a> {
    fn is_blank(&self) -> bool {
        self.text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
    }

    /// Returns whether a line that is not a record begins like one. The rest of a truncated line does not.
    pub(super) fn begins_record(&self) -> bool {
        self.text.trim_start_matches([' ', '\t']).starts_with('{')
    }

    /// Returns the record on this line, or reports that it is not a record.
    pub(super) fn value(&self, limits: &Limits, findings: &mut Findings) -> Option<Value<'a>> {
        let error = match reader::read(self.text.as_bytes(), limits) {
            Ok(value) if value.as_object().is_some() => return Some(value),
            Ok(value) => {
                let message = format!("a record must be an object, not {}", value.type_name());
                ReadError::at(&[], 0, reader::Defect::Syntax, message)
            }
            Err(error) => error,
        };
        document::report(&ReadError { line: self.number, ..error }, findings);
        None
    }
}

/// The state that the next record must continue. Hashes are unknown after a line that is not a record, until the next
/// record states them.
#[derive(Default)]
pub(super) struct Chain {
    /// Whether there was a record or the beginning of one.
    begun: bool,
    /// Whether a line was not a record, so that the number of records is unknown.
    broken: bool,
    /// The record hash stated by the previous record.
    previous_hash: Option<String>,
    /// The state hash after the previous record.
    state: Option<String>,
}

impl Chain {
    /// Processes a line that is not a record; `begins_one` is whether it begins like one.
    pub(super) fn break_off(&mut self, begins_one: bool) {
        *self = Self { begun: self.begun || begins_one, broken: true, ..Self::default() };
    }

    /// Processes `record`.
    pub(super) fn follow(&mut self, record: &Value<'_>) {
        let text = |name: &str| record.get(name).and_then(Value::as_non_empty_str).map(str::to_owned);
        self.begun = true;
        self.previous_hash = text("record_hash");
        match record.get("type").and_then(Value::as_str) {
            Some("header") => self.state = text("initial_state_hash"),
            Some("step") => self.state = text("state_after_hash"),
            // Control records only repeat the state.
            _ => {}
        }
    }
}

/// A record in its context.
pub(super) struct TraceRecord<'v> {
    /// The number of the line, from 1.
    pub(super) line: usize,
    /// The number of the record, from 0.
    pub(super) position: usize,
    /// An object.
    pub(super) value: &'v Value<'v>,
    /// The hash of the record without its `record_hash`.
    pub(super) hash: Digest,
    chain: &'v Chain,
}

impl<'v> TraceRecord<'v> {
    /// # Errors
    /// Returns an error for a number that overflows to infinity: it has no canonical form, so the record has no hash.
    pub(super) fn new(
        line: usize,
        position: usize,
        value: &'v Value<'v>,
        chain: &'v Chain,
    ) -> Result<Self, NonFiniteNumber> {
        let text = match value.as_object() {
            Some(object) => c14n_v1::object_without(object, "record_hash")?,
            None => c14n_v1::to_vec(value)?,
        };
        Ok(Self { line, position, value, hash: Digest::from_content(&text), chain })
    }

    /// Returns the path of the member at `pointer`.
    pub(super) fn path(&self, pointer: &str) -> String {
        format!("line {} {pointer}", self.line)
    }

    pub(super) fn record_type(&self) -> Option<&'v str> {
        self.value.get("type").and_then(Value::as_str)
    }

    pub(super) fn text(&self, name: &str) -> Option<&'v str> {
        self.value.get(name).and_then(Value::as_str)
    }

    /// Returns whether no valid record precedes it.
    pub(super) fn is_first(&self) -> bool {
        !self.chain.begun
    }

    /// Returns whether every preceding line is one record, so that the position is the index.
    pub(super) fn position_is_known(&self) -> bool {
        !self.chain.broken
    }

    /// Returns the hash stated by the previous record.
    pub(super) fn previous_hash(&self) -> Option<&'v str> {
        self.chain.previous_hash.as_deref()
    }

    /// Returns the state hash after the previous record.
    pub(super) fn state(&self) -> Option<&'v str> {
        self.chain.state.as_deref()
    }
}

/// Returns whether `text` has the form digits.digits.digits.
pub(super) fn is_version(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split('.').count() == 3 && text.split('.').all(digits)
}

/// Returns the digest in a member that may contain other text. Traces contain bare hex digits; the prefix is also
/// accepted.
pub(super) fn digest_of(text: &str) -> Option<Digest> {
    Digest::parse_either(text)
}

fn result_of<'v>(record: &TraceRecord<'v>) -> Option<&'v Value<'v>> {
    let result = record.value.get("result").filter(|result| result.as_object().is_some());
    result.filter(|_| record.record_type() == Some("step"))
}

/// Checks TR7. A missing result is reported by TR2.
pub(super) fn check_result(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    let Some(result) = result_of(record) else { return };
    let mut add = |name: &str, message: &str| found.add(record.path(&format!("/result/{name}")), message);
    for name in ["step", "input_hash", "output_hash"] {
        if result.get(name).and_then(Value::as_non_empty_str).is_none() {
            add(name, "must be a non-empty string");
        }
    }
    let text = |name: &str| result.get(name).and_then(Value::as_str);
    if !text("version").is_some_and(is_version) {
        add("version", "must be digits.digits.digits");
    }
    let [started, finished] = ["started_at", "finished_at"].map(|name| {
        let timestamp = text(name).filter(|text| has_usual_form(text));
        if timestamp.is_none() {
            add(name, "must have the form YYYY-MM-DDTHH:MM:SSZ");
        }
        timestamp
    });
    if let (Some(started), Some(finished)) = (started, finished)
        && finished < started
    {
        add("finished_at", "is before started_at");
    }
    outcome(result, &mut add);
    errors(result, &mut add);
}

/// Checks that status, output and errors are consistent.
fn outcome(result: &Value<'_>, add: &mut impl FnMut(&str, &str)) {
    let output = result.get("output").filter(|output| !output.is_null());
    if output.is_some_and(|output| output.as_object().is_none()) {
        add("output", "must be null or an object");
    }
    let has_errors = result.get("errors").and_then(Value::as_array).is_some_and(|errors| !errors.is_empty());
    let status = result.get("status").and_then(Value::as_str);
    match status {
        Some("success") if output.is_none() => add("output", "a successful step must have an output"),
        Some("failed" | "skipped") if output.is_some() => {
            add("output", "a step that did not succeed must not have an output");
        }
        Some("success" | "failed" | "skipped") => {}
        _ => add("status", "must be success, failed or skipped"),
    }
    match status {
        Some("failed") if !has_errors => add("errors", "a failed step must have errors"),
        Some("success" | "skipped") if has_errors => {
            add("errors", "a step that did not fail must not have errors");
        }
        _ => {}
    }
}

fn errors(result: &Value<'_>, add: &mut impl FnMut(&str, &str)) {
    match result.get("errors") {
        None | Some(Value::Null) => {}
        Some(Value::Array(errors)) => {
            for (index, error) in errors.iter().enumerate() {
                for name in ["code", "message"] {
                    if error.get(name).and_then(Value::as_non_empty_str).is_none() {
                        add(&format!("errors/{index}/{name}"), "must be a non-empty string");
                    }
                }
            }
        }
        Some(_) => add("errors", "must be null or a list"),
    }
}

/// Checks TR9.
pub(super) fn output_hash(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    let Some(result) = result_of(record) else { return };
    let declared = result.get("output_hash").and_then(Value::as_str).and_then(digest_of);
    let output = result.get("output").filter(|output| output.as_object().is_some());
    if let (Some(declared), Some(Ok(text))) = (declared, output.map(c14n_v1::to_vec)) {
        let actual = Digest::from_content(&text);
        if declared != actual {
            let message = format!("is not the hash of the output, which is {}", actual.hex());
            found.add(record.path("/result/output_hash"), message);
        }
    }
}

/// Checks TR8. Missing members are reported by TR2.
pub(super) fn check_control(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    if record.record_type() != Some("control") {
        return;
    }
    if let Some(control_type) = record.text("control_type").filter(|text| !text.is_empty() && *text != "loop")
    {
        found.add(record.path("/control_type"), format!("{} is not loop", excerpt(control_type)));
    }
    let known = ["repeat", "stop", "max_iterations_reached"];
    if let Some(action) = record.text("action").filter(|text| !text.is_empty() && !known.contains(text)) {
        found.add(record.path("/action"), format!("{} is not one of {}", excerpt(action), known.join(", ")));
    }
    let iteration = record.value.get("loop_iteration").and_then(Value::as_number);
    if iteration.is_some_and(|number| number.is_integer() && number.as_f64() < 1.0) {
        found.add(record.path("/loop_iteration"), "must be at least 1");
    }
    let Some(condition) = record.value.get("stop_condition").filter(|value| value.as_object().is_some())
    else {
        return;
    };
    for name in ["path", "operator"] {
        if condition.get(name).and_then(Value::as_non_empty_str).is_none() {
            found.add(record.path(&format!("/stop_condition/{name}")), "must be a non-empty string");
        }
    }
    let usable = match condition.get("value") {
        Some(Value::String(_) | Value::Bool(_)) => true,
        Some(Value::Number(number)) => number.is_integer(),
        _ => false,
    };
    if !usable {
        found.add(record.path("/stop_condition/value"), "must be a string, an integer or a boolean");
    }
}

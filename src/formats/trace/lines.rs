//! TR1: splitting bytes into lines, and parsing lines into values.

use crate::artifact::document;
use crate::json::Value;
use crate::json::reader::{self, Limits, ReadError};
use crate::validation::{Findings, RuleInfo, Severity};

/// The rule for the file as a whole.
pub(super) const LINE_FORMAT: RuleInfo = RuleInfo {
    id: "TR1",
    severity: Severity::Error,
    summary: "Every line holds one record and ends with a line feed only; no line is blank.",
    why: "Tools that append to traces and compare them rely on one record per line. A carriage return \
          anywhere, a blank line or an empty file is rejected. A last line without a line feed is accepted \
          with a warning: it is complete if its hash matches, but the writer may have been interrupted.",
};

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
pub(super) fn records<'d>(
    document: &'d [u8],
    limits: &Limits,
) -> impl Iterator<Item = Result<(&'d [u8], Value<'d>), ReadError>> {
    let lines = document.strip_suffix(b"\n").unwrap_or(document).split(|byte| *byte == b'\n');
    lines.enumerate().map(move |(index, line)| {
        let record = reader::read(line, limits).map_err(|error| ReadError { line: index + 1, ..error })?;
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

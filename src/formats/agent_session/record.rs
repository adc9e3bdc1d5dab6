//! The records of agent sessions, what they state, and the chain of their digests.

use std::fmt;

use super::dialects;
use super::form::{AgentDialect, RecordLayout};
use crate::conversation::events;
use crate::digest::{CoreHash, Digest};
use crate::json::Value;
use crate::json::canonical::c14n_v1;
use crate::json::reader::{self, Defect, Limits, ReadError};

/// The location of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordPlace {
    /// The number of its line, from 1.
    Line(usize),
    /// The document, of which it has the first members.
    Header,
    /// The list, and the index in that.
    Element(&'static str, usize),
}

impl fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Header => f.write_str("the document"),
            Self::Element(list, index) => write!(f, "/{list}/{index}"),
        }
    }
}

/// A record of a document.
pub(super) struct RecordUnit<'u> {
    /// Its number, from 0.
    pub(super) index: usize,
    pub(super) place: RecordPlace,
    /// The bytes that are hashed: those of the line, or the canonical form of the object. `None` for what follows the first
    /// object of a line: programs append to a line whose end was not written.
    pub(super) bytes: Option<&'u [u8]>,
    pub(super) value: &'u Value<'u>,
}

/// A line that is not a record.
pub(super) enum LineDefect {
    /// The last line is not complete: the program was writing it.
    Torn(usize),
    /// It is not a JSON object.
    Unreadable(ReadError),
}

/// A function that is called with each record, or with what is in its place.
pub(super) type UnitVisitor<'f> = dyn for<'u> FnMut(Result<RecordUnit<'u>, LineDefect>) + 'f;

/// Calls `visit` with the records of a document, in order.
///
/// # Errors
/// Returns an error if the document is one JSON object and cannot be read.
pub(super) fn visit_units(
    dialect: &AgentDialect,
    document: &str,
    limits: &Limits,
    visit: &mut UnitVisitor<'_>,
) -> Result<(), ReadError> {
    match dialect.layout {
        RecordLayout::Lines => visit_lines(document, limits, visit),
        RecordLayout::Document { header, list } => {
            let root = read_value(document, limits)?;
            visit_value(0, RecordPlace::Header, &header.select(&root), visit);
            for (index, element) in
                root.get(list).and_then(Value::as_array).unwrap_or_default().iter().enumerate()
            {
                visit_value(index + 1, RecordPlace::Element(list, index), element, visit);
            }
        }
    }
    Ok(())
}

fn visit_lines(document: &str, limits: &Limits, visit: &mut UnitVisitor<'_>) {
    let mut index = 0;
    for (number, line) in (1..).zip(document.split_inclusive('\n')) {
        let (line, is_whole) = line.strip_suffix('\n').map_or((line, false), |line| (line, true));
        if line.trim().is_empty() {
            continue;
        }
        match read_line(line, limits) {
            Ok(values) if values.iter().all(|value| value.as_object().is_some()) => {
                let place = RecordPlace::Line(number);
                let mut bytes = Some(line.as_bytes());
                for value in &values {
                    visit(Ok(RecordUnit { index, place, bytes: bytes.take(), value }));
                }
                index += 1;
            }
            // An object that was written completely is read without its end, and anything else may be a beginning.
            _ if !is_whole => visit(Err(LineDefect::Torn(number))),
            Ok(_) => {
                let message = "a record must be an object, which this line is not";
                let error = ReadError::at(&[], 0, Defect::Syntax, message);
                visit(Err(LineDefect::Unreadable(ReadError { line: number, ..error })));
            }
            Err(error) => visit(Err(LineDefect::Unreadable(ReadError { line: number, ..error }))),
        }
    }
}

fn visit_value(index: usize, place: RecordPlace, value: &Value<'_>, visit: &mut UnitVisitor<'_>) {
    match c14n_v1::to_vec(value) {
        Ok(bytes) => visit(Ok(RecordUnit { index, place, bytes: Some(&bytes), value })),
        Err(error) => {
            let message = format!("{place}: {error}");
            visit(Err(LineDefect::Unreadable(ReadError::at(&[], 0, Defect::Number, message))));
        }
    }
}

/// Reads a line: an object, or several one after the other.
fn read_line<'t>(line: &'t str, limits: &Limits) -> Result<Vec<Value<'t>>, ReadError> {
    match reader::read_sequence(line.as_bytes(), limits) {
        Err(error) if error.defect == Defect::Surrogate => events::read_cut_texts(line).ok_or(error),
        read => read,
    }
}

/// Reads a JSON text. Programs cut texts between the halves of a character, which is replaced then: U+FFFD.
fn read_value<'t>(text: &'t str, limits: &Limits) -> Result<Value<'t>, ReadError> {
    match reader::read(text.as_bytes(), limits) {
        Err(error) if error.defect == Defect::Surrogate => events::read_cut_text(text).ok_or(error),
        read => read,
    }
}

/// Calls `visit` with the records of an admitted document.
///
/// # Errors
/// Returns an error if a record cannot be read.
pub(super) fn visit_admitted(
    document: &[u8],
    visit: &mut dyn for<'u> FnMut(&'static AgentDialect, RecordUnit<'u>),
) -> Result<(), ReadError> {
    let text = reader::utf8(document, &Limits::most())?;
    let Some(dialect) = dialects::detect(text, &mut reader::MemberNames::new(text)) else {
        return Err(ReadError::at(&[], 0, Defect::Syntax, "this is not a session of a known program"));
    };
    let mut defect = None;
    visit_units(dialect, text, &Limits::most(), &mut |unit| match unit {
        Ok(unit) => visit(dialect, unit),
        Err(LineDefect::Torn(_)) => {}
        Err(LineDefect::Unreadable(error)) => defect = defect.take().or(Some(error)),
    })?;
    defect.map_or(Ok(()), Err)
}

/// The chain of the digests of records: `h(0)` is the SHA-256 of the name of the dialect, and `h(n)` that of `h(n-1)` and the
/// SHA-256 of record n.
pub(super) struct RecordChain {
    /// `h(n-1)` and the SHA-256 of record n: what `h(n)` is the digest of.
    link: [Digest; 2],
    head: Digest,
}

impl RecordChain {
    pub(super) fn new(dialect: &AgentDialect) -> Self {
        let head = Digest::from_content(dialect.name.as_bytes());
        Self { link: [head; 2], head }
    }

    /// Adds a record, and returns its digest.
    pub(super) fn add(&mut self, record: &[u8]) -> Digest {
        let digest = Digest::from_content(record);
        self.link = [self.head, digest];
        self.head = Digest::from_content(&self.preimage());
        digest
    }

    /// Returns the digest of the records so far.
    pub(super) fn head(&self) -> CoreHash {
        CoreHash(self.head)
    }

    /// Returns the bytes whose SHA-256 is the digest of the records so far, if there are any.
    pub(super) fn preimage(&self) -> Vec<u8> {
        self.link.iter().flat_map(Digest::as_bytes).copied().collect()
    }
}

//! Answers as lines of JSON, or else as a table or a note. `docs/json.md` says which schema of `docs/api.json` each command
//! prints.

use std::io::{self, Write};

use runvault::display::is_hidden;
use runvault::vault::add::ExaminedDocument;
use runvault::vault::annotate::AnnotateAnswer;
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter};

use super::exit::{CommandError, Status};
use super::stdout;
use super::table::{TextCell, TextColumn, TextTable};
use crate::cli::hints;

pub(crate) use runvault::vault::api::bytes_of;

/// Writes `value` as one line of JSON.
pub(crate) fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut text = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, EscapingFormatter))?;
    text.push(b'\n');
    out.write_all(&text)
}

/// Writes `value` as one line of JSON as it is serialized. Unlike [`line`], the text is not in memory as a whole.
pub(crate) fn stream(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, EscapingFormatter))?;
    out.write_all(b"\n")
}

/// Adds the options that help to the violations of a document, and omits those after the first `most`.
pub(crate) fn with_hints(document: &mut ExaminedDocument, most: Option<usize>) {
    document.limit_violations(most.unwrap_or(usize::MAX));
    document.violations = hints::for_violations(&document.violations);
}

/// Compact JSON that escapes characters that could control a terminal.
struct EscapingFormatter;

impl Formatter for EscapingFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut start = 0;
        for (offset, character) in fragment.char_indices().filter(|(_, character)| is_hidden(*character)) {
            out.write_all(fragment.get(start..offset).unwrap_or_default().as_bytes())?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            start = offset + character.len_utf8();
        }
        out.write_all(fragment.get(start..).unwrap_or_default().as_bytes())
    }

    /// Writes part of compact JSON, in which only strings contain such characters.
    fn write_raw_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        self.write_string_fragment(out, fragment)
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        serde_json::ser::CompactFormatter.write_char_escape(out, escape)
    }
}

/// Prints `answer` as JSON, or `note` as text.
pub(crate) fn print_change(
    as_json: bool,
    answer: &impl Serialize,
    note: &str,
) -> Result<Status, CommandError> {
    if as_json {
        line(&mut stdout::raw(), answer)?;
    } else {
        stdout::note(note);
    }
    Ok(Status::Done)
}

/// Prints the answer of a removal, as [`print_change`] does. Returns `missing` if there was nothing to remove.
pub(crate) fn print_removal(
    as_json: bool,
    answer: AnnotateAnswer,
    note: &str,
    missing: impl FnOnce() -> CommandError,
) -> Result<Status, CommandError> {
    if answer.changed {
        return print_change(as_json, &answer, note);
    }
    if as_json {
        line(&mut stdout::raw(), &answer)?;
    }
    Err(missing())
}

/// Prints `items` as a table of `columns` that ends with the line `ending`, or as JSON.
pub(crate) fn print_list<T: Serialize>(
    items: &[T],
    as_json: bool,
    columns: Vec<TextColumn>,
    row: impl Fn(&T) -> Vec<TextCell>,
    ending: &str,
) -> Result<Status, CommandError> {
    let mut out = io::BufWriter::new(stdout::text());
    if as_json {
        items.iter().try_for_each(|item| line(&mut out, item))?;
        return Ok(out.flush().map(|()| Status::Done)?);
    }
    let mut table = TextTable::new(columns);
    for item in items {
        table.push(row(item));
    }
    table.write(&mut out)?;
    out.flush()?;
    stdout::note(ending);
    Ok(Status::Done)
}

#[cfg(test)]
mod tests {
    #[test]
    fn hidden_characters_are_escaped_and_nothing_else_changes() {
        let text = "a\u{9b}\u{202e}\u{1}\"é😀";
        let mut out = Vec::new();
        super::line(&mut out, &text).unwrap();
        assert_eq!(String::from_utf8(out.clone()).unwrap(), "\"a\\u009b\\u202e\\u0001\\\"é😀\"\n");
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}

//! Text of query results: cells, records of CSV, and rows one below the other.
//!
//! The `csv` crate has one quoting rule for all fields of a writer, so it cannot distinguish NULL from an empty text. The
//! tests read the records with it.

use std::io::{self, Write};

use anstyle::Style;
use clap::ValueEnum;
use runvault::artifact::Cell;
use runvault::digest::{PREFIX, hex};
use runvault::display::whole;

use crate::cli::output::fit;
use crate::cli::output::stdout::{FAINT, HASH};

/// Returns whether a cell is a digest.
pub(super) fn is_hash(cell: &Cell) -> bool {
    matches!(cell, Cell::Text(text) if text.starts_with(PREFIX))
}

/// Formats a cell without loss: bytes as hex digits, NULL as an empty text.
pub(super) fn plain(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Integer(integer) => integer.to_string(),
        Cell::Real(real) => real_text(*real),
        Cell::Text(text) => text.clone(),
        Cell::Blob(bytes) => hex(bytes),
    }
}

/// Formats a double so that it differs from an integer.
fn real_text(real: f64) -> String {
    match real {
        infinite if infinite.is_infinite() => (if infinite > 0.0 { "Inf" } else { "-Inf" }).to_owned(),
        finite => serde_json::to_string(&finite).unwrap_or_default(),
    }
}

/// Formats the cells as a record with its line end. NULL is empty, and an empty text is quoted to distinguish the two.
pub(super) fn record(cells: &[Cell]) -> String {
    let mut record = String::new();
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            record.push(',');
        }
        match cell {
            Cell::Text(text) if must_be_quoted(text) => quote(text, &mut record),
            other => record.push_str(&plain(other)),
        }
    }
    record.push_str("\r\n");
    record
}

fn must_be_quoted(text: &str) -> bool {
    text.is_empty() || text.contains([',', '"', '\r', '\n'])
}

fn quote(text: &str, record: &mut String) {
    record.push('"');
    record.push_str(&text.replace('"', "\"\""));
    record.push('"');
}

/// When rows are printed as lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum VerticalMode {
    /// On a terminal that is too narrow for a table
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The indent of names.
const INDENT: usize = 2;

/// A printer of rows as lists.
pub(super) struct VerticalPrinter {
    /// The escaped names of the columns.
    names: Vec<String>,
    /// The width of the names.
    width: usize,
    /// The maximum width of a line; `None` if unlimited.
    room: Option<usize>,
    has_headings: bool,
    printed: u64,
}

impl VerticalPrinter {
    pub(super) fn new(titles: &[String], has_headings: bool, room: Option<usize>) -> Self {
        // Names come from queries, and must leave room for the cells.
        let most = room.map_or(usize::MAX, |room| room / 2);
        let names: Vec<String> =
            titles.iter().map(|title| fit::cut(&whole(title), most).into_owned()).collect();
        let width = names.iter().map(|name| fit::width(name)).max().unwrap_or_default();
        Self { names, width, room, has_headings, printed: 0 }
    }

    /// Prints a row, with all of its text.
    pub(super) fn write(&mut self, out: &mut dyn Write, row: &[Cell]) -> io::Result<()> {
        if self.printed > 0 {
            writeln!(out)?;
        }
        self.printed += 1;
        if self.has_headings {
            writeln!(out, "{FAINT}row {}{FAINT:#}", self.printed)?;
        }
        let indent = INDENT + self.width + 1;
        let room = self.room.map_or(usize::MAX, |room| room.saturating_sub(indent));
        for (name, cell) in self.names.iter().zip(row) {
            let (text, style) = match cell {
                Cell::Null => ("NULL".to_owned(), FAINT),
                cell => (plain(cell), if is_hash(cell) { HASH } else { Style::new() }),
            };
            let (lines, _) = fit::folded(&text, room, usize::MAX);
            let pad = self.width - fit::width(name);
            write!(out, "{:INDENT$}{FAINT}{name}{FAINT:#}{:pad$}", "", "")?;
            for (index, line) in lines.iter().enumerate() {
                match line.as_str() {
                    "" => writeln!(out)?,
                    line if index == 0 => writeln!(out, " {style}{line}{style:#}")?,
                    line => writeln!(out, "{:indent$}{style}{line}{style:#}", "")?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use runvault::display::is_hidden;

    #[test]
    fn what_would_be_read_otherwise_is_quoted() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let cells = [
            Cell::Null,
            text(""),
            text("a b"),
            text("a,b"),
            text("say \"hi\""),
            text("two\r\nlines"),
            Cell::Integer(i64::MIN),
            Cell::Real(2.0),
            Cell::Real(f64::NEG_INFINITY),
            Cell::Blob(vec![0, 171]),
        ];
        let expected =
            ",\"\",a b,\"a,b\",\"say \"\"hi\"\"\",\"two\r\nlines\",-9223372036854775808,2.0,-Inf,00ab\r\n";
        assert_eq!(record(&cells), expected);
    }

    fn read(record: &str) -> Vec<String> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(record.as_bytes());
        reader.records().next().unwrap().unwrap().iter().map(str::to_owned).collect()
    }

    proptest! {
        #[test]
        fn texts_come_back(texts in proptest::collection::vec("[a\",\r\n é\u{0}]{0,5}", 1..5)) {
            let cells: Vec<Cell> = texts.iter().cloned().map(Cell::Text).collect();
            prop_assert_eq!(read(&record(&cells)), texts);
        }
    }

    fn printed(titles: &[&str], rows: &[Vec<Cell>], room: Option<usize>) -> String {
        let mut out = Vec::new();
        let titles: Vec<String> = titles.iter().map(ToString::to_string).collect();
        let mut lists = VerticalPrinter::new(&titles, true, room);
        for row in rows {
            lists.write(&mut out, row).unwrap();
        }
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    #[test]
    fn every_column_has_a_line_of_its_own() {
        let rows = [
            vec![Cell::Integer(7), text("one\ntwo three\u{1b}[2J"), Cell::Null],
            vec![Cell::Real(0.5), text(""), Cell::Blob(vec![255])],
        ];
        assert_eq!(
            printed(&["n", "text", "b"], &rows, Some(19)),
            "row 1\n  n    7\n  text one\n       two\n       three\\u{1b}[\n       2J\n  b    NULL\n\n\
             row 2\n  n    0.5\n  text\n  b    ff\n"
        );
    }

    proptest! {
        #[test]
        fn lines_fit_and_control_nothing(
            rows in proptest::collection::vec(proptest::collection::vec(any::<String>(), 3), 0..4),
            room in 20_usize..200,
        ) {
            let rows: Vec<Vec<Cell>> = rows.iter().map(|row| row.iter().map(|cell| text(cell)).collect()).collect();
            let titles = ["a", "b\u{1b}[2J", "a title that is longer than most of what stands beside it"];
            for line in printed(&titles, &rows, Some(room)).lines() {
                prop_assert!(fit::width(line) <= room, "{}", line);
                prop_assert!(!line.contains(is_hidden), "{}", line);
            }
        }
    }
}

//! Rows of a result as lists: a line for each column.

use std::io::{self, Write};

use anstyle::Style;
use clap::ValueEnum;
use runvault::artifact::Cell;
use runvault::display::whole;

use super::cell::{is_hash, plain};
use crate::cli::output::fit;
use crate::cli::output::stdout::{FAINT, HASH};

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

//! Tables with unknown columns, printed as rows arrive.
//!
//! The first rows determine the column widths. On a terminal, cells that are too long end with `…`; in a pipe or a
//! file, they are complete.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style;
use runvault::artifact::Cell;
use runvault::digest::PREFIX;

use crate::cli::args::hash::DIGITS;
use crate::cli::output::escape::whole;
use crate::cli::output::fit;
use crate::cli::output::stdout::{FAINT, HASH};

/// Number of rows that are buffered to determine the widths.
const WAITED_FOR: usize = 200;

/// Maximum column width if the line length is unlimited: longer cells overflow.
const WIDEST: usize = 72;

/// Minimum column width.
const NARROWEST: usize = 6;

/// The gap between two columns.
const GAP: usize = 2;

/// A printer of rows.
pub(crate) struct Grid<'o> {
    out: &'o mut dyn Write,
    /// The titles, if they are printed.
    titles: Option<Vec<String>>,
    room: Option<usize>,
    state: State,
}

enum State {
    /// Rows buffered until the widths are known.
    Waiting(Vec<Vec<Cell>>),
    Printing(Vec<Column>),
}

struct Column {
    width: usize,
    is_right: bool,
    is_of_hashes: bool,
}

impl<'o> Grid<'o> {
    /// Creates a grid on `out`, with lines of at most `room` terminal columns, or unlimited.
    pub(crate) fn new(out: &'o mut dyn Write, titles: Option<&[String]>, room: Option<usize>) -> Self {
        let harmless = |title: &String| whole(title);
        let titles = titles.map(|titles| titles.iter().map(harmless).collect());
        Self { out, titles, room, state: State::Waiting(Vec::new()) }
    }

    /// Prints a row, or buffers it until the widths are known.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) -> io::Result<()> {
        match &mut self.state {
            State::Waiting(rows) if rows.len() + 1 < WAITED_FOR => {
                rows.push(cells);
                Ok(())
            }
            State::Waiting(rows) => {
                rows.push(cells);
                self.begin()
            }
            State::Printing(columns) => line(self.out, columns, &shown(&cells, self.room), self.room),
        }
    }

    /// Prints the remaining rows.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.begin()
    }

    fn begin(&mut self) -> io::Result<()> {
        let State::Waiting(rows) = &mut self.state else { return Ok(()) };
        let rows = std::mem::take(rows);
        let columns = columns(self.titles.as_deref(), &rows, self.room);
        if let Some(titles) = &self.titles {
            let titles: Vec<_> = titles.iter().map(|title| (title.clone(), FAINT)).collect();
            line(self.out, &columns, &titles, self.room)?;
        }
        for row in rows {
            line(self.out, &columns, &shown(&row, self.room), self.room)?;
        }
        self.state = State::Printing(columns);
        Ok(())
    }
}

fn columns(titles: Option<&[String]>, rows: &[Vec<Cell>], room: Option<usize>) -> Vec<Column> {
    let count = titles.map_or_else(|| rows.first().map_or(0, Vec::len), <[String]>::len);
    let mut columns: Vec<Column> = (0..count)
        .map(|index| Column {
            width: titles.and_then(|titles| titles.get(index)).map_or(0, |title| fit::width(title)),
            is_right: rows.iter().all(|row| is_number(row.get(index))) && !rows.is_empty(),
            is_of_hashes: rows.iter().any(|row| row.get(index).is_some_and(is_hash)),
        })
        .collect();
    for row in rows {
        for (column, (text, _)) in columns.iter_mut().zip(shown(row, room)) {
            column.width = column.width.max(fit::width(&text));
        }
    }
    fit_in(&mut columns, room);
    columns
}

/// Narrows columns that do not fit: hashes first, then the widest ones.
fn fit_in(columns: &mut [Column], room: Option<usize>) {
    let Some(room) = room else {
        for column in columns {
            column.width = column.width.min(WIDEST);
        }
        return;
    };
    let room = (room + GAP).saturating_sub(GAP * columns.len());
    if columns.iter().map(|column| column.width).sum::<usize>() > room {
        for column in columns.iter_mut().filter(|column| column.is_of_hashes) {
            column.width = column.width.min(DIGITS + 1);
        }
    }
    let wanted = |column: &Column| (column.width, NARROWEST);
    let widest = fit::widest(&columns.iter().map(wanted).collect::<Vec<_>>(), room);
    for column in columns {
        column.width = fit::narrowed(wanted(column), widest);
    }
}

fn is_hash(cell: &Cell) -> bool {
    matches!(cell, Cell::Text(text) if text.starts_with(PREFIX))
}

/// Returns whether a cell is a number or NULL, which is also aligned with numbers.
fn is_number(cell: Option<&Cell>) -> bool {
    matches!(cell, Some(Cell::Null | Cell::Integer(_) | Cell::Real(_)))
}

/// Returns the cells of a row as escaped text, truncated to the room.
fn shown(cells: &[Cell], room: Option<usize>) -> Vec<(String, Style)> {
    let text = |text: &str| match room {
        // Every character takes at least one column, or more if it is escaped.
        Some(room) => {
            let end = text.char_indices().nth(room + 1).map_or(text.len(), |(at, _)| at);
            whole(text.get(..end).unwrap_or_default())
        }
        None => whole(text),
    };
    let shown = |cell: &Cell| match cell {
        Cell::Null => ("NULL".to_owned(), FAINT),
        Cell::Text(other) => (text(other), if is_hash(cell) { HASH } else { Style::new() }),
        other => (text(&plain(other)), Style::new()),
    };
    cells.iter().map(shown).collect()
}

/// Formats a cell without loss: bytes as hex digits, NULL as an empty text.
pub(crate) fn plain(cell: &Cell) -> String {
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

/// Returns the hex digits of `bytes`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns `text` if it fits, otherwise its start; of a hash, the start of its digits without the algorithm.
fn cut(text: &str, width: usize) -> String {
    let digits = text.strip_prefix(PREFIX).filter(|_| fit::width(text) > width);
    fit::cut(digits.unwrap_or(text), width)
}

fn line(
    out: &mut dyn Write,
    columns: &[Column],
    cells: &[(String, Style)],
    room: Option<usize>,
) -> io::Result<()> {
    let mut gap = 0;
    for (index, ((text, style), column)) in cells.iter().zip(columns).enumerate() {
        let text = if room.is_some() { Cow::Owned(cut(text, column.width)) } else { Cow::Borrowed(text) };
        let pad = column.width.saturating_sub(fit::width(&text));
        let is_last = index + 1 == columns.len();
        let (before, after) = if column.is_right { (pad, 0) } else { (0, if is_last { 0 } else { pad }) };
        let before = gap + before;
        // Empty cells are not coloured.
        let style = if text.is_empty() { Style::new() } else { *style };
        write!(out, "{:before$}{style}{text}{style:#}{:after$}", "", "")?;
        gap = GAP;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(titles: &[&str], rows: &[Vec<Cell>], room: Option<usize>) -> String {
        let mut out = Vec::new();
        let titles: Vec<String> = titles.iter().map(ToString::to_string).collect();
        let mut grid = Grid::new(&mut out, Some(&titles), room);
        for row in rows {
            grid.row(row.clone()).unwrap();
        }
        grid.end().unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    fn cell() -> impl Strategy<Value = Cell> {
        prop_oneof![
            Just(Cell::Null),
            any::<i64>().prop_map(Cell::Integer),
            any::<f64>().prop_map(Cell::Real),
            any::<String>().prop_map(Cell::Text),
            "[0-9a-f]{64}".prop_map(|hex| Cell::Text(format!("sha256:{hex}"))),
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(Cell::Blob),
        ]
    }

    proptest! {
        #[test]
        fn lines_fit_and_control_nothing(
            rows in proptest::collection::vec(proptest::collection::vec(cell(), 4), 0..5),
            room in 40_usize..200,
        ) {
            let titles = ["a", "b\u{1b}[2J", "a title that is longer than most of what stands below it", ""];
            let shown = printed(&titles, &rows, Some(room));
            prop_assert_eq!(shown.lines().count(), rows.len() + 1);
            for line in shown.lines() {
                prop_assert!(fit::width(line) <= room, "{}", line);
                prop_assert!(!line.contains(crate::cli::output::escape::is_hidden), "{}", line);
            }
        }
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = [
            vec![Cell::Integer(-7), text("a\u{1b}[2Jb\n"), Cell::Null],
            vec![Cell::Real(1e30), text("漢字"), Cell::Blob(vec![0, 255])],
        ];
        assert_eq!(
            printed(&["n", "text", "b"], &rows, None),
            "    n  text           b\n   -7  a\\u{1b}[2Jb\\n  NULL\n1e+30  漢字           00ff\n"
        );
    }

    #[test]
    fn what_is_too_long_for_a_terminal_is_cut() {
        let long = "0123456789".repeat(100);
        let rows = [vec![text(&long), text("short"), text(&long)]];
        let shown = printed(&["a", "b", "c"], &rows, Some(40));
        for line in shown.lines() {
            assert!(fit::width(line) <= 40, "{line}");
        }
        assert_eq!(shown.lines().last().unwrap(), "01234567890123…  short  01234567890123…");
        // If nothing fits, every column has its minimum width.
        let rows = [vec![text(&long); 20]];
        assert!(printed(&["t"; 20], &rows, Some(40)).contains("01234…  01234…"));
    }

    #[test]
    fn hashes_are_cut_first() {
        let hash = format!("sha256:{}", "0123456789abcdef".repeat(4));
        let rows = [vec![text(&hash), text("everything that is left")]];
        let shown = printed(&["a", "b"], &rows, Some(40));
        assert_eq!(shown.lines().last().unwrap(), "0123456789ab…  everything that is left");
        assert!(printed(&["a", "b"], &rows, Some(96)).contains(&hash));
    }

    #[test]
    fn in_a_pipe_nothing_is_cut() {
        let long = "0123456789".repeat(1000);
        assert!(printed(&["a", "b"], &[vec![text(&long), text("x")]], None).contains(&format!("{long}  x")));
    }

    #[test]
    fn rows_after_the_first_ones_are_printed_at_once() {
        let mut out = Vec::new();
        let mut grid = Grid::new(&mut out, None, None);
        for index in 0..1000 {
            grid.row(vec![Cell::Integer(index)]).unwrap();
        }
        grid.end().unwrap();
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 1000);
    }
}

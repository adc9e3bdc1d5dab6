//! Rows of a result as a table with columns that are not known in advance, or as lists if it does not fit.

use std::io::{self, Write};

use anstyle::Style;
use runvault::artifact::Cell;

use super::text::{VerticalMode, VerticalPrinter, is_hash, plain};
use crate::cli::output::stdout::{FAINT, HASH};
use crate::cli::output::table::{self, TextColumn, TextTable};

/// Number of rows that are buffered to determine the widths of the columns.
const BUFFERED: usize = 200;

/// The form in which rows are printed.
enum RowLayout {
    Table(TextTable),
    Lists(VerticalPrinter),
}

/// A printer of rows.
pub(super) struct RowPrinter<'o> {
    out: &'o mut dyn Write,
    titles: Vec<String>,
    has_titles: bool,
    /// The maximum width of a line; `None` if unlimited.
    room: Option<usize>,
    /// When rows are printed as lists: automatically if columns would be omitted from a table.
    vertical: VerticalMode,
    buffered: Vec<Vec<Cell>>,
    /// The form, once the first rows are known.
    form: Option<RowLayout>,
}

impl<'o> RowPrinter<'o> {
    pub(super) fn new(
        out: &'o mut dyn Write,
        titles: &[String],
        has_titles: bool,
        room: Option<usize>,
        vertical: VerticalMode,
    ) -> Self {
        Self { out, titles: titles.to_vec(), has_titles, room, vertical, buffered: Vec::new(), form: None }
    }

    /// Prints a row, or buffers it until the widths are known.
    pub(super) fn push(&mut self, cells: Vec<Cell>) -> io::Result<()> {
        self.buffered.push(cells);
        if self.form.is_some() || self.buffered.len() >= BUFFERED { self.write() } else { Ok(()) }
    }

    /// Prints the buffered rows.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.buffered);
        let mut form = self.form.take().unwrap_or_else(|| self.chosen(&rows));
        let written = match &mut form {
            RowLayout::Table(table) => {
                self.fill(table, &rows);
                table.write(self.out)
            }
            RowLayout::Lists(lists) => rows.iter().try_for_each(|row| lists.write(self.out, row)),
        };
        self.form = Some(form);
        written
    }

    /// Returns the form for a result that begins with `rows`.
    fn chosen(&self, rows: &[Vec<Cell>]) -> RowLayout {
        let columns = self.titles.iter().enumerate().map(|(at, title)| column(title, rows, at));
        let table = TextTable::new(columns.collect()).for_width(self.room);
        let table = if self.has_titles { table.titled() } else { table };
        let is_vertical = match self.vertical {
            VerticalMode::Always => true,
            VerticalMode::Never => false,
            VerticalMode::Auto => {
                let mut filled = table.clone();
                self.fill(&mut filled, rows);
                !rows.is_empty() && filled.omits_columns()
            }
        };
        if is_vertical {
            RowLayout::Lists(VerticalPrinter::new(&self.titles, self.has_titles, self.room))
        } else {
            RowLayout::Table(table)
        }
    }

    fn fill(&self, table: &mut TextTable, rows: &[Vec<Cell>]) {
        for row in rows {
            table.push(row.iter().map(|cell| shown(cell, self.room)).collect());
        }
    }
}

fn column(title: &str, rows: &[Vec<Cell>], at: usize) -> TextColumn {
    let column = TextColumn::new(title);
    let mut cells = rows.iter().filter_map(|row| row.get(at));
    // NULL is also aligned with numbers.
    let is_number = |cell: &Cell| matches!(cell, Cell::Null | Cell::Integer(_) | Cell::Real(_));
    if !rows.is_empty() && cells.clone().all(is_number) {
        column.right()
    } else if cells.any(is_hash) {
        column.of_hashes()
    } else {
        column
    }
}

/// Returns the cell of a table, whose text is truncated to the room.
fn shown(cell: &Cell, room: Option<usize>) -> table::TextCell {
    let text = plain(cell);
    // Every character takes at least one column, or more if it is escaped.
    let end = room.and_then(|room| text.char_indices().nth(room + 1)).map_or(text.len(), |(at, _)| at);
    let text = text.get(..end).unwrap_or_default();
    match cell {
        Cell::Null => table::TextCell::new("NULL", FAINT),
        _ => table::TextCell::new(text, if is_hash(cell) { HASH } else { Style::new() }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cli::output::fit;
    use runvault::display::is_hidden;

    fn printed(titles: &[&str], rows: &[Vec<Cell>], room: Option<usize>) -> String {
        let mut out = Vec::new();
        let titles: Vec<String> = titles.iter().map(ToString::to_string).collect();
        let mut printer = RowPrinter::new(&mut out, &titles, true, room, VerticalMode::Never);
        for row in rows {
            printer.push(row.clone()).unwrap();
        }
        printer.write().unwrap();
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
                prop_assert!(!line.contains(is_hidden), "{}", line);
            }
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_contents() {
        let rows = [
            vec![Cell::Integer(-7), text("a\u{1b}[2Jb\n"), Cell::Null],
            vec![Cell::Real(1e30), text("漢字"), Cell::Blob(vec![0, 255])],
        ];
        assert_eq!(
            printed(&["n", "text", "b"], &rows, None),
            "    n text          b\n   -7 a\\u{1b}[2Jb\\n NULL\n1e+30 漢字          00ff\n"
        );
    }

    #[test]
    fn long_cells_are_truncated_on_a_terminal_only() {
        let long = "0123456789".repeat(100);
        let rows = [vec![text(&long), text("short"), text(&long)]];
        let shown = printed(&["a", "b", "c"], &rows, Some(40));
        assert_eq!(shown.lines().last().unwrap(), "012345678901234…  short  01234567890123…");
        assert!(printed(&["a", "b", "c"], &rows, None).contains(&format!("{long} short {long}")));
    }

    #[test]
    fn hashes_are_truncated_first() {
        let hash = format!("sha256:{}", "0123456789abcdef".repeat(4));
        let rows = [vec![text(&hash), text("everything that is left")]];
        let shown = printed(&["a", "b"], &rows, Some(40));
        assert_eq!(shown.lines().last().unwrap(), "0123456789ab…  everything that is left");
        assert!(printed(&["a", "b"], &rows, Some(96)).contains(&hash));
    }

    #[test]
    fn a_table_that_would_omit_columns_becomes_lists() {
        let shown = |width: usize| {
            let mut out = Vec::new();
            let titles = ["one", "two", "three"].map(str::to_owned);
            let mut printer = RowPrinter::new(&mut out, &titles, true, Some(width), VerticalMode::Auto);
            printer
                .push(vec![text("a text of 20 columns"), Cell::Integer(2), text("another text, as long")])
                .unwrap();
            printer.write().unwrap();
            anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
        };
        // Truncated columns are still a table.
        assert!(shown(30).starts_with("one "), "{}", shown(30));
        let narrow = "row 1\n  one   a text of 20\n        columns\n  two   2\n  three another\n        text, as\n        long\n";
        assert_eq!(shown(20), narrow);
    }

    #[test]
    fn rows_after_the_first_ones_are_printed_at_once() {
        let mut out = Vec::new();
        let mut printer = RowPrinter::new(&mut out, &["n".to_owned()], false, None, VerticalMode::Never);
        for index in 0..1000 {
            printer.push(vec![Cell::Integer(index)]).unwrap();
        }
        assert!(printer.buffered.is_empty());
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 1000);
    }
}

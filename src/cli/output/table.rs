//! Tables that fit the terminal.
//!
//! If the width is known, cells that are too long end with `…`, and columns that do not fit are omitted, which is
//! marked by a `…` at the end. Otherwise, as in a pipe, the table is complete.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style;

use crate::cli::output::escape::whole;
use crate::cli::output::fit;
use crate::cli::output::stdout::{self, FAINT};

/// Minimum width of a table.
const NARROWEST: usize = 20;

/// Maximum width to which cells are aligned in complete tables: otherwise one very long cell would widen all others.
const ALIGNED: usize = 200;

/// Minimum width of a truncated column, below which it is omitted.
const LEAST: usize = 8;

/// The escaped text of a cell, in pieces of one colour each.
#[derive(Clone, Debug)]
pub(crate) struct Cell(Vec<(String, Style)>);

impl Cell {
    /// Creates a cell with `text`, which is escaped.
    pub(crate) fn new(text: &str, style: Style) -> Self {
        // In full: text that does not fit is truncated when printed.
        Self(vec![(whole(text), style)])
    }

    /// Creates a cell in the default colour.
    pub(crate) fn plain(text: &str) -> Self {
        Self::new(text, Style::new())
    }

    /// Appends another cell, separated by a space.
    pub(crate) fn and(mut self, other: Self) -> Self {
        if !self.is_empty() && !other.is_empty() {
            self.0.push((" ".to_owned(), Style::new()));
        }
        self.with(other)
    }

    /// Appends another cell without a separator.
    pub(crate) fn with(mut self, mut other: Self) -> Self {
        self.0.append(&mut other.0);
        self
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|(text, _)| text.is_empty())
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| fit::width(text)).sum()
    }

    /// Writes as much as fits in `width` columns, and returns the width written.
    fn write(&self, out: &mut dyn Write, width: usize) -> io::Result<usize> {
        let is_whole = self.width() <= width;
        let mut left = width;
        for (text, style) in self.0.iter().filter(|(text, _)| !text.is_empty()) {
            // If one piece fills the cell, there is no room to show that the others are cut off.
            let has_room = is_whole || fit::width(text) < left;
            let shown = if has_room {
                Cow::Borrowed(text)
            } else {
                Cow::Owned(fit::cut(&format!("{text}{}", fit::CUT), left))
            };
            write!(out, "{style}{shown}{style:#}")?;
            left -= fit::width(&shown);
            if !is_whole && shown.ends_with(fit::CUT) {
                break;
            }
        }
        Ok(width - left)
    }
}

/// The way a column is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Complete or omitted, as a partial time or number would be misleading.
    Whole,
    /// Truncated to this width or more.
    Least(usize),
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    title: String,
    fit: Fit,
    is_right: bool,
    is_minor: bool,
    pad: usize,
}

impl Column {
    /// Creates a column that can be truncated.
    pub(crate) fn new(title: &str) -> Self {
        Self { title: title.to_owned(), fit: Fit::Least(LEAST), is_right: false, is_minor: false, pad: 0 }
    }

    /// Returns the column, complete or omitted.
    pub(crate) fn whole(self) -> Self {
        Self { fit: Fit::Whole, ..self }
    }

    /// Returns the column with a minimum width of `least`.
    pub(crate) fn at_least(self, least: usize) -> Self {
        Self { fit: Fit::Least(least), ..self }
    }

    /// Returns the minimum width of a column with the width `natural`.
    fn least(&self, natural: usize) -> usize {
        match self.fit {
            Fit::Whole => natural,
            Fit::Least(least) => least.min(natural),
        }
    }

    /// Returns the column, right-aligned for numbers.
    pub(crate) fn right(self) -> Self {
        Self { is_right: true, ..self }
    }

    /// Returns the column, which is omitted before others.
    pub(crate) fn minor(self) -> Self {
        Self { is_minor: true, ..self }
    }

    /// Returns the column with a minimum width of `width`, even if its contents are shorter.
    pub(crate) fn padded(self, width: usize) -> Self {
        Self { pad: width, ..self }
    }
}

/// A row, and the lines below it.
#[derive(Clone, Debug)]
struct Row {
    cells: Vec<Cell>,
    below: Vec<Cell>,
}

/// A table of rows and columns.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
    indent: usize,
    has_titles: bool,
    width: Option<usize>,
}

impl Table {
    /// Creates an empty table for standard output.
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new(), indent: 0, has_titles: false, width: stdout::width() }
    }

    /// Returns the table for a terminal of this width, or for none.
    #[cfg(test)]
    pub(crate) fn for_width(self, width: Option<usize>) -> Self {
        Self { width, ..self }
    }

    /// Returns the table with an indent.
    pub(crate) fn indented(self, indent: usize) -> Self {
        Self { indent, ..self }
    }

    /// Returns the table with column titles.
    pub(crate) fn titled(self) -> Self {
        Self { has_titles: true, ..self }
    }

    /// Adds a row, with a cell for each column.
    pub(crate) fn push(&mut self, cells: Vec<Cell>) {
        self.push_with(cells, Vec::new());
    }

    /// Adds a row, and lines below it.
    pub(crate) fn push_with(&mut self, cells: Vec<Cell>, below: Vec<Cell>) {
        self.rows.push(Row { cells, below });
    }

    /// If the output is not a terminal, writes the buffered rows and drops them. Requires columns of fixed width.
    pub(crate) fn write_early(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.width.is_none() {
            self.write(out)?;
            self.rows.clear();
        }
        Ok(())
    }

    /// Writes the table.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let room = self.width.map(|width| width.max(NARROWEST).saturating_sub(self.indent));
        let layout = Layout::new(&self.widths(), &self.columns, room);
        if self.has_titles {
            let title = |column: &Column| Cell::new(&column.title, FAINT);
            self.line(out, &layout, &self.columns.iter().map(title).collect::<Vec<_>>())?;
        }
        for row in &self.rows {
            self.line(out, &layout, &row.cells)?;
            for cell in &row.below {
                write!(out, "{:indent$}", "", indent = self.indent + BELOW)?;
                cell.write(out, room.map_or(usize::MAX, |room| room - BELOW))?;
                writeln!(out)?;
            }
        }
        Ok(())
    }

    /// Returns the natural width of each column.
    fn widths(&self) -> Vec<usize> {
        let titles = |column: &Column| if self.has_titles { fit::width(&column.title) } else { 0 };
        let mut widths: Vec<usize> =
            self.columns.iter().map(|column| titles(column).max(column.pad)).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(&row.cells) {
                *width = (*width).max(cell.width());
            }
        }
        widths
    }

    fn line(&self, out: &mut dyn Write, layout: &Layout, cells: &[Cell]) -> io::Result<()> {
        let shown: Vec<(usize, &Cell, usize)> = layout
            .shown
            .iter()
            .filter_map(|(index, width)| Some((*index, cells.get(*index)?, *width)))
            .collect();
        let last = shown.iter().rposition(|(_, cell, _)| !cell.is_empty());
        let count = if layout.is_cut { shown.len() } else { last.map_or(0, |last| last + 1) };
        let mut gap = self.indent;
        for (at, (index, cell, width)) in shown.into_iter().take(count).enumerate() {
            let is_right = self.columns.get(index).is_some_and(|column| column.is_right);
            let aligned = layout.aligned(width);
            let before = gap + if is_right { aligned.saturating_sub(cell.width()) } else { 0 };
            write!(out, "{:before$}", "")?;
            let taken = cell.write(out, width)?;
            if !is_right && (at + 1 < count || layout.is_cut) {
                write!(out, "{:pad$}", "", pad = aligned.saturating_sub(taken))?;
            }
            gap = layout.gap;
        }
        if layout.is_cut {
            write!(out, " {FAINT}{}{FAINT:#}", fit::CUT)?;
        }
        writeln!(out)
    }
}

/// The indent of lines below a row.
pub(crate) const BELOW: usize = 4;

/// The gap between two columns on a terminal.
const GAP: usize = 2;

/// The columns shown, and their widths.
struct Layout {
    /// Their numbers and widths.
    shown: Vec<(usize, usize)>,
    gap: usize,
    /// Whether columns are omitted.
    is_cut: bool,
}

impl Layout {
    /// Returns the width to which a column is aligned.
    fn aligned(&self, width: usize) -> usize {
        if self.gap == GAP { width } else { width.min(ALIGNED) }
    }

    fn new(natural: &[usize], columns: &[Column], room: Option<usize>) -> Self {
        let all: Vec<usize> = (0..columns.len()).collect();
        let Some(room) = room else {
            return Self { shown: natural.iter().copied().enumerate().collect(), gap: 1, is_cut: false };
        };
        let mut shown = all.clone();
        loop {
            let is_cut = shown.len() < all.len();
            let taken = GAP * shown.len().saturating_sub(1) + if is_cut { 2 } else { 0 };
            let room = room.saturating_sub(taken);
            let pairs: Vec<(usize, usize)> = shown
                .iter()
                .filter_map(|index| Some((*natural.get(*index)?, columns.get(*index)?)))
                .map(|(natural, column)| (natural, column.least(natural)))
                .collect();
            if pairs.iter().map(|(_, least)| least).sum::<usize>() <= room || shown.len() < 2 {
                let shown = shown.into_iter().zip(shared(&pairs, room)).collect();
                return Self { shown, gap: GAP, is_cut };
            }
            // The first column is the subject of the row.
            let minor = shown
                .iter()
                .skip(1)
                .rposition(|index| columns.get(*index).is_some_and(|column| column.is_minor));
            shown.remove(minor.map_or(shown.len() - 1, |at| at + 1));
        }
    }
}

/// Distributes `room` among columns, each given by its natural and minimum width: short columns keep their width, and
/// the others get equal widths if possible.
fn shared(columns: &[(usize, usize)], room: usize) -> Vec<usize> {
    let widest = fit::widest(columns, room);
    let mut widths: Vec<usize> = columns.iter().map(|column| fit::narrowed(*column, widest)).collect();
    // The remainder after equal sharing goes to columns that can use it.
    let mut left = room.saturating_sub(widths.iter().sum());
    for (width, (natural, _)) in widths.iter_mut().zip(columns) {
        let more = left.min(natural.saturating_sub(*width));
        *width += more;
        left -= more;
    }
    // A single column that exceeds the width gets the whole width.
    widths.iter().map(|width| room.min(*width)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text_of(table: &Table) -> String {
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    fn table(columns: Vec<Column>, rows: &[&[&str]], width: Option<usize>) -> String {
        let mut table = Table::new(columns).for_width(width);
        for row in rows {
            table.push(row.iter().map(|text| Cell::new(text, FAINT)).collect());
        }
        text_of(&table)
    }

    #[test]
    fn long_cells_are_cut_and_short_ones_are_not() {
        let columns = || vec![Column::new("a").whole(), Column::new("b"), Column::new("c")];
        let rows: &[&[&str]] = &[
            &["4df877dec7f4", "short", "a text that is much too long"],
            &["103ef1c54b58", "漢字漢字漢字", ""],
        ];
        assert_eq!(
            table(columns(), rows, Some(40)),
            "4df877dec7f4  short         a text that…\n103ef1c54b58  漢字漢字漢字\n"
        );
        assert_eq!(
            table(columns(), rows, None),
            "4df877dec7f4 short        a text that is much too long\n103ef1c54b58 漢字漢字漢字\n"
        );
        assert_eq!(
            table(columns(), rows, Some(27)),
            "4df877dec7f4  short       …\n103ef1c54b58  漢字漢字漢… …\n"
        );
    }

    #[test]
    fn one_very_long_cell_does_not_move_the_others() {
        let long = "x".repeat(100_000);
        let rows: &[&[&str]] = &[&[&long, "behind"], &["short", "behind"]];
        let columns = || vec![Column::new("a"), Column::new("b")];
        let expected = format!("{long} behind\nshort{:196}behind\n", "");
        assert_eq!(table(columns(), rows, None), expected);
        assert_eq!(table(columns(), rows, Some(10_000)).lines().map(str::len).max(), Some(10_002));
    }

    #[test]
    fn what_matters_less_goes_first() {
        let columns = vec![
            Column::new("hash").whole(),
            Column::new("age").whole().minor(),
            Column::new("size").whole().right(),
            Column::new("label"),
        ];
        let rows: &[&[&str]] =
            &[&["4df877dec7f4", "13 minutes ago", "1 B", "a long label of it"], &["", "", "10 B", ""]];
        assert_eq!(
            table(columns, rows, Some(40)),
            "4df877dec7f4   1 B  a long label of it …\n              10 B                     …\n"
        );
    }

    #[test]
    fn a_cell_in_pieces_is_cut_as_one() {
        let cell = || Cell::plain("@tag").and(Cell::plain("")).and(Cell::plain("label"));
        for (width, expected) in
            [(10, "@tag label"), (9, "@tag lab…"), (6, "@tag …"), (5, "@tag…"), (4, "@ta…")]
        {
            let mut out = Vec::new();
            let taken = cell().write(&mut out, width).unwrap();
            assert_eq!((taken, String::from_utf8(out).unwrap()), (fit::width(expected), expected.to_owned()));
        }
    }

    fn cells() -> impl Strategy<Value = Vec<Vec<String>>> {
        let text = prop_oneof!["[ -~]{0,12}", "\\PC{0,80}", "[漢字😀é\u{301}]{0,40}", any::<String>()];
        proptest::collection::vec(proptest::collection::vec(text, 5), 0..6)
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(rows in cells(), width in NARROWEST..200, indent in 0..8_usize) {
            let mut table = Table::new(columns()).for_width(Some(width)).indented(indent).titled();
            for row in &rows {
                let below = row.iter().map(|text| Cell::plain(text)).collect();
                table.push_with(row.iter().map(|text| Cell::plain(text)).collect(), below);
            }
            let text = text_of(&table);
            prop_assert_eq!(text.lines().count(), 1 + rows.len() * 6);
            for line in text.lines() {
                prop_assert!(fit::width(line) <= width, "{} of {width}: {line:?}", fit::width(line));
            }
        }

        #[test]
        fn without_a_width_nothing_is_lost(rows in cells()) {
            let mut table = Table::new(columns()).for_width(None);
            for row in &rows {
                table.push(row.iter().map(|text| Cell::plain(text)).collect());
            }
            let text = text_of(&table);
            prop_assert_eq!(text.lines().count(), rows.len());
            for (line, row) in text.lines().zip(&rows) {
                let mut rest = line;
                for cell in row {
                    let whole = whole(cell);
                    // Trailing spaces are printed only as padding.
                    let found = rest.find(whole.trim_end());
                    prop_assert!(found.is_some(), "{whole:?} in {line:?}");
                    rest = &rest[found.unwrap() + whole.trim_end().len()..];
                }
            }
        }
    }

    fn columns() -> Vec<Column> {
        vec![
            Column::new("hash").at_least(13),
            Column::new("minor").whole().minor(),
            Column::new("right").right(),
            Column::new("padded").padded(9),
            Column::new("last"),
        ]
    }
}

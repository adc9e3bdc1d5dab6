//! Tables that fit the terminal, printed as rows arrive.
//!
//! If the width is known, cells that are too long are shortened to a part by which they differ, with `…` in place of the
//! rest, and columns that do not fit are omitted, which is marked by a `…` at the end. Otherwise, as in a pipe, the table
//! is complete.
//!
//! The layout is our own. `comfy-table` and `tabled` arrange a whole table in memory and wrap or pad every cell to the
//! width of its column: they have no rows as they arrive, no columns that are complete or omitted, and one long cell of
//! an untrusted artifact would widen every row in a pipe. Measuring and truncating are done by `console`.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anstyle::Style;
use runvault::digest::PREFIX;
use runvault::display::whole;

use crate::cli::output::fit::ColumnShortening;
use crate::cli::output::stdout::FAINT;
use crate::cli::output::{fit, terminal};

/// Number of digits of shortened hashes: enough for every command.
pub(crate) const DIGITS: usize = 12;

/// Minimum width of a table.
const NARROWEST: usize = 20;

/// Maximum width to which cells are aligned in complete tables: otherwise one very long cell would widen all others.
const ALIGNED: usize = 72;

/// Minimum width of a truncated column, below which it is omitted.
const LEAST: usize = 8;

/// Maximum width that a column of ids needs so that they differ, beyond which it can be truncated like others.
const MOST_DIFFERING: usize = 24;

/// The gap between two columns on a terminal.
const GAP: usize = 2;

/// The indent of lines below a row.
pub(crate) const BELOW: usize = 4;

/// The escaped text of a cell, with its colors.
#[derive(Clone, Debug)]
pub(crate) struct TextCell(String);

impl TextCell {
    /// Creates a cell with `text`, which is escaped.
    pub(crate) fn new(text: &str, style: Style) -> Self {
        // In full: text that does not fit is truncated when printed.
        if text.is_empty() { Self(String::new()) } else { Self(format!("{style}{}{style:#}", whole(text))) }
    }

    /// Creates a cell in the default color.
    pub(crate) fn plain(text: &str) -> Self {
        Self::new(text, Style::new())
    }

    /// Appends another cell, separated by a space.
    pub(crate) fn and(self, other: &Self) -> Self {
        let gap = if self.0.is_empty() || other.0.is_empty() { "" } else { " " };
        Self(self.0 + gap + &other.0)
    }

    /// Appends another cell without a separator.
    pub(crate) fn with(self, other: &Self) -> Self {
        Self(self.0 + &other.0)
    }

    /// Returns whether the cell has no text.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn width(&self) -> usize {
        fit::width(&self.0)
    }
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct TextColumn {
    title: String,
    /// The width to which it can be truncated; `None` if it is complete or omitted.
    least: Option<usize>,
    is_right: bool,
    is_minor: bool,
    content: ColumnContent,
    pad: usize,
}

/// The content of a column, by which it is truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnContent {
    Text,
    /// Hashes, of which the first digits are enough.
    Hashes,
    /// Texts by which rows are told apart.
    Ids,
}

impl TextColumn {
    /// Creates a column that can be truncated.
    pub(crate) fn new(title: &str) -> Self {
        let (is_right, is_minor, content) = (false, false, ColumnContent::Text);
        Self { title: whole(title), least: Some(LEAST), is_right, is_minor, content, pad: 0 }
    }

    /// Returns the column, complete or omitted, as a partial time or number would be misleading.
    pub(crate) fn whole(self) -> Self {
        Self { least: None, ..self }
    }

    /// Returns the column for hashes, which are truncated before other columns, to the start of their digits.
    pub(crate) fn of_hashes(self) -> Self {
        Self { least: Some(DIGITS + 1), content: ColumnContent::Hashes, ..self }
    }

    /// Returns the column for ids, which are truncated only as far as they still differ.
    pub(crate) fn of_ids(self) -> Self {
        Self { content: ColumnContent::Ids, ..self }
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

    /// Returns the text of a cell that fits into a width.
    fn fitted(&self, cell: &TextCell, width: usize, shortening: &ColumnShortening) -> String {
        let is_cut = self.content == ColumnContent::Hashes && cell.width() > width;
        let text = if is_cut { &cell.0.replacen(PREFIX, "", 1) } else { &cell.0 };
        shortening.apply(text, width).into_owned()
    }
}

/// A row, and the lines below it.
#[derive(Clone, Debug)]
struct TextRow {
    cells: Vec<TextCell>,
    below: Vec<TextCell>,
}

/// A table of rows and columns.
#[derive(Clone, Debug)]
pub(crate) struct TextTable {
    columns: Vec<TextColumn>,
    rows: Vec<TextRow>,
    indent: usize,
    has_titles: bool,
    width: Option<usize>,
    /// The layout, determined by the rows that are written first.
    layout: Option<Layout>,
}

impl TextTable {
    /// Creates an empty table for standard output.
    pub(crate) fn new(columns: Vec<TextColumn>) -> Self {
        let width = terminal::width();
        Self { columns, rows: Vec::new(), indent: 0, has_titles: false, width, layout: None }
    }

    /// Returns the table for a terminal of this width, or for none.
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

    /// Returns whether no rows are buffered.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row, with a cell for each column.
    pub(crate) fn push(&mut self, cells: Vec<TextCell>) {
        self.push_with(cells, Vec::new());
    }

    /// Adds a row, and lines below it.
    pub(crate) fn push_with(&mut self, cells: Vec<TextCell>, below: Vec<TextCell>) {
        self.rows.push(TextRow { cells, below });
    }

    /// Returns whether columns are omitted because the buffered rows do not fit the terminal.
    pub(crate) fn omits_columns(&self) -> bool {
        Layout::new(&self.widths(&self.rows), &self.columns, self.room()).is_cut
    }

    /// Returns the width of a line without its indent; `None` if unlimited.
    fn room(&self) -> Option<usize> {
        self.width.map(|width| width.max(NARROWEST).saturating_sub(self.indent))
    }

    /// If the output is not a terminal, writes the buffered rows. Requires columns of fixed width.
    pub(crate) fn write_early(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.width.is_none() { self.write(out) } else { Ok(()) }
    }

    /// Writes the buffered rows and drops them. The first ones determine the widths of the columns.
    pub(crate) fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let room = self.room();
        let rows = std::mem::take(&mut self.rows);
        let layout = if let Some(layout) = self.layout.take() {
            layout
        } else {
            let mut layout = Layout::new(&self.widths(&rows), &self.columns, room);
            if self.has_titles {
                let title = |column: &TextColumn| TextCell(format!("{FAINT}{}{FAINT:#}", column.title));
                self.line(out, &layout, &self.columns.iter().map(title).collect::<Vec<_>>())?;
            }
            layout.distinguish(&rows, &self.columns);
            layout
        };
        for row in rows {
            self.line(out, &layout, &row.cells)?;
            for cell in &row.below {
                let indent = self.indent + BELOW;
                let below = fit::cut(&cell.0, room.map_or(usize::MAX, |room| room - BELOW));
                writeln!(out, "{:indent$}{below}", "")?;
            }
        }
        self.layout = Some(layout);
        Ok(())
    }

    /// Returns the width that each column wants, and the least that it needs.
    fn widths(&self, rows: &[TextRow]) -> Vec<ColumnWidth> {
        let width = |(index, column): (usize, &TextColumn)| {
            let title = if self.has_titles { fit::width(&column.title) } else { 0 };
            let cells = rows.iter().filter_map(|row| row.cells.get(index)).map(TextCell::width);
            let preferred = cells.fold(title.max(column.pad), usize::max);
            let mut least = column.least.map_or(preferred, |least| least.min(preferred));
            if self.width.is_some() && column.content == ColumnContent::Ids && least < preferred {
                let cells = column_texts(rows, index);
                let differ = |width: &usize| ColumnShortening::distinguishing(&cells, *width).1;
                least = (least..preferred.min(MOST_DIFFERING)).find(differ).unwrap_or(least);
            }
            ColumnWidth { preferred, least, is_of_hashes: column.content == ColumnContent::Hashes }
        };
        self.columns.iter().enumerate().map(width).collect()
    }

    fn line(&self, out: &mut dyn Write, layout: &Layout, cells: &[TextCell]) -> io::Result<()> {
        let mut line = " ".repeat(self.indent);
        let mut gap = 0;
        for ShownColumn { index, width, shortening } in &layout.shown {
            let (Some(cell), Some(column)) = (cells.get(*index), self.columns.get(*index)) else { continue };
            let shown =
                if layout.is_limited { column.fitted(cell, *width, shortening) } else { cell.0.clone() };
            let pad = layout.aligned(*width).saturating_sub(fit::width(&shown));
            let (before, after) = if column.is_right { (pad, 0) } else { (0, pad) };
            let before = gap + before;
            line.extend([" ".repeat(before), shown, " ".repeat(after)]);
            gap = layout.gap();
        }
        if layout.is_cut {
            line = format!("{line} {FAINT}{}{FAINT:#}", fit::CUT);
        }
        writeln!(out, "{}", line.trim_end_matches(' '))
    }
}

/// Returns the different texts in a column.
fn column_texts(rows: &[TextRow], index: usize) -> BTreeSet<&str> {
    rows.iter().filter_map(|row| row.cells.get(index)).map(|cell| cell.0.as_str()).collect()
}

/// A column that is shown.
#[derive(Clone, Debug)]
struct ShownColumn {
    index: usize,
    width: usize,
    shortening: ColumnShortening,
}

/// The columns shown, and their widths.
#[derive(Clone, Debug)]
struct Layout {
    shown: Vec<ShownColumn>,
    /// Whether the width of lines is limited.
    is_limited: bool,
    /// Whether columns are omitted.
    is_cut: bool,
}

impl Layout {
    fn gap(&self) -> usize {
        if self.is_limited { GAP } else { 1 }
    }

    /// Returns the width to which a column is aligned.
    fn aligned(&self, width: usize) -> usize {
        if self.is_limited { width } else { width.min(ALIGNED) }
    }

    fn new(widths: &[ColumnWidth], columns: &[TextColumn], room: Option<usize>) -> Self {
        let column = |(index, width)| ShownColumn { index, width, shortening: ColumnShortening::default() };
        let Some(room) = room else {
            let shown = widths.iter().map(|width| width.preferred).enumerate().map(column).collect();
            return Self { shown, is_limited: false, is_cut: false };
        };
        let mut shown: Vec<usize> = (0..columns.len()).collect();
        loop {
            let is_cut = shown.len() < columns.len();
            let reserved = GAP * shown.len().saturating_sub(1) + if is_cut { 2 } else { 0 };
            let room = room.saturating_sub(reserved);
            let sizes: Vec<ColumnWidth> =
                shown.iter().filter_map(|index| widths.get(*index).copied()).collect();
            if sizes.iter().map(|size| size.least).sum::<usize>() <= room || shown.len() < 2 {
                let shown = shown.into_iter().zip(shared(sizes, room)).map(column).collect();
                return Self { shown, is_limited: true, is_cut };
            }
            // The first column is the subject of the row.
            let minor = shown
                .iter()
                .skip(1)
                .rposition(|index| columns.get(*index).is_some_and(|column| column.is_minor));
            shown.remove(minor.map_or(shown.len() - 1, |at| at + 1));
        }
    }

    /// Chooses the parts of the cells of these rows that are shown where they are truncated.
    fn distinguish(&mut self, rows: &[TextRow], columns: &[TextColumn]) {
        for shown in self.shown.iter_mut().filter(|_| self.is_limited) {
            let is_of_hashes = |column: &TextColumn| column.content == ColumnContent::Hashes;
            if !columns.get(shown.index).is_some_and(is_of_hashes) {
                shown.shortening =
                    ColumnShortening::distinguishing(&column_texts(rows, shown.index), shown.width).0;
            }
        }
    }
}

/// The width that a column wants, and the least that it needs.
#[derive(Clone, Copy)]
struct ColumnWidth {
    preferred: usize,
    least: usize,
    is_of_hashes: bool,
}

/// Distributes `room` among columns: short columns keep their width, and the others get equal widths if possible.
fn shared(mut sizes: Vec<ColumnWidth>, room: usize) -> Vec<usize> {
    if sizes.iter().map(|size| size.preferred).sum::<usize>() > room {
        sizes.iter_mut().filter(|size| size.is_of_hashes).for_each(|size| size.preferred = size.least);
    }
    // A single column that exceeds the width gets the whole width.
    let mut widths: Vec<usize> = sizes.iter().map(|size| size.least.min(room)).collect();
    for _ in widths.iter().sum()..room {
        let growing = widths.iter_mut().zip(&sizes).filter(|(width, size)| **width < size.preferred);
        let Some((narrowest, _)) = growing.min_by_key(|(width, _)| **width) else { break };
        *narrowest += 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text_of(mut table: TextTable) -> String {
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    fn table(columns: Vec<TextColumn>, rows: &[&[&str]], width: Option<usize>) -> String {
        let mut table = TextTable::new(columns).for_width(width);
        for row in rows {
            table.push(row.iter().map(|text| TextCell::new(text, FAINT)).collect());
        }
        text_of(table)
    }

    #[test]
    fn long_cells_are_cut_and_short_ones_are_not() {
        let columns = || vec![TextColumn::new("a").whole(), TextColumn::new("b"), TextColumn::new("c")];
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
        let columns = || vec![TextColumn::new("a"), TextColumn::new("b")];
        let expected = format!("{long} behind\nshort{:68}behind\n", "");
        assert_eq!(table(columns(), rows, None), expected);
        assert_eq!(table(columns(), rows, Some(10_000)).lines().map(str::len).max(), Some(10_002));
    }

    #[test]
    fn what_matters_less_goes_first() {
        let columns = vec![
            TextColumn::new("hash").whole(),
            TextColumn::new("age").whole().minor(),
            TextColumn::new("size").whole().right(),
            TextColumn::new("label"),
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
        for (width, expected) in
            [(10, "@tag label"), (9, "@tag lab…"), (6, "@tag …"), (5, "@tag…"), (4, "@ta…")]
        {
            let cell = TextCell::plain("@tag").and(&TextCell::plain("")).and(&TextCell::plain("label"));
            assert_eq!(TextColumn::new("").fitted(&cell, width, &ColumnShortening::default()), expected);
        }
    }

    #[test]
    fn ids_are_shortened_to_where_they_differ() {
        let columns = || {
            let id = TextColumn::new("id").of_ids();
            vec![TextColumn::new("hash").whole(), id, TextColumn::new("model"), TextColumn::new("what")]
        };
        let rows: &[&[&str]] = &[
            &["4df877dec7f4", "nightly-2026-11-27-agent-a-0001", "the-model-of-it", "a text of it"],
            &["103ef1c54b58", "nightly-2026-11-27-agent-b-0001", "the-model-of-it", "a text of it"],
        ];
        assert_eq!(
            table(columns(), rows, Some(40)),
            "4df877dec7f4  nig…-a-0001  the-model-… …\n103ef1c54b58  nig…-b-0001  the-model-… …\n"
        );
        // If they would not differ, other columns are omitted.
        assert_eq!(
            table(columns(), rows, Some(30)),
            "4df877dec7f4  nigh…nt-a-0001 …\n103ef1c54b58  nigh…nt-b-0001 …\n"
        );
    }

    fn cells() -> impl Strategy<Value = Vec<Vec<String>>> {
        let text = prop_oneof!["[ -~]{0,12}", "\\PC{0,80}", "[漢字😀é\u{301}]{0,40}", any::<String>()];
        proptest::collection::vec(proptest::collection::vec(text, 6), 0..6)
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(rows in cells(), width in NARROWEST..200, indent in 0..8_usize) {
            let mut table = TextTable::new(columns()).for_width(Some(width)).indented(indent).titled();
            for row in &rows {
                let below = row.iter().map(|text| TextCell::plain(text)).collect();
                table.push_with(row.iter().map(|text| TextCell::plain(text)).collect(), below);
            }
            let text = text_of(table);
            prop_assert_eq!(text.lines().count(), 1 + rows.len() * 7);
            for line in text.lines() {
                prop_assert!(fit::width(line) <= width, "{} of {width}: {line:?}", fit::width(line));
            }
        }

        #[test]
        fn without_a_width_nothing_is_lost(rows in cells()) {
            let mut table = TextTable::new(columns()).for_width(None);
            for row in &rows {
                table.push(row.iter().map(|text| TextCell::plain(text)).collect());
            }
            let text = text_of(table);
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

    fn columns() -> Vec<TextColumn> {
        vec![
            TextColumn::new("hash").of_hashes(),
            TextColumn::new("id").of_ids(),
            TextColumn::new("minor").whole().minor(),
            TextColumn::new("right").right(),
            TextColumn::new("padded").padded(9),
            TextColumn::new("last"),
        ]
    }
}

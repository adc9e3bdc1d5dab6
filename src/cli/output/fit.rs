//! Text layout in terminal columns. Wide characters, such as Chinese ones and emoji, take two columns. The text is
//! already escaped, so it does not move the cursor, and escape sequences in it are colours.

use std::io::{self, Write};

use anstyle::Style;
use unicode_width::UnicodeWidthChar;

use crate::cli::output::stdout;

/// The mark at the end of truncated text.
pub(crate) const CUT: char = '…';

/// Returns the offset and the width in columns of each character of `text`. Colour sequences have no width.
fn measured(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut is_colour = false;
    text.char_indices().map(move |(at, character)| {
        let was_colour = is_colour || character == '\u{1b}';
        is_colour = was_colour && character != 'm';
        (at, if was_colour { 0 } else { character.width().unwrap_or(0) })
    })
}

/// Returns the width of `text` in columns.
pub(crate) fn width(text: &str) -> usize {
    measured(text).map(|(_, width)| width).sum()
}

/// Returns `text` if it takes at most `most` columns, otherwise its start and a mark; an empty string if there are no
/// columns.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(1) else { return String::new() };
    format!("{}{CUT}", beginning(text, room))
}

/// Returns the width of a column that wants `wanted` if others are limited to `most`; at least `least`.
pub(crate) fn narrowed((wanted, least): (usize, usize), most: usize) -> usize {
    wanted.min(most.max(least))
}

/// Returns the width limit with which all columns fit into `room`, each given by the width that it wants and its
/// minimum: short columns keep their width, the others get the limit. 0 if there is not enough room.
pub(crate) fn widest(columns: &[(usize, usize)], room: usize) -> usize {
    let taken = |most| columns.iter().map(|column| narrowed(*column, most)).sum::<usize>();
    let longest = columns.iter().map(|(wanted, _)| *wanted).max().unwrap_or(0);
    // Binary search for the largest width that fits.
    let (mut fits, mut too_much) = (0, longest.min(room) + 1);
    while too_much - fits > 1 {
        let middle = usize::midpoint(fits, too_much);
        if taken(middle) <= room { fits = middle } else { too_much = middle }
    }
    fits
}

/// Returns the longest prefix of `text` that takes at most `most` columns.
fn beginning(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let past = measured(text).find(|(_, width)| {
        taken += width;
        taken > most
    });
    text.get(..past.map_or(text.len(), |(at, _)| at)).unwrap_or_default()
}

/// Wraps `text` into lines of at most `most` columns, between words where possible. Only the spaces at line breaks are
/// dropped.
pub(crate) fn fold(text: &str, most: usize) -> Vec<String> {
    // The widest characters take two columns.
    let most = most.max(2);
    if width(text) <= most {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for (index, word) in text.split(' ').enumerate() {
        let line = lines.last().map_or(0, |line| width(line));
        let has_room = line == 0 || line.saturating_add(width(word)) < most;
        if index > 0 && has_room {
            lines.last_mut().into_iter().for_each(|line| line.push(' '));
        } else if index > 0 {
            lines.push(String::new());
        }
        hard(word, most, &mut lines);
    }
    lines
}

/// Appends `word` to the last of `lines`, and breaks it if it is too long.
fn hard(word: &str, most: usize, lines: &mut Vec<String>) {
    let mut rest = word;
    loop {
        let room = most.saturating_sub(lines.last().map_or(0, |line| width(line)));
        let piece = beginning(rest, room);
        lines.last_mut().into_iter().for_each(|line| line.push_str(piece));
        rest = rest.get(piece.len()..).unwrap_or_default();
        if rest.is_empty() {
            return;
        }
        lines.push(String::new());
    }
}

/// Wraps `line` at `most` columns, with a hanging indent.
pub(crate) fn hang(line: &str, most: usize) -> String {
    if width(line) <= most {
        return line.to_owned();
    }
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let below = (indent + HANGING).min(most / 2);
    let lines = fold(text, most.saturating_sub(below));
    let first = format!("{:indent$}", "");
    let gap = format!("\n{:below$}", "");
    first + &lines.join(&gap)
}

/// The hanging indent of wrapped lines.
const HANGING: usize = 2;

/// The layout of text appended to a line.
#[derive(Clone, Copy)]
pub(crate) struct Trail {
    /// The columns already taken.
    pub(crate) taken: usize,
    /// The indent of text that does not fit and is put below the line,
    pub(crate) below: usize,
    /// unless at least this number of columns is available: then it is wrapped in place.
    pub(crate) least: usize,
}

impl Trail {
    /// Appends `text` to the line and ends it, wrapping the text on a narrow terminal.
    pub(crate) fn write(self, out: &mut dyn Write, text: &str, style: Style) -> io::Result<()> {
        let all = stdout::width().unwrap_or(usize::MAX);
        let room = all.saturating_sub(self.taken + 1);
        let is_beside = width(text) <= room || room >= self.least;
        let at = if is_beside { self.taken + 1 } else { self.below };
        let lines = fold(text, all.saturating_sub(at));
        for (index, line) in lines.iter().filter(|line| !line.is_empty()).enumerate() {
            if index == 0 && is_beside {
                write!(out, " {style}{line}{style:#}")?;
            } else {
                write!(out, "\n{:at$}{style}{line}{style:#}", "")?;
            }
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("漢字"), 4);
        assert_eq!(width("😀é"), 3);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(cut("漢字漢字", 8), "漢字漢字");
        assert_eq!(cut("漢字漢字", 7), "漢字漢…");
        assert_eq!(cut("漢字漢字", 6), "漢字…");
        assert_eq!(cut("漢", 1), "…");
        assert_eq!(cut("a", 0), "");
        assert_eq!(cut("", 0), "");
    }

    #[test]
    fn lines_are_broken_between_words_or_where_they_must() {
        assert_eq!(fold("", 10), [""]);
        assert_eq!(fold("one two three", 7), ["one two", "three"]);
        assert_eq!(fold("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(fold("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(fold("漢字", 0), ["漢", "字"]);
        assert_eq!(fold("  a  b", 10), ["  a  b"]);
    }

    #[test]
    fn colours_take_no_room() {
        let text = "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m one two";
        assert_eq!(width(text), 14);
        assert_eq!(fold(text, 10), ["\u{1b}[1m\u{1b}[31merror:\u{1b}[0m one", "two"]);
        assert_eq!(hang("  one two three", 9), "  one\n    two\n    three");
        assert_eq!(hang("  one", 9), "  one");
    }

    proptest! {
        #[test]
        fn folding_loses_nothing_but_spaces(text in "[a-z漢é \u{301}]{0,60}", most in 0..30_usize) {
            let lines = fold(&text, most);
            for line in &lines {
                prop_assert!(width(line) <= most.max(2), "{line:?}");
            }
            prop_assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
            prop_assert_eq!(fold(&text, usize::MAX), [text.as_str()]);
            prop_assert!(width(&cut(&text, most)) <= most);
        }
    }
}

//! Text in the columns of a terminal. Wide characters, such as Chinese ones and emoji, take two; what is measured here was
//! escaped, so nothing in it moves the cursor, and what begins with an escape is a colour of ours.

use std::io::{self, Write};

use anstyle::Style;
use unicode_width::UnicodeWidthChar;

use super::output;

/// What stands for the end of a text that was cut off.
pub(crate) const CUT: char = '…';

/// The characters of `text`, where they begin, and how many columns they take. Colours of ours take none.
fn measured(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut is_colour = false;
    text.char_indices().map(move |(at, character)| {
        let was_colour = is_colour || character == '\u{1b}';
        is_colour = was_colour && character != 'm';
        (at, if was_colour { 0 } else { character.width().unwrap_or(0) })
    })
}

/// How many columns `text` takes.
pub(crate) fn width(text: &str) -> usize {
    measured(text).map(|(_, width)| width).sum()
}

/// `text` if it takes no more than `most` columns, else its beginning and a mark. Nothing fits into no column.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(1) else { return String::new() };
    format!("{}{CUT}", beginning(text, room))
}

/// What is left of a column of the width `wanted` where the others may take `most`: it needs `least` of what it wants.
pub(crate) fn narrowed((wanted, least): (usize, usize), most: usize) -> usize {
    wanted.min(most.max(least))
}

/// How wide columns may be for all to have room, each given by the width that it wants and the least that it needs: the
/// short ones are whole, the others of one width. 0 if there is not enough room.
pub(crate) fn widest(columns: &[(usize, usize)], room: usize) -> usize {
    let taken = |most| columns.iter().map(|column| narrowed(*column, most)).sum::<usize>();
    let longest = columns.iter().map(|(wanted, _)| *wanted).max().unwrap_or(0);
    // The largest width that fits, by halves.
    let (mut fits, mut too_much) = (0, longest.min(room) + 1);
    while too_much - fits > 1 {
        let middle = usize::midpoint(fits, too_much);
        if taken(middle) <= room { fits = middle } else { too_much = middle }
    }
    fits
}

/// As much of the beginning of `text` as takes no more than `most` columns.
fn beginning(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let past = measured(text).find(|(_, width)| {
        taken += width;
        taken > most
    });
    text.get(..past.map_or(text.len(), |(at, _)| at)).unwrap_or_default()
}

/// The lines of `text` when none may take more than `most` columns: broken between words where that is possible. Nothing is
/// left out but the spaces at which it is broken.
pub(crate) fn fold(text: &str, most: usize) -> Vec<String> {
    // The widest characters must fit.
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

/// Appends `word` to the last of `lines`, and breaks it where it would be too long.
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

/// `line` as several when it would take more than `most` columns; those below are moved to the right.
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

/// Lines below one that was too long are moved so far to the right.
const HANGING: usize = 2;

/// How a line ends on which something stands already.
#[derive(Clone, Copy)]
pub(crate) struct Trail {
    /// So many columns are taken.
    pub(crate) taken: usize,
    /// What does not fit stands below the line, moved so far to the right,
    pub(crate) below: usize,
    /// unless there are so many columns beside it: then it goes on below itself.
    pub(crate) least: usize,
}

impl Trail {
    /// Ends the line with `text`, and breaks that into several on a terminal that is too narrow.
    pub(crate) fn write(self, out: &mut dyn Write, text: &str, style: Style) -> io::Result<()> {
        let all = output::width().unwrap_or(usize::MAX);
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

//! Text layout in terminal columns. Wide characters, such as Chinese ones and emoji, take two columns. The text is
//! already escaped, so it does not move the cursor, and escape sequences in it are colors.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style;
use runvault::display::whole;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

use super::terminal;

/// The mark at the end of truncated text.
pub(crate) const CUT: &str = "…";

/// Returns the width of `text` in columns.
pub(crate) fn width(text: &str) -> usize {
    console::measure_text_width(text)
}

/// Returns `text` if it takes at most `most` columns, otherwise its start and a mark; an empty string if there are no
/// columns.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if most == 0 { Cow::Borrowed("") } else { console::truncate_str(text, most, CUT) }
}

/// Wraps `text` into lines of at most `most` columns, between words where possible. Only the spaces at the ends
/// of lines are dropped.
pub(crate) fn fold(text: &str, most: usize) -> Vec<Cow<'_, str>> {
    textwrap::wrap(text, options(most))
}

/// Wraps `line` at `most` columns, with a hanging indent.
pub(crate) fn hang(line: &str, most: usize) -> String {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let below = " ".repeat((indent + HANGING).min(most / 2));
    textwrap::wrap(line, options(most).subsequent_indent(&below)).join("\n")
}

fn options<'o>(most: usize) -> Options<'o> {
    // The widest characters take two columns.
    Options::new(most.max(2))
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
}

/// The hanging indent of wrapped lines.
const HANGING: usize = 2;

/// The layout of text appended to a line.
#[derive(Clone, Copy)]
pub(crate) struct TrailingLayout {
    /// The columns already taken.
    pub(crate) used: usize,
    /// The indent of text that does not fit and is put below the line,
    pub(crate) below: usize,
    /// unless at least this number of columns is available: then it is wrapped in place.
    pub(crate) least: usize,
}

impl TrailingLayout {
    /// Appends `text` to the line and ends it, wrapping the text on a narrow terminal.
    pub(crate) fn write(self, out: &mut dyn Write, text: &str, style: Style) -> io::Result<()> {
        let all = terminal::width().unwrap_or(usize::MAX);
        let room = all.saturating_sub(self.used + 1);
        let is_inline = width(text) <= room || room >= self.least;
        let at = if is_inline { self.used + 1 } else { self.below };
        let lines = fold(text, all.saturating_sub(at));
        for (index, line) in lines.iter().filter(|line| !line.is_empty()).enumerate() {
            if index == 0 && is_inline {
                write!(out, " {style}{line}{style:#}")?;
            } else {
                write!(out, "\n{:at$}{style}{line}{style:#}", "")?;
            }
        }
        writeln!(out)
    }
}

/// The number of columns that replace a tab.
const TAB: &str = "    ";

/// Returns the lines of an untrusted text, escaped and wrapped at `room` columns: at most `most` of them, and whether
/// there are more.
pub(crate) fn folded(text: &str, room: usize, most: usize) -> (Vec<String>, bool) {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let escaped = whole(&line.replace('\t', TAB));
        for line in fold(&escaped, room) {
            if lines.len() == most {
                return (lines, true);
            }
            lines.push(line.into_owned());
        }
    }
    (lines, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn colors_take_no_room() {
        let text = "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m one two";
        assert_eq!(width(text), 14);
        assert_eq!(fold(text, 10), ["\u{1b}[1m\u{1b}[31merror:\u{1b}[0m one", "two"]);
        assert_eq!(hang("  one two three", 9), "  one two\n    three");
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
            prop_assert_eq!(fold(&text, usize::MAX), [text.trim_end_matches(' ')]);
            prop_assert!(width(&cut(&text, most)) <= most);
        }
    }

    #[test]
    fn lines_are_kept_and_control_nothing() {
        let (lines, is_cut) = folded("one two\n\tthree\u{1b}[2J\r\n\u{202e}four\n", 8, 9);
        let expected = ["one two", "", "three\\u{", "1b}[2J\\r", "\\u{202e}", "four", ""];
        assert_eq!((lines, is_cut), (expected.map(str::to_owned).to_vec(), false));
        assert_eq!(folded("a\nb\nc", 8, 2), (vec!["a".to_owned(), "b".to_owned()], true));
        assert_eq!(folded("\tab", 8, 2), (vec!["    ab".to_owned()], false));
        assert!(!folded("a\nb", usize::MAX, 2).1);
    }
}

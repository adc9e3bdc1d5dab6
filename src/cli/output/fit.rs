//! Text layout in terminal columns. Wide characters, such as Chinese ones and emoji, take two columns. The text is
//! already escaped, so it does not move the cursor, and escape sequences in it are colors.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};

use anstyle::Style;
use console::AnsiCodeIterator;
use runvault::display::whole;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

use super::terminal;

/// The mark in place of omitted text.
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

/// The parts of a text that remain when it is shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shortening {
    /// The start.
    #[default]
    Start,
    /// The start and the end.
    Ends,
    /// The end.
    End,
    /// The start and the end of the first word; if all of it fits, the start of the text.
    EndsOfWord,
    /// The end of the first word; if all of it fits, the start of the text.
    EndOfWord,
}

/// Maximum number of texts that are compared to choose a shortening.
const COMPARED: usize = 1_000;

impl Shortening {
    /// All shortenings, the preferred one first.
    const ALL: [Self; 5] = [Self::Start, Self::Ends, Self::End, Self::EndsOfWord, Self::EndOfWord];

    /// Returns `text` if it takes at most `most` columns, otherwise the parts of it that remain, and a mark in place of what
    /// is omitted between them; an empty string if there are no columns.
    pub(crate) fn apply(self, text: &str, most: usize) -> Cow<'_, str> {
        let all = match self {
            Self::Start => return cut(text, most),
            Self::Ends | Self::End => width(text),
            Self::EndsOfWord | Self::EndOfWord => width(text.split(' ').next().unwrap_or_default()),
        };
        let room = most.saturating_sub(1);
        if all < most || room == 0 || width(text) <= most {
            return cut(text, most);
        }
        let head = match self {
            // Where many ids begin alike, more of the end is needed.
            Self::Ends | Self::EndsOfWord => room / 3,
            Self::Start | Self::End | Self::EndOfWord => 0,
        };
        // There is no room for a mark behind a word that just fits.
        let is_whole_word = all == most;
        let tail = if is_whole_word { 0..all } else { all - (room - head)..all };
        let mut short = String::new();
        let mut is_marked = is_whole_word;
        let mut at = 0;
        for (piece, is_escape) in AnsiCodeIterator::new(text) {
            if is_escape {
                short.push_str(piece);
                continue;
            }
            for character in piece.chars() {
                let begin = at;
                at += width(character.encode_utf8(&mut [0; 4]));
                if at <= head || (tail.start <= begin && at <= tail.end) {
                    short.push(character);
                } else if !is_marked {
                    short.push_str(CUT);
                    is_marked = true;
                }
            }
        }
        // A sequence of characters can take more columns than these do alone.
        if width(&short) <= most { Cow::Owned(short) } else { cut(text, most) }
    }
}

/// How the texts of a column are shortened so that they differ: to their start, unless others have the same one. Ids often
/// differ only at the end; a label begins with an id and ends like others.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnShortening {
    /// The starts that several texts have.
    shared: HashSet<String>,
    /// The shortening of these texts.
    shortening: Shortening,
}

impl ColumnShortening {
    /// Returns the shortening by which the most of `texts` differ if each takes at most `most` columns, and whether they all
    /// do.
    pub(crate) fn distinguishing(texts: &BTreeSet<&str>, most: usize) -> (Self, bool) {
        let mut starts = HashSet::new();
        let starts_of_several = texts.iter().take(COMPARED).map(|text| cut(text, most));
        let shared: HashSet<String> =
            starts_of_several.filter(|start| !starts.insert(start.clone())).map(Cow::into_owned).collect();
        let is_shared = |text: &&&str| shared.contains(&*cut(text, most));
        let texts: Vec<&str> = texts.iter().take(COMPARED).filter(is_shared).copied().collect();
        let mut best = (Shortening::Start, shared.len());
        for shortening in Shortening::ALL {
            if best.1 == texts.len() {
                break;
            }
            let shortened = texts.iter().map(|text| shortening.apply(text, most));
            let differing = shortened.filter(|text| !starts.contains(text)).collect::<HashSet<_>>().len();
            if differing > best.1 {
                best = (shortening, differing);
            }
        }
        let (shortening, differing) = best;
        let is_complete = differing == texts.len();
        (Self { shared, shortening }, is_complete)
    }

    /// Returns `text` if it takes at most `most` columns, otherwise a part of it, and a mark in place of the rest.
    pub(crate) fn apply<'t>(&self, text: &'t str, most: usize) -> Cow<'t, str> {
        let start = cut(text, most);
        if self.shared.contains(&*start) { self.shortening.apply(text, most) } else { start }
    }
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
    fn texts_are_shortened_to_the_parts_that_remain() {
        let id = "nightly-2026-11-27-agent-a-0001";
        let labeled = format!("{id} the-model");
        let shortened = |shortening: Shortening| shortening.apply(&labeled, 13).into_owned();
        assert_eq!(shortened(Shortening::Start), "nightly-2026…");
        assert_eq!(shortened(Shortening::Ends), "nigh…he-model");
        assert_eq!(shortened(Shortening::End), "…01 the-model");
        assert_eq!(shortened(Shortening::EndsOfWord), "nigh…t-a-0001");
        assert_eq!(shortened(Shortening::EndOfWord), "…agent-a-0001");
        assert_eq!(Shortening::EndOfWord.apply(&labeled, 36), format!("{id} the…"));
        for shortening in Shortening::ALL {
            assert_eq!(shortening.apply(id, id.len()), id);
            assert_eq!(shortening.apply(id, 1), "…");
            assert_eq!(shortening.apply(id, 0), "");
        }
        let colored = "\u{1b}[1m漢字漢字\u{1b}[0m 漢字";
        assert_eq!(Shortening::Ends.apply(colored, 9), "\u{1b}[1m漢…\u{1b}[0m 漢字");
    }

    #[test]
    fn the_start_remains_unless_others_have_the_same() {
        let shown = |texts: &[&str], most| {
            let (shortening, is_complete) =
                ColumnShortening::distinguishing(&texts.iter().copied().collect(), most);
            let shown: Vec<String> =
                texts.iter().map(|text| shortening.apply(text, most).into_owned()).collect();
            (shown.join(" "), is_complete)
        };
        let is = |text: &str, is_complete| (text.to_owned(), is_complete);
        assert_eq!(shown(&["first-of-them", "other-of-them"], 6), is("first… other…", true));
        let ids = ["nightly-a-0001", "nightly-a-0002", "weekly-a-0001"];
        assert_eq!(shown(&ids, 9), is("ni…a-0001 ni…a-0002 weekly-a…", true));
        assert_eq!(shown(&["run-of-7-at-home", "run-of-8-at-home"], 8), is("run-of-… run-of-…", false));
        assert_eq!(shown(&["run-of-7-at-home", "run-of-8-at-home"], 10), is("run-of-7-… run-of-8-…", true));
        let middle = ["run-of-agent-7-of-it", "run-of-agent-8-of-it"];
        assert_eq!(shown(&middle, 10), is("…t-7-of-it …t-8-of-it", true));
        let labels = ["nightly-a-0001 the-model", "nightly-a-0002 the-model"];
        assert_eq!(shown(&labels, 9), is("ni…a-0001 ni…a-0002", true));
        assert_eq!(shown(&[], 9), is("", true));
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

        #[test]
        fn ids_with_one_start_stay_distinct(start in "[a-z-]{0,40}", ends in proptest::collection::btree_set("[0-9]{4}", 0..20)) {
            let ids: Vec<String> = ends.iter().map(|end| format!("{start}{end}")).collect();
            let texts = ids.iter().map(String::as_str).collect();
            prop_assert!(ColumnShortening::distinguishing(&texts, 8).1);
            let labels: Vec<String> = ids.iter().map(|id| format!("{id} the-model-of-it")).collect();
            let texts = labels.iter().map(String::as_str).collect();
            prop_assert!(ColumnShortening::distinguishing(&texts, 8).1);
        }

        #[test]
        fn shortened_texts_fit(text in "(\\PC|[漢字😀é\u{301}]){0,40}", most in 0..30_usize) {
            for shortening in Shortening::ALL {
                prop_assert!(width(&shortening.apply(&text, most)) <= most, "{:?}", shortening);
            }
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

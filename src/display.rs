//! Text for people: untrusted text, whose escaping is defined here, numbers, sizes and times, in the same form on terminals
//! and pages.

use std::fmt::{self, Display, Formatter};

use chrono::{DateTime, Duration, Utc};
use unicode_width::UnicodeWidthChar;

/// Returns the number of columns that a character takes on a terminal, at least one: what has no width is escaped.
#[must_use]
pub fn columns(character: char) -> usize {
    character.width().unwrap_or(1).max(1)
}

/// Returns `count` and `thing`, with an `s` unless the count is 1.
#[must_use]
pub fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Formats a number of bytes, such as `1.50 KiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = UNITS.iter().enumerate().rev().find(|(index, _)| bytes >> (10 * (index + 1)) > 0);
    let Some((index, unit)) = unit else { return format!("{bytes} B") };
    let shift = 10 * (index + 1);
    let hundredths = (u128::from(bytes) * 100 + (1 << (shift - 1))) >> shift;
    format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100)
}

/// Formats a time to the second.
#[must_use]
pub fn time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Formats a time relative to `now`, such as "3 minutes ago". A time that is not in the past is formatted exactly.
#[must_use]
pub fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let past = now.signed_duration_since(at);
    let say = |count: i64, unit: &str| format!("{} ago", counted(count.unsigned_abs(), unit));
    match (past.num_minutes(), past.num_hours(), past.num_days()) {
        _ if past < Duration::minutes(-1) => time(at),
        (..1, _, _) => "just now".to_owned(),
        (minutes, ..1, _) => say(minutes, "minute"),
        (_, hours, ..1) => say(hours, "hour"),
        (_, _, days @ ..14) => say(days, "day"),
        (_, _, days @ ..60) => say(days / 7, "week"),
        (_, _, days @ ..730) => say(days / 30, "month"),
        (_, _, days) => say(days / 365, "year"),
    }
}

/// Formats a number of milliseconds in the largest units that fit.
#[must_use]
pub fn duration(milliseconds: i64) -> String {
    const SECOND: i64 = 1_000;
    const MINUTE: i64 = 60 * SECOND;
    const HOUR: i64 = 60 * MINUTE;
    match milliseconds {
        ..SECOND => format!("{milliseconds} ms"),
        SECOND..MINUTE => {
            format!("{}.{} s", milliseconds / SECOND, milliseconds % SECOND / (SECOND / 10))
        }
        MINUTE..HOUR => {
            with_rest(&format!("{} min", milliseconds / MINUTE), milliseconds % MINUTE / SECOND, "s")
        }
        HOUR.. => with_rest(&format!("{} h", milliseconds / HOUR), milliseconds % HOUR / MINUTE, "min"),
    }
}

/// Returns a length in units, with the number of the next smaller ones unless it is zero.
fn with_rest(whole: &str, rest: i64, unit: &str) -> String {
    if rest > 0 { format!("{whole} {rest} {unit}") } else { whole.to_owned() }
}

/// Returns up to `most` of `known` that are similar to `text`, the most similar first: those that contain it or that it
/// contains, and those that differ, or have a word that differs, in few letters.
pub fn similar<'k>(text: &str, known: impl IntoIterator<Item = &'k str>, most: usize) -> Vec<&'k str> {
    let text = text.trim_matches('*').to_lowercase();
    let ranked =
        known.into_iter().filter_map(|candidate| Some((rank(&text, &candidate.to_lowercase())?, candidate)));
    let mut ranked: Vec<(usize, &str)> = ranked.collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// Returns how different two lowercase texts are; `None` if neither could have been meant by the other.
fn rank(text: &str, candidate: &str) -> Option<usize> {
    if text.is_empty() || candidate.is_empty() {
        return None;
    }
    if candidate.contains(text) {
        return Some(0);
    }
    let letters = text.chars().count();
    let by_letters = Some(1 + distance(text, candidate)).filter(|rank| *rank <= 1 + letters / 3);
    let has_candidate = candidate.chars().count() > 2 && text.contains(candidate);
    let words = || candidate.split(|letter: char| !letter.is_alphanumeric());
    let is_word = |word: &str| word.chars().count() > 3 && distance(text.trim_start_matches('-'), word) <= 1;
    let by_word = (letters > 3 && words().any(is_word)).then_some(2);
    [by_letters, has_candidate.then_some(3), by_word].into_iter().flatten().min()
}

/// Returns the number of letters to insert, remove, replace or exchange with the next one to get from one text to the
/// other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    let mut previous = None;
    for (row, letter) in one.chars().enumerate() {
        let mut next = vec![row + 1];
        for (column, theirs) in other.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
            let mut cost = (at(&last, column) + usize::from(letter != *theirs))
                .min(at(&last, column + 1) + 1)
                .min(at(&next, column) + 1);
            let is_exchanged =
                column > 0 && previous == Some(*theirs) && other.get(column.wrapping_sub(1)) == Some(&letter);
            if is_exchanged {
                cost = cost.min(at(&before_last, column - 1) + 1);
            }
            next.push(cost);
        }
        before_last = std::mem::replace(&mut last, next);
        previous = Some(letter);
    }
    last.last().copied().unwrap_or_default()
}

/// Longer texts are shown without their middle, which could be megabytes.
const SHOWN_CHARACTERS: usize = 1000;

/// Maximum characters of a text that shares a line with others.
const BRIEF_CHARACTERS: usize = 120;

/// Untrusted text. Control characters and those that reorder or hide text are shown as escapes, and the middle of long
/// texts is replaced by a mark with the number of omitted characters.
pub struct EscapedText<'t> {
    text: &'t str,
    most: usize,
}

/// Returns `text` for display, up to 1,000 characters.
#[must_use]
pub fn escaped(text: &str) -> EscapedText<'_> {
    EscapedText { text, most: SHOWN_CHARACTERS }
}

/// Returns `text` for display on a line with other text.
#[must_use]
pub fn brief(text: &str) -> EscapedText<'_> {
    escaped(text).up_to(BRIEF_CHARACTERS)
}

/// Returns all of `text` escaped, where the output is limited in another way.
#[must_use]
pub fn whole(text: &str) -> String {
    escaped(text).up_to(usize::MAX).to_string()
}

impl EscapedText<'_> {
    /// Limits the display to `most` characters, half from the start and half from the end.
    #[must_use]
    pub fn up_to(self, most: usize) -> Self {
        Self { most, ..self }
    }
}

impl Display for EscapedText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let half = self.most / 2;
        let head = self.text.char_indices().nth(half).map_or(self.text.len(), |(at, _)| at);
        let tail = self.text.char_indices().nth_back(half - 1).map_or(0, |(at, _)| at);
        match (self.text.get(..head), self.text.get(head..tail), self.text.get(tail..)) {
            (Some(head), Some(left_out), Some(tail)) if !left_out.is_empty() => {
                escape(head, f)?;
                write!(f, "…[{} characters]…", left_out.chars().count())?;
                escape(tail, f)
            }
            _ => escape(self.text, f),
        }
    }
}

fn escape(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    let mut rest = text;
    while let Some((at, character)) = rest.char_indices().find(|(_, character)| is_hidden(*character)) {
        let (plain, hidden) = rest.split_at_checked(at).unwrap_or((rest, ""));
        f.write_str(plain)?;
        write_escape(character, f)?;
        rest = hidden.get(character.len_utf8()..).unwrap_or_default();
    }
    f.write_str(rest)
}

/// Writes a character as an escape, such as `\n` or `\u{202e}`.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write_escape(character: char, out: &mut dyn fmt::Write) -> fmt::Result {
    match character {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        other => write!(out, "\\u{{{:x}}}", u32::from(other)),
    }
}

/// Returns whether a character controls a terminal, or makes text look like other text.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    controls(character) || is_invisible(character)
}

/// Returns whether a character controls a terminal: C0, DEL and C1, line and paragraph separators, and directional
/// formatting characters.
fn controls(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character is invisible: Unicode's `Default_Ignorable_Code_Point`, and interlinear annotation
/// characters.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether `bytes` are text that a terminal only displays. Joiners and variation selectors are permitted: emoji
/// and several scripts use them.
#[must_use]
pub fn is_plain(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let part_of_text = |character| matches!(character, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
    // A carriage return can overwrite a line on the terminal, unless it is part of a line ending.
    let lone_return = text.replace("\r\n", "\n").contains('\r');
    !lone_return
        && text.chars().all(|character| {
            matches!(character, '\n' | '\r' | '\t') || part_of_text(character) || !is_hidden(character)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            ((1 << 20) - 1, "1024.00 KiB"),
            (1 << 20, "1.00 MiB"),
            (u64::MAX, "16.00 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn times_are_relative_to_now() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        for (past, said) in [
            (Duration::seconds(-59), "just now"),
            (Duration::seconds(0), "just now"),
            (Duration::seconds(59), "just now"),
            (Duration::seconds(60), "1 minute ago"),
            (Duration::seconds(3599), "59 minutes ago"),
            (Duration::minutes(60), "1 hour ago"),
            (Duration::hours(23), "23 hours ago"),
            (Duration::hours(24), "1 day ago"),
            (Duration::days(13), "13 days ago"),
            (Duration::days(14), "2 weeks ago"),
            (Duration::days(59), "8 weeks ago"),
            (Duration::days(60), "2 months ago"),
            (Duration::days(729), "24 months ago"),
            (Duration::days(730), "2 years ago"),
            (Duration::days(-1), "2027-01-16 08:00:00 UTC"),
        ] {
            assert_eq!(ago(now - past, now), said);
        }
        assert_eq!(ago(DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC), "524634 years ago");
    }

    #[test]
    fn durations_have_two_units() {
        for (milliseconds, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min"),
            (3_599_999, "59 min 59 s"),
            (90_061_000, "25 h 1 min"),
        ] {
            assert_eq!(duration(milliseconds), text);
        }
    }

    #[test]
    fn similar_texts_are_those_that_may_be_meant() {
        let models = ["claude-opus-5", "gpt-5", "gpt-5-mini", "triage-large-2"];
        assert_eq!(similar("gpt", models, 5), ["gpt-5", "gpt-5-mini"]);
        assert_eq!(similar("GPT-5-mni", models, 5), ["gpt-5-mini", "gpt-5"]);
        assert_eq!(similar("*triage*", models, 5), ["triage-large-2"]);
        assert_eq!(similar("claude-opsu-5", models, 5), ["claude-opus-5"]);
        assert_eq!(similar("opus", models, 5), ["claude-opus-5"]);
        let options = ["--note", "--has-error", "--sort", "--prompt-hash"];
        assert_eq!(similar("--errors", options, 1), ["--has-error"]);
        assert_eq!(similar("--promt-hash", options, 1), ["--prompt-hash"]);
        for nothing in ["", "zzzzzz", "--wide"] {
            assert!(similar(nothing, options, 5).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn letters_are_counted() {
        for (one, other, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
            ("é", "e", 1),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn nothing_that_moves_a_terminal_remains() {
        let text = "a\u{1b}[31m\u{9b}2J\u{7f}\n\u{202e}b\u{feff}é😀";
        assert_eq!(escaped(text).to_string(), "a\\u{1b}[31m\\u{9b}2J\\u{7f}\\n\\u{202e}b\\u{feff}é😀");
    }

    #[test]
    fn what_is_not_seen_is_told() {
        for hidden in [
            '\0',
            '\u{85}',
            '\u{9f}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200d}',
            '\u{2028}',
            '\u{2029}',
            '\u{202d}',
            '\u{2066}',
            '\u{2069}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{fff9}',
            '\u{e0001}',
            '\u{e007f}',
            '\u{e0100}',
        ] {
            let shown = escaped(&format!("a{hidden}b")).to_string();
            assert_eq!(shown, format!("a\\u{{{:x}}}b", u32::from(hidden)));
        }
        let seen = "aé漢\u{301}😀\u{a0}\u{3000}\u{e000}\\";
        assert_eq!(escaped(seen).to_string(), seen);
    }

    #[test]
    fn long_texts_lose_their_middle_and_say_so() {
        let whole = "é".repeat(SHOWN_CHARACTERS);
        assert_eq!(escaped(&whole).to_string(), whole);
        let longer = format!("{whole}é");
        assert!(escaped(&longer).to_string().contains("é…[1 characters]…é"));
        let long = format!("/a{}/z", "\u{1b}".repeat(1 << 20));
        let shown = escaped(&long).to_string();
        assert!(shown.starts_with("/a\\u{1b}") && shown.ends_with("\\u{1b}/z"));
        assert!(shown.contains(&format!("…[{} characters]…", (1 << 20) + 4 - SHOWN_CHARACTERS)));
        assert!(shown.len() < 7 * SHOWN_CHARACTERS);
        assert_eq!(brief("short").to_string(), "short");
        assert!(brief(&whole).to_string().chars().count() < 150);
        assert_eq!(brief("").to_string(), "");
    }

    #[test]
    fn plain_text_has_nothing_that_controls() {
        for plain in ["", "{\n\t\"a\": \"é😀\"}\r\n", "❤\u{fe0f} 👩\u{200d}💻 می\u{200c}خواهم"]
        {
            assert!(is_plain(plain.as_bytes()), "{plain:?}");
        }
        for other in
            ["a\u{1b}[2J", "a\rb", "\u{9b}", "\u{202e}", "\u{2066}", "\u{200b}", "\u{7}", "\0", "\u{e0041}"]
        {
            assert!(!is_plain(other.as_bytes()), "{other:?}");
        }
        assert!(!is_plain(b"\xff"));
    }
}

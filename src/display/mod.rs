//! Text for people: untrusted text, numbers, sizes and times, in the same form on terminals and pages.

mod escape;

use chrono::{DateTime, Duration, Utc};
use unicode_width::UnicodeWidthChar;

pub use escape::{EscapedText, brief, escaped, is_hidden, is_plain, whole, write_escape};

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
}

//! Text for people: untrusted text, numbers, sizes and times, in the same form on terminals and pages.

mod escape;
mod similar;

use chrono::{DateTime, Duration, Utc};
use unicode_width::UnicodeWidthChar;

pub use escape::{EscapedText, brief, escaped, is_hidden, is_plain, whole, write_escape};
pub use similar::similar;

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
}

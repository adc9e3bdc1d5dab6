//! The only source of the current time, and points and lengths of time as people write them.
//!
//! Code that records or compares times calls [`now`], so that tests do not depend on the date: [`fix`] freezes the
//! clock of this process. Durations are measured with [`std::time::Instant`] instead.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use chrono::{DateTime, Datelike, Days, Duration, Months, NaiveDate, NaiveDateTime, Utc, Weekday};

/// The value for "not frozen": a time that no [`DateTime`] can have.
const NOT_FIXED: i64 = i64::MIN;

/// Milliseconds since 1970 at which the clock is frozen.
static FIXED: AtomicI64 = AtomicI64::new(NOT_FIXED);

/// Returns the current time in UTC: the system time, unless the clock is frozen. A system clock before 1970 returns a
/// time before 1970.
#[must_use]
pub fn now() -> DateTime<Utc> {
    let fixed = DateTime::from_timestamp_millis(FIXED.load(Ordering::Relaxed));
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
    let system = || SystemTime::now().into();
    fixed.unwrap_or_else(system)
}

/// Freezes the clock of this process at `time`, to the millisecond, or unfreezes it if `time` is `None`. For tests
/// only: recorded times are false while it is frozen.
pub fn fix(time: Option<DateTime<Utc>>) {
    FIXED.store(time.map_or(NOT_FIXED, |time| time.timestamp_millis()), Ordering::Relaxed);
}

/// The error for a text that is not a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a time such as 2026-11-20, 2026-11, 2026-11-20T12:00:00Z, yesterday, tuesday or last week, or an age such \
     as 90m, 36h, 7d, 4w"
)]
pub struct ParseTimeError;

/// Milliseconds of the units of lengths, by their names. A month is a twelfth of a year of 365.25 days.
const UNITS: &[(&[&str], i64)] = &[
    (&["ms", "millisecond", "milliseconds"], 1),
    (&["s", "sec", "secs", "second", "seconds"], 1_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
    (&["w", "wk", "wks", "week", "weeks"], 604_800_000),
    (&["M", "month", "months"], 2_630_016_000),
    (&["y", "yr", "yrs", "year", "years"], 31_557_600_000),
];

/// Parses a length of time, such as `90m`, `36h`, `1h 30m` or `2 weeks`; `None` if it is none or too long.
#[must_use]
pub fn parse_length(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut milliseconds: i64 = 0;
    loop {
        let (count, after) = rest.split_at(rest.find(|byte: char| !byte.is_ascii_digit())?);
        let after = after.trim_start();
        let end = after.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, size) = UNITS.iter().find(|(names, _)| names.contains(&unit))?;
        milliseconds = milliseconds.checked_add(count.parse::<i64>().ok()?.checked_mul(*size)?)?;
        rest = after.trim_start();
        if rest.is_empty() {
            return Duration::try_milliseconds(milliseconds);
        }
    }
}

/// Parses a point in time. A day, a week, a month or a year is its beginning in UTC: `2026-11-20`, `2026-11`, `today`,
/// `yesterday`, `tuesday` (the last one before today), `last week` (from Monday on), `this month`. Others are RFC 3339
/// timestamps, `2026-11-20 12:00` in UTC, `now`, and ages such as `7d` or `2 hours ago`, before `now`.
///
/// # Errors
/// Returns an error if the text is none of these.
pub fn parse_time(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, ParseTimeError> {
    let text = text.trim();
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.to_utc());
    }
    let is_naive = |format: &&str| NaiveDateTime::parse_from_str(text, format).ok();
    if let Some(time) = ["%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]
        .iter()
        .find_map(is_naive)
    {
        return Ok(time.and_utc());
    }
    let words = text.to_lowercase();
    if words == "now" {
        return Ok(now);
    }
    let date = calendar_date(&words).or_else(|| named_date(&words, now.date_naive()));
    if let Some(midnight) = date.and_then(|date| date.and_hms_opt(0, 0, 0)) {
        return Ok(midnight.and_utc());
    }
    let age = text.strip_suffix("ago").filter(|rest| rest.ends_with(' ')).unwrap_or(text);
    parse_length(age).and_then(|age| now.checked_sub_signed(age)).ok_or(ParseTimeError)
}

/// Parses a day, or the first day of a month or a year, in digits.
fn calendar_date(text: &str) -> Option<NaiveDate> {
    let mut parts = text.split('-');
    let mut part = |digits: usize| match parts.next() {
        None => Some(None),
        Some(part) if part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()) => {
            part.parse().ok().map(Some)
        }
        Some(_) => None,
    };
    let (year, month, day) = (part(4)??, part(2)?, part(2)?);
    if parts.next().is_some() {
        return None;
    }
    NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month.unwrap_or(1), day.unwrap_or(1))
}

/// Returns the first day of what the lowercase words name.
fn named_date(words: &str, today: NaiveDate) -> Option<NaiveDate> {
    let monday = || today.checked_sub_days(Days::new(today.weekday().num_days_from_monday().into()));
    match words {
        "today" => return Some(today),
        "yesterday" => return today.pred_opt(),
        "this week" => return monday(),
        "last week" => return monday()?.checked_sub_days(Days::new(7)),
        "this month" => return today.with_day(1),
        "last month" => return today.with_day(1)?.checked_sub_months(Months::new(1)),
        "this year" => return today.with_ordinal(1),
        "last year" => return NaiveDate::from_ymd_opt(today.year() - 1, 1, 1),
        _ => {}
    }
    let weekday: Weekday = words.strip_prefix("last ").unwrap_or(words).parse().ok()?;
    let since = (today.weekday().days_since(weekday) + 6) % 7 + 1;
    today.checked_sub_days(Days::new(since.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        // A Thursday.
        let now = DateTime::parse_from_rfc3339("2026-11-26T15:30:00Z").unwrap().to_utc();
        for (text, expected) in [
            ("2026-11-20", "2026-11-20T00:00:00Z"),
            (" 2026-11-20T12:00:00+02:00 ", "2026-11-20T10:00:00Z"),
            ("2026-11-20 12:00", "2026-11-20T12:00:00Z"),
            ("2026-11", "2026-11-01T00:00:00Z"),
            ("2026", "2026-01-01T00:00:00Z"),
            ("now", "2026-11-26T15:30:00Z"),
            ("today", "2026-11-26T00:00:00Z"),
            ("Yesterday", "2026-11-25T00:00:00Z"),
            ("tuesday", "2026-11-24T00:00:00Z"),
            ("last Tuesday", "2026-11-24T00:00:00Z"),
            ("thu", "2026-11-19T00:00:00Z"),
            ("friday", "2026-11-20T00:00:00Z"),
            ("this week", "2026-11-23T00:00:00Z"),
            ("last week", "2026-11-16T00:00:00Z"),
            ("this month", "2026-11-01T00:00:00Z"),
            ("last month", "2026-10-01T00:00:00Z"),
            ("this year", "2026-01-01T00:00:00Z"),
            ("last year", "2025-01-01T00:00:00Z"),
            ("1h", "2026-11-26T14:30:00Z"),
            ("1h 30m", "2026-11-26T14:00:00Z"),
            ("2 days ago", "2026-11-24T15:30:00Z"),
            ("7d", "2026-11-19T15:30:00Z"),
        ] {
            let expected = DateTime::parse_from_rfc3339(expected).unwrap();
            assert_eq!(parse_time(text, now), Ok(expected.to_utc()), "{text}");
        }
        for wrong in
            ["", "2026-13", "2026-11-31", "26-11-20", "soon", "last", "last day", "7", "7x", "-1d", "7dago"]
        {
            assert_eq!(parse_time(wrong, now), Err(ParseTimeError), "{wrong}");
        }
    }

    #[test]
    fn lengths_have_units() {
        assert_eq!(parse_length("1500ms"), Some(Duration::milliseconds(1_500)));
        assert_eq!(parse_length("4w"), parse_length("28 days"));
        assert_eq!(parse_length("1M"), Some(Duration::seconds(2_630_016)));
        for wrong in ["", "m", "-1m", "1x", "1", "é", "1 é", "99999999999999999999d", "9223372036854775807y"]
        {
            assert_eq!(parse_length(wrong), None, "{wrong}");
        }
    }
}

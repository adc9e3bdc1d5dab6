//! The creation time of a trace: a time in UTC in an ISO 8601 format.

use chrono::{NaiveDate, Weekday};

/// The classification of a text as a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimestampClass {
    /// A valid time in UTC.
    Real,
    /// It has the form `YYYY-MM-DDTHH:MM:SSZ`, which is all that the format's own tools check, but is not a valid date
    /// and time.
    Unreal,
    /// A time with an offset from UTC.
    Elsewhere,
    /// Not a time, or an incomplete one.
    None,
}

/// Parses `text` as a date and a time of day in UTC, in any form of ISO 8601: the date by month, by week or by day of
/// the year, both parts with separators or both without, minutes and seconds omitted or with a fraction, `Z` or an
/// offset of zero.
pub(super) fn read(text: &str) -> TimestampClass {
    match parse(text) {
        Some(UtcOffset::Zero) => TimestampClass::Real,
        Some(UtcOffset::Other) => TimestampClass::Elsewhere,
        None if has_usual_form(text) => TimestampClass::Unreal,
        None => TimestampClass::None,
    }
}

/// Returns whether `text` has the form `YYYY-MM-DDTHH:MM:SSZ`. As in the format, the calendar is not checked.
pub(super) fn has_usual_form(text: &str) -> bool {
    const FORM: &str = "0000-00-00T00:00:00Z";
    text.len() == FORM.len()
        && text.bytes().zip(FORM.bytes()).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            other => byte == other,
        })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum UtcOffset {
    Zero,
    Other,
}

fn parse(text: &str) -> Option<UtcOffset> {
    let (date, rest) = text.split_once('T')?;
    let at = rest.find(['Z', '+', '-'])?;
    let (time, zone) = rest.split_at_checked(at)?;
    let is_extended = date.contains('-');
    if !is_date(date, is_extended) || !is_time(time, is_extended) {
        return None;
    }
    offset(zone, is_extended)
}

fn is_date(text: &str, is_extended: bool) -> bool {
    let parts: Vec<&str> = if is_extended { text.split('-').collect() } else { basic_date(text) };
    let is_real = match parts.as_slice() {
        [year, week, day] if week.starts_with('W') => number(year, 4)
            .zip(number(week.trim_start_matches('W'), 2).filter(|_| week.len() == 3))
            .zip(number(day, 1))
            .and_then(|((year, week), day)| {
                let weekday = Weekday::try_from(u8::try_from(day.checked_sub(1)?).ok()?).ok()?;
                NaiveDate::from_isoywd_opt(i32::try_from(year).ok()?, week, weekday)
            }),
        [year, month, day] => number(year, 4)
            .zip(number(month, 2))
            .zip(number(day, 2))
            .and_then(|((year, month), day)| NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)),
        [year, day] => number(year, 4)
            .zip(number(day, 3))
            .and_then(|(year, day)| NaiveDate::from_yo_opt(i32::try_from(year).ok()?, day)),
        _ => None,
    };
    is_real.is_some()
}

/// Returns the parts of a date without separators; none if it does not have such a form.
fn basic_date(text: &str) -> Vec<&str> {
    let ends: &[usize] = match (text.len(), text.contains('W')) {
        (8, true) => &[4, 7, 8],
        (8, false) => &[4, 6, 8],
        (7, false) => &[4, 7],
        _ => return Vec::new(),
    };
    let begins = std::iter::once(&0).chain(ends);
    begins.zip(ends).filter_map(|(begin, end)| text.get(*begin..*end)).collect()
}

fn is_time(text: &str, is_extended: bool) -> bool {
    let (whole, fraction) = match text.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    if fraction.is_some_and(|fraction| fraction.is_empty() || !fraction.bytes().all(|it| it.is_ascii_digit()))
    {
        return false;
    }
    let Some(parts) = clock(whole, is_extended) else { return false };
    let of = |index: usize| parts.get(index).copied().unwrap_or(0);
    let is_whole = fraction.is_none_or(|fraction| fraction.bytes().all(|digit| digit == b'0'));
    match (of(0), of(1), of(2)) {
        // 24:00, the end of a day.
        (24, 0, 0) => is_whole,
        // A leap second.
        (23, 59, 60) => true,
        (hours, minutes, seconds) => hours < 24 && minutes < 60 && seconds < 60,
    }
}

/// Returns hours, and minutes and seconds if present.
fn clock(text: &str, is_extended: bool) -> Option<Vec<u32>> {
    let parts: Vec<&str> = if is_extended {
        text.split(':').collect()
    } else {
        (0..text.len()).step_by(2).filter_map(|at| text.get(at..at + 2)).collect()
    };
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let is_whole = length + if is_extended { parts.len().saturating_sub(1) } else { 0 } == text.len();
    let parts: Option<Vec<u32>> = parts.into_iter().map(|part| number(part, 2)).collect();
    parts.filter(|parts| is_whole && (1..=3).contains(&parts.len()))
}

fn offset(zone: &str, is_extended: bool) -> Option<UtcOffset> {
    if zone == "Z" {
        return Some(UtcOffset::Zero);
    }
    let parts = clock(zone.get(1..)?, is_extended).filter(|parts| parts.len() <= 2)?;
    let of = |index: usize| parts.get(index).copied().unwrap_or(0);
    if of(0) > 23 || of(1) > 59 {
        return None;
    }
    Some(if of(0) == 0 && of(1) == 0 { UtcOffset::Zero } else { UtcOffset::Other })
}

/// Returns the number that consists of exactly `length` digits.
fn number(text: &str, length: usize) -> Option<u32> {
    let are_digits = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, SecondsFormat, Utc};
    use proptest::prelude::*;

    #[test]
    fn every_form_of_a_time_in_utc_is_one() {
        for text in [
            "2026-04-17T01:02:03Z",
            "2026-04-17T01:02:03.5Z",
            "2026-04-17T01:02:03,123456789Z",
            "2026-04-17T01:02:03+00:00",
            "2026-04-17T01:02:03-00:00",
            "2026-04-17T01:02:03+00",
            "20260417T010203Z",
            "20260417T010203+0000",
            "20260417T0102Z",
            "2026-04-17T01:02Z",
            "2026-04-17T01Z",
            "2026-04-17T01.5Z",
            "2026-W16-5T01:02:03Z",
            "2026W165T010203Z",
            "2026-107T01:02:03Z",
            "2026107T010203Z",
            "2024-02-29T00:00:00Z",
            "2026-12-31T24:00:00Z",
            "2016-12-31T23:59:60Z",
            "0000-01-01T00:00:00Z",
        ] {
            assert_eq!(read(text), TimestampClass::Real, "{text}");
        }
    }

    #[test]
    fn what_no_clock_shows_is_not_real() {
        for text in [
            "2026-99-99T99:99:99Z",
            "2026-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-04-17T24:00:01Z",
            "2026-04-17T12:59:60Z",
            "2026-00-01T00:00:00Z",
        ] {
            assert_eq!(read(text), TimestampClass::Unreal, "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_times_in_utc() {
        for text in ["2026-04-17T01:02:03+02:00", "20260417T010203-0130", "2026-04-17T01:02:03+01"] {
            assert_eq!(read(text), TimestampClass::Elsewhere, "{text}");
        }
        for text in [
            "",
            "2026-04-17",
            "2026-04-17T01:02:03",
            "2026-04-17 01:02:03Z",
            "2026-04-17t01:02:03z",
            "2026-04-17T010203Z",
            "20260417T01:02:03Z",
            "2026-04-17T01:02:03.Z",
            "2026-04-17T1:02:03Z",
            "2026-04-17T01:02:03Z ",
            "2026-04-17T01:02:03Zx",
            "2026-04-17T01:02:03+24:00",
            "2026-04-17T01:02:03+0:00",
            "2026-04-17T01:02:03:04Z",
            "2026-W54-1T00:00:00Z",
            "2026-W16-8T00:00:00Z",
            "2026-WW16-5T00:00:00Z",
            "2026-366T00:00:00Z",
            "yesterday",
            "２０２６-04-17T01:02:03Z",
            "T",
            "TZ",
            "20260417T01020Z",
        ] {
            assert_eq!(read(text), TimestampClass::None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_that_is_printed_is_read(seconds in -62_135_596_800_i64..253_402_300_800, nanos in 0..1_000_000_000_u32) {
            let time: DateTime<Utc> = DateTime::from_timestamp(seconds, nanos).unwrap();
            for format in [SecondsFormat::Secs, SecondsFormat::Millis, SecondsFormat::Nanos] {
                for use_z in [true, false] {
                    prop_assert_eq!(read(&time.to_rfc3339_opts(format, use_z)), TimestampClass::Real);
                }
            }
            for form in ["%Y%m%dT%H%M%SZ", "%Y-%jT%H:%M:%SZ", "%G-W%V-%uT%H:%MZ"] {
                prop_assert_eq!(read(&time.format(form).to_string()), TimestampClass::Real);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9TZW+:., é-]{0,30}", other: String) {
            read(&text);
            read(&other);
        }
    }
}

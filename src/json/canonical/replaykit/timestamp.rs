//! Normalization of timestamps with an offset to UTC with microseconds.
//!
//! A timestamp is what Python 3.11's `datetime.fromisoformat` accepts, with all its leniencies: the hashes of existing
//! files depend on them. `docs/formats.md` lists them.

use chrono::{Datelike, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, Weekday};

/// Returns `text` without surrounding white space, like Python's `str.strip`.
#[must_use]
pub fn strip_white_space(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// The error for a timestamp outside the years 1 to 9999 after conversion to UTC.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TimestampOutOfRange;

/// Returns `text` without surrounding white space, and in UTC if it is a timestamp with an offset.
pub(super) fn normalize(text: &str) -> Result<String, TimestampOutOfRange> {
    let stripped = strip_white_space(text);
    let parsed = match stripped.strip_suffix('Z') {
        Some(local) => parse(&format!("{local}+00:00")),
        None => parse(stripped),
    };
    let Some((local, offset)) = parsed else {
        return Ok(stripped.to_owned());
    };
    let utc = local.checked_sub_signed(offset).ok_or(TimestampOutOfRange)?;
    if !(1..=9999).contains(&utc.year()) {
        return Err(TimestampOutOfRange);
    }
    Ok(utc.and_utc().to_rfc3339_opts(SecondsFormat::Micros, true))
}

/// Returns the local time and its offset from UTC, or `None` if the text is not a timestamp or has no offset.
fn parse(text: &str) -> Option<(NaiveDateTime, TimeDelta)> {
    let bytes = NulTerminatedBytes(text.as_bytes());
    let separator = separator(bytes)?;
    let date = date(bytes, separator)?;
    if bytes.len() - separator <= 1 {
        return None;
    }
    let width = match bytes.at(separator) {
        0..0x80 => 1,
        lead if lead & 0xf0 == 0xe0 => 3,
        lead if lead & 0xf0 == 0xf0 => 4,
        _ => 2,
    };
    let start = separator + width;
    let zone = (start..bytes.len()).find(|at| matches!(bytes.at(*at), b'+' | b'-' | b'Z'))?;
    let (time, _) = clock(bytes, start, zone)?;
    if time.hours > 23 || time.minutes > 59 || time.seconds > 59 {
        return None;
    }
    let offset = offset(bytes, zone)?;
    let local = date.and_hms_micro_opt(time.hours, time.minutes, time.seconds, time.microseconds)?;
    Some((local, offset))
}

/// The text as NUL-terminated bytes, as the original implementation sees it.
#[derive(Clone, Copy)]
struct NulTerminatedBytes<'t>(&'t [u8]);

impl NulTerminatedBytes<'_> {
    fn len(self) -> usize {
        self.0.len()
    }

    fn at(self, index: usize) -> u8 {
        self.0.get(index).copied().unwrap_or(0)
    }

    /// Returns the number in the `count` ASCII digits at `index`.
    fn digits(self, index: usize, count: usize) -> Option<u32> {
        (index..index + count).try_fold(0, |number, at| {
            let digit = self.at(at);
            digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0'))
        })
    }
}

/// Returns the end of the date. Dates have several lengths, so some texts are ambiguous; the heuristics are those of
/// the original implementation.
fn separator(bytes: NulTerminatedBytes<'_>) -> Option<usize> {
    if bytes.len() < 7 {
        return None;
    }
    if bytes.len() == 7 {
        return Some(7);
    }
    match (bytes.at(4), bytes.at(5)) {
        (b'-', b'W') if bytes.at(8) != b'-' => Some(8),
        (b'-', b'W') if bytes.len() == 9 => None,
        (b'-', b'W') if bytes.at(10).is_ascii_digit() => Some(8),
        (b'-', _) => Some(10),
        (b'W', _) => {
            let end = (7..bytes.len()).find(|at| !bytes.at(*at).is_ascii_digit()).unwrap_or(bytes.len());
            Some(if end < 9 { end } else { 7 + end % 2 })
        }
        _ => Some(8),
    }
}

/// Reads the date that ends at `end`: `YYYY-MM-DD`, `YYYYMMDD`, `YYYY-Www[-D]` or `YYYYWww[D]`.
fn date(bytes: NulTerminatedBytes<'_>, end: usize) -> Option<NaiveDate> {
    let year = i32::try_from(bytes.digits(0, 4)?).ok().filter(|year| *year >= 1)?;
    let dash = usize::from(bytes.at(4) == b'-');
    let has_dash_at = |at: usize| dash == 0 || bytes.at(at) == b'-';
    let mut at = 4 + dash;
    if bytes.at(at) == b'W' {
        let week = bytes.digits(at + 1, 2)?;
        at += 3;
        let day = if at < end {
            has_dash_at(at).then_some(())?;
            bytes.digits(at + dash, 1)?
        } else {
            1
        };
        let weekday = Weekday::try_from(u8::try_from(day.checked_sub(1)?).ok()?).ok()?;
        return NaiveDate::from_isoywd_opt(year, week, weekday).filter(|date| date.year() <= 9999);
    }
    let month = bytes.digits(at, 2)?;
    has_dash_at(at + 2).then_some(())?;
    let day = bytes.digits(at + 2 + dash, 2)?;
    (at + 2 + dash + 2 == end).then_some(())?;
    NaiveDate::from_ymd_opt(year, month, day)
}

#[derive(Clone, Copy, Default)]
struct IsoTimeOfDay {
    hours: u32,
    minutes: u32,
    seconds: u32,
    microseconds: u32,
}

/// Reads `HH[[:]MM[[:]SS]][.ffffff]` from `start` to at most `end`, and returns whether anything other than the end of
/// the text follows.
fn clock(bytes: NulTerminatedBytes<'_>, start: usize, end: usize) -> Option<(IsoTimeOfDay, bool)> {
    let mut clock = IsoTimeOfDay::default();
    let mut at = start;
    let mut colons = true;
    for index in 0..3 {
        let part = bytes.digits(at, 2)?;
        let next = bytes.at(at + 2);
        at += 3;
        match index {
            0 => (clock.hours, colons) = (part, next == b':'),
            1 => clock.minutes = part,
            _ => clock.seconds = part,
        }
        if at >= end {
            return Some((clock, next != 0));
        }
        match next {
            b':' if colons => {}
            b'.' | b',' => break,
            _ if !colons => at -= 1,
            _ => return None,
        }
    }
    let count = (end - at).min(6);
    let fraction = bytes.digits(at, count)?;
    clock.microseconds = (count..6).fold(fraction, |number, _| number * 10);
    at += count;
    while bytes.at(at).is_ascii_digit() {
        at += 1;
    }
    Some((clock, bytes.at(at) != 0))
}

/// Reads the offset that begins at `zone` and must extend to the end of the text.
fn offset(bytes: NulTerminatedBytes<'_>, zone: usize) -> Option<TimeDelta> {
    let sign = match bytes.at(zone) {
        b'Z' => return (bytes.at(zone + 1) == 0).then(TimeDelta::zero),
        b'-' => -1,
        _ => 1,
    };
    let (clock, more) = clock(bytes, zone + 1, bytes.len())?;
    if more {
        return None;
    }
    let seconds = i64::from(clock.hours * 3600 + clock.minutes * 60 + clock.seconds);
    if seconds == 0 {
        return Some(TimeDelta::zero());
    }
    let offset = TimeDelta::seconds(seconds) + TimeDelta::microseconds(i64::from(clock.microseconds));
    (offset < TimeDelta::days(1)).then_some(offset * sign)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_converted_and_what_is_only_stripped() {
        for (text, expected) in [
            ("2026-02-21T14:00:00Z", "2026-02-21T14:00:00.000000Z"),
            ("\u{1f} 2026-02-21T14:00:00+02:30\u{2003}", "2026-02-21T11:30:00.000000Z"),
            ("20260221T140000.5-0100", "2026-02-21T15:00:00.500000Z"),
            ("2026-W08-6T14:00Z", "2026-02-21T14:00:00.000000Z"),
            ("2026W08T14Z", "2026-02-16T14:00:00.000000Z"),
            ("2026-02-21 14:00:00.1234567+00:00", "2026-02-21T14:00:00.123456Z"),
            ("2026-02-21é14:00 +01:00", "2026-02-21T13:00:00.000000Z"),
            ("2026-02-21T14:05:+01:00", "2026-02-21T13:05:00.000000Z"),
            ("2026-02-21T14:00:00.123456tail+00:00", "2026-02-21T14:00:00.123456Z"),
            ("0001-01-02T00:00:00+23:59:59.999999", "0001-01-01T00:00:00.000001Z"),
            (" 2026-02-21T14:00:00 ", "2026-02-21T14:00:00"),
            ("2026-02-21", "2026-02-21"),
            ("2026-02-21T14:00:00z", "2026-02-21T14:00:00z"),
            ("2026-02-30T14:00:00Z", "2026-02-30T14:00:00Z"),
            ("2026-02-21T24:00:00Z", "2026-02-21T24:00:00Z"),
            ("2026-02-21T14:00:60Z", "2026-02-21T14:00:60Z"),
            ("2026-052T14:00:00Z", "2026-052T14:00:00Z"),
            ("2026-02-21T14:00:00+24:00", "2026-02-21T14:00:00+24:00"),
            ("2026-02-21T14:00:00+01:00x", "2026-02-21T14:00:00+01:00x"),
            ("", ""),
            ("Z", "Z"),
        ] {
            assert_eq!(normalize(text).as_deref(), Ok(expected), "{text:?}");
        }
        assert_eq!(normalize("0001-01-01T00:00:00+00:01"), Err(TimestampOutOfRange));
        assert_eq!(normalize("9999-12-31T23:59:00-00:01"), Err(TimestampOutOfRange));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_results_stay(text in "[0-9TZW:.,+\\- \0é]{0,40}|\\PC*") {
            if let Ok(once) = normalize(&text) {
                prop_assert_eq!(normalize(&once), Ok(once));
            }
        }
    }
}

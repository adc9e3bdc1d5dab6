//! Times in the forms in which recordings state them.

use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, TimeDelta, Utc};

use crate::artifact::{MissingOffset, parse_timestamp};

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The names of time zones in dates of HTTP and of mail, with their hours from UTC.
const ZONES: [(&str, i32); 12] = [
    ("gmt", 0),
    ("utc", 0),
    ("ut", 0),
    ("z", 0),
    ("est", -5),
    ("edt", -4),
    ("cst", -6),
    ("cdt", -5),
    ("mst", -7),
    ("mdt", -6),
    ("pst", -8),
    ("pdt", -7),
];

/// Returns the point in time that a text states: in the form of RFC 3339 or ISO 8601 with an offset, or in one of the forms
/// of dates of HTTP. Returns `None` if it has another form, or no offset.
pub(super) fn parse(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    let named = text.strip_suffix("UTC").or_else(|| text.strip_suffix("GMT"));
    let time = DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
    let time = time
        .or_else(|| parse_timestamp(text, MissingOffset::Unknown))
        .or_else(|| parse_timestamp(named?, MissingOffset::Utc))
        .or_else(|| parse_with_offset(text))
        .or_else(|| parse_http(text));
    // Other years have no form in RFC 3339.
    time.filter(|time| (1..=9999).contains(&time.year()))
}

/// Reads a date and time with an offset in the forms of several languages: `2026-01-01 00:00:00 +0000`.
fn parse_with_offset(text: &str) -> Option<DateTime<Utc>> {
    let parsed = DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f %z");
    parsed
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%z"))
        .ok()
        .map(|time| time.to_utc())
}

/// Reads a date of HTTP in one of its three forms (RFC 9110, section 5.6.7), or of mail. The weekday is redundant, and not
/// all servers write the right one.
fn parse_http(text: &str) -> Option<DateTime<Utc>> {
    let words = text.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    let mut words: Vec<&str> = words.collect();
    let is_weekday = |word: &&str| {
        word.get(..3).is_some_and(|start| WEEKDAYS.iter().any(|day| day.eq_ignore_ascii_case(start)))
    };
    if words.first().is_some_and(is_weekday) {
        words.remove(0);
    }
    // RFC 850: 13-May-25.
    if let Some((day, rest)) = words.first().and_then(|word| word.split_once('-')) {
        let (month, year) = rest.split_once('-')?;
        words.splice(..1, [day, month, year]);
    }
    let (day, month, year, time, zone) = match words.as_slice() {
        [month, day, time, year] if month_number(month).is_some() => (day, month, year, time, "gmt"),
        [month, day, time, zone, year] if month_number(month).is_some() => (day, month, year, time, *zone),
        [day, month, year, time] => (day, month, year, time, "gmt"),
        [day, month, year, time, zone] => (day, month, year, time, *zone),
        _ => return None,
    };
    let date = NaiveDate::from_ymd_opt(year_number(year)?, month_number(month)?, number(day)?)?;
    let mut parts = time.split(':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let second = parts.next().map_or(Some(0), number)?;
    if parts.next().is_some() {
        return None;
    }
    let is_leap_second = second == 60;
    let local = date.and_hms_opt(hour, minute, if is_leap_second { 59 } else { second })?;
    let local = if is_leap_second { local.checked_add_signed(TimeDelta::seconds(1))? } else { local };
    in_utc(local, zone)
}

/// Returns a local time in a time zone, by name or as hours and minutes.
fn in_utc(local: NaiveDateTime, zone: &str) -> Option<DateTime<Utc>> {
    let named = ZONES.iter().find(|(name, _)| name.eq_ignore_ascii_case(zone));
    let seconds = match (named, zone.split_at_checked(1)) {
        (Some((_, hours)), _) => hours * 3600,
        (None, Some((sign @ ("+" | "-"), digits))) => {
            let digits = digits.replace(':', "");
            let (hours, minutes) = digits.split_at_checked(2).filter(|_| digits.len() == 4)?;
            let seconds = i32::try_from(number(hours)? * 3600 + number(minutes)? * 60).ok()?;
            if sign == "-" { -seconds } else { seconds }
        }
        _ => return None,
    };
    let time = local.and_local_timezone(FixedOffset::east_opt(seconds)?).single()?;
    Some(time.to_utc())
}

fn month_number(word: &str) -> Option<u32> {
    let number = MONTHS
        .iter()
        .zip(1..)
        .find(|(month, _)| word.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(month)));
    number.map(|(_, number)| number)
}

/// Returns a year; one of two digits is in the hundred years from 1970.
fn year_number(word: &str) -> Option<i32> {
    let year = i32::try_from(number(word)?).ok()?;
    Some(match (word.len(), year) {
        (2, 70..) => 1900 + year,
        (2, _) => 2000 + year,
        (4, _) => year,
        _ => return None,
    })
}

fn number(word: &str) -> Option<u32> {
    let is_number = (1..=4).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_dates_are_read() {
        for text in [
            "Tue, 13 May 2025 14:54:09 GMT",
            "Mon, 13 May 2025 14:54:09 GMT",
            "Tuesday, 13-May-25 14:54:09 GMT",
            "Tue May 13 14:54:09 2025",
            "Tue May 13 14:54:09 UTC 2025",
            "Tue, 13 May 2025 14:54:09 UTC",
            "Tue, 13 May 2025 14:54:09 UT",
            "Tue, 13 May 2025 14:54:09 +0000",
            "tue, 13 may 2025 14:54:09 gmt",
            "13 May 2025 14:54:09 GMT",
            "Tue,13 May 2025 14:54:09",
            "Tue, 13 May 2025 16:54:09 +0200",
            "Tue, 13 May 2025 10:54:09 EDT",
            "Tue, 13 May 2025 06:54:09 PST",
            "Tue, 13-May-2025 14:54:09 GMT",
            "2025-05-13T14:54:09Z",
            "2025-05-13T14:54:09.000000+00:00",
            "2025-05-13T16:54:09+0200",
            "2025-05-13 14:54:09 +0000",
            "2025-05-13 14:54:09 UTC",
        ] {
            let found = parse(text).map(|time| time.to_rfc3339());
            assert_eq!(found.as_deref(), Some("2025-05-13T14:54:09+00:00"), "{text}");
        }
        let of = |text: &str| parse(text).unwrap().to_rfc3339();
        assert_eq!(of("Sun Nov  6 08:49:37 1994"), "1994-11-06T08:49:37+00:00");
        assert_eq!(of("Sunday, 06-Nov-94 08:49:37 GMT"), "1994-11-06T08:49:37+00:00");
        assert_eq!(of("Sat, 31 Dec 2016 23:59:60 GMT"), "2017-01-01T00:00:00+00:00");
        assert_eq!(of("2025-05-13T14:54:09.123456Z"), "2025-05-13T14:54:09.123456+00:00");
    }

    #[test]
    fn texts_that_are_not_points_in_time_are_not_read() {
        for text in [
            "",
            "now",
            "2025-05-13T14:54:09",
            "2025-05-13",
            "Tue, 32 May 2025 14:54:09 GMT",
            "Tue, 13 Mai 2025 14:54:09 GMT",
            "Tue, 13 May 2025 25:54:09 GMT",
            "Tue, 13 May 2025 14:54:09 XYZ",
            "Tue, 13 May 025 14:54:09 GMT",
            "Tue, 13 May 2025 14:54:09:10 GMT",
            "Tue, 13 May 2025",
            "0",
            "\u{e4}\u{e4}\u{e4} 13 May 2025 14:54:09 +\u{e4}00",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

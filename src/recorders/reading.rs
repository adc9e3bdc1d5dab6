//! Strict reading of files: values with their locations, times, and the reasons why a file is not converted.

use std::borrow::Cow;

use chrono::{DateTime, Datelike, TimeDelta, Utc, Weekday};

use crate::artifact::{MissingOffset, parse_timestamp};
use crate::json::reader::{self, Defect, Limit, Limits, ReadError};
use crate::json::{Object, Value};
use crate::validation::{Remedy, Report, RuleInfo, Violation};

pub use crate::vault::rules::RULES;
pub(super) use crate::vault::rules::{LIMITS, SHAPE, SYNTAX};

/// The reason that a file is not converted. Nothing of it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {location}: {message} (rule {rule})")]
pub struct ConvertError {
    /// The file.
    pub file: String,
    /// The location in it.
    pub location: String,
    /// The id of the rule; [`RULES`] explains it, or the kind of the file.
    pub rule: Cow<'static, str>,
    /// The message.
    pub message: String,
    /// The limit that the file exceeds; `None` also if that limit is fixed.
    pub limit: Option<Limit>,
}

impl ConvertError {
    /// Returns the first violation that a kind reports on a file.
    pub(super) fn first_of(report: &Report, file: &str) -> Self {
        let first = report.violations().first();
        let Violation { rule_id: rule, path: location, message, remedy, .. } =
            first.cloned().unwrap_or_else(|| Violation::new(SHAPE, "", "the file cannot be read"));
        let limit = match remedy {
            Some(Remedy::Raise(limit)) => Some(limit),
            _ => None,
        };
        let others = report.violations().len().saturating_sub(1) + report.omitted();
        let message = if others == 0 { message } else { format!("{message}, and {others} more violations") };
        Self { file: file.to_owned(), location, rule, message, limit }
    }
}

/// A defect, before the name of the file is known.
#[derive(Debug)]
pub(super) struct Fault {
    location: String,
    rule: RuleInfo,
    pub(super) message: String,
    limit: Option<Limit>,
}

pub(super) type RecorderResult<T> = Result<T, Fault>;

impl Fault {
    pub(super) fn new(rule: RuleInfo, location: impl Into<String>, message: impl Into<String>) -> Self {
        Self { location: location.into(), rule, message: message.into(), limit: None }
    }

    /// Returns the fault of a file that exceeds a limit that callers set.
    pub(super) fn beyond(limit: Limit, location: impl Into<String>, message: impl Into<String>) -> Self {
        Self { limit: Some(limit), ..Self::new(LIMITS, location, message) }
    }

    /// Returns the fault of a text that begins at line `first` of the file.
    pub(super) fn of_text(error: &ReadError, first: usize) -> Self {
        let rule = if matches!(error.defect, Defect::TooLarge | Defect::TooDeep) { LIMITS } else { SYNTAX };
        let location = format!("line {} column {}", error.line + first - 1, error.column);
        Self { limit: error.limit, ..Self::new(rule, location, error.message.clone()) }
    }

    /// Returns the fault of a file in an archive.
    pub(super) fn inside(self, entry: &str) -> Self {
        Self { location: format!("{entry}: {}", self.location), ..self }
    }

    pub(super) fn in_file(self, file: &str) -> ConvertError {
        let Self { location, rule, message, limit } = self;
        ConvertError { file: file.to_owned(), location, rule: rule.id.into(), message, limit }
    }
}

/// Returns the JSON texts of a file, each with the number of its first line: one, or one in each line.
pub(super) fn documents<'b>(bytes: &'b [u8], limits: &Limits) -> RecorderResult<Vec<(usize, Value<'b>)>> {
    let whole = match reader::read(bytes, limits) {
        Ok(document) => return Ok(vec![(1, document)]),
        Err(error) => error,
    };
    let first = bytes.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    let begins = first.is_some_and(|line| reader::read(line.trim_ascii(), limits).is_ok());
    if whole.defect != Defect::Syntax || !begins {
        return Err(Fault::of_text(&whole, 1));
    }
    let mut documents = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if !line.is_empty() {
            let document = reader::read(line, limits).map_err(|error| Fault::of_text(&error, index + 1))?;
            documents.push((index + 1, document));
        }
    }
    if documents.is_empty() {
        return Err(Fault::new(SYNTAX, "the document", "there is nothing in it"));
    }
    Ok(documents)
}

/// A value with its location.
#[derive(Clone, Debug)]
pub(super) struct LocatedValue<'v> {
    pub(super) value: &'v Value<'v>,
    pub(super) location: String,
}

impl<'v> LocatedValue<'v> {
    pub(super) fn new(value: &'v Value<'v>, location: impl Into<String>) -> Self {
        Self { value, location: location.into() }
    }

    pub(super) fn fault(&self, message: impl Into<String>) -> Fault {
        let location = if self.location.is_empty() { "the document" } else { &self.location };
        Fault::new(SHAPE, location, message)
    }

    fn is_not(&self, expected: &str) -> Fault {
        self.fault(format!("must be {expected}, is {}", self.value.type_name()))
    }

    fn at(&self, name: &str) -> String {
        if self.location.is_empty() { name.to_owned() } else { format!("{}.{name}", self.location) }
    }

    /// Returns a member that may be missing or null.
    pub(super) fn member(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(Self { value, location: self.at(name) })
    }

    /// Returns a member that must be there.
    pub(super) fn required(&self, name: &str) -> RecorderResult<Self> {
        self.object()?;
        self.member(name).ok_or_else(|| self.fault(format!("the required member {name} is missing")))
    }

    pub(super) fn object(&self) -> RecorderResult<&'v Object<'v>> {
        self.value.as_object().ok_or_else(|| self.is_not("an object"))
    }

    /// Returns the members of an object that are not null.
    pub(super) fn members(&self) -> RecorderResult<impl Iterator<Item = (&'v str, Self)> + use<'v, '_>> {
        let members = self.object()?.iter().filter(|(_, value)| !value.is_null());
        Ok(members.map(|(name, value)| (name, Self { value, location: self.at(name) })))
    }

    pub(super) fn elements(&self) -> RecorderResult<impl Iterator<Item = Self> + use<'v, '_>> {
        let elements = self.value.as_array().ok_or_else(|| self.is_not("an array"))?;
        let elements = elements.iter().enumerate();
        Ok(elements.map(|(index, value)| Self { value, location: format!("{}[{index}]", self.location) }))
    }

    /// Returns the elements of a member that is a list; none if it is missing or something else.
    pub(super) fn list(&self, name: &str) -> Vec<Self> {
        let list = self.member(name);
        list.iter().flat_map(Self::elements).flatten().collect()
    }

    pub(super) fn text(&self) -> RecorderResult<&'v str> {
        self.value.as_str().ok_or_else(|| self.is_not("a string"))
    }

    /// Returns the text of a number, which may be in a string.
    fn literal(&self) -> Option<&str> {
        match self.value {
            Value::Number(number) => Some(number.literal()),
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a whole number, which may be in a string.
    pub(super) fn integer(&self) -> RecorderResult<u64> {
        let number = self.literal().and_then(|literal| literal.parse().ok());
        number.ok_or_else(|| self.is_not("a whole number"))
    }

    /// Returns a number that is not negative, rounded to a whole one; `None` if it is something else.
    pub(super) fn rounded(&self) -> Option<u64> {
        let rounded = |number: f64| format!("{number:.0}").parse().ok();
        self.integer().ok().or_else(|| rounded(self.literal()?.parse().ok()?))
    }

    /// Returns a time in one of the forms of dates, or in seconds or milliseconds since 1970; `None` if it has another form,
    /// or is zero, with which programs state that they do not know it.
    pub(super) fn time(&self) -> Option<DateTime<Utc>> {
        self.value.as_str().and_then(parse_time).or_else(|| {
            let literal = self.literal()?;
            let (whole, fraction) = literal.split_once('.').unwrap_or((literal, ""));
            // As seconds, they would be after the year 30000.
            let is_milliseconds = whole.len() == 13;
            let (whole, thousandths) =
                whole.split_at_checked(whole.len() - if is_milliseconds { 3 } else { 0 })?;
            let digits = format!("{thousandths}{fraction}");
            let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
            let nanoseconds = format!("{digits:0<9.9}").parse().ok().filter(|_| is_number)?;
            let time =
                DateTime::from_timestamp(i64::try_from(whole.parse::<u64>().ok()?).ok()?, nanoseconds)?;
            Some(time).filter(|time| time.year() <= 9999 && *time != DateTime::UNIX_EPOCH)
        })
    }

    pub(super) fn status(&self) -> RecorderResult<u16> {
        let number = self.integer()?;
        let status = u16::try_from(number).ok().filter(|status| (100..1000).contains(status));
        status.ok_or_else(|| self.fault(format!("{number} is not a status of HTTP")))
    }

    /// Returns the names of the members other than `known`.
    pub(super) fn others(&self, known: &[&str]) -> Vec<&'v str> {
        let members = self.value.as_object().into_iter().flat_map(Object::iter);
        let others = members.filter(|(name, value)| !known.contains(name) && !value.is_null());
        others.map(|(name, _)| name).collect()
    }
}

/// Returns the point in time that a text states: in the form of RFC 3339 or ISO 8601 with an offset, or in one of the forms
/// of dates of HTTP. Returns `None` if it has another form, or no offset.
pub(super) fn parse_time(text: &str) -> Option<DateTime<Utc>> {
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
    let mut words: Vec<&str> = text.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
    let is_weekday = |word: &&str| word.get(..3).is_some_and(|start| start.parse::<Weekday>().is_ok());
    if words.first().is_some_and(is_weekday) {
        words.remove(0);
    }
    // RFC 850: 13-May-25.
    if let Some((day, rest)) = words.first().and_then(|word| word.split_once('-')) {
        let (month, year) = rest.split_once('-')?;
        words.splice(..1, [day, month, year]);
    }
    let is_name = |word: &str| word.starts_with(|c: char| c.is_ascii_alphabetic());
    let (day, month, year, time, zone) = match words.as_slice() {
        [month, day, time, year] if is_name(month) => (day, month, year, time, "GMT"),
        [month, day, time, zone, year] if is_name(month) => (day, month, year, time, *zone),
        [day, month, year, time] => (day, month, year, time, "GMT"),
        [day, month, year, time, zone] => (day, month, year, time, *zone),
        _ => return None,
    };
    let (hour, minute, second) = match time.split(':').map(number).collect::<Option<Vec<u32>>>()?.as_slice() {
        [hour, minute] => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    // A leap second is the first one of the next minute.
    let (second, leap) = if second == 60 { (59, 1) } else { (second, 0) };
    // A letter is the zone of an army, which few programs write as it was meant; brackets are comments of mail.
    let zone = if zone.eq_ignore_ascii_case("utc") { "Z".to_owned() } else { zone.replace(':', "") };
    let is_zone = (zone.len() > 1 || zone.eq_ignore_ascii_case("z")) && !zone.contains('(');
    let (day, month, year) = (number(day)?, month.get(..3)?, year_number(year)?);
    let text = format!("{day} {month} {year:04} {hour:02}:{minute:02}:{second:02} {zone}");
    let time = DateTime::parse_from_rfc2822(&text).ok().filter(|_| is_zone)?;
    time.to_utc().checked_add_signed(TimeDelta::seconds(leap))
}

/// Returns a year; one of two digits is in the hundred years from 1970.
fn year_number(word: &str) -> Option<i32> {
    let year = i32::try_from(number(word)?).ok()?;
    match (word.len(), year) {
        (2, 70..) => Some(1900 + year),
        (2, _) => Some(2000 + year),
        (4, _) => Some(year),
        _ => None,
    }
}

fn number(word: &str) -> Option<u32> {
    word.parse().ok().filter(|_| word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_located_in_its_line() {
        let error = documents(b"{\"a\":1}\n{\"a\":}\n", &Limits::default()).unwrap_err();
        let error = error.in_file("f").to_string();
        assert!(error.starts_with("f: line 2 column 6: ") && error.ends_with("(rule IM1)"), "{error}");
    }

    fn value(json: &str) -> Value<'_> {
        reader::read(json.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn times_are_texts_seconds_or_milliseconds() {
        for (json, expected) in [
            ("\"2026-01-01T01:00:00+01:00\"", Some("2026-01-01T00:00:00+00:00")),
            ("1700000000", Some("2023-11-14T22:13:20+00:00")),
            ("\"1700000000\"", Some("2023-11-14T22:13:20+00:00")),
            ("1700000000.5", Some("2023-11-14T22:13:20.500+00:00")),
            ("1741476542.0", Some("2025-03-08T23:29:02+00:00")),
            ("1700000000.1234567891", Some("2023-11-14T22:13:20.123456789+00:00")),
            ("1700000000123", Some("2023-11-14T22:13:20.123+00:00")),
            ("1700000000123.5", Some("2023-11-14T22:13:20.123500+00:00")),
            ("17000000001234", None),
            ("-1", None),
            ("0", None),
            ("\"Tue, 13 May 2025 14:54:09 GMT\"", Some("2025-05-13T14:54:09+00:00")),
            ("1e9", None),
            ("\"2026-01-01T00:00:00\"", None),
            ("\"9999-12-31T23:59:59-01:00\"", None),
            ("\"0000-01-01T00:00:00Z\"", None),
            ("\"1\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\"", None),
            ("\"\"", None),
            ("true", None),
        ] {
            let time = LocatedValue::new(&value(json), "x").time().map(|time| time.to_rfc3339());
            assert_eq!(time.as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn numbers_that_are_not_negative_are_rounded() {
        for (json, expected) in [
            ("12", Some(12)),
            ("12.6", Some(13)),
            ("1.0", Some(1)),
            ("1e3", Some(1_000)),
            ("\"7.2\"", Some(7)),
            ("-5", None),
            ("1e300", None),
            ("\"nan\"", None),
            ("[]", None),
        ] {
            assert_eq!(LocatedValue::new(&value(json), "x").rounded(), expected, "{json}");
        }
    }

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
            "Tue, 13 May 2025 16:54:09 +02:00",
            "Tue, 13 May 2025 09:24:09 -05:30",
            "Tue, 13 May 2025 14:54:09 z",
            "Tue, 13 May 2025 10:54:09 EDT",
            "Tue, 13 May 2025 06:54:09 PST",
            "Tue, 13-May-2025 14:54:09 GMT",
            "2025-05-13T14:54:09Z",
            "2025-05-13T14:54:09.000000+00:00",
            "2025-05-13T16:54:09+0200",
            "2025-05-13 14:54:09 +0000",
            "2025-05-13 14:54:09 UTC",
        ] {
            let found = parse_time(text).map(|time| time.to_rfc3339());
            assert_eq!(found.as_deref(), Some("2025-05-13T14:54:09+00:00"), "{text}");
        }
        let of = |text: &str| parse_time(text).unwrap().to_rfc3339();
        assert_eq!(of("Sun Nov  6 08:49:37 1994"), "1994-11-06T08:49:37+00:00");
        assert_eq!(of("Sunday, 06-Nov-94 08:49:37 GMT"), "1994-11-06T08:49:37+00:00");
        assert_eq!(of("Sat, 31 Dec 2016 23:59:60 GMT"), "2017-01-01T00:00:00+00:00");
        assert_eq!(of("Sun, 6 Nov 1994 8:49 GMT"), "1994-11-06T08:49:00+00:00");
        for (year, expected) in [("00", 2000), ("50", 2050), ("69", 2069), ("70", 1970), ("99", 1999)] {
            assert!(of(&format!("13-May-{year} 14:54:09 GMT")).starts_with(&expected.to_string()), "{year}");
        }
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
            "Tue, 13 May 2025 14:60 GMT",
            "Tue, 13 May 2025 14:60:09 GMT",
            "Tue, 13 May 2025 14:54:61 GMT",
            "Tue, 13 May 2025 +14:54:09 GMT",
            "Tue, 13 May 2025 14:54:09 A",
            "Tue, 13 May 2025 14:54:09 y",
            "Tue, 13 May 2025 14:54:09 +2",
            "Tue, 13 May 2025 14:54:09 +00000",
            "Tue, 13 May 2025 14:54:09 +0000(UTC)",
            "Tue, 13 May 2025",
            "0",
            "\u{e4}\u{e4}\u{e4} 13 May 2025 14:54:09 +\u{e4}00",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}

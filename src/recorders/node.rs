//! A value with its location, for strict reading.

use chrono::{DateTime, Datelike, Utc};

use super::dates;
use super::error::{Fault, RecorderResult, SHAPE};
use crate::json::{Object, Value};

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
        self.value.as_str().and_then(dates::parse).or_else(|| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

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
}

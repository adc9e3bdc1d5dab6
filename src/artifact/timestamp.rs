//! Timestamps in documents, parsed leniently and formatted uniformly.
//!
//! Supported are RFC 3339 timestamps and the complete date and time formats of ISO 8601: calendar, ordinal and week
//! dates, basic and extended, with hours, minutes or seconds, decimal fractions, and `24:00`. A date without a time is
//! not accepted.

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Timelike, Utc, Weekday};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

/// The attribute with the creation time that an artifact states, in the form of [`timestamp_text`].
pub const CREATED_AT: &str = "created_at";

/// The attribute with the time of its end that an artifact states, in the same form.
pub const FINISHED_AT: &str = "finished_at";

/// The interpretation of a timestamp without an offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingOffset {
    /// It is in UTC, because the format defines all times as UTC.
    Utc,
    /// It is not a point in time, because the time zone is unknown.
    Unknown,
}

/// Returns the point in time that `text` states, truncated to the millisecond. Returns `None` if it states none, or
/// none of the years 0 to 9999 in UTC. A leap second is the first second after it.
#[must_use]
pub fn parse_timestamp(text: &str, missing_offset: MissingOffset) -> Option<DateTime<Utc>> {
    let mut cursor = TimestampParser(text.trim().as_bytes());
    let date = cursor.date()?;
    cursor.take(b"Tt ")?;
    let clock = cursor.clock()?;
    let offset = match cursor.offset()? {
        None if missing_offset == MissingOffset::Unknown => return None,
        offset => offset.unwrap_or_default(),
    };
    if !cursor.0.is_empty() {
        return None;
    }
    let local = date.and_time(NaiveTime::MIN).checked_add_signed(clock.since_midnight)?;
    let time = local.checked_sub_signed(offset)?.and_utc();
    let is_last_second = (time.hour(), time.minute(), time.second()) == (23, 59, 59);
    let time = match clock.is_leap_second {
        true if !is_last_second => return None,
        true => time.checked_add_signed(TimeDelta::seconds(1))?,
        false => time,
    };
    (0..=9999).contains(&time.year()).then_some(time)
}

/// Returns `time` as `YYYY-MM-DDTHH:MM:SS.mmmZ`. Such texts sort in the order of their times.
#[must_use]
pub fn timestamp_text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A time in UTC with milliseconds, written as RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub DateTime<Utc>);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&timestamp_text(self.0))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        DateTime::parse_from_rfc3339(&text).map(|time| Self(time.to_utc())).map_err(de::Error::custom)
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self(time)
    }
}

impl PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(format))
            .description(Some("A time in UTC with milliseconds, as RFC 3339."))
            .into()
    }
}

impl ToSchema for Timestamp {}

/// A time of day.
struct TimeOfDay {
    /// The time since midnight, without a leap second.
    since_midnight: TimeDelta,
    is_leap_second: bool,
}

/// The remaining input.
struct TimestampParser<'t>(&'t [u8]);

impl TimestampParser<'_> {
    /// Returns the number of digits at the start of the input.
    fn digits_ahead(&self) -> usize {
        self.0.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// Reads a number of exactly `count` digits.
    fn number(&mut self, count: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let number = digits.iter().try_fold(0, |number: u32, byte| {
            let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
            number.checked_mul(10)?.checked_add(digit)
        })?;
        self.0 = rest;
        Some(number)
    }

    /// Reads one of `bytes`.
    fn take(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        let found = bytes.contains(first).then_some(*first)?;
        self.0 = rest;
        Some(found)
    }

    fn date(&mut self) -> Option<NaiveDate> {
        let year = i32::try_from(self.number(4)?).ok()?;
        let is_extended = self.take(b"-").is_some();
        if self.take(b"W").is_some() {
            let week = self.number(2)?;
            self.separator(is_extended, b"-")?;
            let day = u8::try_from(self.number(1)?).ok()?;
            let weekday = Weekday::try_from(day.checked_sub(1)?).ok()?;
            return NaiveDate::from_isoywd_opt(year, week, weekday);
        }
        if self.digits_ahead() == 3 {
            return NaiveDate::from_yo_opt(year, self.number(3)?);
        }
        let month = self.number(2)?;
        self.separator(is_extended, b"-")?;
        NaiveDate::from_ymd_opt(year, month, self.number(2)?)
    }

    /// Reads the separator of the extended format.
    fn separator(&mut self, is_extended: bool, separator: &[u8]) -> Option<()> {
        if is_extended { self.take(separator).map(drop) } else { Some(()) }
    }

    fn clock(&mut self) -> Option<TimeOfDay> {
        let hours = self.number(2)?;
        let is_extended = self.0.first() == Some(&b':');
        let (mut minutes, mut seconds, mut unit) = (0, 0, TimeDelta::hours(1));
        if is_extended || self.digits_ahead() > 0 {
            self.separator(is_extended, b":")?;
            (minutes, unit) = (self.number(2)?, TimeDelta::minutes(1));
            let has_seconds =
                if is_extended { self.0.first() == Some(&b':') } else { self.digits_ahead() > 0 };
            if has_seconds {
                self.separator(is_extended, b":")?;
                (seconds, unit) = (self.number(2)?, TimeDelta::seconds(1));
            }
        }
        let fraction = self.fraction(unit)?;
        let is_end_of_day = hours == 24 && minutes == 0 && seconds == 0 && fraction.is_zero();
        if !(hours < 24 || is_end_of_day) || minutes > 59 || seconds > 60 {
            return None;
        }
        let is_leap_second = seconds == 60;
        let whole = i64::from(hours * 3600 + minutes * 60 + seconds) - i64::from(is_leap_second);
        Some(TimeOfDay { since_midnight: TimeDelta::seconds(whole) + fraction, is_leap_second })
    }

    /// Reads a decimal fraction of `unit`, if there is one, to the millisecond.
    fn fraction(&mut self, unit: TimeDelta) -> Option<TimeDelta> {
        /// Number of digits used: enough for milliseconds of an hour.
        const DIGITS: usize = 9;
        if self.take(b".,").is_none() {
            return Some(TimeDelta::zero());
        }
        let ahead = self.digits_ahead();
        let counted = ahead.min(DIGITS);
        let fraction = (counted > 0).then(|| self.number(counted)).flatten()?;
        self.0 = self.0.get(ahead - counted..)?;
        let parts = 10_i64.pow(u32::try_from(counted).ok()?);
        // At most 3.6 million times 10^9.
        Some(TimeDelta::milliseconds(unit.num_milliseconds() * i64::from(fraction) / parts))
    }

    /// Reads an offset from UTC, if there is one. Returns `None` if the input is not an offset.
    #[expect(
        clippy::option_option,
        reason = "no offset is one thing, and something that is not an offset another"
    )]
    fn offset(&mut self) -> Option<Option<TimeDelta>> {
        /// The minus sign that ISO 8601 specifies; a hyphen is allowed in its place.
        const MINUS: &[u8] = "\u{2212}".as_bytes();
        if self.0.is_empty() {
            return Some(None);
        }
        if self.take(b"Zz").is_some() {
            return Some(Some(TimeDelta::zero()));
        }
        let sign = if let Some(rest) = self.0.strip_prefix(MINUS) {
            self.0 = rest;
            -1
        } else if self.take(b"+-")? == b'+' {
            1
        } else {
            -1
        };
        let hours = self.number(2)?;
        let minutes = match self.take(b":") {
            None if self.0.is_empty() => 0,
            _ => self.number(2)?,
        };
        let offset = TimeDelta::minutes(i64::from(hours * 60 + minutes));
        (hours < 24 && minutes < 60).then_some(Some(offset * sign))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normalized(text: &str) -> Option<String> {
        parse_timestamp(text, MissingOffset::Utc).map(timestamp_text)
    }

    #[test]
    fn forms_of_rfc_3339_and_iso_8601_are_read() {
        for (text, expected) in [
            ("2026-02-21T14:00:00Z", "2026-02-21T14:00:00.000Z"),
            (" 2026-02-21T14:00:00Z\n", "2026-02-21T14:00:00.000Z"),
            ("2026-02-21t14:00:00z", "2026-02-21T14:00:00.000Z"),
            ("2026-02-21 14:00:00.5+02:30", "2026-02-21T11:30:00.500Z"),
            ("2026-02-21T14:00:00,123999-01", "2026-02-21T15:00:00.123Z"),
            ("2026-02-21T14:00:00\u{2212}0100", "2026-02-21T15:00:00.000Z"),
            ("20260221T140000Z", "2026-02-21T14:00:00.000Z"),
            ("20260221T1400+0530", "2026-02-21T08:30:00.000Z"),
            ("2026-02-21T14Z", "2026-02-21T14:00:00.000Z"),
            ("2026-02-21T14:30.5Z", "2026-02-21T14:30:30.000Z"),
            ("2026-02-21T14,25Z", "2026-02-21T14:15:00.000Z"),
            ("2026-W08-6T14:00Z", "2026-02-21T14:00:00.000Z"),
            ("2026W086T14Z", "2026-02-21T14:00:00.000Z"),
            ("2026-052T14:00:00Z", "2026-02-21T14:00:00.000Z"),
            ("2026052T14:00:00Z", "2026-02-21T14:00:00.000Z"),
            ("2026-12-31T24:00:00Z", "2027-01-01T00:00:00.000Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
            ("2017-01-01T05:29:60.25+05:30", "2017-01-01T00:00:00.250Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.9999999999999999999999Z", "9999-12-31T23:59:59.999Z"),
            ("2026-02-21T14:00:00", "2026-02-21T14:00:00.000Z"),
        ] {
            assert_eq!(normalized(text).as_deref(), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn what_is_not_a_point_in_time_is_not_read() {
        for text in [
            "",
            "2026-02-21",
            "2026-02-30T14:00:00Z",
            "2026-99-99T99:99:99Z",
            "2025-366T00:00Z",
            "2026-W54-1T00:00Z",
            "2026-W01-0T00:00Z",
            "2026-02-21T25:00:00Z",
            "2026-02-21T24:00:01Z",
            "2026-02-21T14:60:00Z",
            "2026-02-21T14:00:61Z",
            "2026-02-21T14:00:60Z",
            "2026-02-21T14:00:00.Z",
            "2026-02-21T14:00:00+24:00",
            "2026-02-21T14:00:00+01:60",
            "2026-02-21T14:00:00 +01:00",
            "2026-02-21T14:00:00Zx",
            "2026-02-21T14:00:00 UTC",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T24:00:00Z",
            "1771682400",
            "Sat, 21 Feb 2026 14:00:00 GMT",
            "２026-02-21T14:00:00Z",
        ] {
            assert_eq!(normalized(text), None, "{text:?}");
        }
        assert_eq!(parse_timestamp("2026-02-21T14:00:00", MissingOffset::Unknown), None);
        assert!(parse_timestamp("2026-02-21T14:00:00+00", MissingOffset::Unknown).is_some());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_results_stay(text in "[0-9TWZ:.,+\\- ]{0,40}|\\PC*") {
            if let Some(once) = normalized(&text) {
                prop_assert_eq!(normalized(&once), Some(once));
            }
        }

        #[test]
        fn what_was_written_is_read_in_every_zone(
            milliseconds in -62_167_000_000_000..253_402_000_000_000_i64,
            minutes in -1439..=1439_i32,
        ) {
            let time = DateTime::from_timestamp_millis(milliseconds).unwrap();
            let zone = chrono::FixedOffset::east_opt(minutes * 60).unwrap();
            let local = time.with_timezone(&zone);
            for format in ["%Y-%m-%dT%H:%M:%S%.3f%:z", "%Y%m%d %H%M%S,%3f%z", "%G-W%V-%uT%H:%M:%S%.9f%:z"] {
                let text = local.format(format).to_string();
                prop_assert_eq!(parse_timestamp(&text, MissingOffset::Unknown), Some(time), "{}", text);
            }
        }
    }
}

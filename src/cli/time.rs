//! Times as arguments and as text.

use chrono::{DateTime, Duration, NaiveDate, SecondsFormat, Utc};

/// A point in time for clap: `2026-11-20`, an RFC 3339 timestamp, or an age such as `90m`, `36h`, `7d` or `4w`.
pub(crate) fn point(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.to_utc());
    }
    if let Some(midnight) = text.parse::<NaiveDate>().ok().and_then(|date| date.and_hms_opt(0, 0, 0)) {
        return Ok(midnight.and_utc());
    }
    age(text).and_then(|age| Utc::now().checked_sub_signed(age)).ok_or_else(|| {
        "a time is like 2026-11-20, 2026-11-20T12:00:00Z, or an age like 90m, 36h, 7d, 4w".to_owned()
    })
}

/// A length of time for clap, such as `90m`, `36h`, `7d` or `4w`.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    age(text).ok_or_else(|| "a length of time is like 90m, 36h, 7d, 4w".to_owned())
}

/// A length of time as [`length`] reads it.
pub(crate) fn length_text(length: Duration) -> String {
    let minutes = length.num_minutes();
    match minutes {
        minutes if minutes % (24 * 60) == 0 => format!("{}d", minutes / (24 * 60)),
        minutes if minutes % 60 == 0 => format!("{}h", minutes / 60),
        minutes => format!("{minutes}m"),
    }
}

fn age(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number = number.parse().ok().filter(|number| *number >= 0)?;
    match unit {
        "m" => Duration::try_minutes(number),
        "h" => Duration::try_hours(number),
        "d" => Duration::try_days(number),
        "w" => Duration::try_weeks(number),
        _ => None,
    }
}

/// A time for people, to the second.
pub(crate) fn display(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A time for programs, as exact as the vault has it.
pub(crate) fn exact(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

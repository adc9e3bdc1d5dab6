//! RN9: the timing of a runner.

use chrono::{Days, NaiveDate};

use crate::formats::pack::member_rules::{PackMemberFinder, number, object, text, type_name};
use crate::json::Value;

pub(super) fn check(runner: &Value<'_>, found: &mut PackMemberFinder<'_, '_>) {
    let Some(timing) = object(runner, "timing") else { return };
    let [started, completed] = ["started_at", "completed_at"].map(|name| {
        let time = text(timing, name).and_then(milliseconds);
        if time.is_none() {
            found.add(format!("timing.{name} is not a time like 2026-01-01T12:00:00.000Z"));
        }
        time
    });
    let duration = number(timing, "duration_ms");
    if duration.is_none() {
        found
            .add(format!("timing.duration_ms must be a number, is {}", type_name(timing.get("duration_ms"))));
    }
    if let (Some(started), Some(completed)) = (started, completed) {
        if completed < started {
            found.add("timing.completed_at is before timing.started_at");
        }
        if duration.is_some_and(|duration| (duration - (completed - started)).abs() > 1.0) {
            found.add("timing.duration_ms is not the time from start to end");
        }
    }
    match timing.get("phases") {
        None => {}
        Some(Value::Array(phases)) => check_phases(phases, found),
        Some(other) => found.schema(format!("timing.phases must be an array, is {}", other.type_name())),
    }
}

fn check_phases(phases: &[Value<'_>], found: &mut PackMemberFinder<'_, '_>) {
    let mut last = "";
    for (index, phase) in phases.iter().enumerate() {
        let place = format!("timing.phases[{index}]");
        if phase.as_object().is_none() {
            found.schema(format!("{place} must be an object, is {}", phase.type_name()));
            continue;
        }
        if text(phase, "name").is_none() {
            found.schema(format!("{place}.name must be a string, is {}", type_name(phase.get("name"))));
        }
        if number(phase, "duration_ms").is_none() {
            found.schema(format!(
                "{place}.duration_ms must be a number, is {}",
                type_name(phase.get("duration_ms"))
            ));
        }
        match text(phase, "started_at") {
            None => found.schema(format!(
                "{place}.started_at must be a string, is {}",
                type_name(phase.get("started_at"))
            )),
            Some(time) if milliseconds(time).is_none() => {
                found.add(format!("{place}.started_at is not a time like 2026-01-01T12:00:00.000Z"));
            }
            Some(time) => {
                // These are ASCII, so all text orders agree.
                if time < last {
                    found.add(format!("{place} begins before the preceding phase"));
                }
                last = time;
            }
        }
    }
}

/// Returns the milliseconds since 1970 of a time like `2026-01-01T12:00:00Z` or `2026-01-01T12:00:00.000Z`. The 30th
/// and 31st of a shorter month are days of the next one, as in ECMAScript.
fn milliseconds(text: &str) -> Option<f64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) =
        time.split_once('.').map_or((time, None), |(time, fraction)| (time, Some(fraction)));
    let [year, month, day] = fields(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = fields(time, ':', [2, 2, 2])?;
    let millisecond = fraction.map_or(Some(0), |fraction| digits(fraction, 3))?;
    let month = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, 1)?;
    let days = day.checked_sub(1).filter(|days| *days < 31)?;
    let date = month.checked_add_days(Days::new(days.into()))?;
    let time = date.and_hms_milli_opt(hour, minute, second, millisecond)?;
    // Below 2^53, so exact.
    #[expect(clippy::cast_precision_loss, reason = "years have four digits")]
    Some(time.and_utc().timestamp_millis() as f64)
}

fn fields<const N: usize>(text: &str, separator: char, lengths: [usize; N]) -> Option<[u32; N]> {
    let mut parts = text.split(separator);
    let fields = lengths.map(|length| parts.next().and_then(|part| digits(part, length)));
    if parts.next().is_some() || fields.iter().any(Option::is_none) {
        return None;
    }
    Some(fields.map(Option::unwrap_or_default))
}

/// Returns the number that consists of exactly `length` digits.
pub(super) fn digits(text: &str, length: usize) -> Option<u32> {
    let are_digits = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_ecmascript_reads_them() {
        assert_eq!(milliseconds("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(milliseconds("2026-06-01T12:00:01.500Z"), Some(1_780_315_201_500.0));
        assert_eq!(milliseconds("2026-02-30T00:00:00Z"), milliseconds("2026-03-02T00:00:00.000Z"));
        assert_eq!(milliseconds("0000-01-01T00:00:00Z"), Some(-62_167_219_200_000.0));
        for text in [
            "2026-13-01T00:00:00Z",
            "2026-01-32T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.5Z",
            "2026-01-01T00:00:60Z",
            "2026-1-01T00:00:00Z",
            "2026-01-01-01T00:00:00Z",
            "+026-01-01T00:00:00Z",
        ] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}

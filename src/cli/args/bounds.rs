//! Sizes, numbers and durations as arguments, and the values that they can have.

use std::time::Duration;

use runvault::clock::parse_length;
use runvault::json::reader::Limits;

pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => {
            return Err("expected a number of bytes, or a number followed by k, M or G".to_owned());
        }
    };
    let number: u64 = digits.parse().map_err(|_| "a size must begin with a whole number".to_owned())?;
    let bytes = number.checked_mul(unit).filter(|bytes| (1..=Limits::MAX_BYTES).contains(bytes));
    bytes.ok_or_else(|| "expected a size from 1 to 900M".to_owned())
}

pub(crate) fn depth(text: &str) -> Result<usize, String> {
    bound_number(text, 1, Limits::MAX_DEPTH)
}

pub(crate) fn values(text: &str) -> Result<usize, String> {
    bound_number(text, 1, 1_000_000_000)
}

pub(crate) fn entries(text: &str) -> Result<usize, String> {
    bound_number(text, 1, 1_000_000)
}

pub(crate) fn violations(text: &str) -> Result<usize, String> {
    bound_number(text, 1, runvault::validation::Report::MAX_ERRORS)
}

fn bound_number(text: &str, least: usize, most: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
}

/// Parses a short duration, for clap: a number of seconds, or one with units, such as `500ms`, `2s` or `1m30s`.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    let length = match text.parse() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => parse_length(text).and_then(|length| length.to_std().ok()),
    };
    let message = || "expected a duration such as 500ms, 2s or 1m, at most 24h".to_owned();
    length.filter(|length| length.as_secs() <= 24 * 3600).ok_or_else(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_what_can_be_set() {
        assert_eq!(bytes("900M"), Ok(Limits::MAX_BYTES));
        assert!(
            bytes("943718401").is_err() && bytes("1G").is_err() && bytes("99999999999999999999").is_err()
        );
        assert_eq!((bytes("1k"), bytes("7"), bytes("2MiB")), (Ok(1024), Ok(7), Ok(2 << 20)));
        assert!(bytes("0").is_err() && bytes("0k").is_err() && bytes("1").is_ok());
        assert!(depth("500").is_ok() && depth("501").is_err() && depth("0").is_err() && depth("-1").is_err());
        assert!(values("1000000000").is_ok() && values("1000000001").is_err());
        assert!(entries("1000000").is_ok() && entries("1000001").is_err());
        assert!(violations("100000").is_ok() && violations("100001").is_err() && violations("").is_err());
    }

    #[test]
    fn short_lengths() {
        let millis = |text: &str| length(text).map(|length| length.as_millis()).ok();
        assert_eq!(millis("500ms"), Some(500));
        assert_eq!((millis("2s"), millis("2"), millis("0.5")), (Some(2_000), Some(2_000), Some(500)));
        assert_eq!((millis("1m"), millis("24h"), millis("0")), (Some(60_000), Some(86_400_000), Some(0)));
        assert_eq!(millis("1m30s"), Some(90_000));
        for wrong in ["", "s", "-1s", "2d", "25h", "inf", "NaN", "1e999", "2S"] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }
}

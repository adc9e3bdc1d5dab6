//! Short durations as arguments.

use std::time::Duration;

/// Parses a short duration, for clap: a number of seconds, or one followed by `ms`, `s`, `m` or `h`.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(number.len()..).unwrap_or_default() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let seconds = number.parse::<f64>().map_or(f64::NAN, |number| number * unit);
    let length = Duration::try_from_secs_f64(seconds).ok();
    let wanted = || "expected a duration such as 500ms, 2s or 1m, at most 24h".to_owned();
    length.filter(|length| length.as_secs() <= 24 * 3600).ok_or_else(wanted)
}

/// Formats a duration in the form that [`length`] parses: `90s`, `10m`.
pub(crate) fn text(length: Duration) -> String {
    let (seconds, milliseconds) = (length.as_secs(), length.subsec_millis());
    match (seconds, milliseconds) {
        (0, 1..) => format!("{milliseconds}ms"),
        (_, 1..) => format!("{}s", length.as_secs_f64()),
        (1.., _) if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        (1.., _) if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lengths() {
        let millis = |text: &str| length(text).map(|length| length.as_millis()).ok();
        assert_eq!(millis("500ms"), Some(500));
        assert_eq!((millis("2s"), millis("2"), millis("0.5")), (Some(2_000), Some(2_000), Some(500)));
        assert_eq!((millis("1m"), millis("24h"), millis("0")), (Some(60_000), Some(86_400_000), Some(0)));
        for wrong in ["", "s", "-1s", "1d", "25h", "inf", "NaN", "1e999", "1 s", "2S"] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_printed_can_be_read() {
        for (written, shown) in
            [("0", "0s"), ("500ms", "500ms"), ("1.5s", "1.5s"), ("90", "90s"), ("600s", "10m"), ("60m", "1h")]
        {
            let read = length(written).unwrap();
            assert_eq!(text(read), shown);
            assert_eq!(length(&text(read)), Ok(read));
        }
    }
}

//! Short lengths of time as arguments.

use std::time::Duration;

/// A short length of time for clap: a number of seconds, or one followed by `ms`, `s`, `m` or `h`.
pub(super) fn length(text: &str) -> Result<Duration, String> {
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
    let wanted = || "a length of time is like 500ms, 2s or 1m, and at most 24h".to_owned();
    length.filter(|length| length.as_secs() <= 24 * 3600).ok_or_else(wanted)
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
}

//! Short durations as arguments.

use std::time::Duration;

use runvault::clock::parse_length;

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

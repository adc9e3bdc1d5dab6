//! Times as arguments and as text.

use chrono::{DateTime, Duration, Utc};
use runvault::{Vault, clock};

use crate::cli::output::exit::CommandError;
use crate::cli::output::{stdout, terminal};

pub(crate) use runvault::display::{ago, duration, time as display};

/// For tests only: the fixed time of the clock, as an RFC 3339 timestamp.
const TEST_CLOCK: &str = "RUNVAULT_TEST_CLOCK";

/// Fixes the clock of this process if the environment variable is set, as only tests do.
pub(crate) fn fix_clock_for_tests() -> Result<(), CommandError> {
    let Some(text) = std::env::var_os(TEST_CLOCK) else { return Ok(()) };
    let time = text.to_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    let time =
        time.ok_or_else(|| CommandError::Usage(format!("{TEST_CLOCK} is not an RFC 3339 timestamp")))?;
    clock::fix(Some(time.to_utc()));
    Ok(())
}

/// The permitted difference between clocks.
const TOLERANCE: Duration = Duration::minutes(1);

/// Warns if the last journal entry is later than this machine's clock. Additions until then also get that time, because
/// times in a journal never decrease.
pub(crate) fn warn_of_future(vault: &Vault) -> Result<(), CommandError> {
    if !vault.is_created() {
        return Ok(());
    }
    let last = vault.last_entry_at()?;
    if let Some(last) = last.filter(|last| last.signed_duration_since(clock::now()) > TOLERANCE) {
        stdout::warning(&format!(
            "the last journal entry is in the future ({}): a clock is or was wrong, and artifacts added until then are \
             recorded with that time",
            display(last)
        ));
    }
    Ok(())
}

/// Parses a point in time, for clap.
pub(crate) fn point(text: &str) -> Result<DateTime<Utc>, String> {
    clock::parse_time(text, clock::now()).map_err(|error| error.to_string())
}

/// Parses a duration, for clap, such as `90m`, `36h`, `7d` or `4w`.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    clock::parse_length(text).ok_or_else(|| "expected a duration such as 90m, 36h, 7d, 4w".to_owned())
}

/// Formats a length of time in the largest units that fit.
pub(crate) fn length_of(length: std::time::Duration) -> String {
    duration(i64::try_from(length.as_millis()).unwrap_or(i64::MAX))
}

/// Formats a time for display: relative on a terminal, otherwise absolute, so that the output stays correct.
pub(crate) fn shown(time: DateTime<Utc>) -> String {
    if terminal::is_terminal() { ago(time, clock::now()) } else { display(time) }
}

#[cfg(test)]
mod tests {
    use runvault::vault::retention::length_text;

    use super::*;

    #[test]
    fn lengths_are_told_as_they_are_read() {
        for text in ["0d", "7s", "90s", "59m", "36h", "7d", "28d", "6M", "1y"] {
            assert_eq!(length_text(length(text).unwrap()), text);
        }
        assert_eq!(length_text(length("4w").unwrap()), "28d");
        assert_eq!(length_text(length("120m").unwrap()), "2h");
        for wrong in ["", "m", "-1m", "1x", "é", "99999999999999999999d"] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
    }
}

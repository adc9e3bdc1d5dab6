//! Times as arguments and as text.

use chrono::{DateTime, Duration, NaiveDate, Utc};
use clap::ValueEnum;
use runvault::storage::TimeBasis;

use crate::cli::output::exit::CommandError;
use crate::cli::output::stdout;
use crate::cli::output::terminal;

use runvault::{Vault, clock};

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

/// Which time of artifacts counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeBasisArg {
    /// First added
    FirstSeen,
    /// Last added or seen again
    #[default]
    LastSeen,
    /// Creation time as stated by the artifact, where it states one
    Created,
    /// Time of the end as stated by the artifact, where it states one
    Finished,
}

impl TimeBasisArg {
    pub(crate) fn basis(self) -> TimeBasis {
        match self {
            Self::FirstSeen => TimeBasis::FirstSeen,
            Self::LastSeen => TimeBasis::LastSeen,
            Self::Created => TimeBasis::Created,
            Self::Finished => TimeBasis::Finished,
        }
    }
}

/// Returns the argument name of a time of artifacts.
pub(crate) fn basis_text(basis: TimeBasis) -> &'static str {
    match basis {
        TimeBasis::FirstSeen => "first-seen",
        TimeBasis::LastSeen => "last-seen",
        TimeBasis::Created => "created",
        TimeBasis::Finished => "finished",
    }
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

/// Parses a point in time, for clap: `2026-11-20`, an RFC 3339 timestamp, or an age such as `90m`, `36h`, `7d` or `4w`.
pub(crate) fn point(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.to_utc());
    }
    if let Some(midnight) = text.parse::<NaiveDate>().ok().and_then(|date| date.and_hms_opt(0, 0, 0)) {
        return Ok(midnight.and_utc());
    }
    age(text).and_then(|age| clock::now().checked_sub_signed(age)).ok_or_else(|| {
        "expected a time such as 2026-11-20 or 2026-11-20T12:00:00Z, or an age such as 90m, 36h, 7d, 4w"
            .to_owned()
    })
}

/// Parses a duration, for clap, such as `90m`, `36h`, `7d` or `4w`.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    age(text).ok_or_else(|| "expected a duration such as 90m, 36h, 7d, 4w".to_owned())
}

fn age(text: &str) -> Option<Duration> {
    Duration::from_std(humantime::parse_duration(text).ok()?).ok()
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

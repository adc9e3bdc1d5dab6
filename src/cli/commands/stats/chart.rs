//! A chart of the growth by day.

use std::io::{self, Write};

use runvault::vault::stats::Day;

use crate::cli::output::stdout::{FAINT, GOOD, counted};
use crate::cli::output::terminal;
use crate::cli::output::time::TimeBasisArg;

/// The height of the chart in lines.
const HEIGHT: u64 = 4;

/// Characters by filled height.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The number of steps of one character.
const STEPS: u64 = 8;

const INDENT: usize = 2;

/// Prints a chart of the number of captures on each of `days`, which are consecutive, by the time `by`.
pub(super) fn print(out: &mut dyn Write, days: &[Day], by: TimeBasisArg) -> io::Result<()> {
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return Ok(()) };
    let room = terminal::width().unwrap_or(usize::MAX).saturating_sub(INDENT);
    let wide = if days.len() * 2 <= room { 2 } else { 1 };
    // Days that do not fit are omitted at the beginning.
    let first_shown = days.len().saturating_sub(room / wide);
    let days = days.get(first_shown..).unwrap_or_default();
    let first = days.first().unwrap_or(first);
    let most = days.iter().map(|day| day.captures).max().unwrap_or(0);
    let what = match by {
        TimeBasisArg::FirstSeen => "added",
        TimeBasisArg::LastSeen => "last seen",
        TimeBasisArg::Created => "created",
        TimeBasisArg::Finished => "finished",
    };
    let title = format!("{what} by day, at most {}", counted(most, "capture"));
    writeln!(out, "{:INDENT$}{FAINT}{title}{FAINT:#}", "")?;
    for line in lines(days, most, wide) {
        writeln!(out, "{:INDENT$}{GOOD}{line}{GOOD:#}", "")?;
    }
    let (first, last) = (first.date.to_string(), last.date.to_string());
    let gap = (days.len() * wide).saturating_sub(first.len() + last.len()).max(1);
    let dates = if days.len() * wide > first.len() + last.len() {
        format!("{first}{:gap$}{last}", "")
    } else {
        format!("{last:>width$}", width = days.len() * wide)
    };
    writeln!(out, "{:INDENT$}{FAINT}{dates}{FAINT:#}", "")
}

/// Returns the lines of the chart, from the top. Any number above zero is visible.
fn lines(days: &[Day], most: u64, wide: usize) -> Vec<String> {
    let height = |day: &Day| (day.captures * HEIGHT * STEPS).div_ceil(most.max(1));
    let line = |level: u64| {
        let block = |day: &Day| {
            let steps = height(day).saturating_sub(level * STEPS).min(STEPS);
            let block = usize::try_from(steps).ok().and_then(|steps| BLOCKS.get(steps)).unwrap_or(&' ');
            std::iter::repeat_n(*block, wide)
        };
        days.iter().flat_map(block).collect::<String>().trim_end().to_owned()
    };
    (0..HEIGHT).rev().map(line).filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_days_are_busy() {
        let date = chrono::NaiveDate::default();
        let day = |captures| Day { date, artifacts: 0, captures, bytes: 0 };
        let days = [day(32), day(1), day(0), day(9), day(16)];
        assert_eq!(lines(&days, 32, 1), ["█", "█", "█  ▁█", "█▁ ██"]);
        assert_eq!(lines(&[day(0)], 0, 2), [""; 0]);
        assert_eq!(lines(&[day(1), day(1_000_000)], 1_000_000, 2), ["  ██", "  ██", "  ██", "▁▁██"]);
    }
}

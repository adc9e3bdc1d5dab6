//! `runvault stats`

use std::io::{self, Write};

use anstyle::Style;
use chrono::{Days, NaiveDate};
use clap::Args as ClapArgs;
use runvault::storage::TimeBasis;
use runvault::vault::api::ArtifactSummary;
use runvault::vault::run_stats::RunStatsRequest;
use runvault::vault::stats::{
    DatedArtifact, Day, EngineStatistics, KindTotals, SizedArtifact, StatsAnswer, StatsRequest,
};
use runvault::{clock, formats};

use crate::cli::args::choice::{self, RUN_GROUPINGS, RunGroupingArg};
use crate::cli::args::settings;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::columns::KIND_WIDTH;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::report::Fields;
use crate::cli::output::stdout::{self, FAINT, GOOD, HASH, counted};
use crate::cli::output::table::{TextCell, TextColumn, TextTable};
use crate::cli::output::{json, run_stats, terminal, time};

/// Show counts, disk usage and growth
///
/// Stored bytes are not read, so this is fast in large vaults too. Removed artifacts are not counted. Days are in UTC.
///
/// With --by model, tool, agent, day, label:KEY or another attribute whose values are text, prints for each value the
/// number of runs, of failed ones (with errors), of input and output tokens, the latency that 50 and 95 of 100 runs did not
/// exceed, and the costs in US dollars: those that runs state, otherwise computed from the setting prices. A run with
/// several values is counted for each of them.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// What runs are grouped by: model, tool, agent, day, label:KEY, or an attribute such as provider; or the time of
    /// oldest, newest and growth: created, first-seen, last-seen or finished
    #[arg(long, value_name = "WHAT", default_value = "created", value_parser = stats_grouping)]
    by: StatsGrouping,
    /// Print one JSON document with everything
    #[arg(long)]
    json: bool,
}

/// What artifacts are counted by.
#[derive(Clone, Debug)]
enum StatsGrouping {
    Time(TimeBasis),
    Runs(RunGroupingArg),
}

/// Parses a time or what runs are grouped by, for clap.
fn stats_grouping(text: &str) -> Result<StatsGrouping, String> {
    if let Some(time) = choice::named(choice::TIMES, text) {
        return Ok(StatsGrouping::Time(time));
    }
    let runs = choice::run_grouping(text).map(StatsGrouping::Runs);
    runs.map_err(|error| match text.split_once(':') {
        Some(_) => error,
        None => format!("expected {RUN_GROUPINGS}; or created, first-seen, last-seen or finished"),
    })
}

/// Number of days shown, up to today.
const DAYS: u64 = 30;

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let by = match &self.by {
            StatsGrouping::Time(by) => *by,
            StatsGrouping::Runs(RunGroupingArg { text, grouping }) => {
                let (by, prices) = (grouping.clone(), settings::prices()?);
                let answer = vault.run(&RunStatsRequest { by, prices, ..RunStatsRequest::default() })?;
                return run_stats::print(text, &answer, self.json);
            }
        };
        let stats = vault.run(&StatsRequest { by, ..StatsRequest::default() })?;
        if self.json {
            json::line(&mut stdout::raw(), &stats)?;
        } else {
            let mut out = io::BufWriter::new(stdout::text());
            print(&mut out, &stats, by)?;
            out.flush()?;
            if stats.undated > 0 {
                let verb = if stats.undated == 1 { "states" } else { "state" };
                let undated = counted(stats.undated, "artifact");
                stdout::note(&format!("{undated} {verb} no {}", by.noun()));
            }
        }
        Ok(Status::Done)
    }
}

fn print(out: &mut dyn Write, stats: &StatsAnswer, by: TimeBasis) -> io::Result<()> {
    kinds(stats).write(out)?;
    writeln!(out)?;
    let mut fields = Fields::new(0);
    storage(stats, &mut fields);
    marks(stats, &mut fields);
    fields.write(out)?;
    if let (Some(oldest), Some(newest)) = (&stats.oldest, &stats.newest) {
        writeln!(out)?;
        artifacts(stats, oldest, newest).write(out)?;
        writeln!(out)?;
        let today = clock::now().date_naive();
        let days: Vec<Day> = recent(&stats.days, today);
        if terminal::is_terminal() {
            print_chart(out, &days, by)?;
        } else {
            growth(&days).write(out)?;
        }
    }
    Ok(())
}

fn kinds(stats: &StatsAnswer) -> TextTable {
    let number = |title| TextColumn::new(title).whole().right();
    let kind = TextColumn::new("kind").whole().padded(KIND_WIDTH);
    let mut table =
        TextTable::new(vec![kind, number("artifacts"), number("captures"), number("size")]).titled();
    let total = KindTotals {
        kind: "all".to_owned(),
        artifacts: stats.artifacts,
        captures: stats.captures,
        bytes: stats.bytes,
    };
    for KindTotals { kind, artifacts, captures, bytes } in stats.kinds.iter().chain([&total]) {
        table.push(vec![
            TextCell::plain(formats::bare_noun(kind)),
            TextCell::plain(&artifacts.to_string()),
            TextCell::plain(&captures.to_string()),
            TextCell::plain(&stdout::size(*bytes)),
        ]);
    }
    table
}

fn storage(stats: &StatsAnswer, fields: &mut Fields) {
    let plain = Style::new();
    let received = format!("{} in {}", stdout::size(stats.bytes), counted(stats.captures, "capture"));
    fields.push("received", received, plain);
    let shared = stats.shared_blobs;
    let shared = if shared > 0 { format!(", {shared} shared by several captures") } else { String::new() };
    let blobs = counted(stats.blobs, "blob");
    fields.push("distinct", format!("{} in {blobs}{shared}", stdout::size(stats.blob_bytes)), plain);
    if let Some(engine) = &stats.engine {
        stored(stats.bytes, engine, fields);
    }
}

fn stored(received: u64, engine: &EngineStatistics, fields: &mut Fields) {
    let plain = Style::new();
    let mut stored = vec![stdout::size(packed_bytes(engine))];
    stored.extend(
        ratio(received, engine)
            .map(|tenths| format!("{}.{} times smaller than received", tenths / 10, tenths % 10)),
    );
    if engine.differences > 0 {
        stored.push(counted(engine.differences, "delta"));
    }
    match engine.dictionaries {
        0 => {}
        1 => stored.push("1 dictionary".to_owned()),
        count => stored.push(format!("{count} dictionaries")),
    }
    fields.push("stored", stored.join(", "), plain);
    let free = stdout::size(engine.free_bytes);
    fields.push("file", format!("{}, {free} of it free", stdout::size(engine.file_bytes)), plain);
    if let Some(bytes) = engine.search_bytes {
        fields.push("search", format!("{} for full-text search", stdout::size(bytes)), plain);
    }
}

/// Returns the size of the stored data in bytes.
fn packed_bytes(engine: &EngineStatistics) -> u64 {
    engine.stored_bytes + engine.dictionary_bytes
}

/// Returns the ratio of the received to the stored size, in tenths; `None` if nothing is stored.
fn ratio(received: u64, engine: &EngineStatistics) -> Option<u64> {
    received.saturating_mul(10).checked_div(packed_bytes(engine))
}

fn marks(stats: &StatsAnswer, fields: &mut Fields) {
    if let Some(engine) = &stats.engine {
        fields.push("mentions", counted(engine.mentions, "digest"), Style::new());
    }
    let (links, tags) = (counted(stats.manual_links, "manual link"), counted(stats.tags, "tag"));
    let (pins, notes) = (counted(stats.pins, "pin"), counted(stats.notes, "note"));
    let labels = counted(stats.labels, "label");
    fields.push("annotations", format!("{links}, {tags}, {pins}, {notes}, {labels}"), Style::new());
    let entries = stats.journal_entries;
    let entries = if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
    fields.push("journal", entries, Style::new());
}

/// Returns a table of the first, the last, and the largest artifacts.
fn artifacts(stats: &StatsAnswer, oldest: &DatedArtifact, newest: &DatedArtifact) -> TextTable {
    let whole = |title| TextColumn::new(title).whole();
    let mut table = TextTable::new(vec![
        whole("which"),
        whole("hash"),
        whole("kind").padded(KIND_WIDTH).minor(),
        TextColumn::new("what"),
    ]);
    let mut push = |which: &str, artifact: &ArtifactSummary, what: &str| {
        let hash = TextCell::new(&format!("{:.12}", artifact.core_hash), HASH);
        table.push(vec![
            TextCell::new(which, FAINT),
            hash,
            TextCell::plain(formats::bare_noun(&artifact.kind)),
            TextCell::plain(what),
        ]);
    };
    push("oldest", &oldest.artifact, &time::shown(oldest.at.0));
    push("newest", &newest.artifact, &time::shown(newest.at.0));
    for (index, SizedArtifact { artifact, bytes, captures }) in stats.largest.iter().enumerate() {
        let what = format!("{}, {}", stdout::size(*bytes), counted(*captures, "capture"));
        push(if index == 0 { "largest" } else { "" }, artifact, &what);
    }
    table.indented(2)
}

/// Returns the counts of each of the last days.
fn recent(days: &[Day], today: NaiveDate) -> Vec<Day> {
    let first = today.checked_sub_days(Days::new(DAYS - 1)).unwrap_or(today);
    let none = |date| Day { date, artifacts: 0, captures: 0, bytes: 0 };
    let day = |date| days.iter().find(|day| day.date == date).copied().unwrap_or_else(|| none(date));
    first.iter_days().take_while(|date| *date <= today).map(day).collect()
}

/// Returns a table of the days with additions.
fn growth(days: &[Day]) -> TextTable {
    let number = |title| TextColumn::new(title).whole().right();
    let columns =
        vec![TextColumn::new("day").whole(), number("artifacts"), number("captures"), number("size")];
    let mut table = TextTable::new(columns).titled();
    for Day { date, artifacts, captures, bytes } in days.iter().filter(|day| day.captures > 0) {
        table.push(vec![
            TextCell::plain(&date.to_string()),
            TextCell::plain(&artifacts.to_string()),
            TextCell::plain(&captures.to_string()),
            TextCell::plain(&stdout::size(*bytes)),
        ]);
    }
    table
}

/// The height of the chart in lines.
const HEIGHT: u64 = 4;

/// Characters by filled height.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The number of steps of one character.
const STEPS: u64 = 8;

const INDENT: usize = 2;

/// Prints a chart of the number of captures on each of `days`, which are consecutive, by the time `by`.
fn print_chart(out: &mut dyn Write, days: &[Day], by: TimeBasis) -> io::Result<()> {
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return Ok(()) };
    let room = terminal::width().unwrap_or(usize::MAX).saturating_sub(INDENT);
    let wide = if days.len() * 2 <= room { 2 } else { 1 };
    // Days that do not fit are omitted at the beginning.
    let first_shown = days.len().saturating_sub(room / wide);
    let days = days.get(first_shown..).unwrap_or_default();
    let first = days.first().unwrap_or(first);
    let most = days.iter().map(|day| day.captures).max().unwrap_or(0);
    let what = match by {
        TimeBasis::FirstSeen => "added",
        TimeBasis::LastSeen => "last seen",
        TimeBasis::Created => "created",
        TimeBasis::Finished => "finished",
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

//! `runvault stats`

mod chart;

use std::io::{self, Write};

use anstyle::Style;
use chrono::{Days, NaiveDate};
use clap::Args as ClapArgs;
use runvault::clock;
use runvault::digest::CoreHash;
use runvault::storage::{ArtifactRecord, Dated, Day, DiskUsage, KindStats, Sized, Stats};
use serde::Serialize;

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::columns::KIND_WIDTH;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::fields::Fields;
use crate::cli::output::json;
use crate::cli::output::stdout::{self, FAINT, HASH, counted};
use crate::cli::output::table::{Cell, Column, Table};
use crate::cli::output::time;
use crate::cli::output::time::By;

/// Show counts, disk usage and growth.
///
/// Stored bytes are not read, so this is fast in large vaults too. Removed artifacts are not counted. Days are in UTC.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Which time is used for the oldest, the newest and the day of an artifact
    #[arg(long, value_enum, value_name = "TIME", default_value_t)]
    by: By,
    /// Print one JSON document with everything
    #[arg(long)]
    json: bool,
}

/// Number of days shown, up to today.
const DAYS: u64 = 30;

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let stats = vault.open()?.stats(self.by.basis())?;
        if self.json {
            json::line(&mut stdout::raw(), &JsonStats::new(&stats))?;
        } else {
            let mut out = io::BufWriter::new(stdout::text());
            print(&mut out, &stats, self.by)?;
            out.flush()?;
            if stats.undated > 0 {
                let verb = if stats.undated == 1 { "states" } else { "state" };
                let undated = counted(stats.undated, "artifact");
                stdout::note(&format!("{undated} {verb} no creation time"));
            }
        }
        Ok(Status::Done)
    }
}

fn print(out: &mut dyn Write, stats: &Stats, by: By) -> io::Result<()> {
    kinds(stats).write(out)?;
    writeln!(out)?;
    let mut fields = Fields::new(0);
    storage(stats, &mut fields);
    marks(stats, &mut fields);
    fields.write(out)?;
    if let (Some(oldest), Some(newest)) = (&stats.extremes.oldest, &stats.extremes.newest) {
        writeln!(out)?;
        artifacts(stats, oldest, newest).write(out)?;
        writeln!(out)?;
        let today = clock::now().date_naive();
        let days: Vec<Day> = recent(&stats.days, today);
        if stdout::is_terminal() {
            chart::print(out, &days, by)?;
        } else {
            growth(&days).write(out)?;
        }
    }
    Ok(())
}

fn kinds(stats: &Stats) -> Table {
    let number = |title| Column::new(title).whole().right();
    let kind = Column::new("kind").whole().padded(KIND_WIDTH);
    let mut table = Table::new(vec![kind, number("artifacts"), number("captures"), number("size")]).titled();
    let total = KindStats {
        kind: "all".to_owned(),
        artifacts: stats.artifacts(),
        captures: stats.captures(),
        bytes: stats.bytes(),
    };
    for KindStats { kind, artifacts, captures, bytes } in stats.kinds.iter().chain([&total]) {
        table.push(vec![
            Cell::plain(kind),
            Cell::plain(&artifacts.to_string()),
            Cell::plain(&captures.to_string()),
            Cell::plain(&stdout::size(*bytes)),
        ]);
    }
    table
}

fn storage(stats: &Stats, fields: &mut Fields) {
    let plain = Style::new();
    let storage = &stats.storage;
    let received = format!("{} in {}", stdout::size(stats.bytes()), counted(stats.captures(), "capture"));
    fields.push("received", received, plain);
    let shared = storage.shared_blobs;
    let shared = if shared > 0 { format!(", {shared} shared by several captures") } else { String::new() };
    let blobs = counted(storage.blobs, "blob");
    fields.push("distinct", format!("{} in {blobs}{shared}", stdout::size(storage.blob_bytes)), plain);
    let mut stored = vec![stdout::size(packed_bytes(storage))];
    stored.extend(
        ratio(stats).map(|tenths| format!("{}.{} times smaller than received", tenths / 10, tenths % 10)),
    );
    if storage.differences > 0 {
        stored.push(counted(storage.differences, "delta"));
    }
    match storage.dictionaries {
        0 => {}
        1 => stored.push("1 dictionary".to_owned()),
        count => stored.push(format!("{count} dictionaries")),
    }
    fields.push("stored", stored.join(", "), plain);
    let free = stdout::size(storage.free_bytes);
    fields.push("file", format!("{}, {free} of it free", stdout::size(storage.file_bytes)), plain);
    if let Some(bytes) = storage.search_bytes {
        fields.push("search", format!("{} for full-text search", stdout::size(bytes)), plain);
    }
}

/// Returns the size of the stored data in bytes.
fn packed_bytes(storage: &DiskUsage) -> u64 {
    storage.stored_bytes + storage.dictionary_bytes
}

/// Returns the ratio of the received to the stored size, in tenths; `None` if nothing is stored.
fn ratio(stats: &Stats) -> Option<u64> {
    stats.bytes().saturating_mul(10).checked_div(packed_bytes(&stats.storage))
}

fn marks(stats: &Stats, fields: &mut Fields) {
    fields.push("mentions", counted(stats.mentions, "digest"), Style::new());
    let (links, tags) = (counted(stats.stated_links, "manual link"), counted(stats.tags, "tag"));
    let (pins, notes) = (counted(stats.pins, "pin"), counted(stats.notes, "note"));
    fields.push("annotations", format!("{links}, {tags}, {pins}, {notes}"), Style::new());
    let entries = stats.journal_entries;
    let entries = if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
    fields.push("journal", entries, Style::new());
}

/// Returns a table of the first, the last, and the largest artifacts.
fn artifacts(stats: &Stats, oldest: &Dated, newest: &Dated) -> Table {
    let whole = |title| Column::new(title).whole();
    let mut table = Table::new(vec![
        whole("which"),
        whole("hash"),
        whole("kind").padded(KIND_WIDTH).minor(),
        Column::new("what"),
    ]);
    let mut push = |which: &str, artifact: &ArtifactRecord, what: &str| {
        let hash = Cell::new(&format!("{:.12}", artifact.core), HASH);
        table.push(vec![Cell::new(which, FAINT), hash, Cell::plain(&artifact.kind), Cell::plain(what)]);
    };
    push("oldest", &oldest.artifact, &time::shown(oldest.at));
    push("newest", &newest.artifact, &time::shown(newest.at));
    for (index, Sized { artifact, bytes, captures }) in stats.extremes.largest.iter().enumerate() {
        let what = format!("{}, {}", stdout::size(*bytes), counted(*captures, "capture"));
        push(if index == 0 { "largest" } else { "" }, artifact, &what);
    }
    table.indented(2)
}

/// Returns the counts of each of the last days.
fn recent(days: &[Day], today: NaiveDate) -> Vec<Day> {
    let first = today.checked_sub_days(Days::new(DAYS - 1)).unwrap_or(today);
    let none = |date| Day { date, artifacts: 0, captures: 0, bytes: 0 };
    let day = |date| days.iter().find(|day| day.date == date).copied().unwrap_or(none(date));
    first.iter_days().take_while(|date| *date <= today).map(day).collect()
}

/// Returns a table of the days with additions.
fn growth(days: &[Day]) -> Table {
    let number = |title| Column::new(title).whole().right();
    let columns = vec![Column::new("day").whole(), number("artifacts"), number("captures"), number("size")];
    let mut table = Table::new(columns).titled();
    for Day { date, artifacts, captures, bytes } in days.iter().filter(|day| day.captures > 0) {
        table.push(vec![
            Cell::plain(&date.to_string()),
            Cell::plain(&artifacts.to_string()),
            Cell::plain(&captures.to_string()),
            Cell::plain(&stdout::size(*bytes)),
        ]);
    }
    table
}

#[derive(Serialize)]
struct JsonStats<'s> {
    artifacts: u64,
    captures: u64,
    bytes: u64,
    kinds: Vec<JsonKind<'s>>,
    blobs: u64,
    blob_bytes: u64,
    shared_blobs: u64,
    stored_bytes: u64,
    differences: u64,
    dictionaries: u64,
    dictionary_bytes: u64,
    search_bytes: Option<u64>,
    file_bytes: u64,
    free_bytes: u64,
    mentions: u64,
    stated_links: u64,
    tags: u64,
    pins: u64,
    notes: u64,
    journal_entries: u64,
    by: &'static str,
    undated: u64,
    oldest: Option<JsonDated<'s>>,
    newest: Option<JsonDated<'s>>,
    largest: Vec<JsonSized<'s>>,
    days: Vec<JsonDay>,
}

#[derive(Serialize)]
struct JsonKind<'s> {
    kind: &'s str,
    artifacts: u64,
    captures: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct JsonArtifact<'s> {
    core_hash: CoreHash,
    kind: &'s str,
    added_at: String,
    seen_at: String,
}

#[derive(Serialize)]
struct JsonDated<'s> {
    #[serde(flatten)]
    artifact: JsonArtifact<'s>,
    at: String,
}

#[derive(Serialize)]
struct JsonSized<'s> {
    #[serde(flatten)]
    artifact: JsonArtifact<'s>,
    bytes: u64,
    captures: u64,
}

#[derive(Serialize)]
struct JsonDay {
    date: String,
    artifacts: u64,
    captures: u64,
    bytes: u64,
}

impl<'s> JsonArtifact<'s> {
    fn new(artifact: &'s ArtifactRecord) -> Self {
        let ArtifactRecord { core, kind, added_at, seen_at, .. } = artifact;
        let (added_at, seen_at) = (time::exact(*added_at), time::exact(*seen_at));
        Self { core_hash: *core, kind, added_at, seen_at }
    }
}

impl<'s> JsonDated<'s> {
    fn new(dated: &'s Dated) -> Self {
        Self { artifact: JsonArtifact::new(&dated.artifact), at: time::exact(dated.at) }
    }
}

impl<'s> JsonStats<'s> {
    fn new(stats: &'s Stats) -> Self {
        let kinds = stats.kinds.iter().map(|KindStats { kind, artifacts, captures, bytes }| JsonKind {
            kind,
            artifacts: *artifacts,
            captures: *captures,
            bytes: *bytes,
        });
        let largest = stats.extremes.largest.iter().map(|Sized { artifact, bytes, captures }| JsonSized {
            artifact: JsonArtifact::new(artifact),
            bytes: *bytes,
            captures: *captures,
        });
        let days = stats.days.iter().map(|Day { date, artifacts, captures, bytes }| JsonDay {
            date: date.to_string(),
            artifacts: *artifacts,
            captures: *captures,
            bytes: *bytes,
        });
        let storage = &stats.storage;
        Self {
            artifacts: stats.artifacts(),
            captures: stats.captures(),
            bytes: stats.bytes(),
            kinds: kinds.collect(),
            blobs: storage.blobs,
            blob_bytes: storage.blob_bytes,
            shared_blobs: storage.shared_blobs,
            stored_bytes: storage.stored_bytes,
            differences: storage.differences,
            dictionaries: storage.dictionaries,
            dictionary_bytes: storage.dictionary_bytes,
            search_bytes: storage.search_bytes,
            file_bytes: storage.file_bytes,
            free_bytes: storage.free_bytes,
            mentions: stats.mentions,
            stated_links: stats.stated_links,
            tags: stats.tags,
            pins: stats.pins,
            notes: stats.notes,
            journal_entries: stats.journal_entries,
            by: time::basis_text(stats.by),
            undated: stats.undated,
            oldest: stats.extremes.oldest.as_ref().map(JsonDated::new),
            newest: stats.extremes.newest.as_ref().map(JsonDated::new),
            largest: largest.collect(),
            days: days.collect(),
        }
    }
}

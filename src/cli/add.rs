//! `runvault add`

use std::io::{self, Write};
use std::time::Instant;

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::ingest::{self, Examined, Monitor, Outcome, Summary};
use runvault::source::SourceError;
use serde::Serialize;

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::inputs::InputArgs;
use super::output::{self, BAD, FAINT, GOOD, HASH, counted};
use super::progress::Progress;
use super::vault::VaultArgs;
use super::{json, report, search};

/// Verify artifacts and store them.
///
/// Kinds are recognised by content. Bad artifacts do not stop the others. In directories, files that are no artifacts
/// are skipped. A line that was printed is a promise kept: what it names is on the disk.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Tell what would be done, and store nothing
    #[arg(long)]
    dry_run: bool,

    /// List files that were there already or are no artifacts as well
    #[arg(short, long)]
    verbose: bool,

    /// Print one line of JSON for each artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let started = Instant::now();
        let options = self.input.options()?;
        let search = search::Settings::from_environment()?;
        let listed = self.input.checks.listed()?;
        let shown = Shown { dry_run: self.dry_run, verbose: self.verbose, json: self.json, listed };
        let mut printer = Printer::new("adding", shown);
        let mut added_to = None;
        let summary = if self.dry_run {
            let existing = if vault.path()?.exists() { Some(vault.open()?) } else { None };
            let snapshot = existing.as_ref().map(Vault::snapshot).transpose()?;
            ingest::rehearse(snapshot.as_ref(), self.input.inputs()?, &options, &mut printer)?
        } else {
            let inputs = self.input.inputs()?;
            let vault = vault.open_or_create()?;
            let summary = vault.add(inputs, &options, &mut printer)?;
            added_to = Some(vault);
            summary
        };
        printer.finish(&summary, started)?;
        added_to.map_or(Ok(()), |vault| search::after_adding(&vault, search))?;
        Ok(Status::of(&summary))
    }
}

#[derive(Serialize)]
struct Verdict {
    outcome: &'static str,
}

/// What is told, and how.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) dry_run: bool,
    pub(crate) verbose: bool,
    pub(crate) json: bool,
    /// So many violations are told, if somebody said how many.
    pub(crate) listed: Option<usize>,
}

/// Prints what becomes of documents that are to be stored.
pub(crate) struct Printer {
    shown: Shown,
    progress: Progress,
    /// The first error of writing. Adding goes on without lines.
    trouble: Option<io::Error>,
    /// How many documents got in with warnings.
    warned: u64,
}

impl Monitor for Printer {
    fn examined(&mut self, examined: &Examined) {
        self.progress.file(examined.size);
        if !self.shown.json && examined.outcome == Outcome::Rejected {
            self.progress.aside(|| self.print_rejected(examined));
        }
        if matches!(examined.outcome, Outcome::Added | Outcome::NewCapture)
            && !examined.report.violations().is_empty()
        {
            self.warned += 1;
        }
        if self.trouble.is_some() {
            return;
        }
        let print = || if self.shown.json { self.print_json(examined) } else { self.print_text(examined) };
        self.trouble = self.progress.beside(print).err();
    }

    fn unreadable(&mut self, error: &SourceError) {
        self.progress.aside(|| output::error(&error.to_string()));
    }
}

impl Printer {
    pub(crate) fn new(doing: &'static str, shown: Shown) -> Self {
        Self { shown, progress: Progress::new(doing), trouble: None, warned: 0 }
    }

    /// Tells what it came to.
    pub(crate) fn finish(self, summary: &Summary, started: Instant) -> Result<(), Failure> {
        // A closed pipe is no trouble: what was asked for is the vault, not the lines.
        if let Some(error) = self.trouble.filter(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            return Err(error.into());
        }
        drop(self.progress);
        output::note(&text_of(summary, self.shown.dry_run, self.warned, started));
        report::hint(summary.rejected);
        Ok(())
    }

    fn most(&self) -> usize {
        self.shown.listed.unwrap_or(report::LISTED)
    }

    /// Names a bad artifact with its violations.
    fn print_rejected(&self, examined: &Examined) {
        let kind = examined.kind.map(|kind| format!("{} ", kind.name())).unwrap_or_default();
        let mut text = format!("{BAD}rejected{BAD:#} {kind}{}\n", escaped(&examined.path)).into_bytes();
        // Writing to a vector cannot fail.
        let _ = report::write(&mut text, &examined.report, self.most());
        output::note(String::from_utf8_lossy(&text).trim_end());
    }

    fn print_json(&self, examined: &Examined) -> io::Result<()> {
        let outcome = match examined.outcome {
            Outcome::Added => "added",
            Outcome::NewCapture => "capture",
            Outcome::Present | Outcome::Verified => "present",
            Outcome::Rejected => "rejected",
            Outcome::Skipped => return Ok(()),
        };
        let mut out = output::raw();
        json::examined(&mut out, examined, Verdict { outcome }, self.shown.listed)?;
        out.flush()
    }

    fn print_text(&self, examined: &Examined) -> io::Result<()> {
        let (word, style) = match examined.outcome {
            Outcome::Added if self.shown.dry_run => ("would add", GOOD),
            Outcome::NewCapture if self.shown.dry_run => ("would capture", GOOD),
            Outcome::Added => ("added", GOOD),
            Outcome::NewCapture => ("new capture", GOOD),
            Outcome::Present if self.shown.verbose => ("already there", FAINT),
            Outcome::Skipped if self.shown.verbose => ("skipped", FAINT),
            _ => return Ok(()),
        };
        let mut out = output::text();
        let kind = examined.kind.map_or("", runvault::artifact::Kind::name);
        let hash = examined.core.map(|core| format!("{HASH}{core:.12}{HASH:#} ")).unwrap_or_default();
        writeln!(out, "{style}{word:<13}{style:#} {kind:<8} {hash}{}", escaped(&examined.path))?;
        if self.shown.verbose {
            report::write(&mut out, &examined.report, self.most())?;
        }
        out.flush()
    }
}

fn text_of(summary: &Summary, dry_run: bool, warned: u64, started: Instant) -> String {
    let mut parts = vec![
        format!("{} added", summary.added),
        format!("{} already there", summary.present),
        counted(summary.new_captures, "new capture"),
        format!("{} rejected", summary.rejected),
    ];
    if summary.skipped > 0 {
        parts.push(format!("{} skipped", counted(summary.skipped, "other file")));
    }
    if summary.unreadable > 0 {
        parts.push(format!("{} unreadable", summary.unreadable));
    }
    if warned > 0 {
        parts.push(format!("{warned} with warnings, which -v lists"));
    }
    let dry = if dry_run { "dry run, nothing was stored: " } else { "" };
    let (size, seconds) = (output::size(summary.bytes), started.elapsed().as_secs_f64());
    format!("{dry}{}; {size} in {seconds:.2} s", parts.join(", "))
}

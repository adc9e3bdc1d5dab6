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
use super::{json, report};

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
        let mut printer = Printer {
            args: self,
            listed: self.input.listed()?,
            progress: Progress::new("adding"),
            trouble: None,
            warned: 0,
        };
        let summary = if self.dry_run {
            let existing = if vault.path()?.exists() { Some(vault.open()?) } else { None };
            let snapshot = existing.as_ref().map(Vault::snapshot).transpose()?;
            ingest::rehearse(snapshot.as_ref(), self.input.inputs()?, &options, &mut printer)?
        } else {
            let inputs = self.input.inputs()?;
            vault.open_or_create()?.add(inputs, &options, &mut printer)?
        };
        // A closed pipe is no trouble: what was asked for is the vault, not the lines.
        if let Some(error) = printer.trouble.take().filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
        {
            return Err(error.into());
        }
        let warned = printer.warned;
        drop(printer);
        output::note(&self.summary(&summary, warned, started));
        report::hint(summary.rejected);
        Ok(Status::of(&summary))
    }

    fn summary(&self, summary: &Summary, warned: u64, started: Instant) -> String {
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
        let dry = if self.dry_run { "dry run, nothing was stored: " } else { "" };
        let (size, seconds) = (output::size(summary.bytes), started.elapsed().as_secs_f64());
        format!("{dry}{}; {size} in {seconds:.2} s", parts.join(", "))
    }
}

#[derive(Serialize)]
struct Verdict {
    outcome: &'static str,
}

struct Printer<'a> {
    args: &'a Args,
    /// So many violations are told, if somebody said how many.
    listed: Option<usize>,
    progress: Progress,
    /// The first error of writing. Adding goes on without lines.
    trouble: Option<io::Error>,
    /// How many documents got in with warnings.
    warned: u64,
}

impl Monitor for Printer<'_> {
    fn examined(&mut self, examined: &Examined) {
        self.progress.file(examined.size);
        if !self.args.json && examined.outcome == Outcome::Rejected {
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
        let print = || if self.args.json { self.print_json(examined) } else { self.print_text(examined) };
        self.trouble = self.progress.beside(print).err();
    }

    fn unreadable(&mut self, error: &SourceError) {
        self.progress.aside(|| output::error(&error.to_string()));
    }
}

impl Printer<'_> {
    fn most(&self) -> usize {
        self.listed.unwrap_or(report::LISTED)
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
        json::examined(&mut out, examined, Verdict { outcome }, self.listed)?;
        out.flush()
    }

    fn print_text(&self, examined: &Examined) -> io::Result<()> {
        let (word, style) = match examined.outcome {
            Outcome::Added if self.args.dry_run => ("would add", GOOD),
            Outcome::NewCapture if self.args.dry_run => ("would capture", GOOD),
            Outcome::Added => ("added", GOOD),
            Outcome::NewCapture => ("new capture", GOOD),
            Outcome::Present if self.args.verbose => ("already there", FAINT),
            Outcome::Skipped if self.args.verbose => ("skipped", FAINT),
            _ => return Ok(()),
        };
        let mut out = output::text();
        let kind = examined.kind.map_or("", runvault::artifact::Kind::name);
        let hash = examined.core.map(|core| format!("{HASH}{core:.12}{HASH:#} ")).unwrap_or_default();
        writeln!(out, "{style}{word:<13}{style:#} {kind:<8} {hash}{}", escaped(&examined.path))?;
        if self.args.verbose {
            report::write(&mut out, &examined.report, self.most())?;
        }
        out.flush()
    }
}

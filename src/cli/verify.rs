//! `runvault verify`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::artifact::Kind;
use runvault::ingest::{self, Examined, Monitor, Outcome};
use runvault::source::SourceError;
use serde::Serialize;

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::inputs::InputArgs;
use super::output::{self, BAD, FAINT, GOOD, HASH, counted};
use super::progress::Progress;
use super::{json, report};

/// Apply the same checks as "add" and store nothing.
///
/// What "add" would reject is bad, what it would skip is skipped.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// List files that are no artifacts as well
    #[arg(short, long)]
    verbose: bool,

    /// Print one line of JSON for each artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let (inputs, options) = (self.input.inputs()?, self.input.options()?);
        let listed = self.input.checks.listed()?;
        let mut printer = Printer { args: self, listed, progress: Progress::new("verifying"), trouble: None };
        let summary = ingest::verify(inputs, &options, &mut printer);
        // A closed pipe is no reason to call broken artifacts good: the status is that of what was verified.
        match printer.trouble.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
            _ => drop(printer),
        }
        let skipped = match summary.skipped {
            0 => String::new(),
            skipped => format!(", {} skipped", counted(skipped, "other file")),
        };
        output::note(&format!("{} good, {} bad{skipped}", summary.verified, summary.rejected));
        report::hint(summary.rejected, 0);
        Ok(Status::of(&summary))
    }
}

#[derive(Serialize)]
struct Verdict {
    ok: bool,
}

struct Printer<'a> {
    args: &'a Args,
    /// So many violations are told, if somebody said how many.
    listed: Option<usize>,
    progress: Progress,
    trouble: Option<io::Error>,
}

impl Monitor for Printer<'_> {
    fn examined(&mut self, examined: &Examined) {
        self.progress.file(examined.size);
        if self.trouble.is_none() {
            let print = || {
                if self.args.json { self.print_json(examined) } else { self.print_text(examined) }
            };
            self.trouble = self.progress.beside(print).err();
        }
    }

    fn unreadable(&mut self, error: &SourceError) {
        self.progress.aside(|| output::error(&error.to_string()));
    }
}

impl Printer<'_> {
    fn print_json(&self, examined: &Examined) -> io::Result<()> {
        if examined.outcome == Outcome::Skipped {
            return Ok(());
        }
        let verdict = Verdict { ok: examined.outcome == Outcome::Verified };
        json::examined(&mut output::raw(), examined, verdict, self.listed)
    }

    fn print_text(&self, examined: &Examined) -> io::Result<()> {
        let (word, style) = match examined.outcome {
            Outcome::Verified => ("good", GOOD),
            Outcome::Rejected => ("bad", BAD),
            Outcome::Skipped if self.args.verbose => ("skipped", FAINT),
            _ => return Ok(()),
        };
        let mut out = output::text();
        let kind = examined.kind.map_or("", Kind::name);
        let hash = examined.core.map(|core| format!("{HASH}{core:.12}{HASH:#} ")).unwrap_or_default();
        writeln!(out, "{style}{word:<7}{style:#} {kind:<8} {hash}{}", escaped(&examined.path))?;
        report::write(&mut out, &examined.report, self.listed.unwrap_or(report::LISTED))
    }
}

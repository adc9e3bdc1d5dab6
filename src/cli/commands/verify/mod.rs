//! `runvault verify`

mod stored;

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::artifact::Kind;
use runvault::intake::SourceError;
use runvault::vault::add::{self, Examined, Monitor, Outcome, Summary};
use serde::Serialize;

use crate::cli::args::inputs::InputArgs;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::progress::Progress;
use crate::cli::output::report;
use crate::cli::output::signature;
use crate::cli::output::stdout::{self, BAD, FAINT, GOOD, HASH, counted};
use crate::cli::output::verbosity;

/// Validate artifacts without storing them.
///
/// The checks are those of "add": what it would reject is invalid, what it would skip is skipped.
///
/// An argument that names an existing file is that file. Otherwise, a hash, a hash prefix, a tag, a run id or latest names an
/// artifact in the vault: each of its captures is read, hashed and checked again, with the given keys. The hash of a
/// capture names that capture only.
#[derive(ClapArgs)]
#[command(mut_arg("paths", |paths| paths.value_name("PATH|HASH").help(
    "Files, directories (recursively), packs as directories or archives, or - for standard input; or \
     artifacts in the vault: core hashes, capture hashes, prefixes of them, @tag, or latest",
)))]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Print one line of JSON for each artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let (stored, inputs) = self.input.split(vault)?;
        let options = self.input.options()?;
        let listed = self.input.checks.listed()?;
        let stored = stored::Stored::locate(&stored, &options, vault)?;
        let mut progress = Progress::new("verifying");
        progress.count_files(self.input.files().filter(|_| stored.is_none()));
        let mut printer = Printer { args: self, listed, progress, trouble: None };
        let mut summary = match inputs {
            Some(inputs) => add::verify(inputs, &options, &mut printer),
            None => Summary::default(),
        };
        if let Some(stored) = stored {
            stored.verify(&mut printer, &mut summary)?;
        }
        // A closed pipe must not make invalid artifacts count as valid: the exit status reflects the verification.
        match printer.trouble.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
            _ => drop(printer),
        }
        let skipped = match summary.skipped {
            0 => String::new(),
            skipped => format!(", {} skipped", counted(skipped, "other file")),
        };
        stdout::note(&format!("{} good, {} bad{skipped}", summary.verified, summary.rejected));
        report::hint(summary.rejected, 0);
        Ok(Status::from_summary(&summary))
    }
}

#[derive(Serialize)]
struct Verdict {
    ok: bool,
}

struct Printer<'a> {
    args: &'a Args,
    /// Maximum number of violations listed, if given.
    listed: Option<usize>,
    progress: Progress,
    trouble: Option<io::Error>,
}

impl Monitor for Printer<'_> {
    fn examined(&mut self, examined: &Examined) {
        self.print(examined.size, |printer| {
            if printer.args.json { printer.print_json(examined) } else { printer.print_text(examined) }
        });
    }

    fn unreadable(&mut self, error: &SourceError) {
        self.progress.aside(|| stdout::error(&error.to_string()));
    }
}

impl Printer<'_> {
    /// Prints the result for an item of this size, unless an earlier write failed.
    fn print(&mut self, bytes: u64, print: impl FnOnce(&Self) -> io::Result<()>) {
        self.progress.file(bytes);
        if self.trouble.is_none() {
            self.trouble = self.progress.beside(|| print(self)).err();
        }
    }

    fn most(&self) -> usize {
        self.listed.unwrap_or(report::LISTED)
    }

    fn print_json(&self, examined: &Examined) -> io::Result<()> {
        if examined.outcome == Outcome::Skipped {
            return Ok(());
        }
        let verdict = Verdict { ok: examined.outcome == Outcome::Verified };
        json::examined(&mut stdout::raw(), examined, verdict, self.listed)
    }

    fn print_text(&self, examined: &Examined) -> io::Result<()> {
        let (word, style) = match examined.outcome {
            Outcome::Verified => ("good", GOOD),
            Outcome::Rejected => ("bad", BAD),
            Outcome::Skipped if verbosity::is_verbose() => ("skipped", FAINT),
            _ => return Ok(()),
        };
        let mut out = stdout::text();
        let kind = examined.kind.map_or("", Kind::name);
        let hash = examined.core.map(|core| format!("{HASH}{core:.12}{HASH:#} ")).unwrap_or_default();
        writeln!(out, "{style}{word:<7}{style:#} {kind:<8} {hash}{}", escaped(&examined.path))?;
        let can_be_signed = verbosity::is_verbose() && examined.kind.is_some_and(Kind::can_be_signed);
        if examined.outcome == Outcome::Verified && (can_be_signed || examined.signature.is_some()) {
            writeln!(out, "  {}", signature::text(examined.signature.as_ref()))?;
        }
        report::write(&mut out, &examined.report, self.most())
    }
}

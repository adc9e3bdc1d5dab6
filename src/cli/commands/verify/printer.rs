//! Output of the results for files.

use std::io::{self, Write};

use runvault::artifact::Kind;
use runvault::intake::SourceError;
use runvault::vault::add::{Examined, Monitor, Outcome};
use serde::Serialize;

use crate::cli::output::escape::escaped;
use crate::cli::output::json;
use crate::cli::output::progress::Progress;
use crate::cli::output::report;
use crate::cli::output::signature;
use crate::cli::output::stdout::{self, BAD, FAINT, GOOD, HASH};
use crate::cli::output::verbosity;

#[derive(Serialize)]
struct Verdict {
    ok: bool,
}

pub(super) struct Printer {
    /// Whether to print JSON.
    pub(super) json: bool,
    /// Maximum number of violations listed, if given.
    pub(super) listed: Option<usize>,
    pub(super) progress: Progress,
    pub(super) trouble: Option<io::Error>,
}

impl Monitor for Printer {
    fn examined(&mut self, examined: &Examined) {
        self.print(examined.size, |printer| {
            if printer.json { printer.print_json(examined) } else { printer.print_text(examined) }
        });
    }

    fn unreadable(&mut self, error: &SourceError) {
        self.progress.aside(|| stdout::error(&error.to_string()));
    }
}

impl Printer {
    /// Prints the result for an item of this size, unless an earlier write failed.
    pub(super) fn print(&mut self, bytes: u64, print: impl FnOnce(&Self) -> io::Result<()>) {
        self.progress.file(bytes);
        if self.trouble.is_none() {
            self.trouble = self.progress.beside(|| print(self)).err();
        }
    }

    pub(super) fn most(&self) -> usize {
        self.listed.unwrap_or(report::LISTED)
    }

    pub(super) fn print_json(&self, examined: &Examined) -> io::Result<()> {
        if examined.outcome == Outcome::Skipped {
            return Ok(());
        }
        let verdict = Verdict { ok: examined.outcome == Outcome::Verified };
        json::examined(&mut stdout::raw(), examined, verdict, self.listed)
    }

    pub(super) fn print_text(&self, examined: &Examined) -> io::Result<()> {
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

//! Output of the results for files.

use std::io::{self, Write};

use runvault::artifact::Kind;
use runvault::display::escaped;
use runvault::intake::SourceError;
use runvault::vault::add::{AddMonitor, CheckedDocument, DocumentOutcome, DocumentResult};

use crate::cli::output::progress::CommandProgress;
use crate::cli::output::stdout::{self, BAD, FAINT, GOOD, HASH};
use crate::cli::output::{json, report, signature, terminal};

pub(super) struct VerifyPrinter {
    /// Whether to print JSON.
    pub(super) json: bool,
    /// Maximum number of violations listed, if given.
    pub(super) listed: Option<usize>,
    pub(super) progress: CommandProgress,
    pub(super) output_error: Option<io::Error>,
}

impl AddMonitor for VerifyPrinter {
    fn examined(&mut self, examined: &DocumentResult) {
        self.print(examined.size, |printer| {
            if printer.json { printer.print_json(examined) } else { printer.print_text(examined) }
        });
    }

    fn unreadable(&mut self, error: &SourceError) {
        self.progress.aside(|| stdout::error(&error.to_string()));
    }
}

impl VerifyPrinter {
    /// Prints the result for an item of this size, unless an earlier write failed.
    pub(super) fn print(&mut self, bytes: u64, print: impl FnOnce(&Self) -> io::Result<()>) {
        self.progress.file(bytes);
        if self.output_error.is_none() {
            self.output_error = self.progress.suspend_on_terminal(|| print(self)).err();
        }
    }

    pub(super) fn most(&self) -> usize {
        self.listed.unwrap_or(report::LISTED)
    }

    pub(super) fn print_json(&self, examined: &DocumentResult) -> io::Result<()> {
        if examined.outcome == DocumentOutcome::Skipped {
            return Ok(());
        }
        let mut verified = CheckedDocument::new(examined);
        json::with_hints(&mut verified.document, self.listed);
        json::line(&mut stdout::raw(), &verified)
    }

    pub(super) fn print_text(&self, examined: &DocumentResult) -> io::Result<()> {
        let (word, style) = match examined.outcome {
            DocumentOutcome::Verified => ("good", GOOD),
            DocumentOutcome::Rejected => ("bad", BAD),
            DocumentOutcome::Skipped if terminal::is_verbose() => ("skipped", FAINT),
            _ => return Ok(()),
        };
        let mut out = stdout::text();
        let kind = examined.kind.map_or("", Kind::noun);
        let hash = examined.core.map(|core| format!("{HASH}{core:.12}{HASH:#} ")).unwrap_or_default();
        writeln!(out, "{style}{word:<7}{style:#} {kind:<11} {hash}{}", escaped(&examined.path))?;
        let can_be_signed = terminal::is_verbose() && examined.kind.is_some_and(Kind::can_be_signed);
        if examined.outcome == DocumentOutcome::Verified && (can_be_signed || examined.signature.is_some()) {
            writeln!(out, "  {}", signature::text(examined.signature.as_ref()))?;
        }
        report::write(&mut out, &examined.report, self.most())
    }
}

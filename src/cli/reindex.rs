//! `runvault reindex`

use std::io::Write;
use std::time::Instant;

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::fsck::{Finding, Monitor, Report};

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::output::{self, CAUTION, counted};
use super::progress::Progress;
use super::vault::VaultArgs;

/// Make everything that artifacts are found by anew.
///
/// All of it follows from their stored bytes. The vault can be used meanwhile, and interrupting it does no harm.
/// Artifacts that would not be admitted any more are named, and stay as they are.
#[derive(ClapArgs)]
pub(crate) struct Args {}

impl Args {
    #[expect(clippy::unused_self, reason = "commands are called alike")]
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let started = Instant::now();
        let vault = vault.open()?;
        let mut printer = Printer::new();
        let report = vault.reindex(&mut printer)?;
        drop(printer);
        print_report(&report, started)
    }
}

/// Prints what making the index again found.
pub(super) fn print_report(report: &Report, started: Instant) -> Result<Status, Failure> {
    let mut out = output::text();
    for Finding { info, subject, detail } in &report.findings {
        let subject = subject.to_string();
        writeln!(out, "{CAUTION}{}{CAUTION:#} {}: {}", info.id, escaped(&subject), escaped(detail))?;
    }
    out.flush()?;
    let (size, seconds) = (output::size(report.bytes), started.elapsed().as_secs_f64());
    let left = report.findings.len() as u64 + report.omitted;
    let (artifacts, left) = (counted(report.artifacts, "artifact"), counted(left, "finding"));
    output::note(&format!("{artifacts} indexed, {left}; {size} in {seconds:.2} s"));
    Ok(if report.is_clean() { Status::Done } else { Status::No })
}

/// Shows how far it is.
pub(super) struct Printer(Progress);

impl Printer {
    pub(super) fn new() -> Self {
        Self(Progress::of("artifacts", "indexing"))
    }
}

impl Monitor for Printer {
    fn found(&mut self, _: &Finding) {}

    fn checked(&mut self, _: CoreHash, bytes: u64) {
        self.0.file(bytes);
    }
}

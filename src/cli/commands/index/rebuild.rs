//! `runvault index rebuild`

use std::time::Instant;

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::vault::fsck::{Finding, FsckMonitor, FsckReport, SignatureCounts};

use crate::cli::args::keys::KeyArgs;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::progress::CommandProgress;
use crate::cli::output::report;
use crate::cli::output::stdout::{self, CAUTION, counted};

/// Rebuild all indexes from the stored artifacts
///
/// The vault can be used meanwhile, and interrupting the rebuild is safe. Artifacts that are no longer valid under
/// the current rules are listed and left unchanged.
///
/// Signatures are checked with the given keys, and the results are recorded. If no key is given for a signature, the
/// result of an earlier check is kept. The exit status is 1 if a signature is wrong.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    keys: KeyArgs,

    /// Print one line of JSON for each finding
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let started = Instant::now();
        let keys = self.keys.ring()?;
        let vault = vault.open()?;
        let mut printer = RebuildMonitor::new();
        printer.0.count_artifacts(&vault);
        let report = vault.reindex(&keys, &mut printer)?;
        drop(printer);
        print_report(&report, started, self.json)
    }
}

/// Prints the report of a rebuild.
pub(crate) fn print_report(
    report: &FsckReport,
    started: Instant,
    as_json: bool,
) -> Result<Status, CommandError> {
    for finding in &report.findings {
        if as_json {
            report::print_json(finding)?;
        } else {
            report::print_text(&finding.into(), CAUTION)?;
        }
    }
    let (size, seconds) = (stdout::size(report.bytes), started.elapsed().as_secs_f64());
    let left = report.findings.len() as u64 + report.omitted;
    let (artifacts, left) = (counted(report.artifacts, "artifact"), counted(left, "finding"));
    stdout::note(&format!("{artifacts} indexed, {left}; {size} in {seconds:.2} s"));
    report.signatures.iter().for_each(|counts| note_signatures(*counts));
    Ok(if report.is_clean() { Status::Done } else { Status::No })
}

/// Reports the results of checking signatures.
pub(crate) fn note_signatures(counts: SignatureCounts) {
    let SignatureCounts { verified, verified_now, unchecked, wrong } = counts;
    let now = match verified_now {
        0 => String::new(),
        now => format!(
            " ({now} recorded as not checked; \"index rebuild\" with the same keys records the result)"
        ),
    };
    stdout::note(&format!("signatures: {verified} verified{now}, {unchecked} not checked, {wrong} wrong"));
}

/// A monitor that shows the progress.
pub(crate) struct RebuildMonitor(CommandProgress);

impl RebuildMonitor {
    pub(crate) fn new() -> Self {
        Self(CommandProgress::with_unit("artifacts", "indexing"))
    }
}

impl FsckMonitor for RebuildMonitor {
    fn found(&mut self, _: &Finding) {}

    fn checked(&mut self, _: CoreHash, bytes: u64) {
        self.0.file(bytes);
    }
}

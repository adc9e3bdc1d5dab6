//! Notes on what a command adds or uses: forks of added runs, which are different histories of a run that is already in the
//! vault, and which of several captures is used.

use runvault::Vault;
use runvault::digest::{CaptureHash, CoreHash};
use runvault::display::brief;
use runvault::formats;
use runvault::storage::StorageError;
use runvault::vault::add::{DocumentOutcome, DocumentResult};
use runvault::vault::captures::CapturesRequest;
use runvault::vault::forks::{ForkSummary, ForkedRun, ForkedTrace, ForksOfRequest};

use super::exit::CommandError;
use super::stdout::{self, HASH, counted};

/// Maximum number of forks reported.
const LISTED: u64 = 10;

/// Maximum number of pairs of artifacts compared: enough for the runs of a day, at a small cost.
const COMPARED: u64 = 10_000;

/// The runs that were added.
#[derive(Default)]
pub(crate) struct ForkNotes {
    added: Vec<CoreHash>,
}

impl ForkNotes {
    /// Records a document if it is a new run.
    pub(crate) fn see(&mut self, examined: &DocumentResult) {
        if let (DocumentOutcome::Added, Some(kind), Some(core)) =
            (examined.outcome, examined.kind, examined.core)
            && kind.is_run()
        {
            self.added.push(core);
        }
    }

    /// Reports which of them fork from another artifact.
    pub(crate) fn report(&self, vault: &Vault) -> Result<(), CommandError> {
        // If nothing was stored, the vault may not exist.
        if self.added.is_empty() {
            return Ok(());
        }
        let (limit, comparisons) = (Some(LISTED), Some(COMPARED));
        let answer = vault.run(&ForksOfRequest { artifacts: self.added.clone(), limit, comparisons })?;
        for fork in &answer.forks {
            stdout::note(&text(fork));
        }
        if answer.is_more {
            stdout::note("there are more forks; \"runvault forks\" lists them");
        } else if !answer.is_complete {
            stdout::note("not every run was checked for forks; \"runvault forks\" checks all");
        }
        Ok(())
    }
}

fn text(fork: &ForkSummary) -> String {
    let side = |kind: &str, core: CoreHash| format!("{} {HASH}{core:.12}{HASH:#}", formats::bare_noun(kind));
    let ([one, other], shared, place) = match fork {
        ForkSummary::Traces { header, record, traces } => (
            traces.each_ref().map(|ForkedTrace { kind, core_hash, .. }| side(kind, *core_hash)),
            format!("same header {header:.12}"),
            format!("record {record}"),
        ),
        ForkSummary::Runs { run_id, step, runs } => (
            runs.each_ref().map(|ForkedRun { kind, core_hash, .. }| side(kind, *core_hash)),
            format!("same run id {}", brief(run_id)),
            format!("step {step}"),
        ),
    };
    format!("{one} forks {other}: {shared}, first difference at {place}")
}

/// Reports which capture is used if the artifact has several: they may differ in what the core hash does not cover.
pub(crate) fn say_which(vault: &Vault, core: CoreHash, hash: CaptureHash) -> Result<(), StorageError> {
    let count = vault.run(&CapturesRequest { limit: Some(0), ..CapturesRequest::new(core) })?.count;
    if count > 1 {
        let count = counted(count, "capture");
        stdout::note(&format!(
            "{core:.12} has {count}; this is {HASH}{hash:.12}{HASH:#}, \"runvault diff --all {core:.12}\" shows how they differ"
        ));
    }
    Ok(())
}

//! The implementation of `add` and `verify`: find, examine, store, report.

mod annotations;
mod batch;
mod continuation_joiner;
mod document;
mod dry_run;
mod examination;
mod read_back;
mod report;
mod rules;

use crate::intake::pipeline::PipelineEvent;
use crate::intake::{ExamineOptions, Predecessor};
use crate::storage::{Prepared, RemovedPolicy, Result, Storage};

pub use annotations::CommonAnnotations;
pub(in crate::vault) use annotations::SourcePaths;
pub(in crate::vault) use batch::Recorded;
pub use document::AddError;
pub use dry_run::{dry_run, verify};
pub use examination::InputResult;
pub use report::{
    AddMonitor, AddedDocument, CheckedDocument, DocumentOutcome, DocumentResult, ExaminedDocument, Summary,
};
pub use rules::{OTHER_KIND, REMOVED, RULES, UNREADABLE};

use batch::{AddBatch, AddInterruption, is_stopped};
use continuation_joiner::{ContinuationJoiner, DocumentSink, FirstPart, in_storage};
use examination::{CountedInputs, ExaminedItem, each, ends_directory, is_bad};
use report::AddReporter;

/// Number of consecutive idle events, each of at least 20 ms, after which what waits is stored: inputs may arrive slowly. It is
/// so large that a busy machine does not divide a batch, because what an addition sees again in another batch is recorded.
const IDLE_BEFORE_STORING: u32 = 50;

/// Examines all `inputs`, and stores the admitted artifacts with what is `recorded` with them.
///
/// # Errors
/// Returns an error if the vault cannot be read or written. Everything already reported to the monitor is stored.
pub(in crate::vault) fn add(
    storage: &dyn Storage,
    inputs: impl Iterator<Item = InputResult> + Send,
    options: &ExamineOptions,
    recorded: Recorded<'_>,
    monitor: &mut dyn AddMonitor,
) -> Result<Summary> {
    recorded.annotations.check()?;
    let preparer = storage.preparer()?;
    let batch = AddBatch::new(storage, recorded, policy(options, monitor));
    let stops_at_bad = monitor.stops_at_bad();
    let mut adding = VaultDocumentSink { batch, reporter: AddReporter::new(monitor) };
    let prepare = |admitted| preparer.prepare(admitted);
    let mut joining = ContinuationJoiner::new(options, prepare, !stops_at_bad);
    let mut inputs = CountedInputs { inputs, count: 0 };
    let (mut looked_at, mut idle) = (0, 0);
    let outcome = each(&mut inputs, true, options, prepare, |event| {
        let PipelineEvent::Result(item) = event else {
            idle += 1;
            return if idle % IDLE_BEFORE_STORING == 0 { adding.settle() } else { Ok(()) };
        };
        idle = 0;
        let number = looked_at;
        looked_at += usize::from(!ends_directory(&item));
        let Some(item) = joining.take(number, item, &mut adding)? else { return Ok(()) };
        let is_last = stops_at_bad && is_bad(&item);
        adding.push(number, item)?;
        if is_last { Err(AddInterruption::Stopped) } else { Ok(()) }
    });
    let ended = is_stopped(outcome).and_then(|stopped_before| {
        if !stopped_before {
            is_stopped(joining.finish(&mut adding))?;
        }
        if is_stopped(adding.settle())? || stopped_before {
            inputs.by_ref().for_each(drop);
            adding.reporter.summary.left = inputs.count - looked_at as u64 + adding.batch.dropped;
        }
        Ok(())
    });
    let AddReporter { monitor, summary, .. } = adding.reporter;
    if ended.is_err() {
        monitor.failed(&summary);
    }
    ended.map(|()| summary)
}

/// The state of adding to a vault.
struct VaultDocumentSink<'s, 'm> {
    batch: AddBatch<'s>,
    reporter: AddReporter<'m>,
}

impl DocumentSink<Prepared> for VaultDocumentSink<'_, '_> {
    type Error = AddInterruption;

    fn first_part(&mut self, predecessor: &Predecessor) -> Result<Option<FirstPart>> {
        // Documents about to be stored are checked first: one may be the beginning, and checking is cheap.
        if let Some(beginning) = self.batch.beginning(predecessor) {
            return Ok(Some(beginning));
        }
        in_storage(self.batch.storage, predecessor)
    }

    fn push(
        &mut self,
        number: usize,
        item: ExaminedItem<Prepared>,
    ) -> std::result::Result<(), AddInterruption> {
        self.batch.push(number, item, &mut self.reporter)
    }

    fn settle(&mut self) -> std::result::Result<(), AddInterruption> {
        self.batch.store(&mut self.reporter)
    }
}

/// Returns the policy for artifacts that were removed before.
fn policy(options: &ExamineOptions, monitor: &dyn AddMonitor) -> RemovedPolicy {
    match (options.allow_removed, monitor.stops_at_bad()) {
        (true, _) => RemovedPolicy::Readmit,
        (false, true) => RemovedPolicy::RefuseAndStop,
        (false, false) => RemovedPolicy::Refuse,
    }
}

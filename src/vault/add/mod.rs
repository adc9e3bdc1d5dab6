//! The implementation of `add` and `verify`: find, examine, store, report.

mod batch;
mod continuation_joiner;
mod dry_run;
mod examination;
mod report;

use super::Vault;
use crate::artifact::Admitted;
use crate::clock;
use crate::intake::pipeline::PipelineEvent;
use crate::intake::{self, DeclaredCapture, ExamineOptions, Predecessor};
use crate::storage::{
    self, ErrorKind, Prepared, PutOptions, PutOutcome, PutResult, RemovedPolicy, Storage, StorageError,
};
use crate::validation::Report;
use batch::{AddBatch, AddInterruption, is_stopped, read_back_stored};
use continuation_joiner::{ContinuationJoiner, DocumentSink, FirstPart, in_storage, joined};
use examination::{
    CountedInputs, ExaminedItem, conflicting, each, ends_directory, is_bad, removed, unreadable,
};
use report::AddReporter;

pub use batch::CommonAnnotations;
pub(in crate::vault) use batch::{Recorded, SourcePaths};
pub use dry_run::{dry_run, verify};
pub use examination::{InputResult, OTHER_KIND, REMOVED, RULES, UNREADABLE};
pub use report::{AddMonitor, AddedDocument, CheckedDocument, DocumentOutcome, ExaminedDocument, Summary};

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
) -> Result<Summary, StorageError> {
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

    fn first_part(&mut self, predecessor: &Predecessor) -> Result<Option<FirstPart>, StorageError> {
        // Documents about to be stored are checked first: one may be the beginning, and checking is cheap.
        if let Some(beginning) = self.batch.beginning(predecessor) {
            return Ok(Some(beginning));
        }
        in_storage(self.batch.storage, predecessor)
    }

    fn push(&mut self, number: usize, item: ExaminedItem<Prepared>) -> Result<(), AddInterruption> {
        self.batch.push(number, item, &mut self.reporter)
    }

    fn settle(&mut self) -> Result<(), AddInterruption> {
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

/// The reason that a document was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// It violates rules.
    #[error("the document was rejected: {}", first_of(.0))]
    Rejected(Report),
    /// A store error: the vault cannot be read or written.
    #[error(transparent)]
    Store(#[from] StorageError),
}

fn first_of(report: &Report) -> String {
    if report.violations().is_empty() {
        return String::new();
    }
    format!("{}; {} violations in total", report.first(), report.violations().len() + report.omitted())
}

impl Vault {
    /// Adds one document. It is durable when this function returns. A continuation of a document in the vault is joined
    /// with that document and added as one.
    ///
    /// # Errors
    /// Returns [`AddError::Rejected`] with all violations, also if the artifact was removed before, and
    /// [`AddError::Store`] if the vault cannot be read or written.
    pub fn add_document(&self, document: Vec<u8>, options: &ExamineOptions) -> Result<PutResult, AddError> {
        let admitted = match intake::examine_document(document, "", options) {
            Ok(admitted) => admitted,
            Err(rejection) => joined(&*self.storage, rejection, options)?
                .map_err(|rejection| AddError::Rejected(rejection.report))?,
        };
        self.add_admitted(admitted, options)
    }

    /// Adds bytes as an attachment.
    #[cfg_attr(
        not(feature = "gateway"),
        expect(dead_code, reason = "only gateways keep bodies as attachments")
    )]
    pub(crate) fn add_attachment(
        &self,
        bytes: Vec<u8>,
        options: &ExamineOptions,
    ) -> Result<PutResult, AddError> {
        let declared = DeclaredCapture::attachment("an attachment".into(), bytes);
        let admitted = intake::examine_declared(declared, options)
            .map_err(|rejection| AddError::Rejected(rejection.report))?;
        self.add_admitted(admitted, options)
    }

    fn add_admitted(&self, admitted: Admitted, options: &ExamineOptions) -> Result<PutResult, AddError> {
        let policy = if options.allow_removed { RemovedPolicy::Readmit } else { RemovedPolicy::Refuse };
        let prepared = self.storage.preparer()?.prepare(admitted);
        let options = PutOptions { policy, at: clock::now(), busy_timeout: storage::BUSY_TIMEOUT };
        let mut stored = self.storage.put(&[&prepared], &options)?;
        let defects = read_back_stored(&*self.storage, &[&prepared], &mut stored, false)?;
        if let Some(defect) = defects.into_iter().flatten().next() {
            return Err(AddError::Rejected(unreadable(&defect)));
        }
        // One outcome for each artifact.
        let put = stored.pop();
        let put = put.ok_or_else(|| StorageError::new(ErrorKind::Database, "the outcome is missing"))?;
        match &put.outcome {
            PutOutcome::Refused(tombstones) => Err(AddError::Rejected(removed(put.core, tombstones))),
            PutOutcome::KindConflict(conflict) => Err(AddError::Rejected(conflicting(put.core, conflict))),
            _ => Ok(put),
        }
    }

    /// Adds every artifact in `inputs`, such as [`Inputs`](intake::Inputs) or the items of a
    /// [`PollingWatcher`](intake::PollingWatcher); an invalid one does not stop the others. New captures are stored with the
    /// path or name of their input, unless the options leave it out.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written. Everything already reported to the monitor is stored.
    pub fn add(
        &self,
        inputs: impl Iterator<Item = InputResult> + Send,
        options: &ExamineOptions,
        monitor: &mut dyn AddMonitor,
    ) -> Result<Summary, StorageError> {
        self.add_annotated(inputs, options, &CommonAnnotations::NONE, monitor)
    }

    /// Like [`Vault::add`], and sets `annotations` on everything that is added or seen again. An artifact has them
    /// when the monitor receives it.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if an annotation is not valid or an
    /// artifact would have too many labels; otherwise the same as [`Vault::add`].
    pub fn add_annotated(
        &self,
        items: impl Iterator<Item = InputResult> + Send,
        options: &ExamineOptions,
        annotations: &CommonAnnotations,
        monitor: &mut dyn AddMonitor,
    ) -> Result<Summary, StorageError> {
        let without = options.without_source_path;
        let source_paths = if without { SourcePaths::LeftOut } else { SourcePaths::OfInputs };
        add(&*self.storage, items, options, Recorded { annotations, source_paths }, monitor)
    }
}

//! Additions that store nothing: verification, and reports of what would be added.

use std::collections::{HashMap, HashSet};

use super::continuation_joiner::{self, ContinuationJoiner, DocumentSink, FirstPart, GrowingDocuments};
use super::examination::{
    Examination, ExaminationResult, ExaminedItem, InputResult, conflicting, each, removed,
};
use super::report::{AddMonitor, AddReporter, DocumentOutcome, ExaminedDocument, Summary};
use crate::artifact::Admitted;
use crate::digest::{CaptureHash, CoreHash};
use crate::intake::pipeline::PipelineEvent;
use crate::intake::{ExamineOptions, Predecessor};
use crate::storage::{KindConflict, Result, Snapshot, StorageError};
use crate::validation::Report;

/// Examines all `inputs`, stores nothing, and reports what adding would do to the vault in `snapshot`, or to a new
/// one.
///
/// # Errors
/// Returns an error if the vault cannot be read.
pub fn dry_run(
    snapshot: Option<&dyn Snapshot>,
    inputs: impl Iterator<Item = InputResult> + Send,
    options: &ExamineOptions,
    monitor: &mut dyn AddMonitor,
) -> Result<Summary> {
    let allow_removed = options.allow_removed;
    let seen = DryRunContents { snapshot, allow_removed, cores: HashMap::new(), captures: HashSet::new() };
    let reporter = AddReporter::new(monitor);
    let mut sink = DryRun { seen, grown: GrowingDocuments::new(options, usize::MAX), reporter };
    let mut joining = ContinuationJoiner::new(options, |admitted| admitted, true);
    let mut number = 0;
    each(
        inputs,
        true,
        options,
        |admitted| admitted,
        |event| {
            let PipelineEvent::Result(item) = event else { return Ok(()) };
            let item = joining.take(number, item, &mut sink)?;
            number += 1;
            item.map_or(Ok(()), |item| sink.push(number - 1, item))
        },
    )?;
    joining.finish(&mut sink)?;
    Ok(sink.reporter.summary)
}

/// The state of a dry run.
struct DryRun<'s, 'm> {
    seen: DryRunContents<'s>,
    grown: GrowingDocuments<'s>,
    reporter: AddReporter<'m>,
}

impl DocumentSink<Admitted> for DryRun<'_, '_> {
    type Error = StorageError;

    fn first_part(&mut self, predecessor: &Predecessor) -> Result<Option<FirstPart>> {
        match (self.grown.get(CoreHash(predecessor.after)), self.seen.snapshot) {
            (Some(document), _) => Ok(Some(document)),
            (None, Some(snapshot)) => continuation_joiner::in_vault(snapshot, predecessor),
            (None, None) => Ok(None),
        }
    }

    fn push(&mut self, number: usize, item: ExaminedItem<Admitted>) -> Result<()> {
        let mut admission = Ok(DocumentOutcome::Verified);
        if let Ok(Examination {
            verdict: ExaminationResult::Admitted(admitted), original, continues, ..
        }) = &item
        {
            admission = self.seen.admission(admitted)?;
            if let Some(bytes) =
                admitted.members().first().filter(|_| admitted.kind().info().versions.is_some())
            {
                let whole_file = original.as_ref().filter(|_| continues.is_none());
                self.grown.add(admitted.core(), whole_file, bytes.bytes());
            }
        }
        self.reporter.report(number, item, || admission);
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The contents of the vault, with what would have been added so far.
struct DryRunContents<'s> {
    snapshot: Option<&'s dyn Snapshot>,
    allow_removed: bool,
    cores: HashMap<CoreHash, &'static str>,
    captures: HashSet<(CoreHash, CaptureHash)>,
}

impl DryRunContents<'_> {
    fn admission(&mut self, admitted: &Admitted) -> Result<std::result::Result<DocumentOutcome, Report>> {
        if let Some(snapshot) = self.snapshot.filter(|_| !self.allow_removed) {
            let tombstones = snapshot.tombstones_of(admitted)?;
            if !tombstones.is_empty() {
                return Ok(Err(removed(admitted.core(), &tombstones)));
            }
        }
        if let Some(conflict) = self.conflict(admitted)? {
            return Ok(Err(conflicting(admitted.core(), &conflict)));
        }
        self.outcome(admitted).map(Ok)
    }

    fn conflict(&self, admitted: &Admitted) -> Result<Option<KindConflict>> {
        let (core, own) = (admitted.core(), admitted.kind().name());
        let stored = self.snapshot.map(|snapshot| snapshot.artifact(core)).transpose()?.flatten();
        let stored = stored.map(|stored| stored.kind);
        let kind = stored.or_else(|| self.cores.get(&core).map(|kind| (*kind).to_owned()));
        if let Some(kind) = kind.filter(|kind| kind != own) {
            return Ok(Some(KindConflict { core, kind }));
        }
        for embedded in admitted.embedded() {
            if let Some(conflict) = self.conflict(embedded)? {
                return Ok(Some(conflict));
            }
        }
        Ok(None)
    }

    fn outcome(&mut self, admitted: &Admitted) -> Result<DocumentOutcome> {
        for embedded in admitted.embedded() {
            self.outcome(embedded)?;
        }
        let (core, capture) = (admitted.core(), admitted.capture());
        let (mut has_core, mut has_capture) = (
            self.cores.insert(core, admitted.kind().name()).is_some(),
            !self.captures.insert((core, capture)),
        );
        if let Some(snapshot) = self.snapshot {
            has_core |= snapshot.artifact(core)?.is_some();
            has_capture |= snapshot.capture(core, capture)?.is_some();
        }
        Ok(match (has_core, has_capture) {
            (_, true) => DocumentOutcome::Present,
            (true, false) => DocumentOutcome::NewCapture,
            (false, false) => DocumentOutcome::Added,
        })
    }
}

/// Maximum total size in bytes of documents kept in memory because others may continue them.
const MAX_GROWING_BYTES: usize = 64 << 20;

/// Examines all `inputs` and stores nothing. A document that continues another one is joined to it if that is among the
/// inputs, as it is when both are added.
pub fn verify(
    inputs: impl Iterator<Item = InputResult> + Send,
    options: &ExamineOptions,
    monitor: &mut dyn AddMonitor,
) -> Summary {
    let grown = GrowingDocuments::new(options, MAX_GROWING_BYTES);
    let mut sink = Verification { grown, reporter: AddReporter::new(monitor) };
    // The rest is freed in the thread that allocated it, where the memory is cheapest to reuse.
    let mut joining = ContinuationJoiner::new(options, VerifiedDocument::from, true);
    let mut number = 0;
    let examined = each(inputs, false, options, VerifiedDocument::from, |event| {
        let PipelineEvent::Result(item) = event else { return Ok(()) };
        let item = joining.take(number, item, &mut sink)?;
        number += 1;
        item.map_or(Ok(()), |item| sink.push(number - 1, item))
    });
    let finished: Result<()> = examined.and_then(|()| joining.finish(&mut sink));
    // Only a vault could not be read, and there is none.
    debug_assert!(finished.is_ok(), "{finished:?}");
    sink.reporter.summary
}

/// A document that was verified.
struct VerifiedDocument {
    examined: ExaminedDocument,
    /// Its bytes, if others may continue it.
    grown: Option<Vec<u8>>,
}

impl From<Admitted> for VerifiedDocument {
    fn from(admitted: Admitted) -> Self {
        let member = admitted.members().first().filter(|_| admitted.kind().info().versions.is_some());
        let grown = member.map(|member| member.bytes().to_vec());
        Self { grown, examined: admitted.into() }
    }
}

impl From<VerifiedDocument> for ExaminedDocument {
    fn from(verified: VerifiedDocument) -> Self {
        verified.examined
    }
}

struct Verification<'o, 'm> {
    grown: GrowingDocuments<'o>,
    reporter: AddReporter<'m>,
}

impl DocumentSink<VerifiedDocument> for Verification<'_, '_> {
    type Error = StorageError;

    fn first_part(&mut self, predecessor: &Predecessor) -> Result<Option<FirstPart>> {
        Ok(self.grown.get(CoreHash(predecessor.after)))
    }

    fn push(&mut self, number: usize, item: ExaminedItem<VerifiedDocument>) -> Result<()> {
        if let Ok(Examination { verdict: ExaminationResult::Admitted(admitted), original, continues, .. }) =
            &item
            && let (Some(bytes), Some(core)) = (&admitted.grown, admitted.examined.core_hash)
        {
            let whole_file = original.as_ref().filter(|_| continues.is_none());
            self.grown.add(core, whole_file, bytes);
        }
        self.reporter.report(number, item, || Ok(DocumentOutcome::Verified));
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
}

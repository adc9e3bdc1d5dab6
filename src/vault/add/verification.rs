//! Verification without storing.

use super::continuation_joiner::{ContinuationJoiner, DocumentSink, FirstPart};
use super::examination::{Examination, ExaminationResult, ExaminedItem};
use super::growing_documents::GrowingDocuments;
use super::inputs::{InputResult, each};
use super::report::{AddMonitor, AddReporter, DocumentOutcome, ReportedArtifact, Summary};
use crate::artifact::Admitted;
use crate::digest::CoreHash;
use crate::intake::pipeline::PipelineEvent;
use crate::intake::{ExamineOptions, Predecessor};
use crate::storage::{Result, StorageError};

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
    core: CoreHash,
    reported: ReportedArtifact,
    /// Its bytes, if others may continue it.
    grown: Option<Vec<u8>>,
}

impl From<Admitted> for VerifiedDocument {
    fn from(admitted: Admitted) -> Self {
        let member = admitted.members().first().filter(|_| admitted.kind().versions().is_some());
        let grown = member.map(|member| member.bytes().to_vec());
        Self { core: admitted.core(), grown, reported: admitted.into() }
    }
}

impl From<VerifiedDocument> for ReportedArtifact {
    fn from(verified: VerifiedDocument) -> Self {
        verified.reported
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
            && let Some(bytes) = &admitted.grown
        {
            let whole_file = original.as_ref().filter(|_| continues.is_none());
            self.grown.add(admitted.core, whole_file, bytes);
        }
        self.reporter.report(number, item, || Ok(DocumentOutcome::Verified));
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
}

//! Rebuild of all indexes from the artifacts' bytes.

use std::collections::HashMap;

use super::reader::{
    ArtifactTrailer, CheckedArtifactFilter, FsckItem, FsckReader, JudgedCapture, JudgedItem,
};
use super::report::FsckReporter;
use super::search;
use super::signatures::{self, SignatureCounts};
use crate::artifact::{Admitted, KeyRing};
use crate::intake::pipeline::{self, PipelineEvent};
use crate::storage::check::finding::{Finding, Subject, WRONG_SIGNATURE};
use crate::storage::check::{CaptureId, CheckedArtifact, ReadmittedArtifact, ReindexOutcome};
use crate::storage::{Result, Storage};

/// Artifacts or bytes per written batch.
const BATCH_ARTIFACTS: usize = 500;
const BATCH_BYTES: u64 = 16 << 20;

/// Maximum number of passes. An artifact that changes this often during them was indexed by the process that changed
/// it.
const ROUNDS: usize = 5;

/// Rebuilds the index; reports the captures whose entries were left unchanged.
pub(super) fn reindex(storage: &dyn Storage, keys: &KeyRing, reporter: &mut FsckReporter<'_>) -> Result<()> {
    if !keys.is_empty() {
        reporter.report.signatures = Some(SignatureCounts::default());
    }
    let not_admitted = artifacts(storage, &|_| true, keys, reporter)?;
    storage.repairs()?.finish_reindex(reporter.report.artifacts, not_admitted)?;
    search::rebuild(storage)
}

/// Rebuilds the index data of the artifacts that `filter` selects, and returns the number of captures that were not admitted
/// again.
pub(super) fn artifacts(
    storage: &dyn Storage,
    filter: CheckedArtifactFilter<'_>,
    keys: &KeyRing,
    reporter: &mut FsckReporter<'_>,
) -> Result<u64> {
    let mut not_admitted = 0;
    let mut findings = Vec::new();
    let mut reading = FsckReader::of_all(storage.inspect()?, filter, false, &mut findings)?;
    reporter.add_all(findings);
    for _ in 0..ROUNDS {
        let mut pass = ReindexPass {
            storage,
            reporter,
            waiting: PendingReindex::default(),
            not_admitted: 0,
            again: Vec::new(),
        };
        let judge = |item: Result<FsckItem>, _: &dyn Fn(u64)| {
            item.map(|item| item.judge(keys, |_, admitted| Box::new(admitted)))
        };
        pipeline::in_order(reading, FsckItem::weighed, judge, |event| match event {
            PipelineEvent::Result(judged) => pass.take(judged?),
            PipelineEvent::Idle => pass.write(),
        })?;
        pass.write()?;
        not_admitted += pass.not_admitted;
        if pass.again.is_empty() {
            break;
        }
        let again = pass.again;
        reading = FsckReader::new(storage.inspect()?, again, false);
    }
    Ok(not_admitted)
}

struct ReindexPass<'r, 'm> {
    storage: &'r dyn Storage,
    reporter: &'r mut FsckReporter<'m>,
    waiting: PendingReindex,
    not_admitted: u64,
    again: Vec<CheckedArtifact>,
}

/// The pending writes, and the captures of the artifact being read.
#[derive(Default)]
struct PendingReindex {
    batch: Vec<(ReadmittedArtifact, u64)>,
    bytes: u64,
    admitted: HashMap<i64, Admitted>,
    findings: Vec<Finding>,
    bytes_of_artifact: u64,
}

impl ReindexPass<'_, '_> {
    fn take(&mut self, judged: JudgedItem<Box<Admitted>>) -> Result<()> {
        let waiting = &mut self.waiting;
        if let Some(JudgedCapture { mut capture, size, admitted }) = judged.capture {
            waiting.bytes_of_artifact += size;
            if let Some(admitted) = admitted {
                if signatures::is_wrong(admitted.signature()) {
                    let subject = Subject::Capture(admitted.capture());
                    let detail = "it is now recorded as wrong";
                    waiting.findings.push(Finding::new(WRONG_SIGNATURE, subject, detail));
                }
                // The recorded state is corrected together with the rest.
                waiting.admitted.insert(capture.id.number(), *admitted);
            } else {
                self.not_admitted += 1;
                waiting.findings.append(&mut capture.findings);
            }
        }
        let Some(ArtifactTrailer { captures, .. }) = judged.end else { return Ok(()) };
        let admitted = |id: CaptureId| (id, waiting.admitted.remove(&id.number()));
        let captures = captures.into_iter().map(admitted).collect();
        self.reporter.add_all(std::mem::take(&mut waiting.findings));
        let bytes = std::mem::take(&mut waiting.bytes_of_artifact);
        waiting.bytes += bytes;
        let artifact = CheckedArtifact::clone(&judged.artifact);
        waiting.batch.push((ReadmittedArtifact { artifact, captures }, bytes));
        if waiting.batch.len() >= BATCH_ARTIFACTS || waiting.bytes >= BATCH_BYTES {
            return self.write();
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let (batch, sizes): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting.batch).into_iter().unzip();
        self.waiting.bytes = 0;
        if batch.is_empty() {
            return Ok(());
        }
        let outcomes = self.storage.repairs()?.reindex(&batch)?;
        for ((readmitted, bytes), outcome) in batch.into_iter().zip(sizes).zip(outcomes) {
            match outcome {
                ReindexOutcome::Done => {
                    self.count_signatures(&readmitted);
                    self.reporter.checked(readmitted.artifact.core, bytes);
                }
                ReindexOutcome::Changed => self.again.push(readmitted.artifact),
            }
        }
        Ok(())
    }

    fn count_signatures(&mut self, readmitted: &ReadmittedArtifact) {
        let Some(counts) = &mut self.reporter.report.signatures else { return };
        let admitted = readmitted.captures.iter().filter_map(|(_, admitted)| admitted.as_ref());
        admitted
            .filter_map(Admitted::signature)
            .for_each(|signature| counts.count(signature, signature.state));
    }
}

//! The interface of checks for vault files.

use super::FileInspection;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::check::journal::JournalReader;
use crate::storage::check::{
    CaptureId, CheckedArtifact, DictionaryCopy, Facts, Finding, Inspection, Integrity, JournalInspection,
    KindFacts, ReadCapture, RecordedCapture, RecordedSignatures, Removals,
};
use crate::storage::sqlite::dictionaries;
use crate::storage::{Result, StorageError};

impl Inspection for FileInspection<'_> {
    fn structures(&self, integrity: Integrity) -> Result<Vec<Finding>> {
        let mut findings = self.permissions();
        findings.append(&mut self.integrity(integrity)?);
        findings.append(&mut self.structure()?);
        Ok(findings)
    }

    fn kinds(&self, findings: &mut Vec<Finding>) -> Result<Vec<KindFacts>> {
        Self::kinds(self, findings)
    }

    fn journal(&self, since: Option<Digest>) -> Result<JournalInspection> {
        self.inspect_journal(since)
    }

    fn removed(&self) -> Result<Vec<Finding>> {
        Self::removed(self)
    }

    fn unreferenced(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        for blob in self.unreferenced_blobs(&mut findings)? {
            findings.append(&mut self.blob(blob)?);
        }
        Ok(findings)
    }

    fn order_of_mentions(&self) -> Result<Vec<Finding>> {
        Self::order_of_mentions(self)
    }

    fn mentions_index(&self) -> Result<(Vec<Finding>, bool)> {
        Self::mentions_index(self)
    }

    fn unlisted(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<()> {
        Self::unlisted(self, artifact, findings)
    }

    fn artifacts(&self, kind: Option<&str>, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>> {
        Self::artifacts(self, kind, findings)
    }

    fn lost_artifacts(&self, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>> {
        Self::lost_artifacts(self, findings)
    }

    fn capture_ids(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<Vec<CaptureId>> {
        Self::capture_ids(self, artifact, findings)
    }

    fn read(
        &self,
        artifact: &CheckedArtifact,
        id: CaptureId,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ReadCapture>> {
        Self::read(self, artifact, id, findings)
    }

    fn facts(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<Option<Facts>> {
        Self::facts(self, artifact, findings)
    }

    fn has_capture(&self, core: CoreHash, capture: CaptureHash) -> Result<bool> {
        Self::has_capture(self, core, capture)
    }

    fn removals(&self) -> Result<Removals> {
        self.recorded_removals()
    }

    fn lost_captures(&self) -> Result<Vec<RecordedCapture>> {
        self.captures_lost()
    }

    fn recorded_with_hash(&self, capture: CaptureHash) -> Result<Vec<RecordedCapture>> {
        Self::recorded_with_hash(self, capture)
    }

    fn recorded_signatures(&self) -> Result<RecordedSignatures> {
        Self::recorded_signatures(self)
    }

    fn bytes_of(&self, blob: BlobHash) -> Result<Option<Vec<u8>>> {
        Self::bytes_of(self, blob)
    }

    fn is_difference(&self, blob: BlobHash) -> Result<bool> {
        Self::is_difference(self, blob)
    }

    fn dictionary(&self, digest: &Digest) -> Result<Option<DictionaryCopy>> {
        dictionaries::stored(&self.connection, digest)
            .map_err(|error| StorageError::from_sqlite(self.path, error))
    }
}

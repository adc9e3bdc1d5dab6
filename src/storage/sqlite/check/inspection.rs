//! The interface of checks for vault files.

use super::FileInspection;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::check::journal::JournalReader;
use crate::storage::check::{
    ArtifactFacts, CaptureId, CheckedArtifact, DictionaryCopy, Finding, Inspection, IntegrityLevel,
    JournalInspection, KindFacts, ReadCapture, RecordedCapture, RecordedSignatures, Removals,
};
use crate::storage::forward::forward_to_inherent;
use crate::storage::sqlite::dictionaries;
use crate::storage::{Result, StorageError};

impl Inspection for FileInspection<'_> {
    forward_to_inherent! {
        fn kinds(&self, findings: &mut Vec<Finding>) -> Result<Vec<KindFacts>>;
        fn removed(&self) -> Result<Vec<Finding>>;
        fn order_of_mentions(&self) -> Result<Vec<Finding>>;
        fn mentions_index(&self) -> Result<(Vec<Finding>, bool)>;
        fn unlisted(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<()>;
        fn artifacts(&self, kind: Option<&str>, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>>;
        fn lost_artifacts(&self, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>>;
        fn capture_ids(
            &self,
            artifact: &CheckedArtifact,
            findings: &mut Vec<Finding>,
        ) -> Result<Vec<CaptureId>>;
        fn read(
            &self,
            artifact: &CheckedArtifact,
            id: CaptureId,
            findings: &mut Vec<Finding>,
        ) -> Result<Option<ReadCapture>>;
        fn facts(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<Option<ArtifactFacts>>;
        fn has_capture(&self, core: CoreHash, capture: CaptureHash) -> Result<bool>;
        fn recorded_with(&self, digest: Digest) -> Result<Vec<RecordedCapture>>;
        fn file_lists(&self, capture: CaptureHash) -> Result<Vec<Vec<(String, BlobHash)>>>;
        fn recorded_signatures(&self) -> Result<RecordedSignatures>;
        fn bytes_of(&self, blob: BlobHash) -> Result<Option<Vec<u8>>>;
        fn is_difference(&self, blob: BlobHash) -> Result<bool>;
    }

    fn structures(&self, integrity: IntegrityLevel) -> Result<Vec<Finding>> {
        let mut findings = self.permissions();
        findings.append(&mut self.integrity(integrity)?);
        findings.append(&mut self.structure()?);
        Ok(findings)
    }

    fn journal(&self, since: Option<Digest>) -> Result<JournalInspection> {
        self.inspect_journal(since)
    }

    fn unreferenced(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        for blob in self.unreferenced_blobs(&mut findings)? {
            findings.append(&mut self.blob(blob)?);
        }
        Ok(findings)
    }

    fn removals(&self) -> Result<Removals> {
        self.recorded_removals()
    }

    fn lost_captures(&self) -> Result<Vec<RecordedCapture>> {
        self.captures_lost()
    }

    fn dictionary(&self, digest: &Digest) -> Result<Option<DictionaryCopy>> {
        dictionaries::stored(&self.connection, digest)
            .map_err(|error| StorageError::from_sqlite(self.path, error))
    }
}

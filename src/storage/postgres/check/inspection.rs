//! The interface of checks for vaults in databases.

use super::DatabaseInspection;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::Result;
use crate::storage::check::journal::JournalReader;
use crate::storage::check::{
    ArtifactFacts, CaptureId, CheckedArtifact, DictionaryCopy, Finding, Inspection, IntegrityLevel,
    JournalInspection, KindFacts, ReadCapture, RecordedCapture, RecordedSignatures, Removals,
};
use crate::storage::forward::forward_to_inherent;

impl Inspection for DatabaseInspection<'_> {
    forward_to_inherent! {
        fn kinds(&self, findings: &mut Vec<Finding>) -> Result<Vec<KindFacts>>;
        fn removed(&self) -> Result<Vec<Finding>>;
        fn unreferenced(&self) -> Result<Vec<Finding>>;
        fn mentions_index(&self) -> Result<(Vec<Finding>, bool)>;
        fn unlisted(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<()>;
        fn artifacts(&self, kind: Option<&str>, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>>;
        fn lost_artifacts(&self, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>>;
        fn read_ahead(&self, artifacts: &[CheckedArtifact]) -> Result<()>;
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
    }

    fn unchecked(&self) -> Vec<String> {
        self.unchecked.borrow().clone()
    }

    /// The files are the server's, whose own tools check them.
    fn structures(&self, _: IntegrityLevel) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        self.schema(&mut findings)?;
        self.structure(&mut findings)?;
        self.objects(&mut findings)?;
        self.search_index(&mut findings)?;
        Ok(findings)
    }

    fn journal(&self, since: Option<Digest>) -> Result<JournalInspection> {
        self.inspect_journal(since)
    }

    /// The order is that of an index of the server.
    fn order_of_mentions(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }

    fn removals(&self) -> Result<Removals> {
        self.recorded_removals()
    }

    fn lost_captures(&self) -> Result<Vec<RecordedCapture>> {
        self.captures_lost()
    }

    fn bytes_of(&self, blob: BlobHash) -> Result<Option<Vec<u8>>> {
        Ok(self.read_blob(blob)?.ok().and_then(|examined| examined.bytes.ok()))
    }

    fn is_difference(&self, _: BlobHash) -> Result<bool> {
        Ok(false)
    }

    fn dictionary(&self, _: &Digest) -> Result<Option<DictionaryCopy>> {
        Ok(None)
    }
}

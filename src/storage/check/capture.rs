//! Captures as stored, compared with the rows that describe them.

use super::finding::{Finding, SEAL_BROKEN, SIZE_WRONG, Subject};
use super::{CaptureId, CheckedArtifact, ReadCapture};
use crate::artifact::Signature;
use crate::digest::CaptureHash;
use crate::storage::StoredMember;
use crate::storage::seal::seal;

/// The row of a capture.
pub(in crate::storage) struct CaptureRow {
    pub(in crate::storage) id: CaptureId,
    pub(in crate::storage) capture: CaptureHash,
    pub(in crate::storage) size: i64,
    pub(in crate::storage) warnings: Option<String>,
    pub(in crate::storage) signature: Option<Signature>,
    pub(in crate::storage) seal: Vec<u8>,
}

impl CaptureRow {
    /// Compares the row with the files of the capture, which are `None` if one of them could not be read, and with the
    /// artifact. `findings` are those about the files.
    pub(in crate::storage) fn examine(
        self,
        artifact: &CheckedArtifact,
        is_directory: bool,
        files: Option<Vec<StoredMember>>,
        mut findings: Vec<Finding>,
    ) -> ReadCapture {
        let subject = Subject::Capture(self.capture);
        let bytes = files.iter().flatten().map(|member| member.bytes.len().cast_signed() as i64);
        let size: i64 = bytes.sum();
        if files.is_some() && size != self.size {
            let detail = format!("it should be {size} but is {}", self.size);
            findings.push(Finding::new(SIZE_WRONG, subject.clone(), detail));
        }
        if self.seal != seal(artifact.core, self.capture) {
            let detail = format!("its seal does not match artifact {}", artifact.core);
            findings.push(Finding::new(SEAL_BROKEN, subject, detail));
        }
        ReadCapture {
            id: self.id,
            capture: self.capture,
            is_directory,
            seal: self.seal,
            warnings: serde_json::from_str(self.warnings.as_deref().unwrap_or("[]")).ok(),
            signature: self.signature,
            files,
            findings,
        }
    }
}

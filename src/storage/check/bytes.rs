//! Bytes as stored, read without trusting the rows that refer to them.

use super::finding::{DAMAGED_BYTES, DIFFERENT_ROW, Finding, MISSING_BYTES, Subject};
use super::{CaptureId, CheckedArtifact, Inspection, ReadCapture, StoredBytes};
use crate::artifact::parse_manifest;
use crate::digest::{BlobHash, CaptureHash};
use crate::storage::{PayloadDefect, Result, StoredMember};

impl Finding {
    /// Creates the finding about stored bytes with a defect.
    pub(in crate::storage) fn of_bytes(blob: BlobHash, defect: &PayloadDefect) -> Self {
        let info = if is_missing(defect) { MISSING_BYTES } else { DAMAGED_BYTES };
        Self::new(info, Subject::Blob(blob), defect.to_string())
    }
}

fn is_missing(defect: &PayloadDefect) -> bool {
    match defect {
        PayloadDefect::Missing { .. } => true,
        PayloadDefect::Object { defect, .. } => is_missing(defect),
        _ => false,
    }
}

#[expect(clippy::missing_errors_doc, reason = "the errors are those of the trait")]
impl dyn Inspection + '_ {
    /// Returns the bytes with this hash, if the vault has them undamaged.
    pub fn bytes_of(&self, blob: BlobHash) -> Result<Option<Vec<u8>>> {
        Ok(self.stored_bytes(blob)?.ok().map(|stored| stored.bytes))
    }

    /// Returns the bytes of a blob, or `None` and a finding.
    fn bytes(&self, blob: BlobHash, findings: &mut Vec<Finding>) -> Result<Option<Vec<u8>>> {
        match self.stored_bytes(blob)? {
            Ok(StoredBytes { bytes, size }) => {
                if i64::try_from(bytes.len()) != Ok(size) {
                    let detail = format!("blob: size should be {} but is {size}", bytes.len());
                    findings.push(Finding::new(DIFFERENT_ROW, Subject::Blob(blob), detail));
                }
                Ok(Some(bytes))
            }
            Err(finding) => {
                findings.push(finding);
                Ok(None)
            }
        }
    }

    /// Reads and hashes the stored bytes that checking every artifact does not read.
    pub fn unreferenced(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        for blob in self.unreferenced_blobs(&mut findings)? {
            self.bytes(blob, &mut findings)?;
        }
        Ok(findings)
    }

    /// Reads a capture of `artifact` and hashes every byte again. If `is_directory` is not known, whether its bytes are a
    /// manifest decides. Returns `None` and adds a finding if its row cannot be read.
    pub fn read(
        &self,
        artifact: &CheckedArtifact,
        id: CaptureId,
        is_directory: Option<bool>,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ReadCapture>> {
        let Some(mut read) = self.capture(artifact, id, findings)? else { return Ok(None) };
        let found = &mut read.findings;
        let Some(bytes) = self.bytes(BlobHash(read.capture.0), found)? else { return Ok(Some(read)) };
        let manifest = if is_directory == Some(false) { None } else { parse_manifest(&bytes) };
        read.is_directory = is_directory.unwrap_or(manifest.is_some());
        let subject = || Subject::Capture(read.capture);
        read.files = match manifest {
            Some(files) => self.files_of(&files, found)?,
            None if read.is_directory => {
                found.push(Finding::new(DAMAGED_BYTES, subject(), "its bytes are not those of a manifest"));
                None
            }
            None => Some(vec![StoredMember { name: String::new(), bytes }]),
        };
        let length =
            read.files.iter().flatten().map(|file| file.bytes.len().cast_signed() as i64).sum::<i64>();
        if read.files.is_some() && length != read.size {
            let detail = format!("capture: size should be {length} but is {}", read.size);
            found.push(Finding::new(DIFFERENT_ROW, subject(), detail));
        }
        Ok(Some(read))
    }

    /// Returns the files that a manifest names; `None` and findings if one of them cannot be read.
    fn files_of(
        &self,
        manifest: &[(String, BlobHash)],
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Vec<StoredMember>>> {
        let mut files = Vec::new();
        for (name, blob) in manifest {
            let bytes = self.bytes(*blob, findings)?;
            files.extend(bytes.map(|bytes| StoredMember { name: name.clone(), bytes }));
        }
        Ok((files.len() == manifest.len()).then_some(files))
    }

    /// Returns the files of a capture, if the vault has all of them undamaged: the manifest of a directory says which they
    /// are. The only file of a document has no name.
    pub fn files(&self, capture: CaptureHash, is_directory: bool) -> Result<Option<Vec<StoredMember>>> {
        let Some(bytes) = self.bytes_of(BlobHash(capture.0))? else { return Ok(None) };
        if !is_directory {
            return Ok(Some(vec![StoredMember { name: String::new(), bytes }]));
        }
        let Some(manifest) = parse_manifest(&bytes) else { return Ok(None) };
        self.files_of(&manifest, &mut Vec::new())
    }
}

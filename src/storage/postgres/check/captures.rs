//! Captures as stored, read without trusting the rows that refer to them.

use postgres::Row;

use super::ahead::ArtifactTable;
use super::{DatabaseInspection, ROWS, read_all, table};
use crate::artifact::parse_manifest;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::check::finding::{
    DAMAGED_BYTES, DIFFERENT_ROW, Finding, MISSING_BYTES, Subject, UNREADABLE,
};
use crate::storage::check::{CaptureId, CheckedArtifact, ReadCapture};
use crate::storage::postgres::bytes::{self, BlobExamination};
use crate::storage::postgres::columns::{blob, capture, signature, text, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::seal::seal;
use crate::storage::{PayloadDefect, Result, StoredMember};

/// A named blob of a capture.
struct NamedBlob {
    name: String,
    blob: BlobHash,
}

impl DatabaseInspection<'_> {
    /// Returns whether the vault contains this capture of the artifact `core`.
    pub(super) fn contains(&self, core: CoreHash, capture: CaptureHash) -> Result<bool> {
        let sql = "SELECT 1 FROM capture c JOIN artifact a ON a.id = c.artifact WHERE c.digest = $1 AND a.core = $2 LIMIT 1";
        let row = self.session.row(sql, &[&capture, &core]);
        Ok(row.map_err(|failure| failure.at(self.session.server().name()))?.is_some())
    }

    /// Returns the ids of an artifact's captures in the order in which they were added.
    pub(super) fn captures_of(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<CaptureId>> {
        self.prefetch(std::slice::from_ref(artifact))?;
        let subject = Subject::Artifact(artifact.core);
        match self.ahead.borrow().rows(ArtifactTable::Captures, artifact.id) {
            Ok(rows) => Ok(read_all(rows, &subject, findings, |row| value(row, 1).map(CaptureId))),
            Err(damage) => {
                findings.push(Finding::new(UNREADABLE, subject, damage));
                Ok(Vec::new())
            }
        }
    }

    /// Returns the captures whose seals bind them to `core`, whatever artifact their rows refer to.
    pub(super) fn sealed_for(&self, core: CoreHash) -> Result<Vec<CaptureHash>> {
        let mut sealed = Vec::new();
        self.look(table("capture"), &mut Vec::new(), || {
            self.scan("SELECT digest, seal FROM capture", ROWS, &mut |rows| {
                for row in rows {
                    // A row that cannot be read does not have the seal.
                    let (Ok(capture), Ok(stored)) = (capture(row, 0), value::<&[u8]>(row, 1)) else {
                        continue;
                    };
                    if stored == seal(core, capture) {
                        sealed.push(capture);
                    }
                }
                Ok(())
            })
        })?;
        Ok(sealed)
    }

    /// Reads a capture of `artifact` and hashes every byte again.
    pub(super) fn read_capture(
        &self,
        artifact: &CheckedArtifact,
        id: CaptureId,
        is_directory: Option<bool>,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ReadCapture>> {
        self.prefetch(std::slice::from_ref(artifact))?;
        let subject = Subject::Artifact(artifact.core);
        let row = self.rows_of_capture(
            artifact,
            id,
            ArtifactTable::Captures,
            (&subject, &mut *findings),
            capture_row,
        );
        let Some((mut read, size)) = row.into_iter().next() else { return Ok(None) };
        let subject = Subject::Capture(read.capture);
        let members =
            self.rows_of_capture(artifact, id, ArtifactTable::Members, (&subject, &mut read.findings), file);
        let blob = BlobHash(read.capture.0);
        let Some(bytes) = self.bytes(blob, &mut read.findings)? else { return Ok(Some(read)) };
        let manifest = if is_directory == Some(false) { None } else { parse_manifest(&bytes) };
        read.is_directory = is_directory.unwrap_or(manifest.is_some());
        let is_manifest = manifest.is_some();
        if read.is_directory && !is_manifest {
            read.findings.push(Finding::new(DAMAGED_BYTES, subject, "its bytes are not those of a manifest"));
            return Ok(Some(read));
        }
        compare_members(read.capture, manifest.as_deref(), &members, &mut read.findings);
        let mut files = Vec::new();
        match manifest {
            None => {
                let name = members.into_iter().next().map(|member| member.name).unwrap_or_default();
                files.push(StoredMember { name, bytes });
            }
            Some(manifest) => {
                let count = manifest.len();
                for (name, blob) in manifest {
                    let bytes = self.bytes(blob, &mut read.findings)?;
                    files.extend(bytes.map(|bytes| StoredMember { name, bytes }));
                }
                if files.len() < count {
                    return Ok(Some(read));
                }
            }
        }
        let length = files.iter().map(|file| file.bytes.len().cast_signed() as i64).sum::<i64>();
        if length != size {
            let detail = format!("capture: size should be {length} but is {size}");
            read.findings.push(Finding::new(DIFFERENT_ROW, Subject::Capture(read.capture), detail));
        }
        read.files = Some(files);
        Ok(Some(read))
    }

    /// Returns what `read` makes of the rows of a capture. Those that it cannot read are findings about a subject.
    fn rows_of_capture<T>(
        &self,
        artifact: &CheckedArtifact,
        id: CaptureId,
        part: ArtifactTable,
        (subject, findings): (&Subject, &mut Vec<Finding>),
        read: impl Fn(&Row) -> PostgresResult<T>,
    ) -> Vec<T> {
        let ahead = self.ahead.borrow();
        let rows = match ahead.rows(part, artifact.id) {
            Ok(rows) => rows,
            Err(damage) => {
                findings.push(Finding::new(UNREADABLE, subject.clone(), damage));
                return Vec::new();
            }
        };
        let rows = rows.iter().filter(|row| value::<i64>(row, 1).is_ok_and(|number| number == id.0));
        rows.flat_map(|row| read_all(std::slice::from_ref(row), subject, findings, &read)).collect()
    }

    /// Returns the bytes of a blob, or `None` and a finding.
    fn bytes(&self, blob: BlobHash, findings: &mut Vec<Finding>) -> Result<Option<Vec<u8>>> {
        let ahead = self.ahead.borrow();
        if let Some(examined) = ahead.blob(blob) {
            return Ok(intact(blob, examined, findings));
        }
        drop(ahead);
        match self.read_blob(blob)? {
            Ok(examined) => Ok(intact(blob, &examined, findings)),
            Err(finding) => {
                findings.push(finding);
                Ok(None)
            }
        }
    }

    /// Reads the stored bytes of a blob, or returns why they cannot be read.
    pub(super) fn read_blob(&self, blob: BlobHash) -> Result<std::result::Result<BlobExamination, Finding>> {
        let read = self.attempt(|| Ok(bytes::examine(&self.session, &[blob])?.remove(&blob)))?;
        let subject = Subject::Blob(blob);
        Ok(match read {
            Ok(Some(examined)) => Ok(examined),
            Ok(None) => {
                Err(Finding::new(MISSING_BYTES, subject, PayloadDefect::Missing { blob }.to_string()))
            }
            Err(damage) => Err(Finding::new(DAMAGED_BYTES, subject, damage)),
        })
    }

    /// Reads and hashes the bytes that checking every artifact does not read.
    pub(super) fn unreferenced_bytes(&self) -> Result<Vec<Finding>> {
        let (mut findings, mut found, mut blobs) = (Vec::new(), Vec::new(), Vec::new());
        self.look(table("blob"), &mut findings, || {
            let sql = "SELECT b.digest FROM blob b WHERE NOT EXISTS
                         (SELECT 1 FROM member m JOIN capture c ON c.id = m.capture JOIN artifact a ON a.id = c.artifact
                           WHERE m.blob = b.digest)
                          AND NOT EXISTS (SELECT 1 FROM capture c JOIN artifact a ON a.id = c.artifact
                                           WHERE c.digest = b.digest)
                          AND b.condemned_at IS NULL ORDER BY b.digest";
            self.scan(sql, ROWS, &mut |rows| {
                blobs.append(&mut read_all(rows, &table("blob"), &mut found, |row| blob(row, 0)));
                Ok(())
            })
        })?;
        findings.append(&mut found);
        for blob in blobs {
            self.bytes(blob, &mut findings)?;
        }
        Ok(findings)
    }
}

/// Reads the row of a capture, and the size that it has.
fn capture_row(row: &Row) -> PostgresResult<(ReadCapture, i64)> {
    let warnings: Option<&str> = value(row, 4)?;
    let read = ReadCapture {
        id: CaptureId(value(row, 1)?),
        capture: capture(row, 2)?,
        is_directory: false,
        warnings: serde_json::from_str(warnings.unwrap_or("[]")).ok(),
        signature: signature(row, 6)?,
        files: None,
        findings: Vec::new(),
    };
    Ok((read, value(row, 3)?))
}

fn file(row: &Row) -> PostgresResult<NamedBlob> {
    Ok(NamedBlob { name: text(row, 2)?, blob: blob(row, 3)? })
}

/// Compares the rows of the table `member` of a capture with its manifest, or with the only file of a document.
fn compare_members(
    capture: CaptureHash,
    manifest: Option<&[(String, BlobHash)]>,
    members: &[NamedBlob],
    found: &mut Vec<Finding>,
) {
    let is_right = match manifest {
        Some(files) => members
            .iter()
            .map(|member| (&member.name, &member.blob))
            .eq(files.iter().map(|(name, blob)| (name, blob))),
        None => matches!(members, [only] if only.blob.0 == capture.0 && !only.name.is_empty()),
    };
    if !is_right {
        let detail = format!("the files of capture {capture} are not those that it has");
        found.push(Finding::new(DIFFERENT_ROW, table("member"), detail));
    }
}

/// Returns the bytes of a blob, or `None` and a finding.
fn intact(blob: BlobHash, examined: &BlobExamination, findings: &mut Vec<Finding>) -> Option<Vec<u8>> {
    let subject = Subject::Blob(blob);
    match &examined.bytes {
        Ok(bytes) => {
            if i64::try_from(bytes.len()) != Ok(examined.size) {
                let detail = format!("blob: size should be {} but is {}", bytes.len(), examined.size);
                findings.push(Finding::new(DIFFERENT_ROW, subject, detail));
            }
            Some(bytes.clone())
        }
        Err(defect) => {
            let info = if is_missing(defect) { MISSING_BYTES } else { DAMAGED_BYTES };
            findings.push(Finding::new(info, subject, defect.to_string()));
            None
        }
    }
}

fn is_missing(defect: &PayloadDefect) -> bool {
    match defect {
        PayloadDefect::Missing { .. } => true,
        PayloadDefect::Object { defect, .. } => is_missing(defect),
        _ => false,
    }
}

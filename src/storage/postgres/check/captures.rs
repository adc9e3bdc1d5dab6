//! Captures as stored, read without trusting the rows that refer to them.

use std::collections::BTreeMap;

use postgres::Row;

use super::ahead::ArtifactTable;
use super::{DatabaseInspection, ROWS, read_all, table};
use crate::artifact::is_capture_of;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::check::capture::CaptureRow;
use crate::storage::check::finding::{
    BLOB_DAMAGED, BLOB_MISSING, CAPTURE_DAMAGED, Finding, SIZE_WRONG, Subject, UNREADABLE,
};
use crate::storage::check::{CaptureId, CheckedArtifact, ReadCapture};
use crate::storage::postgres::bytes::{self, BlobExamination};
use crate::storage::postgres::columns::{blob, capture, core, optional_text, text, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::snapshot::captures::signature;
use crate::storage::seal::seal;
use crate::storage::{PayloadDefect, Result, StoredMember};

/// A named blob of a capture.
struct NamedBlob {
    name: String,
    blob: BlobHash,
}

impl DatabaseInspection<'_> {
    /// Returns all artifacts, or those of one kind, ordered by core hash. An unreadable part of the table is a finding.
    pub(super) fn artifacts(
        &self,
        kind: Option<&str>,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<CheckedArtifact>> {
        let mut artifacts = Vec::new();
        let mut found = Vec::new();
        self.look(table("artifact"), findings, || {
            let sql = "SELECT a.id, a.core, k.name FROM artifact a LEFT JOIN kind k ON k.id = a.kind";
            self.scan(sql, ROWS, &mut |rows| {
                let rows = read_all(rows, &table("artifact"), &mut found, |row| {
                    let (id, core) = (value(row, 0)?, core(row, 1)?);
                    Ok(CheckedArtifact { id, core, kind: optional_text(row, 2)? })
                });
                let is_of_kind = |artifact: &CheckedArtifact| {
                    kind.is_none_or(|kind| artifact.kind.as_deref() == Some(kind))
                };
                artifacts.extend(rows.into_iter().filter(is_of_kind));
                Ok(())
            })
        })?;
        findings.append(&mut found);
        artifacts.sort_unstable_by_key(|artifact| (artifact.core, artifact.id));
        Ok(artifacts)
    }

    /// Returns the artifacts that captures refer to and that are missing from the vault. Their hashes are not known.
    pub(super) fn lost_artifacts(&self, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>> {
        let mut artifacts = Vec::new();
        self.look(table("capture"), findings, || {
            let sql = "SELECT DISTINCT artifact FROM capture c
                        WHERE NOT EXISTS (SELECT 1 FROM artifact a WHERE a.id = c.artifact) ORDER BY artifact";
            self.scan(sql, ROWS, &mut |rows| {
                let core = CoreHash(Digest::from_bytes([0; 32]));
                for row in rows {
                    artifacts.push(CheckedArtifact { id: value(row, 0)?, core, kind: None });
                }
                Ok(())
            })
        })?;
        Ok(artifacts)
    }

    /// Returns the captures whose seals bind them to `core`, whatever artifact their rows refer to.
    pub(super) fn sealed_for(&self, core: CoreHash) -> Result<Vec<CaptureHash>> {
        let mut sealed = Vec::new();
        self.look(Subject::Table("capture".to_owned()), &mut Vec::new(), || {
            self.scan("SELECT digest, seal FROM capture", ROWS, &mut |rows| {
                // A row that cannot be read does not have the seal.
                let captures = rows.iter().filter_map(|row| {
                    let (capture, stored) = (capture(row, 0).ok()?, value::<&[u8]>(row, 1).ok()?);
                    (stored == seal(core, capture)).then_some(capture)
                });
                sealed.extend(captures);
                Ok(())
            })
        })?;
        Ok(sealed)
    }

    /// Returns the names and hashes of the files of every set of files that may be the capture with this hash: of the
    /// captures that have it, and of those that are lost.
    pub(super) fn file_lists(&self, capture: CaptureHash) -> Result<Vec<Vec<(String, BlobHash)>>> {
        let mut lists: BTreeMap<i64, Vec<(String, BlobHash)>> = BTreeMap::new();
        self.look(Subject::Capture(capture), &mut Vec::new(), || {
            let sql = "SELECT m.capture, m.name, m.blob FROM member m LEFT JOIN capture c ON c.id = m.capture
                        WHERE c.id IS NULL OR c.digest = $1 ORDER BY m.capture, m.name";
            for row in self.session.rows(sql, &[&capture])? {
                lists.entry(value(&row, 0)?).or_default().push((text(&row, 1)?, blob(&row, 2)?));
            }
            Ok(())
        })?;
        Ok(lists.into_values().collect())
    }

    /// Returns whether the vault contains this capture of the artifact `core`, with its files.
    pub(super) fn has_capture(&self, core: CoreHash, capture: CaptureHash) -> Result<bool> {
        let sql = "SELECT m.name, m.blob FROM capture c JOIN artifact a ON a.id = c.artifact
                     JOIN member m ON m.capture = c.id WHERE c.digest = $1 AND a.core = $2";
        let rows = self.session.rows(sql, &[&capture, &core]);
        let rows = rows.map_err(|failure| failure.at(self.session.server().name()))?;
        let named = |row: &Row| Ok((text(row, 0)?, blob(row, 1)?));
        // A row that cannot be read is not that of a file.
        let Ok(files) = rows.iter().map(named).collect::<PostgresResult<Vec<_>>>() else { return Ok(false) };
        let files: Vec<_> = files.iter().map(|(name, blob)| (name.as_str(), *blob)).collect();
        Ok(!files.is_empty() && is_capture_of(capture, &files))
    }

    /// Returns the ids of an artifact's captures in the order in which they were added.
    pub(super) fn capture_ids(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<CaptureId>> {
        self.read_ahead(std::slice::from_ref(artifact))?;
        let subject = Subject::Artifact(artifact.core);
        match self.ahead.borrow().rows(ArtifactTable::Captures, artifact.id) {
            Ok(rows) => Ok(read_all(rows, &subject, findings, |row| value(row, 1).map(CaptureId))),
            Err(damage) => {
                findings.push(Finding::new(UNREADABLE, subject, damage));
                Ok(Vec::new())
            }
        }
    }

    /// Reads a capture of `artifact` and hashes every byte again. Returns `None` and adds a finding if its row cannot
    /// be read.
    pub(super) fn read(
        &self,
        artifact: &CheckedArtifact,
        id: CaptureId,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ReadCapture>> {
        self.read_ahead(std::slice::from_ref(artifact))?;
        let subject = Subject::Artifact(artifact.core);
        let row = self.rows_of_capture(
            artifact,
            id,
            ArtifactTable::Captures,
            (&subject, &mut *findings),
            capture_row,
        );
        let Some(row) = row.into_iter().next() else { return Ok(None) };
        let mut found = Vec::new();
        let subject = Subject::Capture(row.capture);
        let files = self.rows_of_capture(artifact, id, ArtifactTable::Members, (&subject, &mut found), file);
        let mut members = Vec::new();
        for file in &files {
            let bytes = self.bytes(file.blob, &mut found)?;
            members.extend(bytes.map(|bytes| StoredMember { name: file.name.clone(), bytes }));
        }
        let is_whole = members.len() == files.len() && !files.is_empty();
        compare_files(&row, &files, &mut found);
        let is_directory = !is_document(&row, &files);
        if is_directory {
            self.bytes(BlobHash(row.capture.0), &mut found)?;
        }
        Ok(Some(row.examine(artifact, is_directory, is_whole.then_some(members), found)))
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
            Ok(None) => Err(Finding::new(BLOB_MISSING, subject, PayloadDefect::Missing { blob }.to_string())),
            Err(damage) => Err(Finding::new(BLOB_DAMAGED, subject, damage)),
        })
    }

    /// Reads and hashes the bytes that checking every artifact does not read.
    pub(super) fn unreferenced(&self) -> Result<Vec<Finding>> {
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

fn capture_row(row: &Row) -> PostgresResult<CaptureRow> {
    Ok(CaptureRow {
        id: CaptureId(value(row, 1)?),
        capture: capture(row, 2)?,
        size: value(row, 3)?,
        warnings: value(row, 4)?,
        seal: value(row, 5)?,
        signature: signature(row, 6)?,
    })
}

fn file(row: &Row) -> PostgresResult<NamedBlob> {
    Ok(NamedBlob { name: text(row, 2)?, blob: blob(row, 3)? })
}

/// Returns whether a capture is a single document, whose hash is that of the capture.
fn is_document(row: &CaptureRow, files: &[NamedBlob]) -> bool {
    matches!(files, [only] if only.blob.0 == row.capture.0)
}

/// Compares the files of a capture with its hash.
fn compare_files(row: &CaptureRow, files: &[NamedBlob], found: &mut Vec<Finding>) {
    let named: Vec<_> = files.iter().map(|file| (file.name.as_str(), file.blob)).collect();
    let detail = if named.is_empty() {
        "it has no files"
    } else if !is_capture_of(row.capture, &named) {
        "its files have different hashes"
    } else if files.iter().any(|file| file.name.is_empty()) {
        "its file has no name"
    } else {
        return;
    };
    found.push(Finding::new(CAPTURE_DAMAGED, Subject::Capture(row.capture), detail));
}

/// Returns the bytes of a blob, or `None` and a finding.
fn intact(blob: BlobHash, examined: &BlobExamination, findings: &mut Vec<Finding>) -> Option<Vec<u8>> {
    let subject = Subject::Blob(blob);
    match &examined.bytes {
        Ok(bytes) => {
            if i64::try_from(bytes.len()) != Ok(examined.size) {
                let detail = format!("it should be {} but is {}", bytes.len(), examined.size);
                findings.push(Finding::new(SIZE_WRONG, subject, detail));
            }
            Some(bytes.clone())
        }
        Err(defect) => {
            let info = if is_missing(defect) { BLOB_MISSING } else { BLOB_DAMAGED };
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

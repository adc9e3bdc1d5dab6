//! Hash checks of stored bytes.

use rusqlite::{OptionalExtension, Row};

use super::FileInspection;
use crate::digest::BlobHash;
use crate::storage::StoredMember;
use crate::storage::check::finding::{DAMAGED_BYTES, DIFFERENT_ROW, Finding, MISSING_BYTES, Subject};
use crate::storage::sqlite::error::is_damage;
use crate::storage::sqlite::error::{PayloadDefect, ReadFailure};
use crate::storage::sqlite::ids::blob_id;
use crate::storage::sqlite::{Result, StorageError};

/// A named blob.
pub(super) struct NamedBlobRow {
    pub(super) name: String,
    pub(super) blob: i64,
    pub(super) digest: BlobHash,
    pub(super) size: i64,
}

impl FileInspection<'_> {
    /// Returns the bytes of a file, or adds a finding.
    pub(super) fn bytes(
        &self,
        file: &NamedBlobRow,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<StoredMember>> {
        let subject = Subject::Blob(file.digest);
        match self.payloads().bytes(file.blob, file.digest) {
            Ok(bytes) => {
                if i64::try_from(bytes.len()) != Ok(file.size) {
                    let detail = format!("blob: size should be {} but is {}", bytes.len(), file.size);
                    findings.push(Finding::new(DIFFERENT_ROW, subject, detail));
                }
                return Ok(Some(StoredMember { name: file.name.clone(), bytes }));
            }
            Err(ReadFailure::Defect(defect @ PayloadDefect::Missing { .. })) => {
                findings.push(Finding::new(MISSING_BYTES, subject, defect.to_string()));
            }
            Err(ReadFailure::Defect(defect)) => {
                findings.push(Finding::new(DAMAGED_BYTES, subject, defect.to_string()));
            }
            Err(ReadFailure::Database(error)) if is_damage(&error) => {
                findings.push(Finding::new(DAMAGED_BYTES, subject, error.to_string()));
            }
            Err(ReadFailure::Database(error)) => return Err(StorageError::from_sqlite(self.path, error)),
        }
        Ok(None)
    }

    /// Returns the row ids of the blobs that checking every artifact does not read.
    pub(super) fn unreferenced_blobs(&self, findings: &mut Vec<Finding>) -> Result<Vec<i64>> {
        let sql = "SELECT b.id FROM blob b NOT INDEXED
             WHERE b.id NOT IN
                     (SELECT c.blob FROM capture c JOIN artifact a ON a.id = c.artifact)
               AND b.id NOT IN
                     (SELECT m.blob FROM member m JOIN capture c ON c.id = m.capture
                        JOIN artifact a ON a.id = c.artifact)
             ORDER BY b.digest";
        let mut blobs = Vec::new();
        self.look(Subject::Table("blob".to_owned()), findings, || {
            let mut statement = self.connection.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                blobs.push(row.get(0)?);
            }
            Ok(())
        })?;
        Ok(blobs)
    }

    /// Returns the bytes with this hash, if the vault has them undamaged.
    pub(super) fn intact_bytes(&self, blob: BlobHash) -> Result<Option<Vec<u8>>> {
        let mut findings = Vec::new();
        let subject = Subject::Blob(blob);
        let id = self.look(subject.clone(), &mut findings, || blob_id(&*self.connection, blob))?.flatten();
        let Some(id) = id else { return Ok(None) };
        let bytes = self.look(subject, &mut findings, || match self.payloads().bytes(id, blob) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(ReadFailure::Defect(_)) => Ok(None),
            Err(ReadFailure::Database(error)) => Err(error),
        })?;
        Ok(bytes.flatten())
    }

    /// Returns whether the blob with this hash is stored as a delta.
    pub(super) fn is_stored_as_delta(&self, blob: BlobHash) -> Result<bool> {
        let base = self.look(Subject::Blob(blob), &mut Vec::new(), || {
            let id = blob_id(&*self.connection, blob)?;
            let sql = "SELECT base IS NOT NULL FROM payload WHERE blob = ?1";
            self.connection.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()
        })?;
        Ok(base.flatten().unwrap_or(false))
    }

    /// Returns the findings about the blob with this row id.
    pub(super) fn blob(&self, id: i64) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let file = self.look(Subject::Table("blob".to_owned()), &mut findings, || {
            let sql = "SELECT '', id, digest, size FROM blob WHERE id = ?1";
            self.connection.prepare_cached(sql)?.query_row([id], file).optional()
        })?;
        if let Some(file) = file.flatten() {
            self.bytes(&file, &mut findings)?;
        }
        Ok(findings)
    }
}

/// Reads a row of a name and a blob's row id, digest and size.
pub(super) fn file(row: &Row<'_>) -> rusqlite::Result<NamedBlobRow> {
    Ok(NamedBlobRow {
        name: row.get(0)?,
        blob: row.get(1)?,
        digest: BlobHash(row.get(2)?),
        size: row.get(3)?,
    })
}

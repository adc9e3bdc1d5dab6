//! Captures as stored, read without trusting the rows that refer to them.

use rusqlite::OptionalExtension;

use super::FileInspection;
use super::blobs::{NamedBlobRow, file};
use crate::artifact::parse_manifest;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::StoredMember;
use crate::storage::check::finding::{DAMAGED_BYTES, DIFFERENT_ROW, MISSING_BYTES};
use crate::storage::check::{CaptureId, CheckedArtifact, Finding, ReadCapture, Subject};
use crate::storage::seal::seal;
use crate::storage::sqlite::ids::{blob_id, capture_id};
use crate::storage::sqlite::signatures::signature;
use crate::storage::sqlite::{Result, StorageError};

impl FileInspection<'_> {
    /// Returns the ids of an artifact's captures in the order in which they were added.
    pub(super) fn captures_of(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<CaptureId>> {
        let ids = self.look(Subject::Artifact(artifact.core), findings, || {
            let mut statement =
                self.connection.prepare_cached("SELECT id FROM capture WHERE artifact = ?1 ORDER BY id")?;
            statement.query_map([artifact.id], |row| row.get(0).map(CaptureId))?.collect()
        })?;
        Ok(ids.unwrap_or_default())
    }

    /// Returns whether the vault contains this capture of the artifact `core`.
    pub(super) fn contains(&self, core: CoreHash, capture: CaptureHash) -> Result<bool> {
        let id = capture_id(&self.connection, core, capture)
            .map_err(|error| StorageError::from_sqlite(self.path, error))?;
        Ok(id.is_some())
    }

    /// Returns the captures whose seals bind them to `core`, whatever artifact their rows refer to.
    pub(super) fn sealed_for(&self, core: CoreHash) -> Result<Vec<CaptureHash>> {
        let mut sealed = Vec::new();
        let sql = "SELECT b.digest, c.seal FROM capture c JOIN blob b ON b.id = c.blob";
        self.each_row(sql, Subject::Table("capture".to_owned()), &mut Vec::new(), |row| {
            let capture = row.get(0)?;
            if row.get_ref(1)?.as_blob()? == seal(core, capture) {
                sealed.push(capture);
            }
            Ok(())
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
        let row = self.look(Subject::Artifact(artifact.core), findings, || self.capture_row(id))?;
        let Some((own, mut read, size)) = row else { return Ok(None) };
        let found = &mut read.findings;
        let Some(bytes) = self.bytes(&own, found)? else { return Ok(Some(read)) };
        let manifest = if is_directory == Some(false) { None } else { parse_manifest(&bytes.bytes) };
        read.is_directory = is_directory.unwrap_or(manifest.is_some());
        let subject = || Subject::Capture(read.capture);
        read.files = match manifest {
            Some(files) => self.files_of(id, &files, found)?,
            None if read.is_directory => {
                found.push(Finding::new(DAMAGED_BYTES, subject(), "its bytes are not those of a manifest"));
                None
            }
            None => Some(vec![bytes]),
        };
        let length =
            read.files.iter().flatten().map(|file| file.bytes.len().cast_signed() as i64).sum::<i64>();
        if read.files.is_some() && length != size {
            let detail = format!("capture: size should be {length} but is {size}");
            found.push(Finding::new(DIFFERENT_ROW, subject(), detail));
        }
        Ok(Some(read))
    }

    /// Returns the blob of a capture, what its row has, and the size that it has.
    fn capture_row(&self, id: CaptureId) -> rusqlite::Result<(NamedBlobRow, ReadCapture, i64)> {
        let sql = "SELECT '', b.id, b.digest, b.size, c.size, c.warnings, s.state, s.key_id
                     FROM capture c JOIN blob b ON b.id = c.blob LEFT JOIN signature s ON s.capture = c.id
                    WHERE c.id = ?1";
        self.connection.prepare_cached(sql)?.query_row([id.0], |row| {
            let own = file(row)?;
            let warnings: Option<String> = row.get(5)?;
            let read = ReadCapture {
                id,
                capture: CaptureHash(own.digest.0),
                is_directory: false,
                warnings: serde_json::from_str(warnings.as_deref().unwrap_or("[]")).ok(),
                signature: signature(row, 6)?,
                files: None,
                findings: Vec::new(),
            };
            Ok((own, read, row.get(4)?))
        })
    }

    /// Returns the files of a directory, which its manifest names; `None` and findings if one of them cannot be read. Compares
    /// the rows of the table `member` with them.
    fn files_of(
        &self,
        capture: CaptureId,
        manifest: &[(String, BlobHash)],
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Vec<StoredMember>>> {
        let mut files = Vec::new();
        for (name, blob) in manifest {
            let row = self.look(Subject::Blob(*blob), findings, || {
                let Some(id) = blob_id(&*self.connection, *blob)? else { return Ok(None) };
                let sql = "SELECT ?2, id, digest, size FROM blob WHERE id = ?1";
                self.connection.prepare_cached(sql)?.query_row((id, name), file).optional()
            })?;
            match row {
                Some(Some(row)) => files.extend(self.bytes(&row, findings)?),
                Some(None) => {
                    let detail = "a manifest names it, and it is not stored";
                    findings.push(Finding::new(MISSING_BYTES, Subject::Blob(*blob), detail));
                }
                None => {}
            }
        }
        let table = Subject::Table("member".to_owned());
        let stored = self.look(table, findings, || {
            let sql = "SELECT m.name, b.digest FROM member m LEFT JOIN blob b ON b.id = m.blob
                        WHERE m.capture = ?1 ORDER BY m.name";
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement.query_map([capture.0], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, Option<_>>(1)?.map(BlobHash)))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let expected = manifest.iter().map(|(name, blob)| (name.clone(), Some(*blob)));
        if stored.is_some_and(|stored| !stored.into_iter().eq(expected)) {
            let subject = Subject::Table("member".to_owned());
            let detail = format!("the files of capture {} are not those of its manifest", capture.0);
            findings.push(Finding::new(DIFFERENT_ROW, subject, detail));
        }
        Ok((files.len() == manifest.len()).then_some(files))
    }
}

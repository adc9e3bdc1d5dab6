//! Captures as they are stored, read without trusting what stands around them.

use super::Inspection;
use super::blobs::{File, file};
use super::finding::{CAPTURE_DAMAGED, Finding, SEAL_BROKEN, SIZE_WRONG, Subject};
use crate::artifact::{Signature, is_capture_of};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::store::read::capture_id;
use crate::store::rows::{ArtifactId, StoredMember};
use crate::store::signatures::signature;
use crate::store::write::seal;
use crate::store::{Result, StoreError};
use crate::verify::Violation;

/// A capture within its vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CaptureId(pub(in crate::store) i64);

impl CaptureId {
    /// The number, which means nothing in another vault.
    #[must_use]
    pub fn number(self) -> i64 {
        self.0
    }
}

/// An artifact that is to be checked.
#[derive(Clone, Debug)]
pub struct CheckedArtifact {
    /// Its number.
    pub id: ArtifactId,
    /// The core hash that it should have.
    pub core: CoreHash,
    /// The name of its kind; nothing if the vault does not know it any more.
    pub kind: Option<String>,
}

/// A capture with its files, as far as they could be read.
#[derive(Debug)]
pub struct ReadCapture {
    /// Its number.
    pub id: CaptureId,
    /// The hash that it should have.
    pub capture: CaptureHash,
    /// Whether it has several files.
    pub is_directory: bool,
    /// The seal that is stored.
    pub seal: Vec<u8>,
    /// The warnings that are stored; nothing if they cannot be read.
    pub warnings: Option<Vec<Violation>>,
    /// What is stored of its signature.
    pub signature: Option<Signature>,
    /// Its files; nothing if one of them is damaged.
    pub files: Option<Vec<StoredMember>>,
    /// What is wrong with its bytes.
    pub findings: Vec<Finding>,
}

struct CaptureRow {
    id: CaptureId,
    capture: CaptureHash,
    size: i64,
    warnings: Option<String>,
    signature: Option<Signature>,
    seal: Vec<u8>,
    blob: Option<i64>,
}

impl Inspection<'_> {
    /// All artifacts, or those of one kind, in the order of their core hashes. A part of the table that cannot be read is
    /// a finding.
    ///
    /// # Errors
    /// If nobody could look.
    pub fn artifacts(&self, kind: Option<&str>, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>> {
        let mut artifacts = Vec::new();
        // Not through an index: it may not know all of them.
        let sql = "SELECT a.id, a.core, k.name FROM artifact a NOT INDEXED LEFT JOIN kind k ON k.id = a.kind
                    WHERE ?1 IS NULL OR k.name = ?1 ORDER BY a.id";
        self.look(Subject::Table("artifact".to_owned()), findings, || {
            let mut statement = self.connection.prepare(sql)?;
            let mut rows = statement.query([kind])?;
            while let Some(row) = rows.next()? {
                artifacts.push(CheckedArtifact { id: row.get(0)?, core: row.get(1)?, kind: row.get(2)? });
            }
            Ok(())
        })?;
        artifacts.sort_by_key(|artifact| (artifact.core, artifact.id));
        Ok(artifacts)
    }

    /// The numbers of the captures of an artifact in the order in which they were added.
    ///
    /// # Errors
    /// If nobody could look.
    pub fn capture_ids(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<CaptureId>> {
        let ids = self.look(Subject::Artifact(artifact.core), findings, || {
            let mut statement =
                self.connection.prepare_cached("SELECT id FROM capture WHERE artifact = ?1 ORDER BY id")?;
            statement.query_map([artifact.id.0], |row| row.get(0).map(CaptureId))?.collect()
        })?;
        Ok(ids.unwrap_or_default())
    }

    /// Artifacts that captures say they belong to, and that the vault does not have any more. Their hashes are not known.
    ///
    /// # Errors
    /// If nobody could look.
    pub fn lost_artifacts(&self, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>> {
        let artifacts = self.look(Subject::Table("capture".to_owned()), findings, || {
            let sql = "SELECT DISTINCT artifact FROM capture
                        WHERE artifact NOT IN (SELECT id FROM artifact) ORDER BY artifact";
            let mut statement = self.connection.prepare(sql)?;
            let core = CoreHash(Digest::from_bytes([0; 32]));
            statement
                .query_map([], |row| Ok(CheckedArtifact { id: row.get(0)?, core, kind: None }))?
                .collect()
        })?;
        Ok(artifacts.unwrap_or_default())
    }

    /// Whether the vault has this capture of the artifact `core`.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn has_capture(&self, core: CoreHash, capture: CaptureHash) -> Result<bool> {
        let id =
            capture_id(&self.connection, core, capture).map_err(|error| StoreError::of(self.path, error))?;
        Ok(id.is_some())
    }

    /// A capture of `artifact`, every byte hashed again. Gives nothing but a finding if even its row cannot be read.
    ///
    /// # Errors
    /// If nobody could look.
    pub fn read(
        &self,
        artifact: &CheckedArtifact,
        id: CaptureId,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ReadCapture>> {
        let row = self.look(Subject::Artifact(artifact.core), findings, || self.capture_row(id))?;
        let Some(row) = row else { return Ok(None) };
        let mut found = Vec::new();
        let files = self.look(Subject::Capture(row.capture), &mut found, || self.files_of(&row))?;
        let files = files.unwrap_or_default();
        let mut members = Vec::new();
        for file in &files {
            members.extend(self.bytes(file, &mut found)?);
        }
        let named: Vec<_> = files.iter().map(|file| (file.name.as_str(), file.digest)).collect();
        if !is_capture_of(row.capture, &named) {
            let detail = if named.is_empty() { "it has no files" } else { "its files have other hashes" };
            found.push(Finding::new(CAPTURE_DAMAGED, Subject::Capture(row.capture), detail));
        }
        let is_whole = members.len() == files.len() && !files.is_empty();
        let size: i64 = members.iter().map(|member| member.bytes.len().cast_signed() as i64).sum();
        if is_whole && size != row.size {
            let detail = format!("it should be {size} and is {}", row.size);
            found.push(Finding::new(SIZE_WRONG, Subject::Capture(row.capture), detail));
        }
        if row.seal != seal(artifact.core, row.capture) {
            let detail = format!("its seal is not that of artifact {}", artifact.core);
            found.push(Finding::new(SEAL_BROKEN, Subject::Capture(row.capture), detail));
        }
        Ok(Some(ReadCapture {
            id,
            capture: row.capture,
            is_directory: row.blob.is_none(),
            seal: row.seal,
            warnings: serde_json::from_str(row.warnings.as_deref().unwrap_or("[]")).ok(),
            signature: row.signature,
            files: is_whole.then_some(members),
            findings: found,
        }))
    }

    fn capture_row(&self, id: CaptureId) -> rusqlite::Result<CaptureRow> {
        let sql = "SELECT coalesce(c.digest, b.digest), c.size, c.warnings, c.seal, c.blob, s.state, s.key_id
                     FROM capture c LEFT JOIN blob b ON b.id = c.blob LEFT JOIN signature s ON s.capture = c.id
                    WHERE c.id = ?1";
        self.connection.prepare_cached(sql)?.query_row([id.0], |row| {
            Ok(CaptureRow {
                id,
                capture: row.get(0)?,
                size: row.get(1)?,
                warnings: row.get(2)?,
                seal: row.get(3)?,
                blob: row.get(4)?,
                signature: signature(row, 5)?,
            })
        })
    }

    fn files_of(&self, capture: &CaptureRow) -> rusqlite::Result<Vec<File>> {
        let (sql, id) = match capture.blob {
            Some(blob) => ("SELECT '', id, digest, size FROM blob WHERE id = ?1", blob),
            None => (
                "SELECT m.name, b.id, b.digest, b.size FROM member m JOIN blob b ON b.id = m.blob
                  WHERE m.capture = ?1 ORDER BY m.name",
                capture.id.0,
            ),
        };
        self.connection.prepare_cached(sql)?.query_map([id], file)?.collect()
    }
}

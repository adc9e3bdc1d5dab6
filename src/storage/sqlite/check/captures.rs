//! Captures as stored, read without trusting the rows that refer to them.

use super::FileInspection;
use super::blobs::{NamedBlobRow, file};
use super::scan::TableScan;
use crate::artifact::{is_capture_of, is_manifest};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::check::capture::CaptureRow;
use crate::storage::check::finding::CAPTURE_DAMAGED;
use crate::storage::check::{CaptureId, CheckedArtifact, Finding, ReadCapture, Subject};
use crate::storage::seal::seal;
use crate::storage::sqlite::ids::capture_id;
use crate::storage::sqlite::signatures::signature;
use crate::storage::sqlite::{Result, StorageError};

/// The query for the row ids of artifacts from `?1` on, from an index.
pub(super) const ARTIFACT_IDS: &str =
    "SELECT id FROM artifact INDEXED BY artifact_by_arrival WHERE id >= ?1 ORDER BY id";

impl FileInspection<'_> {
    /// Returns all artifacts, or those of one kind, ordered by core hash. An unreadable part of the table is a finding.
    pub(super) fn artifacts(
        &self,
        kind: Option<&str>,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<CheckedArtifact>> {
        const SCAN: TableScan = TableScan {
            table: "artifact",
            // Not through an index, which may be incomplete.
            sql: "SELECT a.id, a.core, k.name FROM artifact a NOT INDEXED LEFT JOIN kind k ON k.id = a.kind
                   WHERE a.id BETWEEN ?1 AND ?2 ORDER BY a.id",
            ids: ARTIFACT_IDS,
        };
        let mut artifacts = Vec::new();
        self.scan(&SCAN, findings, |row| {
            // A damaged name of a kind is reported with the kinds, and the artifact may be of any.
            let (core, name) = (row.get(1)?, row.get::<_, Option<String>>(2).unwrap_or_default());
            if kind.is_none() || kind == name.as_deref() {
                artifacts.push(CheckedArtifact { id: row.get(0)?, core, kind: name });
            }
            Ok(())
        })?;
        artifacts.sort_unstable_by_key(|artifact| (artifact.core, artifact.id));
        Ok(artifacts)
    }

    /// Returns the ids of an artifact's captures in the order in which they were added.
    pub(super) fn capture_ids(
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

    /// Returns the artifacts that captures refer to and that are missing from the vault, or whose rows have no hash. Their
    /// hashes are not known.
    pub(super) fn lost_artifacts(&self, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>> {
        let artifacts = self.look(Subject::Table("capture".to_owned()), findings, || {
            let sql = "SELECT DISTINCT artifact FROM capture WHERE artifact NOT IN
                         (SELECT id FROM artifact WHERE typeof(core) = 'blob' AND length(core) = 32)
                        ORDER BY artifact";
            let mut statement = self.connection.prepare(sql)?;
            let core = CoreHash(Digest::from_bytes([0; 32]));
            statement
                .query_map([], |row| Ok(CheckedArtifact { id: row.get(0)?, core, kind: None }))?
                .collect()
        })?;
        Ok(artifacts.unwrap_or_default())
    }

    /// Returns the captures whose seals bind them to `core`, whatever artifact their rows refer to.
    pub(super) fn sealed_for(&self, core: CoreHash) -> Result<Vec<CaptureHash>> {
        let table = Subject::Table("capture".to_owned());
        let sealed = self.look(table, &mut Vec::new(), || {
            let sql = "SELECT b.digest, c.seal FROM capture c LEFT JOIN blob b ON b.id = c.blob";
            let mut statement = self.connection.prepare(sql)?;
            let mut rows = statement.query([])?;
            let mut sealed = Vec::new();
            while let Some(row) = rows.next()? {
                // A row that cannot be read does not have the seal.
                let (Ok(capture), Ok(stored)) = (row.get::<_, CaptureHash>(0), row.get_ref(1)?.as_blob())
                else {
                    continue;
                };
                if stored == seal(core, capture) {
                    sealed.push(capture);
                }
            }
            Ok(sealed)
        })?;
        Ok(sealed.unwrap_or_default())
    }

    /// Returns the names and hashes of the files of every set of files that may be the capture with this hash: of the
    /// captures that have it, and of those that are lost.
    pub(super) fn file_lists(&self, capture: CaptureHash) -> Result<Vec<Vec<(String, BlobHash)>>> {
        let lists = self.look(Subject::Capture(capture), &mut Vec::new(), || {
            let sql = "SELECT c.id FROM capture c JOIN blob b ON b.id = c.blob WHERE b.digest = ?1
                        UNION SELECT capture FROM member WHERE capture NOT IN (SELECT id FROM capture)";
            let mut statement = self.connection.prepare(sql)?;
            let ids = statement.query_map([capture.0.as_bytes()], |row| row.get(0).map(CaptureId))?;
            let list = |id: rusqlite::Result<CaptureId>| {
                let files = self.files_of(id?, None)?.into_iter();
                Ok(files.map(|file| (file.name, file.digest)).collect())
            };
            ids.map(list).collect()
        })?;
        Ok(lists.unwrap_or_default())
    }

    /// Returns whether the vault contains this capture of the artifact `core`, with its files.
    pub(in crate::storage::sqlite) fn has_capture(
        &self,
        core: CoreHash,
        capture: CaptureHash,
    ) -> Result<bool> {
        let id = capture_id(&self.connection, core, capture)
            .map_err(|error| StorageError::from_sqlite(self.path, error))?;
        let Some(id) = id.map(CaptureId) else { return Ok(false) };
        let has_files = self.look(Subject::Capture(capture), &mut Vec::new(), || {
            let files = self.files_of(id, None)?;
            let named: Vec<_> = files.iter().map(|file| (file.name.as_str(), file.digest)).collect();
            let sql =
                "SELECT 1 FROM capture c JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind
                        WHERE c.id = ?1 AND k.member IS NULL";
            let is_directory = self.connection.prepare_cached(sql)?.exists([id.0])?;
            Ok(!is_directory || is_capture_of(capture, &named))
        })?;
        Ok(has_files.unwrap_or(false))
    }

    /// Reads a capture of `artifact` and hashes every byte again. Returns `None` and adds a finding if its row cannot
    /// be read.
    pub(super) fn read(
        &self,
        artifact: &CheckedArtifact,
        id: CaptureId,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ReadCapture>> {
        let row = self.look(Subject::Artifact(artifact.core), findings, || self.capture_row(id))?;
        let Some((row, own)) = row else { return Ok(None) };
        let mut found = Vec::new();
        let mut files =
            |blob| self.look(Subject::Capture(row.capture), &mut found, || self.files_of(row.id, blob));
        let (document, listed) = (files(Some(own))?.unwrap_or_default(), files(None)?.unwrap_or_default());
        let mut members = Vec::new();
        for file in &document {
            members.extend(self.bytes(file, &mut found)?);
        }
        // The kind, which may be damaged, is checked elsewhere.
        let is_directory = match members.as_slice() {
            [own] => is_manifest(artifact.core, &own.bytes),
            _ => !listed.is_empty(),
        };
        let files = if is_directory { listed } else { document };
        if is_directory {
            members.clear();
            for file in &files {
                members.extend(self.bytes(file, &mut found)?);
            }
        }
        let named: Vec<_> = files.iter().map(|file| (file.name.as_str(), file.digest)).collect();
        if !is_capture_of(row.capture, &named) {
            let detail = if named.is_empty() { "it has no files" } else { "its files have different hashes" };
            found.push(Finding::new(CAPTURE_DAMAGED, Subject::Capture(row.capture), detail));
        }
        let is_whole = members.len() == files.len() && !files.is_empty();
        Ok(Some(row.examine(artifact, is_directory, is_whole.then_some(members), found)))
    }

    /// Returns the row of a capture and the number of its blob.
    fn capture_row(&self, id: CaptureId) -> rusqlite::Result<(CaptureRow, i64)> {
        let sql = "SELECT b.digest, c.size, c.warnings, c.seal, c.blob, s.state, s.key_id
                     FROM capture c LEFT JOIN blob b ON b.id = c.blob LEFT JOIN signature s ON s.capture = c.id
                    WHERE c.id = ?1";
        self.connection.prepare_cached(sql)?.query_row([id.0], |row| {
            let (capture, size, warnings, seal) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            let signature = signature(row, 5)?;
            Ok((CaptureRow { id, capture, size, warnings, signature, seal }, row.get(4)?))
        })
    }

    fn files_of(&self, capture: CaptureId, blob: Option<i64>) -> rusqlite::Result<Vec<NamedBlobRow>> {
        let (sql, id) = match blob {
            Some(blob) => ("SELECT '', id, digest, size FROM blob WHERE id = ?1", blob),
            None => (
                "SELECT m.name, b.id, b.digest, b.size FROM member m JOIN blob b ON b.id = m.blob
                  WHERE m.capture = ?1 ORDER BY m.name",
                capture.0,
            ),
        };
        self.connection.prepare_cached(sql)?.query_map([id], file)?.collect()
    }
}

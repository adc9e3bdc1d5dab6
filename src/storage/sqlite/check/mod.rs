//! Checks of a vault that do not trust its content.
//!
//! Each check returns findings. Damage that prevents reading is also a finding, and the other checks continue; an error
//! means that the check could not run, for example because of an I/O failure.

mod mention_index;
mod rows;
mod structure;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use rusqlite::OptionalExtension;

use super::dictionaries::DecompressionDictionaryCache;
use super::error::{PayloadDefect, ReadFailure, index_damage_in, is_damage};
use super::mention_index::MentionIndexReader;
use super::mentions::MentionListReader;
use super::payload::PayloadReader;
use super::pool::SqlitePooledConnection;
use super::rows::{blob_id, capture_id};
use super::shared_statements::shared_row;
use super::store::Store;
use super::{Result, StorageError, schema};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::catalog::{MentionRole, Row};
use crate::storage::check::finding::{DAMAGED_BYTES, Finding, INDEX_DIFFERS, Subject, UNREADABLE};
use crate::storage::check::{
    CaptureId, CheckedArtifact, Inspection, IntegrityLevel, JournaledTable, ReadCapture, StoredBytes,
    UnreadRows,
};
use crate::storage::sql::{self, DamagedValue, Dialect, SqlInspection, SqlRow, SqlSession};

pub(super) use structure::{
    SURPLUS_BASE, SURPLUS_DICTIONARY, SURPLUS_DIGESTS, restrict_permissions, wrong_last_number,
};

/// A vault at one point in time, for checking.
pub(in crate::storage::sqlite) struct FileInspection<'s> {
    connection: SqlitePooledConnection<'s>,
    /// Not shared with the store: the check must see what is on disk.
    readers: DecompressionDictionaryCache,
    path: &'s Path,
    /// The captures in the mention index with keys that many have, such as that of a system prompt.
    frequent: RefCell<HashMap<u64, Vec<i64>>>,
    /// The mention index, once it is needed.
    index: OnceCell<MentionIndexReader>,
    /// The roles that were read, by number.
    roles: RefCell<HashMap<i64, Arc<MentionRole>>>,
}

impl<'s> FileInspection<'s> {
    pub(super) fn begin(connection: SqlitePooledConnection<'s>, path: &'s Path) -> Result<Self> {
        let begin = || {
            connection.execute_batch("BEGIN DEFERRED")?;
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
        };
        begin().map_err(|error| StorageError::from_sqlite(path, error))?;
        let readers = DecompressionDictionaryCache::default();
        Ok(Self {
            connection,
            readers,
            path,
            frequent: RefCell::default(),
            index: OnceCell::new(),
            roles: RefCell::default(),
        })
    }

    fn payloads(&self) -> PayloadReader<'_> {
        PayloadReader { connection: &self.connection, readers: &self.readers }
    }

    fn lists(&self) -> MentionListReader<'_> {
        MentionListReader { payloads: self.payloads() }
    }

    /// Returns the result of `look`, or `None` and a finding about `subject` if it fails because of damage.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    fn look<T>(
        &self,
        subject: Subject,
        findings: &mut Vec<Finding>,
        look: impl FnOnce() -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        match look() {
            Ok(seen) => Ok(Some(seen)),
            Err(error) if is_damage(&error) => {
                findings.push(match index_damage_in(&error) {
                    Some(damage) => Finding::new(INDEX_DIFFERS, subject, damage),
                    None => Finding::new(UNREADABLE, subject, error.to_string()),
                });
                Ok(None)
            }
            Err(error) => Err(StorageError::from_sqlite(self.path, error)),
        }
    }
}

impl SqlInspection for FileInspection<'_> {
    const DIALECT: Dialect = Dialect::Sqlite;

    fn expect_journal_texts(&self, subject: &Subject, findings: &mut Vec<Finding>) -> Result<bool> {
        let is_expected = || schema::expect_journal_view(&self.connection);
        Ok(self.look(subject.clone(), findings, is_expected)?.is_some())
    }

    fn query(
        &self,
        sql: &str,
        subject: &Subject,
        findings: &mut Vec<Finding>,
        take: &mut dyn FnMut(&SqlRow) -> std::result::Result<(), DamagedValue>,
    ) -> Result<bool> {
        self.each_row(sql, subject.clone(), findings, |row| Ok(take(&shared_row(row)?)?))
    }
}

impl Inspection for FileInspection<'_> {
    fn structures(&self, integrity: IntegrityLevel) -> Result<Vec<Finding>> {
        let mut findings = self.permissions();
        findings.append(&mut self.integrity(integrity)?);
        self.structure(&mut findings)?;
        sql::undeleted_artifacts(self, &mut findings)?;
        Ok(findings)
    }

    fn rows(
        &self,
        table: JournaledTable,
        of: Option<&RangeInclusive<Digest>>,
        take: &mut dyn FnMut(Row),
        findings: &mut Vec<Finding>,
    ) -> Result<UnreadRows> {
        self.rows_of(table, of, take, findings)
    }

    fn mentions_index(&self, integrity: IntegrityLevel) -> Result<(Vec<Finding>, bool)> {
        match integrity {
            IntegrityLevel::Quick => self.order_of_mentions().map(|findings| (findings, true)),
            IntegrityLevel::Full => self.compare_mentions(),
        }
    }

    fn unlisted(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<()> {
        self.unlisted_mentions(artifact, findings)
    }

    fn capture_ids(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<Vec<CaptureId>> {
        let ids = self.look(Subject::Artifact(artifact.core), findings, || {
            let mut statement =
                self.connection.prepare_cached("SELECT id FROM capture WHERE artifact = ?1 ORDER BY id")?;
            statement.query_map([artifact.id], |row| row.get(0).map(CaptureId))?.collect()
        })?;
        Ok(ids.unwrap_or_default())
    }

    fn capture(
        &self,
        artifact: &CheckedArtifact,
        id: CaptureId,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ReadCapture>> {
        let read = self.look(Subject::Artifact(artifact.core), findings, || {
            let sql = sql::captured_rows(Dialect::Sqlite, "c.id = ?1");
            let rows = SqlSession::rows(&*self.connection, &sql, &[id.0.into()])?;
            Ok(rows.first().map(sql::captured).transpose()?)
        })?;
        Ok(read.flatten())
    }

    fn derived_rows(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Vec<Row>>> {
        self.rows_of_artifact(artifact, findings)
    }

    fn has_capture(&self, core: CoreHash, capture: CaptureHash) -> Result<bool> {
        let id = capture_id(&self.connection, core, capture);
        Ok(id.map_err(|error| StorageError::from_sqlite(self.path, error))?.is_some())
    }

    fn stored_bytes(&self, blob: BlobHash) -> Result<std::result::Result<StoredBytes, Finding>> {
        let read = || {
            let missing = || ReadFailure::Defect(PayloadDefect::Missing { blob });
            let row = self.payloads().row(blob_id(&*self.connection, blob)?.ok_or_else(missing)?, blob)?;
            let size = i64::try_from(row.size).unwrap_or(i64::MAX);
            Ok(StoredBytes { bytes: self.payloads().bytes_of(row)?, size })
        };
        match read() {
            Ok(stored) => Ok(Ok(stored)),
            Err(ReadFailure::Defect(defect)) => Ok(Err(Finding::of_bytes(blob, &defect))),
            Err(ReadFailure::Database(error)) if is_damage(&error) => {
                Ok(Err(Finding::new(DAMAGED_BYTES, Subject::Blob(blob), error.to_string())))
            }
            Err(ReadFailure::Database(error)) => Err(StorageError::from_sqlite(self.path, error)),
        }
    }

    fn is_difference(&self, blob: BlobHash) -> Result<bool> {
        let base = self.look(Subject::Blob(blob), &mut Vec::new(), || {
            let id = blob_id(&*self.connection, blob)?;
            let sql = "SELECT base IS NOT NULL FROM payload WHERE blob = ?1";
            self.connection.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()
        })?;
        Ok(base.flatten().unwrap_or(false))
    }
}

impl Drop for FileInspection<'_> {
    fn drop(&mut self) {
        // There is nothing to roll back if the connection is gone, and the error cannot be reported.
        let _ = self.connection.execute_batch("ROLLBACK");
    }
}

impl Store {
    /// Begins a check of the vault's current state. Unlike a snapshot, it is also available for a damaged vault.
    pub(in crate::storage::sqlite) fn inspect(&self) -> Result<FileInspection<'_>> {
        FileInspection::begin(self.connection()?, &self.path)
    }
}

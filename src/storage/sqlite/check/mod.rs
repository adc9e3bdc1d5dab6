//! Checks of a vault that do not trust its content.
//!
//! Each check returns findings. Damage that prevents reading is also a finding, and the other checks continue; an error
//! means that the check could not run, for example because of an I/O failure.

mod blobs;
mod captures;
mod facts;
mod mention_index;
mod pages;
mod permissions;
mod rows;
mod scan;
mod search;
mod structure;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

use super::dictionaries::DecompressionDictionaryCache;
use super::error::{index_damage_in, is_damage};
use super::lists::MentionListReader;
use super::payload::PayloadReader;
use super::pool::SqlitePooledConnection;
use super::store::Store;
use super::{Result, StorageError};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::catalog::Row;
use crate::storage::check::finding::{Finding, INDEX_DIFFERS, Subject, UNREADABLE};
use crate::storage::check::{
    ArtifactFacts, CaptureId, CheckedArtifact, Inspection, IntegrityLevel, JournalRow, JournaledTable,
    KindFacts, ReadCapture, UnreadRows,
};

pub(super) use permissions::restrict_permissions;
pub(super) use rows::replay;
pub(super) use structure::{SURPLUS_DICTIONARY, SURPLUS_DIGESTS};

/// A vault at one point in time, for checking.
pub(in crate::storage::sqlite) struct FileInspection<'s> {
    connection: SqlitePooledConnection<'s>,
    /// Not shared with the store: the check must see what is on disk.
    readers: DecompressionDictionaryCache,
    path: &'s Path,
    /// The captures in the mention index with keys that many have, such as that of a system prompt.
    frequent: RefCell<HashMap<u64, Vec<i64>>>,
}

impl<'s> FileInspection<'s> {
    pub(super) fn begin(connection: SqlitePooledConnection<'s>, path: &'s Path) -> Result<Self> {
        let begin = || {
            connection.execute_batch("BEGIN DEFERRED")?;
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
        };
        begin().map_err(|error| StorageError::from_sqlite(path, error))?;
        let readers = DecompressionDictionaryCache::default();
        Ok(Self { connection, readers, path, frequent: RefCell::default() })
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

impl Inspection for FileInspection<'_> {
    fn structures(&self, integrity: IntegrityLevel) -> Result<Vec<Finding>> {
        let mut findings = self.permissions();
        findings.append(&mut self.integrity(integrity)?);
        findings.append(&mut self.structure()?);
        Ok(findings)
    }

    fn kinds(&self, findings: &mut Vec<Finding>) -> Result<Vec<KindFacts>> {
        self.stored_kinds(findings)
    }

    fn journal(&self, take: &mut dyn FnMut(JournalRow<'_>), findings: &mut Vec<Finding>) -> Result<bool> {
        self.entries(take, findings)
    }

    fn entries_naming(&self, digest: Digest, take: &mut dyn FnMut(JournalRow<'_>)) -> Result<()> {
        let table = Subject::Table("journal".to_owned());
        self.look(table, &mut Vec::new(), || self.entries_with(digest, take)).map(drop)
    }

    fn rows(
        &self,
        table: JournaledTable,
        take: &mut dyn FnMut(Row),
        findings: &mut Vec<Finding>,
    ) -> Result<UnreadRows> {
        self.rows_of(table, take, findings)
    }

    fn removed(&self) -> Result<Vec<Finding>> {
        self.undeleted()
    }

    fn unreferenced(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        for blob in self.unreferenced_blobs(&mut findings)? {
            findings.append(&mut self.blob(blob)?);
        }
        Ok(findings)
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
        self.captures_of(artifact, findings)
    }

    fn read(
        &self,
        artifact: &CheckedArtifact,
        id: CaptureId,
        is_directory: Option<bool>,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ReadCapture>> {
        self.read_capture(artifact, id, is_directory, findings)
    }

    fn facts(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ArtifactFacts>> {
        self.indexed_facts(artifact, findings)
    }

    fn has_capture(&self, core: CoreHash, capture: CaptureHash) -> Result<bool> {
        self.contains(core, capture)
    }

    fn sealed(&self, core: CoreHash) -> Result<Vec<CaptureHash>> {
        self.sealed_for(core)
    }

    fn bytes_of(&self, blob: BlobHash) -> Result<Option<Vec<u8>>> {
        self.intact_bytes(blob)
    }

    fn is_difference(&self, blob: BlobHash) -> Result<bool> {
        self.is_stored_as_delta(blob)
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

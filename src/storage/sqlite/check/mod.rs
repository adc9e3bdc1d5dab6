//! Checks of a vault that do not trust its content.
//!
//! Each check returns findings. Damage that prevents reading is also a finding, and the other checks continue; an error
//! means that the check could not run, for example because of an I/O failure.

mod annotations;
mod blobs;
mod captures;
mod catalog;
mod facts;
mod inspection;
mod journal;
mod labels;
mod logs;
mod mention_index;
mod pages;
mod permissions;
mod removed;
mod replay;
mod scan;
mod search;
mod structure;
mod unresolved;

use std::path::Path;

use super::dictionaries::DecompressionDictionaryCache;
use super::error::{index_damage_in, is_damage};
use super::lists::MentionListReader;
use super::payload::PayloadReader;
use super::pool::SqlitePooledConnection;
use super::store::Store;
use super::{Result, StorageError};
use crate::storage::check::finding::{Finding, INDEX_UNREADABLE, Subject, UNREADABLE};

pub(super) use permissions::restrict_permissions;
pub(super) use replay::{entry as journal_entry, replay};
pub(super) use structure::{SURPLUS_DICTIONARY, SURPLUS_DIGESTS, UNREFERENCED};

/// A vault at one point in time, for checking.
pub(in crate::storage::sqlite) struct FileInspection<'s> {
    connection: SqlitePooledConnection<'s>,
    /// Not shared with the store: the check must see what is on disk.
    readers: DecompressionDictionaryCache,
    path: &'s Path,
}

impl<'s> FileInspection<'s> {
    pub(super) fn begin(connection: SqlitePooledConnection<'s>, path: &'s Path) -> Result<Self> {
        let begin = || {
            connection.execute_batch("BEGIN DEFERRED")?;
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
        };
        begin().map_err(|error| StorageError::from_sqlite(path, error))?;
        Ok(Self { connection, readers: DecompressionDictionaryCache::default(), path })
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
                    Some(damage) => Finding::new(INDEX_UNREADABLE, subject, damage),
                    None => Finding::new(UNREADABLE, subject, error.to_string()),
                });
                Ok(None)
            }
            Err(error) => Err(StorageError::from_sqlite(self.path, error)),
        }
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

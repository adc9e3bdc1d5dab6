//! Changes to existing content, in one transaction with the queries that they depend on.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use rusqlite::Connection;

use super::Result;
use super::connection::secure_delete;
use super::journal::SqliteJournalWriter;
use super::mention_index;
use super::read::SqliteSnapshot;
use crate::storage::{Actor, Head};

/// A write transaction. There is no other writer while it exists; readers see the previous state. Nothing is changed
/// before [`WriteTransaction::commit`], and nothing at all if that is not called.
pub(crate) struct WriteTransaction<'s> {
    pub(super) snapshot: SqliteSnapshot<'s>,
    pub(super) journal: SqliteJournalWriter,
    /// Blobs that may have become unreferenced.
    pub(super) orphans: BTreeSet<i64>,
    /// Entries of removed captures that are still in the mention index, where they do no harm.
    pub(super) unlisted: Vec<mention_index::MentionIndexEntry>,
}

impl<'s> WriteTransaction<'s> {
    pub(super) fn begin(
        snapshot: SqliteSnapshot<'s>,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
    ) -> Result<Self> {
        let journal = SqliteJournalWriter::open(snapshot.connection(), actor, at)
            .map_err(|error| snapshot.failed(error))?;
        Ok(Self { snapshot, journal, orphans: BTreeSet::new(), unlisted: Vec::new() })
    }

    /// Begins a transaction that adopts journal entries.
    pub(super) fn begin_to_adopt(snapshot: SqliteSnapshot<'s>) -> Result<Self> {
        let journal = SqliteJournalWriter::open_to_adopt(snapshot.connection())
            .map_err(|error| snapshot.failed(error))?;
        Ok(Self { snapshot, journal, orphans: BTreeSet::new(), unlisted: Vec::new() })
    }

    /// Overwrites content that is deleted from now on. Additions are faster without it.
    pub(super) fn overwrite_deleted(&self) -> Result<()> {
        secure_delete(self.connection(), true).map_err(|error| self.snapshot.failed(error))
    }

    /// Returns a snapshot that includes the changes so far.
    #[must_use]
    pub(crate) fn snapshot(&self) -> &SqliteSnapshot<'s> {
        &self.snapshot
    }

    /// Commits the changes. When this returns, they are on disk. Returns the last journal entry.
    ///
    /// # Errors
    /// Returns an error if the changes cannot be written; then nothing was changed.
    pub(crate) fn commit(mut self) -> Result<Head> {
        // Removes all entries together, because removed captures have many digests in common.
        let unlisted = std::mem::take(&mut self.unlisted);
        mention_index::remove(self.connection(), unlisted).map_err(|error| self.snapshot.failed(error))?;
        self.sweep()?;
        let commit = || self.connection().prepare_cached("COMMIT")?.execute([]);
        commit().map_err(|error| self.snapshot.failed(error))?;
        Ok(self.journal.head())
    }

    pub(super) fn connection(&self) -> &Connection {
        self.snapshot.connection()
    }
}

impl Drop for WriteTransaction<'_> {
    fn drop(&mut self) {
        // Additions are faster without it. If this fails, they are slower.
        let _ = secure_delete(self.connection(), false);
    }
}

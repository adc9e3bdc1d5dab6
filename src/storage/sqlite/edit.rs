//! Changes to existing content, in one transaction with the queries that they depend on.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use super::Result;
use super::connection::secure_delete;
use super::journal::SqliteJournalWriter;
use super::mention_index;
use super::read::SqliteSnapshot;
use crate::storage::Head;

/// The new delta bases, by the bases that they replace.
#[derive(Debug, Default)]
pub(crate) struct BaseReplacements(pub(super) HashMap<i64, i64>);

/// The remains of removed rows, until the end of the transaction.
#[derive(Default)]
pub(super) struct RemovalRemains {
    /// Blobs that may have become unreferenced.
    pub(super) orphans: BTreeSet<i64>,
    /// Entries of removed captures that are still in the mention index, where they do no harm.
    pub(super) unlisted: Vec<mention_index::MentionIndexEntry>,
}

impl RemovalRemains {
    pub(super) fn add(&mut self, others: Self) {
        self.orphans.extend(others.orphans);
        self.unlisted.extend(others.unlisted);
    }
}

/// A write transaction. There is no other writer while it exists; readers see the previous state. Nothing is changed
/// before [`WriteTransaction::commit`], and nothing at all if that is not called.
pub(crate) struct WriteTransaction<'s> {
    pub(super) snapshot: SqliteSnapshot<'s>,
    pub(super) journal: SqliteJournalWriter,
    pub(super) remains: RemovalRemains,
    /// The payloads that were re-encoded to prepare removals.
    pub(super) heirs: &'s Mutex<BaseReplacements>,
    /// Whether artifacts were removed.
    pub(super) removes: bool,
}

impl<'s> WriteTransaction<'s> {
    /// Begins a change. `open` returns the writer of its entries.
    pub(super) fn begin(
        snapshot: SqliteSnapshot<'s>,
        heirs: &'s Mutex<BaseReplacements>,
        open: impl FnOnce(&Connection) -> rusqlite::Result<SqliteJournalWriter>,
    ) -> Result<Self> {
        let journal = open(snapshot.connection()).map_err(|error| snapshot.failed(error))?;
        Ok(Self { snapshot, journal, remains: RemovalRemains::default(), heirs, removes: false })
    }

    /// Overwrites content that is deleted from now on. Additions are faster without it.
    pub(super) fn overwrite_deleted(&self) -> Result<()> {
        secure_delete(self.connection(), true).map_err(|error| self.snapshot.failed(error))
    }

    /// Commits the changes. When this returns, they are on disk. Returns the last journal entry.
    ///
    /// # Errors
    /// Returns an error if the changes cannot be written; then nothing was changed.
    pub(crate) fn commit(mut self) -> Result<Head> {
        // Removes all entries together, because removed captures have many digests in common.
        let unlisted = std::mem::take(&mut self.remains.unlisted);
        mention_index::remove(self.connection(), unlisted).map_err(|error| self.snapshot.failed(error))?;
        self.sweep()?;
        let commit = || self.connection().prepare_cached("COMMIT")?.execute([]);
        commit().map_err(|error| self.snapshot.failed(error))?;
        if self.removes {
            *self.heirs.lock().unwrap_or_else(PoisonError::into_inner) = BaseReplacements::default();
        }
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

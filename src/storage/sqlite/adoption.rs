//! Adoption of the journal of another vault.
//!
//! Until the copy is complete, the header of the file has another application id than that of a vault. Entries that remove
//! something are adopted in transactions of their own, because bytes that others depend on have to be encoded again.

use super::edit::WriteTransaction;
use super::journal::SqliteJournalWriter;
use super::store::Store;
use super::{Result, StorageError, application_id, write_lock};
use crate::storage::entry::Entry;
use crate::storage::interface::{Adoption, AppendedEntry, JournalQueries as _};
use crate::storage::recorded;
use crate::storage::{BUSY_TIMEOUT, Head};

impl Adoption for Store {
    fn is_incomplete(&self) -> Result<bool> {
        if !self.is_created() {
            return Ok(false);
        }
        application_id::is_incomplete(&*self.connection()?).map_err(|error| self.failed(error))
    }

    fn begin(&self) -> Result<Head> {
        self.create_now()?;
        self.set_mark(
            true,
            |is_incomplete, is_empty, _| {
                if is_incomplete || is_empty { Ok(()) } else { Err(recorded::not_empty()) }
            },
        )
    }

    fn adopt(&self, entries: &[AppendedEntry<'_>]) -> Result<Head> {
        if !self.is_incomplete()? {
            return Err(recorded::not_begun());
        }
        let head = recorded::check(Self::snapshot(self)?.journal_head()?, entries)?;
        // Bytes that others depend on have to be encoded again before they are removed, so removals are committed by
        // themselves.
        let is_removal = |entry: &AppendedEntry<'_>| matches!(entry.entry.change, Entry::Remove { .. });
        for entries in entries.chunk_by(|one, other| is_removal(one) == is_removal(other)) {
            let mut edit = WriteTransaction::begin_to_adopt(self.snapshot_to_change(BUSY_TIMEOUT)?)?;
            edit.append(entries)?;
            edit.commit()?;
        }
        Ok(head)
    }

    fn finish(&self, head: Head) -> Result<()> {
        self.set_mark(
            false,
            |is_incomplete, _, last| {
                if is_incomplete && last == head { Ok(()) } else { Err(recorded::not_begun()) }
            },
        )
        .map(drop)
    }
}

impl Store {
    fn failed(&self, error: rusqlite::Error) -> StorageError {
        StorageError::from_sqlite(&self.path, error)
    }

    /// Changes the mark if `is_allowed` permits it, which gets whether the vault is an incomplete copy, whether it is empty,
    /// and the last journal entry, which this returns.
    fn set_mark(
        &self,
        is_incomplete: bool,
        is_allowed: impl FnOnce(bool, bool, Head) -> Result<()>,
    ) -> Result<Head> {
        let connection = self.connection()?;
        let failed = |error| self.failed(error);
        let transaction = write_lock::begin(&connection).map_err(failed)?;
        let head = SqliteJournalWriter::last(&transaction).map_err(failed)?;
        let has_artifacts =
            transaction.prepare_cached("SELECT 1 FROM artifact LIMIT 1").and_then(|mut any| any.exists([]));
        let is_empty = head.seq == 0 && !has_artifacts.map_err(failed)?;
        is_allowed(application_id::is_incomplete(&transaction).map_err(failed)?, is_empty, head)?;
        application_id::mark(&transaction, is_incomplete).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(head)
    }
}

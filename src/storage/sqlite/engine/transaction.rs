//! Changes of annotations, and removals.

use std::sync::PoisonError;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::digest::CoreHash;
use crate::storage::entry::Entry;
use crate::storage::interface::{AppendedEntry, Snapshot, Transaction};
use crate::storage::journal::JournalWriter;
use crate::storage::sqlite::edit::WriteTransaction;
use crate::storage::sqlite::release::BaseReplacements;
use crate::storage::sqlite::store::Store;
use crate::storage::{Head, Result};

/// A transaction of a vault file.
pub(in crate::storage::sqlite) struct SqliteTransaction<'s> {
    store: &'s Store,
    pub(in crate::storage::sqlite) edit: WriteTransaction<'s>,
    removes: bool,
}

impl<'s> SqliteTransaction<'s> {
    pub(in crate::storage::sqlite) fn begin(
        store: &'s Store,
        at: DateTime<Utc>,
        busy_timeout: Duration,
    ) -> Result<Self> {
        Ok(Self { store, edit: store.change(at, busy_timeout)?, removes: false })
    }
}

impl Transaction for SqliteTransaction<'_> {
    fn snapshot(&self) -> &dyn Snapshot {
        self.edit.snapshot()
    }

    fn prepare_removal(&mut self, of: &[CoreHash]) -> Result<bool> {
        let mut heirs = self.store.heirs.lock().unwrap_or_else(PoisonError::into_inner);
        self.edit.release(of, &mut heirs)
    }

    fn journal(&mut self) -> &mut JournalWriter {
        self.edit.journal.writer()
    }

    fn append(&mut self, entries: &[AppendedEntry<'_>]) -> Result<Vec<bool>> {
        self.removes |= entries.iter().any(|entry| matches!(entry.entry.change, Entry::Remove { .. }));
        self.edit.append(entries)
    }

    fn commit(self: Box<Self>) -> Result<Head> {
        let Self { store, edit, removes } = *self;
        let head = edit.commit()?;
        if removes {
            *store.heirs.lock().unwrap_or_else(PoisonError::into_inner) = BaseReplacements::default();
        }
        Ok(head)
    }
}

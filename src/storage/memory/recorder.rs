//! Appending journal entries to the content of a vault.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::state::{MemoryJournalEntry, MemoryState};
use crate::storage::interface::JournalRecord;
use crate::storage::journal::{JournalEvent, JournalWriter};
use crate::storage::{Actor, ErrorKind, Result, StorageError};

/// A writer of the journal entries of one change.
pub(super) struct MemoryJournalWriter(JournalWriter);

impl MemoryJournalWriter {
    /// Creates a writer at the end of the journal of `state` for changes by `actor` at the time `at`. Times never go
    /// back: if the last entry is later, its time is used.
    pub(super) fn new(state: &MemoryState, actor: Option<&Actor>, at: DateTime<Utc>) -> Self {
        let last = state.journal.last().map(|last| last.record.at);
        Self(JournalWriter::new(state.head(), last, actor, at))
    }

    /// Returns the time of the recorded changes.
    pub(super) fn at(&self) -> DateTime<Utc> {
        self.0.at()
    }

    pub(super) fn actor(&self) -> Option<&Actor> {
        self.0.actor()
    }

    /// Appends an entry.
    pub(super) fn append(&mut self, state: &mut MemoryState, event: &JournalEvent<'_>) -> Result<()> {
        let entry = self.0.append(event).map_err(|error| {
            StorageError::new(ErrorKind::Database, "a journal entry cannot be written").with_source(error)
        })?;
        let head = self.0.head();
        let record = JournalRecord { seq: head.seq, at: self.at(), entry, chain: head.chain };
        state.journal.push(Arc::new(MemoryJournalEntry { record, action: event.action() }));
        Ok(())
    }
}

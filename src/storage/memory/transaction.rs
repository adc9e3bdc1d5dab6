//! Changes of existing content.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::snapshot::MemorySnapshot;
use super::state::{MemoryJournalEntry, MemoryState};
use super::vault::{MemoryStorage, WriterTurn};
use crate::digest::CoreHash;
use crate::storage::catalog::apply;
use crate::storage::interface::{AppendedEntry, Snapshot, Transaction};
use crate::storage::journal::JournalWriter;
use crate::storage::{Head, Result, recorded};

/// A change, made to a copy of the content.
pub(super) struct MemoryTransaction<'s> {
    storage: &'s MemoryStorage,
    _turn: WriterTurn<'s>,
    view: MemorySnapshot,
    journal: JournalWriter,
}

impl<'s> MemoryTransaction<'s> {
    /// Begins a change after waiting for other writers, no longer than `busy_timeout`.
    pub(super) fn begin(
        storage: &'s MemoryStorage,
        at: DateTime<Utc>,
        busy_timeout: Duration,
    ) -> Result<Self> {
        let turn = storage.writer.take(busy_timeout)?;
        let view = storage.view();
        if view.0.is_incomplete {
            return Err(recorded::incomplete("the vault in memory"));
        }
        let last = view.0.journal.last().map(|last| last.record.at);
        let journal = JournalWriter::new(view.0.head(), last, storage.actor.as_ref(), at);
        Ok(Self { storage, _turn: turn, view, journal })
    }
}

impl MemoryState {
    /// Appends entries to the journal, and executes what follows from them.
    pub(super) fn append(&mut self, entries: &[AppendedEntry<'_>]) {
        for AppendedEntry { entry, content } in entries {
            self.execute(entry, apply(entry, *content));
            let record = entry.record.clone();
            self.journal.push(Arc::new(MemoryJournalEntry { record, action: entry.action.clone() }));
        }
    }
}

impl Transaction for MemoryTransaction<'_> {
    fn snapshot(&self) -> &dyn Snapshot {
        &self.view
    }

    fn prepare_removal(&mut self, _of: &[CoreHash]) -> Result<bool> {
        Ok(true)
    }

    fn journal(&mut self) -> &mut JournalWriter {
        &mut self.journal
    }

    fn append(&mut self, entries: &[AppendedEntry<'_>]) -> Result<Vec<bool>> {
        Arc::make_mut(&mut self.view.0).append(entries);
        // Each capture has a copy of its own.
        Ok(vec![false; entries.len()])
    }

    fn commit(self: Box<Self>) -> Result<Head> {
        let head = self.view.0.head();
        self.storage.replace(self.view);
        Ok(head)
    }
}

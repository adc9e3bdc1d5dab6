//! An engine that keeps a vault in memory: the executable specification of the storage interface.
//!
//! It states what every engine answers, as plainly as possible: maps that are searched as a whole, no index, no cache.
//! Every answer is derived from the content alone. A snapshot shares the content with the engine; a change is made to a
//! copy, which replaces the content when it is committed.

mod full_text;
mod snapshot;
mod state;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::catalog::apply;
use super::interface::{
    Adoption, AppendedEntry, Capability, Erasure, FullText, Maintenance, Preparer, PutOptions, ReclaimResult,
    ReclaimableSpace, Snapshot, Storage, Transaction,
};
use super::journal::JournalWriter;
use super::{
    Actor, BUSY_TIMEOUT, ErrorKind, Head, Prepared, PutResult, Result, StorageError, change, recorded,
};
use crate::artifact::Admitted;
use crate::digest::CoreHash;
use snapshot::MemorySnapshot;
use state::{MemoryJournalEntry, MemoryState};

impl Storage for MemoryStorage {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>> {
        Ok(Box::new(self.view()))
    }

    fn transaction(&self, at: DateTime<Utc>, busy_timeout: Duration) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(MemoryTransaction::begin(self, at, busy_timeout)?))
    }

    fn preparer(&self) -> Result<Box<dyn Preparer>> {
        Ok(Box::new(MemoryPreparer))
    }

    fn put(&self, batch: &[&Prepared], options: &PutOptions) -> Result<Vec<PutResult>> {
        if batch.iter().any(|prepared| prepared.private::<MemoryPreparation>().is_none()) {
            return Err(StorageError::invalid("the artifacts were prepared for another storage engine"));
        }
        change::put(self, batch, options)
    }

    fn set_actor(&mut self, actor: Actor) {
        self.actor = Some(actor);
    }

    fn full_text(&self) -> Result<&dyn FullText> {
        Ok(self)
    }

    fn has(&self, capability: Capability) -> bool {
        capability == Capability::FullText
    }
}

/// A preparer that has nothing to do.
struct MemoryPreparer;

impl Preparer for MemoryPreparer {
    fn prepare(&self, admitted: Admitted) -> Prepared {
        Prepared::new(admitted, &|_, _| MemoryPreparation)
    }
}

/// The mark of artifacts that were prepared for this engine.
struct MemoryPreparation;

impl Maintenance for MemoryStorage {
    fn reclaimable(&self) -> Result<ReclaimableSpace> {
        Ok(ReclaimableSpace::default())
    }

    fn reclaim(&self, _: DateTime<Utc>) -> Result<ReclaimResult> {
        Ok(ReclaimResult::default())
    }

    fn erase(&self) -> Erasure {
        Erasure::default()
    }
}

impl Adoption for MemoryStorage {
    fn is_incomplete(&self) -> Result<bool> {
        Ok(self.view().0.is_incomplete)
    }

    fn begin_adoption(&self) -> Result<Head> {
        self.change(|state| {
            let is_empty = state.journal.is_empty() && state.artifacts.is_empty();
            if !(state.is_incomplete || is_empty) {
                return Err(recorded::not_empty());
            }
            state.is_incomplete = true;
            Ok(state.head())
        })
    }

    fn adopt(&self, entries: &[AppendedEntry<'_>]) -> Result<Head> {
        self.change(|state| {
            if !state.is_incomplete {
                return Err(recorded::not_begun());
            }
            let head = recorded::check(state.head(), entries)?;
            state.append(entries);
            Ok(head)
        })
    }

    fn finish_adoption(&self, head: Head) -> Result<()> {
        self.change(|state| {
            if !state.is_incomplete || state.head() != head {
                return Err(recorded::not_begun());
            }
            state.is_incomplete = false;
            Ok(())
        })
    }
}

impl MemoryStorage {
    /// Changes the content, unless `work` fails.
    fn change<T>(&self, work: impl FnOnce(&mut MemoryState) -> Result<T>) -> Result<T> {
        let _turn = self.lock_to_write(BUSY_TIMEOUT)?;
        let mut view = self.view();
        let outcome = work(Arc::make_mut(&mut view.0))?;
        self.replace(view);
        Ok(outcome)
    }
}

/// A vault in memory.
#[derive(Default)]
pub struct MemoryStorage {
    /// The committed content.
    content: RwLock<MemorySnapshot>,
    writer: Mutex<()>,
    pub(super) actor: Option<Actor>,
}

impl MemoryStorage {
    /// Creates an empty vault.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until no other writer holds the lock, no longer than `busy_timeout`.
    pub(super) fn lock_to_write(&self, busy_timeout: Duration) -> Result<MutexGuard<'_, ()>> {
        let busy = || StorageError::new(ErrorKind::Busy, "the vault in memory is in use by another writer");
        self.writer.try_lock_for(busy_timeout).ok_or_else(busy)
    }

    fn view(&self) -> MemorySnapshot {
        self.content.read().clone()
    }

    fn replace(&self, view: MemorySnapshot) {
        *self.content.write() = view;
    }
}

/// A change, made to a copy of the content.
pub(super) struct MemoryTransaction<'s> {
    storage: &'s MemoryStorage,
    _turn: MutexGuard<'s, ()>,
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
        let turn = storage.lock_to_write(busy_timeout)?;
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
            self.execute(apply(entry, *content));
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

//! The committed content, and the lock of its writer.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use super::snapshot::MemorySnapshot;
use crate::storage::{Actor, ErrorKind, Result, StorageError};

/// A vault in memory.
#[derive(Default)]
pub struct MemoryStorage {
    /// The committed content.
    content: RwLock<MemorySnapshot>,
    pub(super) writer: WriterLock,
    pub(super) actor: Option<Actor>,
}

impl MemoryStorage {
    /// Creates an empty vault.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the actor that the journal records for all further changes.
    #[must_use]
    pub fn acting_as(self, actor: Actor) -> Self {
        Self { actor: Some(actor), ..self }
    }

    pub(super) fn view(&self) -> MemorySnapshot {
        self.content.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn replace(&self, view: MemorySnapshot) {
        *self.content.write().unwrap_or_else(PoisonError::into_inner) = view;
    }
}

/// A lock that one writer holds at a time.
#[derive(Default)]
pub(super) struct WriterLock {
    is_held: Mutex<bool>,
    released: Condvar,
}

/// The right to write, until it is dropped.
pub(super) struct WriterTurn<'l>(&'l WriterLock);

impl WriterLock {
    fn is_held(&self) -> MutexGuard<'_, bool> {
        self.is_held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other writer holds the lock, no longer than `busy_timeout`.
    pub(super) fn take(&self, busy_timeout: Duration) -> Result<WriterTurn<'_>> {
        let waited = self.released.wait_timeout_while(self.is_held(), busy_timeout, |is_held| *is_held);
        let (mut is_held, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *is_held {
            return Err(StorageError::new(
                ErrorKind::Busy,
                "the vault in memory is in use by another writer",
            ));
        }
        *is_held = true;
        Ok(WriterTurn(self))
    }
}

impl Drop for WriterTurn<'_> {
    fn drop(&mut self) {
        *self.0.is_held() = false;
        self.0.released.notify_one();
    }
}

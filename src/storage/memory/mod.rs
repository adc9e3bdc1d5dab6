//! An engine that keeps a vault in memory: the executable specification of the storage interface.
//!
//! It states what every engine answers, as plainly as possible: maps that are searched as a whole, no index, no cache.
//! Every answer is derived from the content alone. A snapshot shares the content with the engine; a change is made to a
//! copy, which replaces the content when it is committed.

mod put;
mod recorder;
mod snapshot;
mod state;
mod transaction;

use std::any::Any;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::interface::{Capabilities, Preparer, PutOptions, Snapshot, Storage, Transaction};
use super::{Actor, ErrorKind, PATIENCE, Prepared, Put, Result, StorageError};
use crate::artifact::Admitted;
use put::Writer;
use recorder::Recorder;
use snapshot::View;
use transaction::Change;

/// A vault in memory.
#[derive(Default)]
pub struct MemoryStorage {
    /// The committed content.
    content: RwLock<View>,
    writer: WriterLock,
    actor: Option<Actor>,
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

    fn view(&self) -> View {
        self.content.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, view: View) {
        *self.content.write().unwrap_or_else(PoisonError::into_inner) = view;
    }

    /// Begins a change after waiting for other writers, no longer than `patience`.
    fn change(&self, at: DateTime<Utc>, patience: Duration) -> Result<Change<'_>> {
        let turn = self.writer.take(patience)?;
        let view = self.view();
        let recorder = Recorder::new(&view.0, self.actor.as_ref(), at);
        Ok(Change { storage: self, _turn: turn, view, recorder })
    }
}

impl Storage for MemoryStorage {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>> {
        Ok(Box::new(self.view()))
    }

    fn transaction(&self, at: DateTime<Utc>) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(self.change(at, PATIENCE)?))
    }

    fn preparer(&self) -> Result<Box<dyn Preparer>> {
        Ok(Box::new(PlainPreparer))
    }

    fn put(&self, batch: &[&Prepared], options: &PutOptions) -> Result<Vec<Put>> {
        if batch.iter().any(|prepared| prepared.private::<ForMemory>().is_none()) {
            return Err(StorageError::invalid("the artifacts were prepared for another storage engine"));
        }
        let mut change = self.change(options.at, options.patience)?;
        let (state, recorder) = change.parts();
        let outcomes = Writer::new(state, recorder, options.policy).put_all(batch)?;
        Box::new(change).commit()?;
        Ok(outcomes)
    }

    fn set_actor(&mut self, actor: Actor) {
        self.actor = Some(actor);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
}

/// A preparer that has nothing to do.
struct PlainPreparer;

impl Preparer for PlainPreparer {
    fn prepare(&self, admitted: Admitted) -> Prepared {
        Prepared::new(admitted, &|_, _| ForMemory)
    }
}

/// The mark of artifacts that were prepared for this engine.
struct ForMemory;

/// A lock that one writer holds at a time.
#[derive(Default)]
struct WriterLock {
    is_held: Mutex<bool>,
    released: Condvar,
}

/// The right to write, until it is dropped.
struct WriterTurn<'l>(&'l WriterLock);

impl WriterLock {
    fn is_held(&self) -> MutexGuard<'_, bool> {
        self.is_held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other writer holds the lock, no longer than `patience`.
    fn take(&self, patience: Duration) -> Result<WriterTurn<'_>> {
        let waited = self.released.wait_timeout_while(self.is_held(), patience, |is_held| *is_held);
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

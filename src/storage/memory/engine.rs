//! The storage interface.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::transaction::MemoryTransaction;
use super::vault::MemoryStorage;
use crate::artifact::Admitted;
use crate::storage::interface::{
    Adoption, Capabilities, Capability, FullText, Maintenance, Preparer, PutOptions, Snapshot, Storage,
    Transaction,
};
use crate::storage::{Actor, Prepared, PutResult, Result, StorageError, change};

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

    fn adoption(&self) -> &dyn Adoption {
        self
    }

    fn maintenance(&self) -> &dyn Maintenance {
        self
    }

    fn full_text(&self) -> Result<&dyn FullText> {
        Ok(self)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(&[Capability::FullText])
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

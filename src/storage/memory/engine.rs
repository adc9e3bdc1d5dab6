//! The storage interface.

use chrono::{DateTime, Utc};

use super::put::MemoryWriter;
use super::transaction::MemoryTransaction;
use super::vault::MemoryStorage;
use crate::artifact::Admitted;
use crate::storage::interface::{
    Adoption, Capabilities, Capability, FullText, Maintenance, Preparer, PutOptions, Snapshot, Storage,
    Transaction,
};
use crate::storage::{Actor, BUSY_TIMEOUT, Prepared, PutResult, Result, StorageError};

impl Storage for MemoryStorage {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>> {
        Ok(Box::new(self.view()))
    }

    fn transaction(&self, at: DateTime<Utc>) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(MemoryTransaction::begin(self, at, BUSY_TIMEOUT)?))
    }

    fn preparer(&self) -> Result<Box<dyn Preparer>> {
        Ok(Box::new(MemoryPreparer))
    }

    fn put(&self, batch: &[&Prepared], options: &PutOptions) -> Result<Vec<PutResult>> {
        if batch.iter().any(|prepared| prepared.private::<MemoryPreparation>().is_none()) {
            return Err(StorageError::invalid("the artifacts were prepared for another storage engine"));
        }
        let mut change = MemoryTransaction::begin(self, options.at, options.busy_timeout)?;
        let (state, recorder) = change.parts();
        let outcomes = MemoryWriter::new(state, recorder, options.policy).put_all(batch)?;
        Box::new(change).commit()?;
        Ok(outcomes)
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

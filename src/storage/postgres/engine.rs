//! The storage interface.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::put::PostgresPutBatch;
use super::session::DatabaseTransaction;
use super::transaction::PostgresTransaction;
use super::vault::PostgresStorage;
use super::view::PostgresSnapshot;
use super::write::blobs::{are_ours, prepare};
use crate::artifact::Admitted;
use crate::storage::interface::{
    Adoption, Capabilities, Capability, FullText, Maintenance, Preparer, PutOptions, Snapshot, SqlQueries,
    Storage, Transaction,
};
use crate::storage::{Actor, Prepared, PutResult, Result, StorageError};

impl Storage for PostgresStorage {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>> {
        let session =
            DatabaseTransaction::to_read(&self.server).map_err(|failure| failure.at(self.server.name()))?;
        Ok(Box::new(PostgresSnapshot { session, names: &self.names }))
    }

    fn transaction(&self, at: DateTime<Utc>, busy_timeout: Duration) -> Result<Box<dyn Transaction + '_>> {
        let change = PostgresTransaction::begin(&self.server, &self.names, self.actor(), at, busy_timeout);
        Ok(Box::new(change.map_err(|failure| failure.at(self.server.name()))?))
    }

    fn preparer(&self) -> Result<Box<dyn Preparer>> {
        Ok(Box::new(PostgresPreparer))
    }

    fn put(&self, batch: &[&Prepared], options: &PutOptions) -> Result<Vec<PutResult>> {
        if !are_ours(batch) {
            return Err(StorageError::invalid("the artifacts were prepared for another storage engine"));
        }
        let (server, names, actor) = (&self.server, &self.names, self.actor());
        let batch = PostgresPutBatch { server, names, actor, prepared: batch, options };
        batch.put().map_err(|failure| failure.at(self.server.name()))
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

    fn sql(&self) -> Result<&dyn SqlQueries> {
        Ok(self)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(&[Capability::Sql, Capability::FullText, Capability::Check, Capability::Repair])
    }
}

/// A preparer that compresses the bytes.
struct PostgresPreparer;

impl Preparer for PostgresPreparer {
    fn prepare(&self, admitted: Admitted) -> Prepared {
        prepare(admitted)
    }
}

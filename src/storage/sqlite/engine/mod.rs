//! The storage interface for vault files: hashes outside, row ids inside.

mod find;
mod maintenance;
mod snapshot;
pub(super) mod transaction;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::delta_bases::RecentBases;
use super::dictionaries::Dictionaries;
use super::payload;
use super::store::Store;
use crate::artifact::Admitted;
use crate::digest::CoreHash;
use crate::storage::interface::{
    Adoption, Capabilities, Capability, FullText, Maintenance, Preparer, PutOptions, Snapshot, SqlQueries,
    Storage, Transaction,
};
use crate::storage::{Actor, Prepared, PutResult, Result, StorageError, change};
use transaction::SqliteTransaction;

impl Storage for Store {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>> {
        Ok(Box::new(Self::snapshot(self)?))
    }

    fn transaction(&self, at: DateTime<Utc>, busy_timeout: Duration) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(SqliteTransaction::begin(self, at, busy_timeout)?))
    }

    fn preparer(&self) -> Result<Box<dyn Preparer>> {
        let dictionaries = if self.is_created() {
            Dictionaries::load(&*self.connection()?)
                .map_err(|error| StorageError::from_sqlite(&self.path, error))?
        } else {
            Dictionaries::default()
        };
        Ok(Box::new(SqlitePreparer { dictionaries: Arc::new(dictionaries), bases: RecentBases::default() }))
    }

    fn put(&self, batch: &[&Prepared], options: &PutOptions) -> Result<Vec<PutResult>> {
        let Some(first) = batch.first() else { return Ok(Vec::new()) };
        payload::dictionaries(first)?;
        self.create_now()?;
        change::put(self, batch, options)
    }

    fn set_actor(&mut self, actor: Actor) {
        self.actor = Some(actor);
    }

    fn is_created(&self) -> bool {
        Self::is_created(self)
    }

    fn document(&self, core: CoreHash) -> Result<Option<Vec<u8>>> {
        Self::document(self, core)
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
        Capabilities::new(&Capability::ALL)
    }
}

/// A preparer that compresses artifacts with the dictionaries of their kinds, or encodes them as deltas.
struct SqlitePreparer {
    dictionaries: Arc<Dictionaries>,
    bases: RecentBases,
}

impl Preparer for SqlitePreparer {
    fn prepare(&self, admitted: Admitted) -> Prepared {
        payload::prepare(admitted, &self.dictionaries, &self.bases)
    }
}

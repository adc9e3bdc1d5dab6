//! Answers from the database.
//!
//! Each is one statement, or a fixed number of them, whatever the number of keys and of hits.

mod edges;
mod find;
mod mentioned;
mod mentions;
mod neighbors;
mod sharers;
mod statistics;

use super::bytes::read_of_capture;
use super::error::PostgresResult;
use super::session::DatabaseTransaction;
use super::view::PostgresSnapshot;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::interface::{EngineStatistics, FullTextSnapshot, Neighborhood, NeighborsQuery, Snapshot};
use crate::storage::sql::SqlSnapshot;
use crate::storage::{Result, StorageError};

impl<'s> SqlSnapshot for PostgresSnapshot<'s> {
    type Session = DatabaseTransaction<'s>;

    fn session(&self) -> &DatabaseTransaction<'s> {
        &self.session
    }

    fn answer<T>(&self, outcome: PostgresResult<T>) -> Result<T> {
        Self::answer(self, outcome)
    }

    fn bytes(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>> {
        let read = self.answer(read_of_capture(&self.session, blob, core, capture))?;
        read.map_err(|defect| StorageError::damaged(core, capture, defect))
    }
}

impl Snapshot for PostgresSnapshot<'_> {
    fn neighborhood(&self, query: &NeighborsQuery<'_>) -> Result<Neighborhood> {
        self.answer(Self::neighborhood(self, query))
    }

    fn engine_statistics(&self) -> Result<Option<EngineStatistics>> {
        self.answer(Self::engine_statistics(self).map(Some))
    }

    fn full_text(&self) -> Result<&dyn FullTextSnapshot> {
        Ok(self)
    }
}

//! Answers from the database.
//!
//! Each is one statement, or a fixed number of them, whatever the number of keys and of hits.

mod edges;
mod mentioned;
mod mentions;
mod neighbors;

use super::bytes::read_of_capture;
use super::error::{PostgresError, PostgresResult};
use super::names::NameCache;
use super::session::DatabaseTransaction;
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
        outcome.map_err(|failure| failure.at(self.session.server().name()))
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

impl PostgresSnapshot<'_> {
    /// Returns the size of the tables, and of the bytes wherever they are.
    fn engine_statistics(&self) -> PostgresResult<EngineStatistics> {
        let sql = "SELECT (SELECT coalesce(sum(coalesce(length, octet_length(bytes))), 0)::bigint FROM blob),
                    (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
                      WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'),
                    (SELECT count(*) FROM mention_key)";
        let row = self.session.row(sql, &[])?.ok_or_else(|| PostgresError::damaged("a count has no row"))?;
        Ok(EngineStatistics {
            stored_bytes: row.count(0)?,
            file_bytes: row.count(1)?,
            mentions: row.count(2)?,
            ..EngineStatistics::default()
        })
    }
}

/// The view that a transaction has of the vault.
pub(super) struct PostgresSnapshot<'s> {
    pub(super) session: DatabaseTransaction<'s>,
    pub(super) names: &'s NameCache,
}

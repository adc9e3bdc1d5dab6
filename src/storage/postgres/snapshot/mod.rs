//! Answers from the database.
//!
//! Each is one statement, or a fixed number of them, whatever the number of keys and of hits.

mod edges;
mod find;
mod mentioned;
mod mentions;
mod neighbors;
mod sharers;

use postgres::Row;

use super::bytes::read_of_capture;
use super::columns::{core, count, time, value};
use super::error::{PostgresError, PostgresResult};
use super::names::NameCache;
use super::session::DatabaseTransaction;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::interface::{
    ArtifactRecord, EngineStatistics, FullTextSnapshot, Neighborhood, NeighborsQuery, Snapshot,
};
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

impl PostgresSnapshot<'_> {
    /// Returns the size of the tables, and of the bytes wherever they are.
    fn engine_statistics(&self) -> PostgresResult<EngineStatistics> {
        let sql = "SELECT (SELECT coalesce(sum(coalesce(length, octet_length(bytes))), 0)::bigint FROM blob),
                    (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
                      WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'),
                    (SELECT count(*) FROM mention_key)";
        let row = self.session.row(sql, &[])?.ok_or_else(|| PostgresError::damaged("a count has no row"))?;
        Ok(EngineStatistics {
            stored_bytes: count(&row, 0)?,
            file_bytes: count(&row, 1)?,
            mentions: count(&row, 2)?,
            ..EngineStatistics::default()
        })
    }
}

/// The view that a transaction has of the vault.
pub(super) struct PostgresSnapshot<'s> {
    pub(super) session: DatabaseTransaction<'s>,
    pub(super) names: &'s NameCache,
}

/// The columns of an artifact `a`, in the order that [`PostgresSnapshot::artifact_record`] reads.
pub(super) const ARTIFACT: &str = "a.core, a.kind, a.added_at, a.seen_at, a.id, a.arrival";

impl PostgresSnapshot<'_> {
    /// Returns the artifact in the columns [`ARTIFACT`] from `first` on.
    pub(super) fn artifact_record(&self, row: &Row, first: usize) -> PostgresResult<ArtifactRecord> {
        Ok(ArtifactRecord {
            core: core(row, first)?,
            kind: self.names.kind(&self.session, value(row, first + 1)?)?,
            added_at: time(row, first + 2)?,
            seen_at: time(row, first + 3)?,
            addition: count(row, first + 4)?,
            arrival: count(row, first + 5)?,
        })
    }

    /// Returns the answer, or the error with the address of the vault.
    pub(super) fn answer<T>(&self, outcome: PostgresResult<T>) -> Result<T> {
        outcome.map_err(|failure| failure.at(self.session.server().name()))
    }
}

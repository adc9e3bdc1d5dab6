//! A session and the names that its rows refer to by number.

use postgres::Row;

use super::columns::{core, count, time, value};
use super::error::PostgresResult;
use super::names::NameCache;
use super::session::DatabaseTransaction;
use crate::storage::Result;
use crate::storage::interface::ArtifactRecord;

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

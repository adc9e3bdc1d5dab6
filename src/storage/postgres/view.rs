//! A session and the names that its rows refer to by number.

use postgres::Row;

use super::columns::{core, count, text, time, value};
use super::error::PostgresResult;
use super::names::NameCache;
use super::session::DatabaseTransaction;
use crate::storage::Result;
use crate::storage::interface::ArtifactRecord;

/// Implements methods of a trait by the inherent methods of [`PostgresSnapshot`] that have the same names and
/// parameters. Errors get the address of the vault.
macro_rules! answer_with_inherent {
    ($(fn $name:ident(&self $(, $parameter:ident: $type:ty)* $(,)?) -> $returned:ty;)+) => {
        $(fn $name(&self $(, $parameter: $type)*) -> $returned {
            self.answer(Self::$name(self $(, $parameter)*))
        })+
    };
}
pub(super) use answer_with_inherent;

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

/// Returns the texts of a column.
pub(super) fn texts(rows: &[Row], index: usize) -> PostgresResult<Vec<String>> {
    rows.iter().map(|row| text(row, index)).collect()
}

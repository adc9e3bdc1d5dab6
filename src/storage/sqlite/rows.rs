//! Rows returned by queries.

use chrono::{DateTime, Utc};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};

use crate::artifact::ArtifactLocation;
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::sqlite::read::SqliteSnapshot;
use crate::storage::{ArtifactRecord, Result};

/// Returns a limit as a parameter.
pub(super) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// An artifact's row id. Row ids increase in the order of arrival and are only meaningful within their vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ArtifactId(pub(super) i64);

/// A row of the `artifact` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArtifactRow {
    /// Its row id.
    pub id: ArtifactId,
    /// Its core hash.
    pub core: CoreHash,
    /// The name of its kind.
    pub kind: String,
    /// The time at which its first capture was added.
    pub added_at: DateTime<Utc>,
    /// The time at which one of its captures was last added or seen again.
    pub seen_at: DateTime<Utc>,
    /// Its position in the order in which artifacts were last added or seen again, which is that of the journal: later
    /// ones have larger numbers.
    pub arrival: i64,
}

impl ArtifactRow {
    /// Returns the artifact without its row id.
    pub(super) fn record(self) -> ArtifactRecord {
        let Self { id, core, kind, added_at, seen_at, arrival } = self;
        let (addition, arrival) = (id.0.cast_unsigned(), arrival.cast_unsigned());
        ArtifactRecord { core, kind, added_at, seen_at, addition, arrival }
    }
}

impl FromSql for ArtifactId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(Self)
    }
}

impl FromSql for ArtifactLocation {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Integer(index) => {
                u32::try_from(index).map(Self::Index).map_err(|_| FromSqlError::OutOfRange(index))
            }
            other => String::column_result(other).map(Self::Pointer),
        }
    }
}

impl FromSql for Digest {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 32]>::column_result(value).map(Self::from_bytes)
    }
}

impl FromSql for CoreHash {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Digest::column_result(value).map(Self)
    }
}

impl FromSql for CaptureHash {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Digest::column_result(value).map(Self)
    }
}

/// A time as the vault stores it: milliseconds since 1970 in UTC.
pub(super) struct Milliseconds(pub(super) DateTime<Utc>);

impl FromSql for Milliseconds {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let milliseconds = i64::column_result(value)?;
        let time = DateTime::from_timestamp_millis(milliseconds);
        time.map(Self).ok_or(FromSqlError::OutOfRange(milliseconds))
    }
}

impl SqliteSnapshot<'_> {
    /// Returns the largest number of an attribute of an artifact, or `None` if it has none.
    pub(crate) fn number_of(&self, artifact: ArtifactId, name: &str) -> Result<Option<i64>> {
        let sql = "SELECT max(v.number) FROM attribute a JOIN attribute_value v ON v.id = a.value
                    WHERE a.artifact = ?1 AND v.name = ?2";
        Ok(self.rows(sql, (artifact.0, name), |row| row.get(0))?.pop().flatten())
    }

    /// Returns the time in an attribute of an artifact: the latest of those that its captures state. `None` if it states
    /// none.
    pub(crate) fn declared_time(&self, artifact: ArtifactId, name: &str) -> Result<Option<DateTime<Utc>>> {
        // An invalid number is damage, which a check reports.
        Ok(self.number_of(artifact, name)?.and_then(DateTime::from_timestamp_millis))
    }
}

//! Rows returned by queries.

use chrono::{DateTime, Utc};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};

use crate::artifact::ArtifactLocation;
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::ArtifactRecord;
pub(super) use crate::storage::sql::limit_of;

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

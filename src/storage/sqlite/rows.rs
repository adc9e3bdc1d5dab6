//! Rows returned by queries.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension};

use crate::artifact::ArtifactLocation;
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::ArtifactRecord;
use crate::storage::catalog::MentionRole;

/// An artifact's row id. Row ids increase in the order of arrival and are only meaningful within their vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ArtifactId(pub(super) i64);

impl From<&ArtifactRecord> for ArtifactId {
    fn from(artifact: &ArtifactRecord) -> Self {
        Self(artifact.addition.cast_signed())
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

/// Returns the role with this row id, or `None` if it is missing.
pub(super) fn mention_role(connection: &Connection, id: i64) -> rusqlite::Result<Option<MentionRole>> {
    let sql = "SELECT k.name, r.name, r.role_group, r.unit, r.relation, r.dangles
                 FROM role r LEFT JOIN kind k ON k.id = r.kind WHERE r.id = ?1";
    let role = connection.prepare_cached(sql)?.query_row([id], |row| {
        Ok(MentionRole {
            kind: row.get::<_, Option<String>>(0)?.unwrap_or_default(),
            name: row.get(1)?,
            group: row.get(2)?,
            unit: row.get(3)?,
            relation: row.get(4)?,
            dangles: row.get(5)?,
        })
    });
    role.optional()
}

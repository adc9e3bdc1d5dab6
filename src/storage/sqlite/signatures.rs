//! The signature states of captures. Unsigned captures have no row.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::artifact::{Signature, SignatureState};

impl FromSql for SignatureState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Self::named(value.as_str()?).ok_or(FromSqlError::InvalidType)
    }
}

/// Reads the signature in the columns from `index` on: its state and its key id, both NULL if there is none.
pub(super) fn signature(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Signature>> {
    let state: Option<SignatureState> = row.get(index)?;
    state.map(|state| Ok(Signature { state, key_id: row.get(index + 1)? })).transpose()
}

/// Returns the stored signature of the capture with this row id.
pub(super) fn stored(connection: &Connection, capture: i64) -> rusqlite::Result<Option<Signature>> {
    connection
        .prepare_cached("SELECT state, key_id FROM signature WHERE capture = ?1")?
        .query_row([capture], |row| signature(row, 0))
        .optional()
        .map(Option::flatten)
}

/// Stores `signature` for the capture with this row id.
pub(super) fn store(
    connection: &Connection,
    capture: i64,
    Signature { state, key_id }: &Signature,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO signature (capture, state, key_id) VALUES (?1, ?2, ?3)")?
        .execute((capture, state.name(), key_id))
        .map(drop)
}

/// Removes the stored signature of the capture with this row id.
pub(super) fn forget(connection: &Connection, capture: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM signature WHERE capture = ?1")?.execute([capture]).map(drop)
}

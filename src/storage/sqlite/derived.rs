//! The version of the data derived from artifacts: their mentions, attributes and names.
//!
//! A program that derives other data than the one that filled a vault would return answers from a mixture of both. So a
//! vault records the version, and is used only by programs of the same version.

use std::path::Path;

use rusqlite::{Connection, Transaction};
use rusqlite_migration::HookResult;

use super::{Result, StorageError};

/// The current version, which changes whenever a kind derives different data from the same bytes.
pub(super) const VERSION: i64 = 5;

/// Records the version in a new vault. The derived data of an older vault has an unknown version.
pub(super) fn begin(transaction: &Transaction<'_>) -> HookResult {
    transaction
        .execute("UPDATE derived SET version = ?1 WHERE NOT EXISTS (SELECT 1 FROM artifact)", [VERSION])?;
    Ok(())
}

/// Records that all derived data has the version of this program.
pub(super) fn finish(connection: &Connection) -> rusqlite::Result<()> {
    // In a damaged vault, the row may have another number.
    connection.execute("DELETE FROM derived WHERE id <> 1", [])?;
    connection.execute("INSERT OR REPLACE INTO derived VALUES (1, ?1)", [VERSION]).map(drop)
}

/// Rejects a vault of another version.
pub(super) fn expect_current(connection: &Connection, path: &Path) -> Result<()> {
    let version = connection
        .prepare_cached("SELECT version FROM derived")
        .and_then(|mut statement| statement.query_row([], |row| Ok(row.get_ref(0)?.as_i64().ok())));
    match version {
        Ok(Some(version)) if version < VERSION => {
            let found = format!("index version {version}, the current one is {VERSION}");
            Err(StorageError::older(path, found))
        }
        Ok(Some(version)) if version > VERSION => Err(StorageError::newer(path, version, VERSION)),
        // A vault without the row, or without a number in it, is damaged, and can be checked and repaired.
        Ok(_) | Err(rusqlite::Error::QueryReturnedNoRows) => Ok(()),
        Err(error) => Err(StorageError::from_sqlite(path, error)),
    }
}

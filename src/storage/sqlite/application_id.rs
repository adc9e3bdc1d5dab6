//! The application id in the header of a file, which says whether it is a vault, and whether it is a complete one.

use rusqlite::Connection;

/// The id that the first migration writes into the header of every vault: "runv".
pub(super) const VAULT: i64 = 0x7275_6e76;

/// The id of a vault that is an incomplete copy of another one: "runc". Programs that do not know it, such as earlier
/// versions of this one, do not take the file for a vault.
pub(super) const INCOMPLETE: i64 = 0x7275_6e63;

/// Returns whether the vault is marked as an incomplete copy.
pub(super) fn is_incomplete(connection: &Connection) -> rusqlite::Result<bool> {
    let id: i64 = connection.prepare_cached("PRAGMA application_id")?.query_row([], |row| row.get(0))?;
    Ok(id == INCOMPLETE)
}

/// Marks the vault as an incomplete copy, or as complete.
pub(super) fn mark(connection: &Connection, is_incomplete: bool) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", if is_incomplete { INCOMPLETE } else { VAULT })
}

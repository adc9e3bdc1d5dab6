//! The application id in the header of a file, which says whether it is a vault, and whether it is a complete one.

use rusqlite::Connection;

/// The id that the schema writes into the header of every vault: "rvdb".
pub(super) const VAULT: i64 = 0x7276_6462;

/// The id of a vault that is an incomplete copy of another one: "rvdc". Programs that do not know it do not take the file
/// for a vault.
pub(super) const INCOMPLETE: i64 = 0x7276_6463;

/// The ids of vaults and incomplete copies of builds before the first release, whose schemas have versions of their own:
/// "runv", "runc", "rvlt", "rvlc", "rvvt", "rvvc", "rvar" and "rvac".
pub(super) const EARLIER: [i64; 8] =
    [0x7275_6e76, 0x7275_6e63, 0x7276_6c74, 0x7276_6c63, 0x7276_7674, 0x7276_7663, 0x7276_6172, 0x7276_6163];

/// Returns whether the vault is marked as an incomplete copy.
pub(super) fn is_incomplete(connection: &Connection) -> rusqlite::Result<bool> {
    let id: i64 = connection.prepare_cached("PRAGMA application_id")?.query_row([], |row| row.get(0))?;
    Ok(id == INCOMPLETE)
}

/// Marks the vault as an incomplete copy, or as complete.
pub(super) fn mark(connection: &Connection, is_incomplete: bool) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", if is_incomplete { INCOMPLETE } else { VAULT })
}

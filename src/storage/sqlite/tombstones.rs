//! Artifacts that are recorded as removed.

use rusqlite::Connection;

/// Returns whether there are any tombstones.
pub(super) fn exist(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM tombstone LIMIT 1")?.exists([])
}

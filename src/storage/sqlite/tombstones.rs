//! Artifacts that are recorded as removed.

use rusqlite::{Connection, OptionalExtension};

use super::ids::{ARTIFACTS_WITH_BLOB, artifact_id};
use super::shared_statements::shared_row;
use crate::digest::CoreHash;
use crate::storage::Tombstone;
use crate::storage::sql::{TOMBSTONE, tombstone};

/// Returns whether there are any tombstones.
pub(super) fn exist(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM tombstone LIMIT 1")?.exists([])
}

/// A removed artifact whose bytes are still in the vault.
pub(super) struct UndeletedArtifact {
    pub(super) tombstone: Tombstone,
    /// The kind and the core hash of an artifact that has the bytes, if one does.
    pub(super) owner: Option<(String, CoreHash)>,
}

/// Returns the artifacts that are recorded as removed and whose bytes are in the vault, by core hash.
pub(super) fn undeleted_artifacts(connection: &Connection) -> rusqlite::Result<Vec<UndeletedArtifact>> {
    let sql = format!(
        "SELECT {TOMBSTONE}, b.id FROM tombstone t
           JOIN blob b ON substr(b.digest, 1, 8) = substr(t.digest, 1, 8) AND b.digest = t.digest"
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], |row| Ok((tombstone(&shared_row(row)?)?, row.get::<_, i64>(9)?)))?;
    let mut found = Vec::new();
    for row in rows {
        let (tombstone, blob) = row?;
        if artifact_id(connection, tombstone.core)?.is_none() {
            found.push(UndeletedArtifact { tombstone, owner: owner(connection, blob)? });
        }
    }
    found.sort_by_key(|found| (found.tombstone.core, found.tombstone.digest));
    found.dedup_by_key(|found| found.tombstone.core);
    Ok(found)
}

/// Returns the kind and the core hash of the first artifact, by core hash, that has a blob.
fn owner(connection: &Connection, blob: i64) -> rusqlite::Result<Option<(String, CoreHash)>> {
    connection
        .prepare_cached(&format!(
            "SELECT k.name, a.core FROM artifact a JOIN kind k ON k.id = a.kind
              WHERE a.id IN ({ARTIFACTS_WITH_BLOB}) ORDER BY a.core LIMIT 1"
        ))?
        .query_row([blob], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

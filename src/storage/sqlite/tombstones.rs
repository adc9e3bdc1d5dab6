//! Removed artifacts, which cannot be added again unless this is explicitly allowed.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension, Row};

use super::ids::{ARTIFACTS_WITH_BLOB, artifact_id};
use super::journal::AT;
use super::rows::Milliseconds;
use crate::digest::{CoreHash, Digest};
use crate::storage::Tombstone;

pub(super) fn columns() -> String {
    format!(
        "t.digest, t.entry, {AT}, j.entry ->> 'core', j.entry ->> 'kind', j.entry ->> 'actor',
         j.entry ->> 'reason', j.entry ->> 'left', j.entry ->> 'size'"
    )
}

/// Reads a row of [`columns`].
pub(super) fn tombstone(row: &Row<'_>) -> rusqlite::Result<Tombstone> {
    Ok(Tombstone {
        digest: row.get(0)?,
        entry: row.get(1)?,
        at: row.get::<_, Milliseconds>(2)?.0,
        core: core(row, 3)?,
        kind: row.get(4)?,
        actor: row.get(5)?,
        reason: row.get(6)?,
        left: row.get(7)?,
        size: row.get(8)?,
    })
}

fn core(row: &Row<'_>, index: usize) -> rusqlite::Result<CoreHash> {
    row.get_ref(index)?.as_str()?.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, Box::new(error))
    })
}

/// Returns whether there are any tombstones.
pub(super) fn exist(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM tombstone LIMIT 1")?.exists([])
}

/// Returns the tombstones of `digests`, one per artifact, by core hash. Those of artifacts that are in the vault are
/// skipped.
pub(super) fn for_digests(connection: &Connection, digests: &[Digest]) -> rusqlite::Result<Vec<Tombstone>> {
    if !exist(connection)? {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {} FROM tombstone t JOIN journal j ON j.seq = t.entry WHERE t.digest = ?1",
        columns()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found: Vec<Tombstone> = Vec::new();
    for digest in digests {
        for row in statement.query_map([digest.as_bytes()], tombstone)? {
            let row = row?;
            if artifact_id(connection, row.core)?.is_none() {
                found.push(row);
            }
        }
    }
    found.sort_unstable_by_key(|row| (row.core, row.digest != row.core.0, row.digest));
    found.dedup_by_key(|row| row.core);
    Ok(found)
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
        "SELECT {}, b.id FROM tombstone t JOIN journal j ON j.seq = t.entry
           JOIN blob b ON substr(b.digest, 1, 8) = substr(t.digest, 1, 8) AND b.digest = t.digest",
        columns()
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], |row| Ok((tombstone(row)?, row.get::<_, i64>(9)?)))?;
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

/// The digests of each artifact's tombstones, read once for a whole batch.
#[derive(Default)]
pub(super) struct Tombstones {
    by_core: Option<HashMap<CoreHash, BTreeSet<Digest>>>,
}

impl Tombstones {
    /// Deletes the tombstones of an artifact.
    pub(super) fn delete(&mut self, connection: &Connection, core: CoreHash) -> rusqlite::Result<()> {
        let by_core = match &mut self.by_core {
            Some(by_core) => by_core,
            none => none.insert(Self::read(connection)?),
        };
        let mut delete = connection.prepare_cached("DELETE FROM tombstone WHERE digest = ?1")?;
        for digest in by_core.remove(&core).unwrap_or_default() {
            delete.execute([digest.as_bytes()])?;
        }
        Ok(())
    }

    fn read(connection: &Connection) -> rusqlite::Result<HashMap<CoreHash, BTreeSet<Digest>>> {
        let sql = "SELECT t.digest, j.entry ->> 'core' FROM tombstone t JOIN journal j ON j.seq = t.entry";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut by_core: HashMap<CoreHash, BTreeSet<Digest>> = HashMap::new();
        while let Some(row) = rows.next()? {
            by_core.entry(core(row, 1)?).or_default().insert(row.get(0)?);
        }
        Ok(by_core)
    }
}

//! Changes of the rows of artifacts, and deletion of artifacts and captures with everything that belongs to them, and the
//! records of that.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::blobs::{replace, store_alone};
use crate::artifact::CREATED_AT;
use crate::digest::{BlobHash, CoreHash, Digest};
use crate::storage::catalog::Row;
use crate::storage::postgres::bytes::examine;
use crate::storage::postgres::encoding::encoded;
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::full_text::index::forget;
use crate::storage::postgres::maintenance::UNREFERENCED;
use crate::storage::postgres::names::NameRegistry;
use crate::storage::postgres::parameters::{ParameterRows, digests};
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::sql::SqlType::{self, Bytes, Integer};
use crate::storage::sql::{SqlParameter, SqlSession as _, SqlValue};

/// Changes of artifacts.
#[derive(Default)]
pub(super) struct ArtifactChanges(BTreeMap<CoreHash, ArtifactChange>);

#[derive(Default)]
struct ArtifactChange {
    /// The row, which is inserted unless there is one.
    row: Option<NewArtifact>,
    /// When it was last added or seen, and its position in the order of that.
    arrival: Option<(i64, i64)>,
    /// The latest creation time that a new capture states.
    created_at: Option<i64>,
}

struct NewArtifact {
    entry: u64,
    kind: String,
    added_at: i64,
}

impl ArtifactChanges {
    pub(super) fn insert(&mut self, row: &Row) {
        if let Row::Artifact { core, entry, kind, added_at, seen_at, arrival } = row {
            let change = self.0.entry(*core).or_default();
            let new = || NewArtifact { entry: *entry, kind: kind.clone(), added_at: *added_at };
            change.row.get_or_insert_with(new);
            change.arrival.get_or_insert((*seen_at, *arrival));
        }
    }

    pub(super) fn arrive(&mut self, core: CoreHash, at: i64, arrival: i64) {
        self.0.entry(core).or_default().arrival = Some((at, arrival));
    }

    /// Takes the creation time from an attribute that has it.
    pub(super) fn date(&mut self, attribute: &Row) {
        if let Row::Attribute { core, name, number, .. } = attribute
            && name == CREATED_AT
        {
            let change = self.0.entry(*core).or_default();
            change.created_at = change.created_at.max(*number);
        }
    }

    /// Writes the changes. Returns the numbers of the artifacts to which captures are added.
    pub(super) fn write(
        self,
        session: &DatabaseTransaction<'_>,
        names: &NameRegistry,
    ) -> PostgresResult<HashMap<CoreHash, i64>> {
        let (mut added, mut changed) = (Vec::new(), Vec::new());
        for (core, change) in self.0 {
            let ArtifactChange { row, arrival, created_at } = change;
            let (seen_at, arrival) = arrival.unzip();
            let mut values = vec![core.into(), seen_at.into(), arrival.into(), created_at.into()];
            if let Some(NewArtifact { entry, kind, added_at }) = row {
                let missing = || PostgresError::damaged("a kind was not added");
                let kind = names.kind_id(&kind).ok_or_else(missing)?;
                values.extend([entry.into(), kind.into(), added_at.into()]);
                added.push(values);
            } else {
                changed.push(values);
            }
        }
        update(session, changed)?;
        insert(session, added)
    }
}

/// The columns of artifacts, of which an update has the first ones.
const ARTIFACT: &[(&str, SqlType)] = &[
    ("core", Bytes),
    ("seen_at", Integer),
    ("arrival", Integer),
    ("created_at", Integer),
    ("id", Integer),
    ("kind", Integer),
    ("added_at", Integer),
];
const CHANGED: usize = 4;

/// Inserts artifacts that are new, and updates the others. Returns their numbers.
fn insert(
    session: &DatabaseTransaction<'_>,
    rows: Vec<Vec<SqlValue>>,
) -> PostgresResult<HashMap<CoreHash, i64>> {
    if rows.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = ParameterRows::new(ARTIFACT, rows);
    let sql = format!(
        "INSERT INTO artifact AS a ({}) SELECT * FROM {}
         ON CONFLICT (core) DO UPDATE SET seen_at = excluded.seen_at, arrival = excluded.arrival,
           created_at = greatest(a.created_at, excluded.created_at)
         RETURNING a.core, a.id",
        rows.names(),
        rows.source()
    );
    let rows = session.rows(&sql, rows.parameters())?;
    rows.iter().map(|row| Ok((row.core(0)?, row.integer(1)?))).collect()
}

fn update(session: &DatabaseTransaction<'_>, rows: Vec<Vec<SqlValue>>) -> PostgresResult<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let rows = ParameterRows::new(ARTIFACT.get(..CHANGED).unwrap_or_default(), rows);
    let sql = format!(
        "UPDATE artifact a SET seen_at = coalesce(n.seen_at, a.seen_at), arrival = coalesce(n.arrival, a.arrival),
           created_at = greatest(a.created_at, n.created_at)
           FROM {} WHERE a.core = n.core",
        rows.source()
    );
    session.execute(&sql, rows.parameters()).map(drop)
}

/// Deletes the rows of artifacts that are removed at a time and have no annotations, and the bytes that no other one has.
pub(super) fn delete_artifacts(
    session: &DatabaseTransaction<'_>,
    cores: &[CoreHash],
    at: DateTime<Utc>,
) -> PostgresResult<()> {
    if cores.is_empty() {
        return Ok(());
    }
    let sql =
        "SELECT a.id, c.id FROM artifact a LEFT JOIN capture c ON c.artifact = a.id WHERE a.core = ANY($1)";
    let (mut artifacts, mut captures) = (BTreeSet::new(), Vec::new());
    for row in session.rows(sql, &[cores.into()])? {
        artifacts.insert(row.integer(0)?);
        captures.extend(row.optional_integer(1)?);
    }
    let artifacts: SqlParameter = artifacts.into_iter().collect();
    let blobs = delete_captures(session, &captures)?;
    discard(session, &blobs, at)?;
    for (table, column) in [
        ("edge", "artifact"),
        ("attribute", "artifact"),
        ("identity", "artifact"),
        ("name_mention", "artifact"),
        ("artifact", "id"),
    ] {
        session.execute(
            &format!("DELETE FROM {table} WHERE {column} = ANY($1)"),
            std::slice::from_ref(&artifacts),
        )?;
    }
    Ok(())
}

/// Deletes the rows of captures, except what their artifacts state. Returns the blobs that they had.
pub(in crate::storage::postgres) fn delete_captures(
    session: &DatabaseTransaction<'_>,
    captures: &[i64],
) -> PostgresResult<Vec<BlobHash>> {
    if captures.is_empty() {
        return Ok(Vec::new());
    }
    forget(session, captures)?;
    delete_lists(session, captures, BTreeSet::new())?;
    let sql = "DELETE FROM member WHERE capture = ANY($1) RETURNING blob";
    let mut blobs = session.rows(sql, &[captures.into()])?;
    let sql = "DELETE FROM capture WHERE id = ANY($1) RETURNING digest";
    blobs.append(&mut session.rows(sql, &[captures.into()])?);
    // There are no bytes with what is not a hash.
    Ok(blobs.iter().flat_map(|row| row.blob(0)).collect())
}

/// Discards the unreferenced blobs among those with these hashes: deletes their rows with their bytes, or, if the bytes
/// are beside the database, marks them at a time as pending deletion.
pub(in crate::storage::postgres) fn discard(
    session: &DatabaseTransaction<'_>,
    blobs: &[BlobHash],
    at: DateTime<Utc>,
) -> PostgresResult<()> {
    if blobs.is_empty() {
        return Ok(());
    }
    let sql = format!("SELECT b.digest FROM blob b WHERE b.digest = ANY($1) AND {UNREFERENCED}");
    let unreferenced = session.rows(&sql, &[blobs.into()])?;
    let unreferenced: Vec<BlobHash> =
        unreferenced.iter().map(|row| Ok(row.blob(0)?)).collect::<PostgresResult<_>>()?;
    release(session, &unreferenced)?;
    let sql = "DELETE FROM blob WHERE digest = ANY($1) AND object IS NULL";
    session.execute(sql, &[unreferenced.as_slice().into()])?;
    if session.server().blobs().is_some() {
        let sql =
            "UPDATE blob SET condemned_at = coalesce(condemned_at, $2), base = NULL WHERE digest = ANY($1)";
        session.execute(sql, &[unreferenced.as_slice().into(), at.timestamp_millis().into()])?;
    }
    Ok(())
}

/// Stores the longest of the other blobs whole that are the beginning of one of `bases`, and the rest as the beginning of it.
fn release(session: &DatabaseTransaction<'_>, bases: &[BlobHash]) -> PostgresResult<()> {
    let sql = "SELECT base, digest, object IS NOT NULL FROM blob
                WHERE base = ANY($1) AND digest <> ALL($1) ORDER BY base, size DESC";
    let mut released = None;
    for row in session.rows(sql, &[bases.into()])? {
        let (base, longest, is_in_object) = (row.blob(0)?, row.blob(1)?, row.flag(2)?);
        if released.replace(base) == Some(base) {
            continue;
        }
        if is_in_object {
            let sql = "UPDATE blob SET base = NULL, condemned_at = NULL WHERE digest = $1";
            session.execute(sql, &[longest.into()])?;
        } else if let Some(examined) = examine(session, &[longest])?.remove(&longest) {
            let bytes = examined.bytes.map_err(PostgresError::damaged)?;
            let encoded = encoded(&bytes, true);
            let part = store_alone(session.server(), longest, &encoded)?;
            replace(session, longest, bytes.len(), &encoded, part)?;
        }
        session.execute("UPDATE blob SET base = $2 WHERE base = $1", &[base.into(), longest.into()])?;
    }
    Ok(())
}

/// Deletes the lists of mentions of captures, and the keys by which these lists and others are found.
pub(in crate::storage::postgres) fn delete_lists(
    session: &DatabaseTransaction<'_>,
    captures: &[i64],
    mut keys: BTreeSet<i64>,
) -> PostgresResult<()> {
    let sql = "DELETE FROM mention_list WHERE capture = ANY($1) RETURNING digests";
    for row in session.rows(sql, &[captures.into()])? {
        // Rebuilding the index removes the keys of an unreadable list.
        keys.extend(digests(row.bytes(0)?).unwrap_or_default().iter().map(Digest::key));
    }
    let sql = "DELETE FROM mention_key WHERE key = ANY($1) AND capture = ANY($2)";
    session.execute(sql, &[keys.into_iter().collect(), captures.into()]).map(drop)
}

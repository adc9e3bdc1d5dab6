//! Deletion of artifacts and captures with everything that belongs to them, and the records of that.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::blobs::{replace, store_alone};
use crate::digest::{BlobHash, CoreHash, Digest};
use crate::storage::postgres::bytes::examine;
use crate::storage::postgres::columns::digests;
use crate::storage::postgres::encoding::encoded;
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::full_text::index::forget;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::unreferenced::UNREFERENCED;
use crate::storage::sql::{SqlParameter, SqlSession as _};

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

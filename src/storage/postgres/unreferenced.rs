//! Blobs that nothing has any more.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::blob_store::ListedObject;
use super::columns::object_name;
use super::error::PostgresResult;
use super::session::DatabaseTransaction;
use crate::storage::sql::{SqlParameter, SqlSession as _};

/// The SQL condition that no capture contains the blob `b`.
pub(super) const UNREFERENCED: &str = "NOT EXISTS (SELECT 1 FROM member m WHERE m.blob = b.digest)
    AND NOT EXISTS (SELECT 1 FROM capture c WHERE c.digest = b.digest)";

/// The objects that reclaiming deletes from object storage.
#[derive(Debug, Default)]
pub(super) struct DeletableObjects {
    /// Objects in which nothing is needed, and has not been for [`GRACE`].
    pub(super) objects: Vec<[u8; 16]>,
    /// Their size.
    pub(super) bytes: u64,
    /// Number of blobs in them.
    pub(super) blobs: u64,
}

/// How long bytes beside the database stay when nothing needs them: longer than any snapshot or upload takes.
pub(super) const GRACE: TimeDelta = TimeDelta::days(1);

/// Returns what can be deleted of object storage at a time.
pub(super) fn deletable(
    session: &DatabaseTransaction<'_>,
    at: DateTime<Utc>,
) -> PostgresResult<DeletableObjects> {
    let sql = format!(
        "SELECT o.name, o.size, (SELECT count(*) FROM blob b WHERE b.object = o.name AND {UNREFERENCED}) FROM object o
          WHERE NOT EXISTS (SELECT 1 FROM blob b WHERE b.object = o.name
                             AND NOT (b.condemned_at IS NOT NULL AND b.condemned_at <= $1
                                      AND (b.base IS NOT NULL OR {UNREFERENCED})))"
    );
    let latest = (at - GRACE).timestamp_millis();
    let mut deletable = DeletableObjects::default();
    for row in session.rows(&sql, &[latest.into()])? {
        deletable.objects.push(object_name(&row, 0)?);
        deletable.bytes += row.count(1)?;
        deletable.blobs += row.count(2)?;
    }
    Ok(deletable)
}

/// Marks as pending deletion the unreferenced blobs beside the database that are not marked yet. They are of batches
/// whose artifacts were removed while they were stored.
pub(super) fn condemn_all(session: &DatabaseTransaction<'_>, at: DateTime<Utc>) -> PostgresResult<()> {
    let sql = format!(
        "UPDATE blob b SET condemned_at = $1 WHERE b.condemned_at IS NULL AND b.object IS NOT NULL AND {UNREFERENCED}"
    );
    session.execute(&sql, &[at.timestamp_millis().into()])?;
    Ok(())
}

/// Deletes the rows of blobs in objects, except of those that have a base, so that nothing can need the objects any more.
pub(super) fn forget_blobs(session: &DatabaseTransaction<'_>, objects: &[[u8; 16]]) -> PostgresResult<()> {
    let sql = "UPDATE blob SET object = NULL, start = NULL, length = NULL, condemned_at = NULL
                WHERE object = ANY($1) AND base IS NOT NULL";
    session.execute(sql, &[objects.into()])?;
    session.execute("DELETE FROM blob WHERE object = ANY($1)", &[objects.into()])?;
    Ok(())
}

/// Deletes the rows of objects that have no blobs and were deleted.
pub(super) fn forget_objects(session: &DatabaseTransaction<'_>, objects: &[[u8; 16]]) -> PostgresResult<()> {
    let sql = "DELETE FROM object o WHERE o.name = ANY($1) AND NOT EXISTS (SELECT 1 FROM blob b WHERE b.object = o.name)";
    session.execute(sql, &[objects.into()])?;
    Ok(())
}

/// Returns those of `listed` that the catalog does not have and that were written before `latest`: uploads whose batch was
/// not committed.
pub(super) fn orphans(
    session: &DatabaseTransaction<'_>,
    listed: Vec<ListedObject>,
    latest: DateTime<Utc>,
) -> PostgresResult<Vec<ListedObject>> {
    let old: Vec<ListedObject> = listed.into_iter().filter(|object| object.modified <= latest).collect();
    if old.is_empty() {
        return Ok(old);
    }
    let names: SqlParameter = old.iter().map(|object| object.name).collect();
    let rows = session.rows("SELECT name FROM object WHERE name = ANY($1)", &[names])?;
    let known: BTreeSet<[u8; 16]> =
        rows.iter().map(|row| object_name(row, 0)).collect::<PostgresResult<_>>()?;
    Ok(old.into_iter().filter(|object| !known.contains(&object.name)).collect())
}

//! Maintenance of a vault in a database. Its files are the server's, whose own tools check, back up and vacuum them; blobs
//! that nothing refers to, also the objects beside it, are deleted here.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::blob_store::{BlobStore, ListedObject};
use super::check::DatabaseInspection;
use super::error::{PostgresError, PostgresResult};
use super::journal::PostgresJournalWriter;
use super::parameters::object_name;
use super::session::DatabaseTransaction;
use super::vault::PostgresStorage;
use crate::clock;
use crate::storage::check::{Inspection, Repairs};
use crate::storage::entry::Entry;
use crate::storage::interface::{Erasure, Maintenance, ReclaimResult, ReclaimableSpace, Remnant};
use crate::storage::sql::{SqlParameter, SqlSession as _};
use crate::storage::{BUSY_TIMEOUT, Result};

impl PostgresStorage {
    /// Counts the blobs in the database that nothing has: those of a batch whose artifacts were removed while it was
    /// stored.
    fn count_unreferenced(session: &DatabaseTransaction<'_>) -> PostgresResult<ReclaimableSpace> {
        let sql = format!(
            "SELECT count(*), coalesce(sum(octet_length(b.bytes)), 0)::bigint FROM blob b
              WHERE b.object IS NULL AND {UNREFERENCED}"
        );
        let row = session.row(&sql, &[])?.ok_or_else(|| PostgresError::damaged("a count has no row"))?;
        Ok(ReclaimableSpace {
            blobs: row.count(0)?,
            blob_bytes: row.count(1)?,
            ..ReclaimableSpace::default()
        })
    }

    fn count_reclaimable(&self) -> PostgresResult<ReclaimableSpace> {
        let session = DatabaseTransaction::to_read(&self.server)?;
        let mut found = Self::count_unreferenced(&session)?;
        if self.server.blobs().is_some() {
            let DeletableObjects { blobs, bytes, .. } = deletable(&session, clock::now())?;
            found.blobs += blobs;
            found.blob_bytes += bytes;
        }
        Ok(found)
    }

    /// Deletes what the catalog does not need, then the orphans that a listing shows.
    fn reclaim_all(&self, at: DateTime<Utc>) -> PostgresResult<ReclaimResult> {
        let mut reclaimed = self.reclaim_blobs(at)?;
        if let Some(store) = self.server.blobs() {
            let (objects, bytes) = self.delete_orphans(store)?;
            reclaimed.orphans = objects;
            reclaimed.changed |= objects > 0;
            reclaimed.bytes_before += bytes;
        }
        Ok(reclaimed)
    }

    fn reclaim_blobs(&self, at: DateTime<Utc>) -> PostgresResult<ReclaimResult> {
        let session = DatabaseTransaction::to_write(&self.server, BUSY_TIMEOUT)?;
        let mut recorder = PostgresJournalWriter::lock(&session, self.actor(), at)?;
        // With the writer lock, no batch can need again what is found here.
        let (found, is_external) = (Self::count_unreferenced(&session)?, self.server.blobs().is_some());
        let mut objects = DeletableObjects::default();
        if is_external {
            condemn_all(&session, recorder.at())?;
            objects = deletable(&session, recorder.at())?;
            forget_blobs(&session, &objects.objects)?;
        }
        let (blobs, bytes_before) = (found.blobs + objects.blobs, found.blob_bytes + objects.bytes);
        if blobs == 0 && objects.objects.is_empty() {
            if is_external {
                session.commit()?;
            }
            return Ok(ReclaimResult::default());
        }
        session.execute(&format!("DELETE FROM blob b WHERE b.object IS NULL AND {UNREFERENCED}"), &[])?;
        let event = Entry::Gc { blobs, bytes_after: 0, bytes_before, dictionaries: 0, recompressed: 0 };
        recorder.append(event)?;
        recorder.flush(&session)?;
        session.commit()?;
        if let Some(store) = self.server.blobs() {
            self.delete_objects(store, &objects.objects)?;
        }
        Ok(ReclaimResult { blobs, bytes_before, changed: true, ..ReclaimResult::default() })
    }

    /// Deletes objects that have no blobs. Their rows are deleted afterwards: what is interrupted is done next time.
    fn delete_objects(&self, store: &dyn BlobStore, objects: &[[u8; 16]]) -> PostgresResult<()> {
        if objects.is_empty() {
            return Ok(());
        }
        for object in objects {
            store.delete(*object)?;
        }
        let session = DatabaseTransaction::to_write(&self.server, BUSY_TIMEOUT)?;
        forget_objects(&session, objects)?;
        session.commit()
    }

    /// Deletes the objects that the catalog does not have, and what was left of some that were not completed, except new
    /// ones. Returns their number and size.
    fn delete_orphans(&self, store: &dyn BlobStore) -> PostgresResult<(u64, u64)> {
        // The age of an object is by the clock that dates it: with a clock of ours that is fast, an upload that is about to
        // be committed would seem old.
        let latest = store.now()? - GRACE;
        let (mut objects, mut bytes) = store.delete_unfinished(latest)?;
        store.list(&mut |listed| {
            let session = DatabaseTransaction::to_read(&self.server)?;
            let found = orphans(&session, listed, latest)?;
            drop(session);
            for object in found {
                store.delete(object.name)?;
                objects += 1;
                bytes += object.size;
            }
            Ok(())
        })?;
        Ok((objects, bytes))
    }
}

impl Maintenance for PostgresStorage {
    fn inspect(&self) -> Result<Box<dyn Inspection + '_>> {
        let inspection = DatabaseInspection::begin(&self.server);
        Ok(Box::new(inspection.map_err(|failure| failure.at(self.server.name()))?))
    }

    fn repairs(&self) -> Result<&dyn Repairs> {
        Ok(self)
    }

    fn reclaimable(&self) -> Result<ReclaimableSpace> {
        self.count_reclaimable().map_err(|failure| failure.at(self.server.name()))
    }

    fn reclaim(&self, at: DateTime<Utc>) -> Result<ReclaimResult> {
        self.reclaim_all(at).map_err(|failure| failure.at(self.server.name()))
    }

    fn erase(&self) -> Erasure {
        let mut remnants = vec![Remnant::Database];
        if self.server.blobs().is_some() {
            remnants.push(Remnant::Objects);
        }
        Erasure { remnants }
    }
}

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

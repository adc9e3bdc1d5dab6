//! Repairs of stored bytes, in the database or beside it.

use super::repaired_if_changed;
use crate::clock;
use crate::digest::{BlobHash, Digest};
use crate::storage::check::{Repair, Subject};
use crate::storage::postgres::blob_store::ObjectRange;
use crate::storage::postgres::bytes::examine;
use crate::storage::postgres::columns::blob;
use crate::storage::postgres::encoding::{EncodedMember, encoded};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::unreferenced::{UNREFERENCED, discard};
use crate::storage::postgres::vault::PostgresStorage;
use crate::storage::{PayloadDefect, Result};

/// Holds for a digest that the vault has, or should have, the bytes of.
const IS_KNOWN: &str =
    "EXISTS (SELECT 1 FROM blob WHERE digest = $1) OR EXISTS (SELECT 1 FROM member WHERE blob = $1)
     OR EXISTS (SELECT 1 FROM capture WHERE digest = $1)";

impl PostgresStorage {
    /// Replaces the damaged or missing bytes of `blob` with `bytes`. Repairs nothing if `bytes` have another hash, or the
    /// vault has no such blob. Beside the database, they become an object of their own.
    pub(super) fn restore_blob(&self, blob: BlobHash, bytes: &[u8]) -> Result<Vec<Repair>> {
        if BlobHash(Digest::from_content(bytes)) != blob {
            return Ok(Vec::new());
        }
        let encoded = encoded(bytes);
        // Nothing is locked while it is uploaded.
        let store = || {
            let is_known = is_known(&DatabaseTransaction::to_read(&self.server)?, blob)?;
            if is_known { self.server.blobs().store(&[(blob, &encoded)]) } else { Ok(Vec::new()) }
        };
        let stored = store().map_err(|failure| failure.at(self.server.name()))?;
        let Some(part) = stored.into_iter().next() else { return Ok(Vec::new()) };
        self.repair(|session| {
            if !is_known(session, blob)? {
                return Ok(Vec::new());
            }
            replace(session, (blob, bytes.len()), &encoded, part)?;
            Ok(vec![Repair { subject: Subject::Blob(blob), did: "restored" }])
        })
    }

    /// Corrects the recorded hash of a blob if its stored bytes have another hash, which files of captures have and no
    /// other blob. Bytes in the database are never marked to be deleted later.
    pub(super) fn repair_digest(&self, blob: BlobHash) -> Result<Vec<Repair>> {
        self.repair(|session| {
            let sql = "UPDATE blob SET condemned_at = NULL
                        WHERE digest = $1 AND object IS NULL AND condemned_at IS NOT NULL";
            let repair = (Subject::Blob(blob), "no longer marked for deletion");
            if let Some(repair) = repaired_if_changed(session, (sql, &[&blob]), repair)? {
                return Ok(vec![repair]);
            }
            let examined = examine(session, &[blob])?.remove(&blob);
            let Some(actual) = examined.and_then(|examined| actual(examined.bytes.err()?)) else {
                return Ok(Vec::new());
            };
            let sql = "UPDATE blob SET digest = $2 WHERE digest = $1
                          AND NOT EXISTS (SELECT 1 FROM blob WHERE digest = $2)
                          AND $1 NOT IN (SELECT blob FROM member UNION ALL SELECT digest FROM capture)
                          AND $2 IN (SELECT blob FROM member UNION ALL SELECT digest FROM capture)";
            let repair = (Subject::Blob(actual), "given its hash again");
            Ok(repaired_if_changed(session, (sql, &[&blob, &actual]), repair)?.into_iter().collect())
        })
    }

    /// Drops unreferenced blobs; beside the database, they are deleted later.
    pub(super) fn drop_unreferenced(&self) -> Result<Vec<Repair>> {
        self.repair(|session| {
            let sql = format!(
                "SELECT b.digest FROM blob b WHERE b.condemned_at IS NULL AND {UNREFERENCED} ORDER BY b.digest"
            );
            let rows = session.rows(&sql, &[])?;
            let blobs: Vec<BlobHash> = rows.iter().map(|row| blob(row, 0)).collect::<PostgresResult<_>>()?;
            discard(session, &blobs, clock::now())?;
            let dropped = |blob| Repair { subject: Subject::Blob(blob), did: "dropped" };
            Ok(blobs.into_iter().map(dropped).collect())
        })
    }
}

fn is_known(session: &DatabaseTransaction<'_>, blob: BlobHash) -> PostgresResult<bool> {
    let sql = format!("SELECT 1 WHERE {IS_KNOWN}");
    Ok(session.row(&sql, &[&blob])?.is_some())
}

/// Returns the hash that damaged bytes have.
fn actual(defect: PayloadDefect) -> Option<BlobHash> {
    match defect {
        PayloadDefect::Hash { actual, .. } => Some(actual),
        PayloadDefect::Object { defect, .. } => actual(*defect),
        _ => None,
    }
}

/// Records where the bytes of a blob are.
fn replace(
    session: &DatabaseTransaction<'_>,
    (blob, size): (BlobHash, usize),
    encoded: &EncodedMember,
    part: Option<ObjectRange>,
) -> PostgresResult<()> {
    let object = part.as_ref().map(|part| &part.object[..]);
    let (start, length) = (
        part.as_ref().map(|part| part.start.cast_signed()),
        part.as_ref().map(|part| part.length.cast_signed()),
    );
    if part.is_some() {
        session.execute(
            "INSERT INTO object (name, size) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
            &[&object, &length],
        )?;
    }
    session.execute(
        "INSERT INTO blob (digest, size, encoding, bytes, object, start, length) VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (digest) DO UPDATE SET size = $2, encoding = $3, bytes = $4, object = $5, start = $6, length = $7,
           condemned_at = NULL",
        &[
            &blob,
            &i64::try_from(size).unwrap_or(i64::MAX),
            &encoded.encoding,
            &part.is_none().then_some(&encoded.bytes[..]),
            &object,
            &start,
            &length,
        ],
    )?;
    Ok(())
}

//! Repairs of stored bytes, in the database or beside it.

use crate::clock;
use crate::digest::BlobHash;
use crate::storage::check::{Repair, Subject};
use crate::storage::postgres::bytes::examine;
use crate::storage::postgres::encoding::encoded;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::vault::PostgresStorage;
use crate::storage::postgres::write::blobs::{replace, store_alone};
use crate::storage::postgres::write::removal::discard;
use crate::storage::sql::{self, Dialect, SqlSession as _};
use crate::storage::{PayloadDefect, Result};

impl PostgresStorage {
    /// Stores bytes as the blob with their hash, unless it is there undamaged. Beside the database, they become an object of
    /// their own.
    pub(super) fn store_blob(&self, blob: BlobHash, bytes: &[u8]) -> Result<Vec<Repair>> {
        let encoded = encoded(bytes, false);
        // Nothing is locked while it is uploaded.
        let store = || -> PostgresResult<_> {
            let session = DatabaseTransaction::to_read(&self.server)?;
            let known = examine(&session, &[blob])?.remove(&blob);
            if known.is_some_and(|known| known.bytes.is_ok()) {
                return Ok(None);
            }
            Ok(Some(store_alone(&self.server, blob, &encoded)?))
        };
        let stored = store().map_err(|failure| failure.at(self.server.name()))?;
        let Some(part) = stored else { return Ok(Vec::new()) };
        sql::repair(self, |session| {
            replace(session, blob, bytes.len(), &encoded, part)?;
            Ok(vec![Repair { subject: Subject::Blob(blob), did: "restored" }])
        })
    }
}

/// Corrects the recorded sizes of `blobs`, and the hashes of those whose stored bytes have another hash, which captures have and
/// no other blob. Bytes in the database are never marked to be deleted later.
pub(super) fn correct(session: &DatabaseTransaction<'_>, blobs: &[BlobHash]) -> PostgresResult<Vec<Repair>> {
    let mut repaired = Vec::new();
    // A blob that is the beginning of another one is read after that is corrected.
    let sql = "SELECT digest FROM blob WHERE digest = ANY($1) ORDER BY base IS NOT NULL, digest";
    for row in session.rows(sql, &[blobs.into()])? {
        let blob = &row.blob(0)?;
        let sql = "UPDATE blob SET condemned_at = NULL
                    WHERE digest = $1 AND object IS NULL AND condemned_at IS NOT NULL";
        if session.execute(sql, &[(*blob).into()])? > 0 {
            repaired.push(Repair { subject: Subject::Blob(*blob), did: "no longer marked for deletion" });
            continue;
        }
        let actual = match examine(session, &[*blob])?.remove(blob).map(|examined| examined.bytes) {
            Some(Ok(bytes)) => {
                let sql = "UPDATE blob SET size = $2 WHERE digest = $1 AND size <> $2";
                if session.execute(sql, &[(*blob).into(), bytes.len().into()])? > 0 {
                    repaired.push(Repair {
                        subject: Subject::Blob(*blob),
                        did: "given the size of its bytes again",
                    });
                }
                continue;
            }
            Some(Err(defect)) => actual(defect),
            None => None,
        };
        let Some(actual) = actual else { continue };
        let sql = "UPDATE blob SET digest = $2 WHERE digest = $1
                      AND NOT EXISTS (SELECT 1 FROM blob WHERE digest = $2)
                      AND NOT EXISTS (SELECT 1 FROM member WHERE blob = $1)
                      AND NOT EXISTS (SELECT 1 FROM capture WHERE digest = $1)
                      AND (EXISTS (SELECT 1 FROM member WHERE blob = $2)
                           OR EXISTS (SELECT 1 FROM capture WHERE digest = $2)
                           OR EXISTS (SELECT 1 FROM journal WHERE action = 'add' AND position($3 IN entry) > 0))";
        if session.execute(sql, &[(*blob).into(), actual.into(), actual.to_string().into()])? > 0 {
            repaired.push(Repair { subject: Subject::Blob(actual), did: "given its hash again" });
        }
    }
    Ok(repaired)
}

/// Drops blobs that nothing refers to; beside the database, they are deleted later.
pub(super) fn drop_unreferenced(session: &DatabaseTransaction<'_>) -> PostgresResult<Vec<Repair>> {
    let rows = session.rows(&sql::blobs_without_captures(Dialect::Postgres, false), &[])?;
    let blobs: Vec<BlobHash> = rows.iter().map(|row| row.blob(0)).collect::<std::result::Result<_, _>>()?;
    discard(session, &blobs, clock::now())?;
    let subject = Subject::Table("blob".to_owned());
    let removed = Repair { subject, did: "removed bytes that nothing refers to" };
    Ok((!blobs.is_empty()).then_some(removed).into_iter().collect())
}

/// Returns the hash that damaged bytes have.
fn actual(defect: PayloadDefect) -> Option<BlobHash> {
    match defect {
        PayloadDefect::Hash { actual, .. } => Some(actual),
        PayloadDefect::Object { defect, .. } => actual(*defect),
        _ => None,
    }
}

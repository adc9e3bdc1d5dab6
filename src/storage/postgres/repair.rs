//! Repairs that require no guessing, of stored bytes too, in the database or beside it. Each step is one transaction with
//! its journal entries, under the writer lock.
//!
//! The rows of the catalog that follow from the journal are written again. What is derived from the stored bytes is rebuilt
//! after that, as by a reindexing.

use std::sync::Arc;

use super::bytes::examine;
use super::encoding::encoded;
use super::error::{PostgresError, PostgresResult};
use super::journal::PostgresJournalWriter;
use super::names::NameRegistry;
use super::session::DatabaseTransaction;
use super::vault::PostgresStorage;
use super::write::artifacts::{delete_lists, discard};
use super::write::blobs::{replace, store_alone};
use super::write::derived::DerivedRows;
use crate::artifact::Kind;
use crate::clock;
use crate::digest::BlobHash;
use crate::storage::catalog::facts;
use crate::storage::check::finding::BROKEN_CHAIN;
use crate::storage::check::{
    Finding, JournalReplay, ReadmittedArtifact, ReindexOutcome, Repair, Repairs, Subject,
};
use crate::storage::entry::{Entry, EntryText};
use crate::storage::sql::{self, Dialect, SqlRepairs, SqlSession as _};
use crate::storage::{BUSY_TIMEOUT, PayloadDefect, Result};

/// Statements that delete keys of lists that do not have the digest, and derive objects from the rows of blobs. Objects may be
/// larger than the blobs in them.
const INDEXES: &str = "
    DELETE FROM mention_key k WHERE NOT EXISTS
      (SELECT 1 FROM
         (SELECT l.capture, l.group_id, substr(l.digests, i, 8) AS beginning
            FROM mention_list l, generate_series(1, octet_length(l.digests), 32) AS i) d
        WHERE d.capture = k.capture AND d.group_id = k.group_id AND d.beginning = int8send(k.key));
    UPDATE object o SET size = n.size FROM
      (SELECT object, max(start + length) AS size FROM blob WHERE object IS NOT NULL GROUP BY object) AS n
     WHERE o.name = n.object AND o.size < n.size;
    INSERT INTO object (name, size)
    SELECT object, max(start + length) FROM blob b
     WHERE object IS NOT NULL AND NOT EXISTS (SELECT 1 FROM object o WHERE o.name = b.object) GROUP BY object";

impl Repairs for PostgresStorage {
    fn repair_structures(&self, found: &[Finding]) -> Result<Vec<Repair>> {
        let is_chain_broken = found.iter().any(|finding| finding.info == BROKEN_CHAIN);
        let blobs = found.iter().filter_map(|finding| match finding.subject {
            Subject::Blob(blob) => Some(blob),
            _ => None,
        });
        let blobs: Vec<BlobHash> = blobs.collect();
        if !is_chain_broken && blobs.is_empty() {
            return Ok(Vec::new());
        }
        sql::repair(self, |session| {
            let end = if is_chain_broken { restore_end(session)? } else { None };
            let mut repaired: Vec<Repair> = end.into_iter().collect();
            repaired.append(&mut correct(session, &blobs)?);
            Ok(repaired)
        })
    }

    fn restore_blob(&self, blob: BlobHash, bytes: &[u8]) -> Result<Vec<Repair>> {
        self.store_blob(blob, bytes)
    }

    fn rebuild(&self, kinds: &[Kind]) -> Result<Vec<Repair>> {
        sql::rebuild(self, kinds)
    }

    fn reindex(&self, batch: &[ReadmittedArtifact]) -> Result<Vec<ReindexOutcome>> {
        sql::reindex(self, batch)
    }

    fn finish_reindex(&self, artifacts: u64, not_admitted: u64) -> Result<()> {
        sql::finish_reindex(self, artifacts, not_admitted)
    }

    fn drop_unreferenced(&self) -> Result<Vec<Repair>> {
        sql::repair(self, drop_unreferenced)
    }
}

impl SqlRepairs for PostgresStorage {
    type Session<'s> = DatabaseTransaction<'s>;
    type Error = PostgresError;

    fn write<T>(
        &self,
        work: impl FnOnce(&DatabaseTransaction<'_>) -> PostgresResult<(T, Vec<Entry>)>,
    ) -> Result<T> {
        let write = || {
            let session = DatabaseTransaction::to_write(&self.server, BUSY_TIMEOUT)?;
            PostgresJournalWriter::wait(&session)?;
            let (done, entries) = work(&session)?;
            // The last entry may be what was repaired.
            let mut journal = PostgresJournalWriter::lock(&session, self.actor(), clock::now())?;
            entries.into_iter().try_for_each(|entry| journal.append(entry))?;
            journal.flush(&session)?;
            session.commit()?;
            // Kinds and roles may have been repaired. They are read again when they are needed.
            self.names.set(Arc::default());
            Ok(done)
        };
        write().map_err(|failure: PostgresError| failure.at(self.server.name()))
    }

    fn replay(session: &DatabaseTransaction<'_>) -> PostgresResult<Option<JournalReplay>> {
        let Some(replay) = sql::replay(session)? else { return Ok(None) };
        let head = replay.check.head;
        let sql = "SELECT 1 FROM head WHERE seq = $1 AND chain = $2";
        let is_whole = session.row(sql, &[head.seq.into(), head.chain.into()])?.is_some();
        Ok(is_whole.then_some(replay))
    }

    fn restore_entries(session: &DatabaseTransaction<'_>) -> PostgresResult<bool> {
        let mut different: Vec<(i64, i64, String)> = Vec::new();
        session.each("SELECT seq, at, action, entry FROM journal", &[], &mut |row| {
            let text = row.text(3)?;
            if let (Ok(entry), Ok(action)) = (EntryText::parse(&text), EntryText::action(&text))
                && let Some(at) = entry.milliseconds()
                && (row.integer(1).ok() != Some(at) || row.as_text(2) != Some(&action))
            {
                different.push((row.integer(0)?, at, action));
            }
            Ok(())
        })?;
        let is_different = !different.is_empty();
        for (seq, at, action) in different {
            let sql = "UPDATE journal SET at = $2, action = $3 WHERE seq = $1";
            session.execute(sql, &[seq.into(), at.into(), action.into()])?;
        }
        Ok(is_different)
    }

    fn write_derived(
        session: &DatabaseTransaction<'_>,
        artifacts: &[&ReadmittedArtifact],
    ) -> PostgresResult<()> {
        let all = || artifacts.iter().flat_map(|readmitted| readmitted.admitted());
        let captures: Vec<i64> = all().map(|(id, _)| id).collect();
        // Keys can be left of lists that were lost.
        let mentions = all().flat_map(|(_, admitted)| &admitted.draft().mentions);
        delete_lists(session, &captures, mentions.map(|mention| mention.digest.key()).collect())?;
        let names =
            NameRegistry::corrected(session, &all().map(|(_, admitted)| admitted).collect::<Vec<_>>())?;
        let mut rows = DerivedRows::default();
        for readmitted in artifacts {
            let owner = readmitted.is_complete().then_some(readmitted.artifact.id);
            for (capture, admitted) in readmitted.admitted() {
                rows.add_members(capture, admitted.members());
                rows.add_mentions(owner, capture, admitted, &names)?;
                facts(admitted.core(), admitted).for_each(|fact| rows.add_fact(fact, |_| owner));
            }
        }
        rows.write(session)
    }

    fn rebuild_indexes(session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        session.batch(INDEXES)
    }
}

/// Restores the row that says where the journal ends, if the journal goes on beyond it, or has another chain value there. A row
/// that names a later entry stays: the end of the journal is lost.
fn restore_end(session: &DatabaseTransaction<'_>) -> PostgresResult<Option<Repair>> {
    let Some(replay) = sql::replay(session)?.filter(|replay| replay.check.defect.is_none()) else {
        return Ok(None);
    };
    let head = replay.check.head;
    let sql = "UPDATE head h SET seq = j.seq, at = j.at, chain = j.chain FROM journal j
                WHERE h.id = 1 AND j.seq = $1 AND h.seq <= j.seq
                  AND (h.seq, h.at, h.chain) IS DISTINCT FROM (j.seq, j.at, j.chain)";
    let is_changed = session.execute(sql, &[head.seq.into()])? > 0;
    let subject = Subject::Table("head".to_owned());
    Ok(is_changed.then_some(Repair { subject, did: "set to the last entry" }))
}

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

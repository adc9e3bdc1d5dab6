//! Repairs that require no guessing. Each step is one transaction with its journal entry.
//!
//! Restoring bytes from another copy and rebuilding the rest from bytes is not enough: which artifact a capture belongs
//! to, and the times, order, tags, notes, pins, labels, links, tombstones and signature states, are not in any stored bytes. A
//! vault rebuilt from its bytes alone would lose them, so [`Store::repair_core`] uses the seals of captures and
//! [`Store::restore_from_journal`] the journal.

mod blobs;
mod indexes;
mod journal;
mod labels;
mod rows;
mod steps;
mod types;

use std::path::Path;

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::check::restrict_permissions;
use super::connection::secure_delete;
use super::dictionaries::DecompressionDictionaryCache;
use super::engine::SqliteTransaction;
use super::ids::{ARTIFACTS, artifact_id, capture_id};
use super::journal::SqliteJournalWriter;
use super::lists::MentionListReader;
use super::mention_index;
use super::payload::PayloadReader;
use super::reindex::readable;
use super::search;
use super::write_lock;
use super::{Result, StorageError, Store};
use crate::artifact::{Admitted, Signature};
use crate::clock;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::check::{CaptureId, CheckedArtifact, Repair, Subject};
use crate::storage::entry::Entry;
use crate::storage::interface::Transaction as _;
use crate::storage::seal::seal;
use crate::storage::{BUSY_TIMEOUT, Prepared, PutResult, change};

impl Store {
    /// Restricts write permission for the vault's files to the owner; `subject` is the file that others could write.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn repair_permissions(&self, subject: Subject) -> Result<Vec<Repair>> {
        restrict_permissions(&self.path).map_err(|source| StorageError::io(&self.path, source))?;
        self.repair(|_| Ok(vec![Repair { subject, did: "closed to others" }]))
    }

    /// Records a repair in the journal and returns it.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn record_repair(&self, subject: Subject, did: &'static str) -> Result<Vec<Repair>> {
        self.repair(|_| Ok(vec![Repair { subject, did }]))
    }

    /// Deletes a damaged capture and stores `artifact`, which has it intact, as by [`Store::put_again`]. If this fails,
    /// nothing is changed.
    ///
    /// # Errors
    /// Same as [`Storage::put`](crate::storage::Storage::put), and [`Gone`](crate::storage::ErrorKind::Gone) if the
    /// artifact was removed in the meantime.
    pub fn replace_capture(
        &self,
        artifact: &Prepared,
        recorded: Option<Signature>,
        at: DateTime<Utc>,
    ) -> Result<(Vec<Repair>, PutResult)> {
        let core = artifact.admitted().core();
        let mut change = SqliteTransaction::begin(self, at, BUSY_TIMEOUT)?;
        let dropped = change.drop_damaged(core, artifact.admitted().capture())?;
        let put = change::put_again(&mut change, artifact, recorded)?;
        if put.outcome.is_refused() {
            return Err(StorageError::gone(core));
        }
        Box::new(change).commit()?;
        Ok((dropped, put))
    }

    /// Stores one artifact whose capture was lost, like [`Storage::put`](crate::storage::Storage::put). Restores the
    /// previously `recorded` signature state unless the signature was checked now.
    ///
    /// # Errors
    /// Same as [`Storage::put`](crate::storage::Storage::put).
    pub fn put_again(
        &self,
        artifact: &Prepared,
        recorded: Option<Signature>,
        at: DateTime<Utc>,
    ) -> Result<PutResult> {
        let mut change = SqliteTransaction::begin(self, at, BUSY_TIMEOUT)?;
        let put = change::put_again(&mut change, artifact, recorded)?;
        Box::new(change).commit()?;
        Ok(put)
    }

    /// Assigns `capture` of `artifact` to the artifact that its seal proves: the admitted one, if that was sealed when
    /// the capture was added.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn repair_core(
        &self,
        artifact: &CheckedArtifact,
        capture: CaptureId,
        admitted: &Admitted,
    ) -> Result<Vec<Repair>> {
        let expected = seal(admitted.core(), admitted.capture());
        self.repair(|transaction| {
            let stored: Option<Vec<u8>> = transaction
                .query_row("SELECT seal FROM capture WHERE id = ?1", [capture.0], |row| row.get(0))
                .optional()?;
            if stored.as_deref() != Some(&expected) {
                return Ok(Vec::new());
            }
            let subject = Subject::Capture(admitted.capture());
            if let Some(own) = artifact_id(transaction, admitted.core())? {
                if own == artifact.id {
                    return Ok(Vec::new());
                }
                transaction.execute("UPDATE capture SET artifact = ?2 WHERE id = ?1", (capture.0, own))?;
                return Ok(vec![Repair { subject, did: "assigned to its artifact again" }]);
            }
            if is_sealed(transaction, artifact)? {
                // Another capture proves the artifact's recorded hash; this capture's own artifact is missing.
                return Ok(Vec::new());
            }
            let core = admitted.core();
            transaction
                .execute("UPDATE artifact SET core = ?2 WHERE id = ?1", (artifact.id, core.0.as_bytes()))?;
            Ok(vec![Repair { subject: Subject::Artifact(core), did: "given its hash again" }])
        })
    }

    /// Restores the row of an artifact that captures belong to, if it is missing, has no hash or has another row id.
    /// `admitted` is the result of admitting such a capture.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn repair_artifact(
        &self,
        artifact: &CheckedArtifact,
        capture: CaptureId,
        admitted: &Admitted,
    ) -> Result<Vec<Repair>> {
        let expected = seal(admitted.core(), admitted.capture());
        self.repair(|transaction| {
            transaction.pragma_update(None, "defer_foreign_keys", true)?;
            if let Some(own) = artifact_id(transaction, admitted.core())? {
                return renumber_artifact(transaction, (own, artifact.id), admitted, (capture, &expected));
            }
            let changed = transaction.execute(
                "INSERT INTO artifact (id, core, kind, added_at, seen_at, arrival)
                 SELECT ?1, ?2, k.id, (SELECT min(added_at) FROM capture WHERE artifact = ?1), 0, 0
                   FROM kind k, capture c
                  WHERE k.name = ?3 AND c.id = ?4 AND c.artifact = ?1 AND c.seal = ?5
                 ON CONFLICT (id) DO UPDATE SET core = excluded.core, kind = excluded.kind
                  WHERE typeof(artifact.core) <> 'blob' OR length(artifact.core) <> 32",
                (artifact.id, admitted.core().0.as_bytes(), admitted.kind().name(), capture.0, expected),
            )?;
            let repaired =
                Repair { subject: Subject::Artifact(admitted.core()), did: "restored to its table" };
            Ok(if changed > 0 { vec![repaired] } else { Vec::new() })
        })
    }

    /// Runs `work` and records its repairs in the journal, in one transaction.
    fn repair(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Vec<Repair>>,
    ) -> Result<Vec<Repair>> {
        self.with_connection(|connection| {
            // Deleted content is overwritten.
            secure_delete(connection, true)?;
            let transaction = write_lock::begin(connection)?;
            let repaired = work(&transaction)?;
            let mut journal = SqliteJournalWriter::open(&transaction, self.actor.as_ref(), clock::now())?;
            for Repair { subject, did } in &repaired {
                let entry = Entry::Repair { did: (*did).to_owned(), subject: subject.to_string() };
                journal.append(&transaction, entry)?;
            }
            transaction.commit()?;
            secure_delete(connection, false)?;
            Ok(repaired)
        })
    }

    fn with_connection<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut connection = self.connection()?;
        let failed = |error| StorageError::from_sqlite(Path::new(&self.path), error);
        work(&mut connection).map_err(failed)
    }
}

impl SqliteTransaction<'_> {
    /// Deletes what is left of a damaged capture, and records that.
    fn drop_damaged(&mut self, core: CoreHash, capture: CaptureHash) -> Result<Vec<Repair>> {
        self.edit.overwrite_deleted()?;
        let mut run = || {
            let connection = self.edit.snapshot.connection();
            let dropped = drop_capture(connection, core, capture)?;
            drop_orphans(connection)?;
            for Repair { subject, did } in &dropped {
                let entry = Entry::Repair { did: (*did).to_owned(), subject: subject.to_string() };
                self.edit.journal.append(connection, entry)?;
            }
            Ok(dropped)
        };
        run().map_err(|error| self.edit.snapshot.failed(error))
    }
}

/// Runs `sql` and returns whether it changed anything.
pub(super) fn changed(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> rusqlite::Result<bool> {
    Ok(connection.prepare_cached(sql)?.execute(parameters)? > 0)
}

/// Gives the artifact of `capture`, whose row id is `own`, the row id `lost` that its captures refer to. If it has others, the
/// capture is assigned to it. `seal` is the one that proves this.
fn renumber_artifact(
    transaction: &Transaction<'_>,
    (own, lost): (i64, i64),
    admitted: &Admitted,
    (capture, seal): (CaptureId, &[u8]),
) -> rusqlite::Result<Vec<Repair>> {
    let exists = |sql: &str, id: i64| transaction.prepare_cached(sql)?.exists([id]);
    let sql = "SELECT 1 FROM capture WHERE id = ?1 AND artifact = ?2 AND seal = ?3";
    let is_proven = transaction.prepare_cached(sql)?.exists((capture.0, lost, seal))?;
    if !is_proven {
        return Ok(Vec::new());
    }
    let others = ARTIFACTS.iter().filter(|(table, _)| !matches!(*table, "artifact" | "capture"));
    let mut is_referred_to = false;
    for (table, column) in others {
        is_referred_to |= exists(&format!("SELECT 1 FROM {table} WHERE {column} = ?1"), lost)?;
    }
    // If nothing else refers to the lost number, the number in the capture may be the wrong one.
    if !is_referred_to
        || exists("SELECT 1 FROM capture WHERE artifact = ?1", own)?
        || exists("SELECT 1 FROM artifact WHERE id = ?1", lost)?
    {
        transaction.execute("UPDATE capture SET artifact = ?2 WHERE id = ?1", (capture.0, own))?;
        let subject = Subject::Capture(admitted.capture());
        return Ok(vec![Repair { subject, did: "assigned to its artifact again" }]);
    }
    transaction.execute("UPDATE artifact SET id = ?2 WHERE id = ?1", (own, lost))?;
    Ok(vec![Repair { subject: Subject::Artifact(admitted.core()), did: "given its number again" }])
}

/// Deletes a capture of the artifact `core`.
fn drop_capture(
    connection: &Connection,
    core: CoreHash,
    capture: CaptureHash,
) -> rusqlite::Result<Vec<Repair>> {
    let Some(id) = capture_id(connection, core, capture)? else { return Ok(Vec::new()) };
    search::forget(connection, id)?;
    let readers = DecompressionDictionaryCache::default();
    let lists = MentionListReader { payloads: PayloadReader { connection, readers: &readers } };
    let mentions = readable(lists, id)?;
    mention_index::remove(
        connection,
        mentions.iter().map(|mention| (mention_index::key(&mention.digest), id)).collect(),
    )?;
    for sql in [
        "DELETE FROM mention_list WHERE capture = ?1",
        "DELETE FROM signature WHERE capture = ?1",
        "DELETE FROM member WHERE capture = ?1",
        "DELETE FROM capture WHERE id = ?1",
    ] {
        connection.execute(sql, [id])?;
    }
    Ok(vec![Repair { subject: Subject::Capture(capture), did: "dropped, to be added again" }])
}

/// Deletes payloads whose blob is lost, unless something refers to them: their hashes are not known, and a new blob
/// could get their number.
fn drop_orphans(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "DELETE FROM payload WHERE blob NOT IN (SELECT id FROM blob)
                  AND blob NOT IN (SELECT blob FROM capture)
                  AND blob NOT IN (SELECT blob FROM member)
                  AND blob NOT IN (SELECT base FROM payload WHERE base IS NOT NULL)";
    connection.execute(sql, []).map(drop)
}

/// Whether a capture of the artifact is sealed with the artifact's core hash.
fn is_sealed(transaction: &Transaction<'_>, artifact: &CheckedArtifact) -> rusqlite::Result<bool> {
    let mut captures = transaction.prepare(
        "SELECT b.digest, c.seal FROM capture c LEFT JOIN blob b ON b.id = c.blob
          WHERE c.artifact = ?1",
    )?;
    let mut captures = captures.query([artifact.id])?;
    while let Some(row) = captures.next()? {
        let capture: Option<CaptureHash> = row.get(0)?;
        let seal_of = |capture| seal(artifact.core, capture);
        if capture
            .map(seal_of)
            .is_some_and(|seal| row.get_ref(1).is_ok_and(|stored| stored.as_blob() == Ok(&seal)))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

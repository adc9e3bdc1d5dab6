//! Putting right what can be put right without guessing. Each step is one transaction with its entry in the journal.

use std::collections::HashMap;
use std::path::Path;

use chrono::Utc;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::check::finding::Subject;
use super::check::{CaptureId, CheckedArtifact, UNREFERENCED, take_from_others};
use super::dictionaries::Readers;
use super::error::ReadFailure;
use super::journal::{self, Entry, Journal};
use super::payload::{self, Body, Payload, Payloads};
use super::read::{artifact_id, blob_id, capture_id};
use super::write::seal;
use super::{PayloadDefect, Result, Store, StoreError, cut};
use crate::artifact::{Admitted, is_capture_of};
use crate::digest::{BlobHash, CaptureHash, Digest};

/// Something that was put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// What.
    pub subject: Subject,
    /// What was done, such as `dropped`.
    pub did: &'static str,
}

impl Store {
    /// Lets nobody but the owner write the vault's files; `subject` is the one that others could write.
    ///
    /// # Errors
    /// What the system says.
    pub fn mend_permissions(&self, subject: Subject) -> Result<Vec<Mended>> {
        take_from_others(&self.path).map_err(|source| StoreError::Io { path: self.path.clone(), source })?;
        self.mend(|_| Ok(vec![Mended { subject, did: "closed to others" }]))
    }

    /// Makes SQLite's own indexes anew, unless the file is too damaged for that.
    ///
    /// # Errors
    /// What the system says.
    pub fn mend_sql_indexes(&self) -> Result<Vec<Mended>> {
        let mended = Mended { subject: Subject::File("database".to_owned()), did: "made SQL indexes anew" };
        match self.mend(|transaction| transaction.execute_batch("REINDEX").map(|()| vec![mended])) {
            Err(StoreError::Corrupt { .. } | StoreError::Database { .. }) => Ok(Vec::new()),
            outcome => outcome,
        }
    }

    /// Puts `bytes` where the bytes of `blob` are damaged or missing. What is stored as a difference to them can be read
    /// again. Gives nothing if they have another hash, or the vault has no such blob.
    ///
    /// # Errors
    /// What the system says.
    pub fn restore_blob(&self, blob: BlobHash, bytes: &[u8]) -> Result<Vec<Mended>> {
        if BlobHash(Digest::of(bytes)) != blob {
            return Ok(Vec::new());
        }
        self.mend(|transaction| {
            let Some(id) = blob_id(transaction, blob)? else { return Ok(Vec::new()) };
            restore(transaction, id, bytes)?;
            Ok(vec![Mended { subject: Subject::Blob(blob), did: "restored" }])
        })
    }

    /// Gives a blob its hash again, if what is stored there has another one that the seal or the hash of a capture proves.
    ///
    /// # Errors
    /// What the system says.
    pub fn mend_digest(&self, blob: BlobHash) -> Result<Vec<Mended>> {
        self.mend(|transaction| {
            let Some(id) = blob_id(transaction, blob)? else { return Ok(Vec::new()) };
            let readers = Readers::default();
            let payloads = Payloads { connection: transaction, readers: &readers };
            let Err(ReadFailure::Defect(PayloadDefect::Hash { actual, .. })) = payloads.bytes(id, blob)
            else {
                return Ok(Vec::new());
            };
            if blob_id(transaction, actual)?.is_some() || !is_proven(transaction, id, actual)? {
                return Ok(Vec::new());
            }
            transaction.execute("UPDATE blob SET digest = ?2 WHERE id = ?1", (id, actual.0.as_bytes()))?;
            Ok(vec![Mended { subject: Subject::Blob(actual), did: "given its hash again" }])
        })
    }

    /// Takes a capture out of the vault, to be added again.
    ///
    /// # Errors
    /// What the system says.
    pub fn drop_capture(&self, capture: CaptureHash) -> Result<Vec<Mended>> {
        self.mend(|transaction| {
            let Some(id) = capture_id(transaction, capture)? else { return Ok(Vec::new()) };
            for sql in [
                "DELETE FROM mention_list WHERE capture = ?1",
                "DELETE FROM member WHERE capture = ?1",
                "DELETE FROM capture WHERE id = ?1",
            ] {
                transaction.execute(sql, [id])?;
            }
            Ok(vec![Mended { subject: Subject::Capture(capture), did: "dropped, to be added again" }])
        })
    }

    /// Restores dictionaries that `other` has undamaged, and drops damaged ones that nothing needs.
    ///
    /// # Errors
    /// What the system says.
    pub fn mend_dictionaries(&self, other: Option<&Self>) -> Result<Vec<Mended>> {
        let damaged = self.with_connection(|connection| damaged_dictionaries(connection))?;
        if damaged.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for (id, digest) in damaged {
            let bytes = match other {
                Some(other) => other.with_connection(|connection| {
                    let sql = "SELECT bytes FROM dictionary WHERE digest = ?1";
                    connection.query_row(sql, [digest.as_bytes()], |row| row.get::<_, Vec<u8>>(0)).optional()
                })?,
                None => None,
            };
            found.push((id, bytes.filter(|bytes| Digest::of(bytes) == digest)));
        }
        self.mend(|transaction| {
            let mut mended = Vec::new();
            for (id, bytes) in found {
                let subject = Subject::Dictionary(id);
                let (changed, did) = if let Some(bytes) = bytes {
                    let sql = "UPDATE dictionary SET bytes = ?2 WHERE id = ?1";
                    (transaction.execute(sql, (id, bytes))?, "restored")
                } else {
                    let sql = "DELETE FROM dictionary WHERE id = ?1
                                 AND id NOT IN (SELECT dictionary FROM payload WHERE dictionary IS NOT NULL)";
                    (transaction.execute(sql, [id])?, "dropped")
                };
                if changed > 0 {
                    mended.push(Mended { subject, did });
                }
            }
            Ok(mended)
        })
    }

    /// Drops blobs that nothing refers to.
    ///
    /// # Errors
    /// What the system says.
    pub fn drop_unreferenced(&self) -> Result<Vec<Mended>> {
        self.mend(|transaction| {
            let mut mended = Vec::new();
            loop {
                let blobs: Vec<(i64, Digest)> = transaction
                    .prepare(UNREFERENCED)?
                    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect::<rusqlite::Result<_>>()?;
                // What was only needed by what is dropped comes in the next round.
                if blobs.is_empty() {
                    return Ok(mended);
                }
                for (id, digest) in blobs {
                    transaction.execute("UPDATE mention_list SET blob = NULL WHERE blob = ?1", [id])?;
                    transaction.execute("DELETE FROM payload WHERE blob = ?1", [id])?;
                    transaction.execute("DELETE FROM blob WHERE id = ?1", [id])?;
                    mended.push(Mended { subject: Subject::Blob(BlobHash(digest)), did: "dropped" });
                }
            }
        })
    }

    /// Puts `capture` of `artifact` to the artifact that it is of, as its seal proves: what was admitted is what was sealed
    /// when it was added.
    ///
    /// # Errors
    /// What the system says.
    pub fn mend_core(
        &self,
        artifact: &CheckedArtifact,
        capture: CaptureId,
        admitted: &Admitted,
    ) -> Result<Vec<Mended>> {
        let expected = Self::seal_of(admitted);
        self.mend(|transaction| {
            let stored: Option<Vec<u8>> = transaction
                .query_row("SELECT seal FROM capture WHERE id = ?1", [capture.0], |row| row.get(0))
                .optional()?;
            if stored.as_deref() != Some(&expected) {
                return Ok(Vec::new());
            }
            let subject = Subject::Capture(admitted.capture());
            if let Some(own) = artifact_id(transaction, admitted.core())? {
                if own == artifact.id.0 {
                    return Ok(Vec::new());
                }
                transaction.execute("UPDATE capture SET artifact = ?2 WHERE id = ?1", (capture.0, own))?;
                return Ok(vec![Mended { subject, did: "given back to its artifact" }]);
            }
            if is_sealed(transaction, artifact)? {
                // Another capture is of the artifact as it is called; this one's own artifact is gone.
                return Ok(Vec::new());
            }
            let core = admitted.core();
            transaction
                .execute("UPDATE artifact SET core = ?2 WHERE id = ?1", (artifact.id.0, core.0.as_bytes()))?;
            Ok(vec![Mended { subject: Subject::Artifact(core), did: "given its hash again" }])
        })
    }

    /// Makes the rows of artifacts anew that captures belong to. `admitted` is what such a capture was admitted as.
    ///
    /// # Errors
    /// What the system says.
    pub fn mend_artifact(
        &self,
        artifact: &CheckedArtifact,
        capture: CaptureId,
        admitted: &Admitted,
    ) -> Result<Vec<Mended>> {
        let expected = Self::seal_of(admitted);
        self.mend(|transaction| {
            if artifact_id(transaction, admitted.core())?.is_some() {
                return Ok(Vec::new());
            }
            let changed = transaction.execute(
                "INSERT OR IGNORE INTO artifact (id, core, kind, added_at)
                 SELECT ?1, ?2, k.id, (SELECT min(added_at) FROM capture WHERE artifact = ?1)
                   FROM kind k, capture c
                  WHERE k.name = ?3 AND c.id = ?4 AND c.artifact = ?1 AND c.seal = ?5",
                (artifact.id.0, admitted.core().0.as_bytes(), admitted.kind().name(), capture.0, expected),
            )?;
            let mended =
                Mended { subject: Subject::Artifact(admitted.core()), did: "put into its table again" };
            Ok(if changed > 0 { vec![mended] } else { Vec::new() })
        })
    }

    /// Takes the times of captures from the journal.
    ///
    /// # Errors
    /// What the system says.
    pub fn mend_times(&self) -> Result<Vec<Mended>> {
        self.mend(|transaction| {
            let mut recorded: HashMap<CaptureHash, i64> = HashMap::new();
            let mut entries = transaction
                .prepare("SELECT capture, at FROM journal WHERE capture IS NOT NULL ORDER BY seq")?;
            let mut entries = entries.query([])?;
            while let Some(row) = entries.next()? {
                recorded.insert(row.get(0)?, row.get(1)?);
            }
            let stored: Vec<(i64, Option<CaptureHash>, i64)> = transaction
                .prepare(
                    "SELECT c.id, coalesce(c.digest, b.digest), c.added_at
                       FROM capture c LEFT JOIN blob b ON b.id = c.blob ORDER BY c.id",
                )?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect::<rusqlite::Result<_>>()?;
            let mut mended = Vec::new();
            for (id, capture, stored) in stored {
                let Some(capture) = capture else { continue };
                if let Some(at) = recorded.get(&capture).filter(|at| **at != stored) {
                    transaction.execute("UPDATE capture SET added_at = ?2 WHERE id = ?1", (id, at))?;
                    mended
                        .push(Mended { subject: Subject::Capture(capture), did: "given the journal's time" });
                }
            }
            Ok(mended)
        })
    }

    /// What binds an artifact's capture to it in a vault.
    #[must_use]
    pub fn seal_of(admitted: &Admitted) -> [u8; 16] {
        seal(admitted.core(), admitted.capture())
    }

    /// Does `work` and journals what was mended, in one transaction.
    fn mend(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Vec<Mended>>,
    ) -> Result<Vec<Mended>> {
        self.with_connection(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mended = work(&transaction)?;
            let at = Utc::now();
            let mut journal = Journal::of(&transaction)?;
            for Mended { subject, did } in &mended {
                let entry = Entry::Repair { at: &journal::text(at), did, subject: &subject.to_string() };
                journal.append(&transaction, at, &entry)?;
            }
            transaction.commit()?;
            Ok(mended)
        })
    }

    fn with_connection<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut connection = self.connection()?;
        let failed = |error| StoreError::of(Path::new(&self.path), error);
        work(&mut connection).map_err(failed)
    }
}

/// Stores `bytes` whole as the blob of this number, in the form in which what is stored as a difference to them can be
/// read.
fn restore(transaction: &Transaction<'_>, blob: i64, bytes: &[u8]) -> rusqlite::Result<()> {
    transaction.execute("UPDATE blob SET size = ?2 WHERE id = ?1", (blob, bytes.len()))?;
    // They name digests by their places in the blob, and those may be others now. They are made anew after this.
    transaction.execute("DELETE FROM mention_list WHERE blob = ?1", [blob])?;
    let dependents: Vec<(i64, Digest)> = transaction
        .prepare("SELECT b.id, b.digest FROM payload p JOIN blob b ON b.id = p.blob WHERE p.base = ?1")?
        .query_map([blob], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    // If it was itself a difference to one of those, they cannot be differences to it any more.
    write_payload(transaction, blob, bytes, &Payload::of(bytes, cut::cut(bytes), None))?;
    let readable = || -> rusqlite::Result<usize> {
        let readers = Readers::default();
        let payloads = Payloads { connection: transaction, readers: &readers };
        Ok(dependents.iter().filter(|(id, digest)| payloads.bytes(*id, BlobHash(*digest)).is_ok()).count())
    };
    let with_cuts = readable()?;
    if with_cuts < dependents.len() {
        write_payload(transaction, blob, bytes, &Payload { digests: Vec::new(), body: Body::Raw })?;
        if readable()? < with_cuts {
            write_payload(transaction, blob, bytes, &Payload::of(bytes, cut::cut(bytes), None))?;
        }
    }
    Ok(())
}

fn write_payload(
    transaction: &Transaction<'_>,
    blob: i64,
    bytes: &[u8],
    payload: &Payload,
) -> rusqlite::Result<()> {
    let digests = (!payload.digests.is_empty()).then(|| payload::as_bytes(&payload.digests));
    let (encoding, stored) = match &payload.body {
        Body::Frame { frame, .. } if digests.is_some() => (payload::CUT, frame.as_slice()),
        Body::Frame { frame, .. } => (payload::FRAME, frame.as_slice()),
        Body::Raw | Body::Waiting => (payload::RAW, bytes),
    };
    // Not replaced: others may refer to the row.
    transaction.execute(
        "INSERT INTO payload (blob, encoding, digests, bytes) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (blob) DO UPDATE SET encoding = excluded.encoding, base = NULL, dictionary = NULL,
           digests = excluded.digests, bytes = excluded.bytes",
        (blob, encoding, digests, stored),
    )?;
    Ok(())
}

/// Whether the seal or the hash of a capture that has the blob `id` says that this is its hash.
fn is_proven(transaction: &Transaction<'_>, id: i64, actual: BlobHash) -> rusqlite::Result<bool> {
    let mut documents = transaction.prepare(
        "SELECT a.core, c.seal FROM capture c JOIN artifact a ON a.id = c.artifact WHERE c.blob = ?1",
    )?;
    let mut documents = documents.query([id])?;
    while let Some(row) = documents.next()? {
        if row.get_ref(1)?.as_blob()? == seal(row.get(0)?, CaptureHash(actual.0)) {
            return Ok(true);
        }
    }
    let captures: Vec<(i64, Option<CaptureHash>)> = transaction
        .prepare("SELECT c.id, c.digest FROM capture c JOIN member m ON m.capture = c.id WHERE m.blob = ?1")?
        .query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (capture, digest) in captures {
        let files: Vec<(String, BlobHash)> = transaction
            .prepare("SELECT m.name, b.id, b.digest FROM member m JOIN blob b ON b.id = m.blob WHERE m.capture = ?1")?
            .query_map([capture], |row| {
                let digest = if row.get::<_, i64>(1)? == id { actual } else { BlobHash(row.get(2)?) };
                Ok((row.get(0)?, digest))
            })?
            .collect::<rusqlite::Result<_>>()?;
        let files: Vec<(&str, BlobHash)> = files.iter().map(|(name, blob)| (name.as_str(), *blob)).collect();
        if digest.is_some_and(|digest| is_capture_of(digest, &files)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a capture is of the artifact as it is called.
fn is_sealed(transaction: &Transaction<'_>, artifact: &CheckedArtifact) -> rusqlite::Result<bool> {
    let mut captures = transaction.prepare(
        "SELECT coalesce(c.digest, b.digest), c.seal FROM capture c LEFT JOIN blob b ON b.id = c.blob
          WHERE c.artifact = ?1",
    )?;
    let mut captures = captures.query([artifact.id.0])?;
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

fn damaged_dictionaries(connection: &Connection) -> rusqlite::Result<Vec<(i64, Digest)>> {
    let mut damaged = Vec::new();
    let mut statement = connection.prepare("SELECT id, digest, bytes FROM dictionary ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let digest: Digest = row.get(1)?;
        if Digest::of(row.get_ref(2)?.as_blob()?) != digest {
            damaged.push((row.get(0)?, digest));
        }
    }
    Ok(damaged)
}

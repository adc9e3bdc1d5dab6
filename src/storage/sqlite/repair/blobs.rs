//! Repairs of stored bytes and of the dictionaries that they are compressed with.

use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::artifact::is_capture_of;
use crate::digest::{BlobHash, CaptureHash, Digest};
use crate::storage::check::journal::JournalReader;
use crate::storage::check::{DictionaryCopy, Inspection, RecordedCapture, Repair, Subject};
use crate::storage::seal::seal;
use crate::storage::sqlite::check::{SURPLUS_DICTIONARY, SURPLUS_DIGESTS, UNREFERENCED};
use crate::storage::sqlite::content::as_bytes;
use crate::storage::sqlite::dictionaries::{DecompressionDictionaryCache, DictionarySeal};
use crate::storage::sqlite::error::ReadFailure;
use crate::storage::sqlite::ids::blob_id;
use crate::storage::sqlite::payload::{self, Payload, PayloadBody, PayloadReader};
use crate::storage::sqlite::{Store, digest_stripping};
use crate::storage::{PayloadDefect, Result};

pub(super) const RESIZED: &str = "given its size again";

/// Size in bytes that no blob exceeds.
const LARGEST: usize = 1 << 30;

impl Store {
    /// Replaces the damaged or missing bytes of `blob` with `bytes`. Deltas against them become readable again. Repairs
    /// nothing if `bytes` have another hash, or the vault has no such blob.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn restore_blob(&self, blob: BlobHash, bytes: &[u8]) -> Result<Vec<Repair>> {
        if BlobHash(Digest::from_content(bytes)) != blob {
            return Ok(Vec::new());
        }
        self.repair(|transaction| {
            let Some(id) = blob_id(transaction, blob)? else { return Ok(Vec::new()) };
            restore(transaction, id, bytes)?;
            Ok(vec![Repair { subject: Subject::Blob(blob), did: "restored" }])
        })
    }

    /// Restores the lost rows of blobs of documents. The journal records the hash of such a blob, and the seal of the
    /// capture that refers to it proves which one it is.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn repair_blob_rows(&self) -> Result<Vec<Repair>> {
        let lost = self.inspect()?.captures_lost()?;
        self.repair(|transaction| {
            let mut repaired = Vec::new();
            for RecordedCapture { core, capture, .. } in lost {
                let blob = BlobHash(capture.0);
                if blob_id(transaction, blob)?.is_some() {
                    continue;
                }
                let inserted = transaction.execute(
                    "INSERT INTO blob (id, digest, size)
                     SELECT c.blob, ?3, c.size FROM capture c JOIN artifact a ON a.id = c.artifact
                      WHERE a.core = ?1 AND c.seal = ?2 AND c.blob NOT IN (SELECT id FROM blob) LIMIT 1",
                    (core.0.as_bytes(), seal(core, capture), capture.0.as_bytes()),
                )?;
                if inserted > 0 {
                    repaired.push(Repair { subject: Subject::Blob(blob), did: "restored to its table" });
                }
            }
            Ok(repaired)
        })
    }

    /// Corrects the recorded size of a blob with which its bytes cannot be read, and its recorded hash if its stored bytes
    /// have another hash that the seal or the hash of a capture proves.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn repair_digest(&self, blob: BlobHash) -> Result<Vec<Repair>> {
        self.repair(|transaction| {
            let Some(id) = blob_id(transaction, blob)? else { return Ok(Vec::new()) };
            if repair_size(transaction, id, blob)? {
                return Ok(vec![Repair { subject: Subject::Blob(blob), did: RESIZED }]);
            }
            let readers = DecompressionDictionaryCache::default();
            let payloads = PayloadReader { connection: transaction, readers: &readers };
            let Err(ReadFailure::Defect(PayloadDefect::Hash { actual, .. })) = payloads.bytes(id, blob)
            else {
                return Ok(Vec::new());
            };
            if blob_id(transaction, actual)?.is_some() || !is_proven(transaction, id, actual)? {
                return Ok(Vec::new());
            }
            transaction.execute("UPDATE blob SET digest = ?2 WHERE id = ?1", (id, actual.0.as_bytes()))?;
            Ok(vec![Repair { subject: Subject::Blob(actual), did: "given its hash again" }])
        })
    }

    /// Restores damaged dictionaries that `other` has undamaged. Without `other`, corrects the fields stored with their
    /// bytes if their digests prove them, and drops damaged dictionaries that no payload needs.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn repair_dictionaries(&self, other: Option<&dyn Inspection>) -> Result<Vec<Repair>> {
        let damaged = self.with_connection(|connection| damaged_dictionaries(connection))?;
        if damaged.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for (id, digest) in damaged {
            let whole = match other {
                Some(other) => other.dictionary(&digest)?,
                None => None,
            };
            found.push((id, digest, whole));
        }
        self.repair(|transaction| {
            let mut repaired = Vec::new();
            for (id, digest, whole) in found {
                let subject = Subject::Dictionary(id);
                let (changed, did) = if let Some(DictionaryCopy { bytes, begun, kind }) = whole {
                    let sql = "UPDATE dictionary SET bytes = ?2, begun = ?3,
                                      kind = coalesce((SELECT id FROM kind WHERE name = ?4), kind) WHERE id = ?1";
                    (transaction.execute(sql, (id, bytes, begun, kind))?, "restored")
                } else if let Some((begun, kind)) = proven_seal(transaction, id, &digest)? {
                    let sql = "UPDATE dictionary SET begun = ?2, kind = ?3 WHERE id = ?1";
                    (transaction.execute(sql, (id, begun, kind))?, "restored")
                } else {
                    let sql = "DELETE FROM dictionary WHERE id = ?1
                                 AND id NOT IN (SELECT dictionary FROM payload WHERE dictionary IS NOT NULL)";
                    (transaction.execute(sql, [id])?, "dropped")
                };
                if changed > 0 {
                    repaired.push(Repair { subject, did });
                }
            }
            Ok(repaired)
        })
    }

    /// Removes digests and dictionaries from payloads whose encoding does not use them, and files from captures of documents.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be written.
    pub fn drop_surplus(&self) -> Result<Vec<Repair>> {
        self.repair(|transaction| {
            let digests = format!("UPDATE payload SET digests = NULL WHERE {SURPLUS_DIGESTS}");
            let dictionaries = format!("UPDATE payload SET dictionary = NULL WHERE {SURPLUS_DICTIONARY}");
            let changed = transaction.execute(&digests, [])? + transaction.execute(&dictionaries, [])?;
            let subject = Subject::Table("payload".to_owned());
            let repaired = Repair { subject, did: "removed what no encoding uses" };
            let mut repairs: Vec<Repair> = (changed > 0).then_some(repaired).into_iter().collect();
            let sql = "DELETE FROM member WHERE capture IN
                         (SELECT c.id FROM capture c JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind
                           WHERE k.member IS NOT NULL)";
            if transaction.execute(sql, [])? > 0 {
                let subject = Subject::Table("member".to_owned());
                repairs.push(Repair { subject, did: "removed files that belong to no directory" });
            }
            Ok(repairs)
        })
    }

    /// Drops unreferenced blobs.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn drop_unreferenced(&self) -> Result<Vec<Repair>> {
        self.repair(|transaction| {
            let mut repaired = Vec::new();
            loop {
                let blobs: Vec<(i64, Digest)> = transaction
                    .prepare(UNREFERENCED)?
                    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect::<rusqlite::Result<_>>()?;
                let before = repaired.len();
                for (id, digest) in blobs {
                    transaction.execute("UPDATE mention_list SET blob = NULL WHERE blob = ?1", [id])?;
                    transaction.execute("DELETE FROM payload WHERE blob = ?1", [id])?;
                    // If rows are out of order, a row that was read may not be found.
                    if transaction.execute("DELETE FROM blob WHERE id = ?1", [id])? > 0 {
                        repaired.push(Repair { subject: Subject::Blob(BlobHash(digest)), did: "dropped" });
                    }
                }
                // Blobs needed only by dropped ones are dropped in the next round.
                if repaired.len() == before {
                    return Ok(repaired);
                }
            }
        })
    }
}

/// Corrects the size of the blob `id` if its bytes, whose hash is `blob`, are only readable without it: it limits what is
/// decompressed. Returns whether it was changed.
pub(super) fn repair_size(transaction: &Transaction<'_>, id: i64, blob: BlobHash) -> rusqlite::Result<bool> {
    let bytes = || {
        let readers = DecompressionDictionaryCache::default();
        PayloadReader { connection: transaction, readers: &readers }.bytes(id, blob)
    };
    let resize = |size| transaction.execute("UPDATE blob SET size = ?2 WHERE id = ?1", (id, size));
    if bytes().is_ok() {
        return Ok(false);
    }
    transaction.execute_batch("SAVEPOINT size")?;
    resize(LARGEST)?;
    if let Ok(bytes) = bytes() {
        resize(bytes.len())?;
        transaction.execute_batch("RELEASE size")?;
        return Ok(true);
    }
    transaction.execute_batch("ROLLBACK TO size; RELEASE size")?;
    Ok(false)
}

/// Stores `bytes` whole as the blob with this row id, in the form from which its deltas can be read.
fn restore(transaction: &Transaction<'_>, blob: i64, bytes: &[u8]) -> rusqlite::Result<()> {
    transaction.execute("UPDATE blob SET size = ?2 WHERE id = ?1", (blob, bytes.len()))?;
    let dependents: Vec<(i64, Digest)> = transaction
        .prepare("SELECT b.id, b.digest FROM payload p JOIN blob b ON b.id = p.blob WHERE p.base = ?1")?
        .query_map([blob], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let stripped = Payload::new(bytes, digest_stripping::strip(bytes).as_ref(), None);
    let had_digests = has_digests(transaction, blob)?.unwrap_or(!stripped.digests.is_empty());
    // If it was a delta against one of those, they can no longer be deltas against it.
    write_payload(transaction, blob, bytes, &stripped)?;
    let readable = || -> rusqlite::Result<usize> {
        let readers = DecompressionDictionaryCache::default();
        let payloads = PayloadReader { connection: transaction, readers: &readers };
        Ok(dependents.iter().filter(|(id, digest)| payloads.bytes(*id, BlobHash(*digest)).is_ok()).count())
    };
    let with_cuts = readable()?;
    if with_cuts < dependents.len() {
        write_payload(transaction, blob, bytes, &Payload { digests: Vec::new(), body: PayloadBody::Raw })?;
        if readable()? < with_cuts {
            write_payload(transaction, blob, bytes, &stripped)?;
        }
    }
    // Lists refer to digests by their positions in those that are stripped from the blob. If these are stored now and were
    // not before, or the other way around, the lists are wrong, and are rebuilt afterwards.
    if has_digests(transaction, blob)? != Some(had_digests) {
        transaction.execute("DELETE FROM mention_list WHERE blob = ?1", [blob])?;
    }
    Ok(())
}

/// Returns whether digests are stored apart from the text of a blob; `None` if nothing is stored.
fn has_digests(transaction: &Transaction<'_>, blob: i64) -> rusqlite::Result<Option<bool>> {
    let sql = "SELECT digests IS NOT NULL FROM payload WHERE blob = ?1";
    transaction.query_row(sql, [blob], |row| row.get(0)).optional()
}

fn write_payload(
    transaction: &Transaction<'_>,
    blob: i64,
    bytes: &[u8],
    payload: &Payload,
) -> rusqlite::Result<()> {
    let digests = (!payload.digests.is_empty()).then(|| as_bytes(&payload.digests));
    let (encoding, stored) = match &payload.body {
        PayloadBody::Frame { frame, .. } if digests.is_some() => (payload::STRIPPED_FRAME, frame.as_slice()),
        PayloadBody::Frame { frame, .. } => (payload::FRAME, frame.as_slice()),
        PayloadBody::Raw => (payload::RAW, bytes),
    };
    // Not replaced: other rows may refer to it.
    transaction.execute(
        "INSERT INTO payload (blob, encoding, digests, bytes) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (blob) DO UPDATE SET encoding = excluded.encoding, base = NULL, dictionary = NULL,
           digests = excluded.digests, bytes = excluded.bytes",
        (blob, encoding, digests, stored),
    )?;
    Ok(())
}

/// Whether the seal or the hash of a capture with the blob `id` proves that `actual` is its hash.
pub(super) fn is_proven(transaction: &Transaction<'_>, id: i64, actual: BlobHash) -> rusqlite::Result<bool> {
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
        .prepare(
            "SELECT c.id, b.digest FROM capture c JOIN member m ON m.capture = c.id LEFT JOIN blob b ON b.id = c.blob
              WHERE m.blob = ?1",
        )?
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

fn damaged_dictionaries(connection: &Connection) -> rusqlite::Result<Vec<(i64, Digest)>> {
    let mut damaged = Vec::new();
    let mut statement = connection.prepare(
        "SELECT d.id, d.digest, d.bytes, d.begun, coalesce(k.name, '') FROM dictionary d
           LEFT JOIN kind k ON k.id = d.kind ORDER BY d.id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let digest: Digest = row.get(1)?;
        let content = Digest::from_content(row.get_ref(2)?.as_blob()?);
        let sealed = DictionarySeal { begun: row.get(3)?, kind: row.get_ref(4)?.as_str()? };
        if sealed.digest(&content) != digest {
            damaged.push((row.get(0)?, digest));
        }
    }
    Ok(damaged)
}

/// Returns the journal entry and the row id of the kind that the digest of a dictionary proves, out of the existing
/// ones.
fn proven_seal(connection: &Connection, id: i64, digest: &Digest) -> rusqlite::Result<Option<(i64, i64)>> {
    let bytes: Vec<u8> =
        connection.query_row("SELECT bytes FROM dictionary WHERE id = ?1", [id], |row| row.get(0))?;
    let content = Digest::from_content(&bytes);
    let last: Option<i64> = connection.query_row("SELECT max(seq) FROM journal", [], |row| row.get(0))?;
    let mut kinds = connection.prepare("SELECT id, name FROM kind ORDER BY id")?;
    let mut kinds = kinds.query([])?;
    while let Some(row) = kinds.next()? {
        let kind = row.get_ref(1)?.as_str()?;
        let is_proven = |begun: &i64| DictionarySeal { begun: *begun, kind }.digest(&content) == *digest;
        if let Some(begun) = (0..=last.unwrap_or(0)).find(is_proven) {
            return Ok(Some((begun, row.get(0)?)));
        }
    }
    Ok(None)
}

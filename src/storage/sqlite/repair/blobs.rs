//! Repairs of stored bytes, and of the rows that say which bytes are stored.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension};

use crate::artifact::parse_manifest;
use crate::digest::{BlobHash, Digest};
use crate::storage::PayloadDefect;
use crate::storage::check::{Repair, Subject};
use crate::storage::sqlite::check::{SURPLUS_BASE, SURPLUS_DICTIONARY, SURPLUS_DIGESTS, wrong_last_number};
use crate::storage::sqlite::dictionaries::{self, DecompressionDictionaryCache};
use crate::storage::sqlite::digest_stripping;
use crate::storage::sqlite::error::ReadFailure;
use crate::storage::sqlite::payload::{Payload, PayloadBody, PayloadReader, PayloadRow, StoredPayload};
use crate::storage::sqlite::rows::{BLOBS, MAX_ROW, blob_id, next_row};

/// Size in bytes that no blob exceeds.
const LARGEST: i64 = 1 << 30;

/// Stores bytes as the blob with their hash, unless it is there undamaged. Returns whether it was changed.
pub(super) fn store(connection: &Connection, blob: BlobHash, bytes: &[u8]) -> rusqlite::Result<bool> {
    let id = match blob_id(connection, blob)? {
        Some(id) if read(connection, id, blob).is_ok() => return Ok(false),
        Some(id) => id,
        None => {
            let id = next_row(connection, BLOBS)?;
            let sql = "INSERT INTO blob (id, digest, size) VALUES (?1, ?2, 0)";
            connection.execute(sql, (id, blob.0.as_bytes()))?;
            id
        }
    };
    restore(connection, id, bytes)?;
    Ok(true)
}

fn read(connection: &Connection, id: i64, blob: BlobHash) -> Result<Vec<u8>, ReadFailure> {
    let readers = DecompressionDictionaryCache::default();
    PayloadReader { connection, readers: &readers }.bytes(id, blob)
}

/// Makes the rows of blobs those of the stored bytes: their hashes and sizes, if the hash is one that the vault should have.
/// Removes from payloads what their encodings do not use.
pub(super) fn settle(connection: &Connection, repaired: &mut Vec<Repair>) -> rusqlite::Result<()> {
    let mut did = |table: &str, did| repaired.push(Repair { subject: Subject::Table(table.to_owned()), did });
    let mut surplus = 0;
    for (column, condition) in
        [("digests", SURPLUS_DIGESTS), ("dictionary", SURPLUS_DICTIONARY), ("base", SURPLUS_BASE)]
    {
        let sql = format!("UPDATE payload SET {column} = NULL WHERE {condition}");
        surplus += connection.execute(&sql, [])?;
    }
    if surplus > 0 {
        did("payload", "removed what no encoding uses");
    }
    // Without a row, the largest number in the table is the last one.
    if connection.execute(&format!("DELETE FROM sqlite_sequence WHERE {}", wrong_last_number()), [])? > 0 {
        did("sqlite_sequence", "removed wrong last numbers");
    }
    if store_without_damaged_dictionaries(connection)? {
        did("payload", "stored without damaged dictionaries");
    }
    renumber_impossible(connection)?;
    // Bytes that are stored whole come first: others are differences to them.
    let payloads: Vec<i64> = connection
        .prepare("SELECT blob FROM payload ORDER BY base IS NOT NULL, blob")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut known = None;
    for id in payloads {
        if let Some(digest) = settle_blob(connection, id, &mut known)? {
            let did = "given the hash and size of its bytes again";
            repaired.push(Repair { subject: Subject::Blob(digest), did });
        }
    }
    let sql = "DELETE FROM blob WHERE id NOT IN (SELECT blob FROM payload) AND EXISTS
                 (SELECT 1 FROM blob o JOIN payload p ON p.blob = o.id WHERE o.digest = blob.digest)";
    connection.execute(sql, []).map(drop)
}

/// Stores the bytes that can be read with dictionaries which do not have their digests without these: nothing else proves
/// what they contain. Returns whether there were any.
fn store_without_damaged_dictionaries(connection: &Connection) -> rusqlite::Result<bool> {
    let mut is_changed = false;
    for (dictionary, _) in dictionaries::damaged(connection)? {
        let blobs: Vec<(i64, BlobHash)> = connection
            .prepare_cached(
                "SELECT b.id, b.digest FROM payload p JOIN blob b ON b.id = p.blob WHERE p.dictionary = ?1",
            )?
            .query_map([dictionary], |row| Ok((row.get(0)?, BlobHash(row.get(1)?))))?
            .collect::<rusqlite::Result<_>>()?;
        for (id, blob) in blobs {
            if let Ok(bytes) = read(connection, id, blob) {
                restore(connection, id, &bytes)?;
                is_changed = true;
            }
        }
    }
    Ok(is_changed)
}

/// Gives blobs with numbers that no addition assigns the next ones that are free.
fn renumber_impossible(connection: &Connection) -> rusqlite::Result<()> {
    let numbers = "(SELECT id FROM blob UNION SELECT blob FROM payload)";
    let is_valid = format!("BETWEEN 1 AND {MAX_ROW}");
    let impossible: Vec<i64> = connection
        .prepare(&format!("SELECT id FROM {numbers} WHERE id NOT {is_valid} ORDER BY id"))?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let next = format!("SELECT coalesce(max(id), 0) + 1 FROM {numbers} WHERE id {is_valid}");
    let next: i64 = connection.query_row(&next, [], |row| row.get(0))?;
    for (id, next) in impossible.into_iter().zip(next..) {
        for (table, column) in BLOBS {
            let sql = format!("UPDATE {table} SET {column} = ?2 WHERE {column} = ?1");
            connection.prepare_cached(&sql)?.execute((id, next))?;
        }
    }
    Ok(())
}

/// Makes the row of a blob that of its stored bytes. Returns its hash if the row was changed.
fn settle_blob(
    connection: &Connection,
    id: i64,
    known: &mut Option<BTreeSet<BlobHash>>,
) -> rusqlite::Result<Option<BlobHash>> {
    let row = connection
        .prepare_cached("SELECT digest, size FROM blob WHERE id = ?1")?
        .query_row([id], |row| Ok((BlobHash(row.get(0)?), row.get::<_, i64>(1)?)))
        .optional()?;
    let (digest, size) = row.unzip();
    let is_right = |bytes: &[u8]| size == i64::try_from(bytes.len()).ok();
    if digest.is_some_and(|digest| read(connection, id, digest).is_ok_and(|bytes| is_right(&bytes))) {
        return Ok(None);
    }
    // The recorded size would limit what is decompressed.
    let read = |named: BlobHash| {
        let sql = "SELECT ?2, encoding, base, dictionary, digests, bytes FROM payload WHERE blob = ?1";
        let mut select = connection.prepare_cached(sql)?;
        let row = select.query_row((id, LARGEST), |row| PayloadRow::from_row(row, named))?;
        let readers = DecompressionDictionaryCache::default();
        PayloadReader { connection, readers: &readers }.bytes_of(row).map(|bytes| (named, bytes.len()))
    };
    let found = match read(digest.unwrap_or(BlobHash(Digest::from_bytes([0; 32])))) {
        Err(ReadFailure::Defect(PayloadDefect::Hash { actual, .. })) => {
            let known = match known {
                Some(known) => known,
                None => known.insert(known_blobs(connection)?),
            };
            // Bytes that were changed have some hash, too.
            if known.contains(&actual) { read(actual).ok() } else { None }
        }
        found => found.ok(),
    };
    let Some((digest, size)) = found else { return Ok(None) };
    // The same bytes under another number are enough. A payload without a blob is removed.
    if let Some(other) = blob_id(connection, digest)?
        && other != id
        && self::read(connection, other, digest).is_ok()
    {
        return Ok(None);
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO blob (id, digest, size) VALUES (?1, ?2, ?3)")?
        .execute((id, digest.0.as_bytes(), size))?;
    Ok(Some(digest))
}

/// Returns the hashes of all bytes that the vault should have: those of captures in the journal, of the files in manifests,
/// and those that rows have.
fn known_blobs(connection: &Connection) -> rusqlite::Result<BTreeSet<BlobHash>> {
    let digests = |sql: &str| {
        let mut statement = connection.prepare(sql)?;
        statement.query_map([], |row| row.get(0).map(BlobHash))?.collect::<rusqlite::Result<BTreeSet<_>>>()
    };
    let mut known =
        digests("SELECT capture FROM journal WHERE capture IS NOT NULL UNION SELECT digest FROM blob")?;
    for manifest in digests(
        "SELECT DISTINCT j.capture FROM journal j JOIN kind k ON k.name = j.kind WHERE k.member IS NULL",
    )? {
        let Some(id) = blob_id(connection, manifest)? else { continue };
        let files = read(connection, id, manifest).ok().and_then(|bytes| parse_manifest(&bytes));
        known.extend(files.into_iter().flatten().map(|(_, file)| file));
    }
    Ok(known)
}

/// Stores `bytes` whole as the blob with this row id, in the form from which its deltas can be read.
fn restore(connection: &Connection, blob: i64, bytes: &[u8]) -> rusqlite::Result<()> {
    connection.execute("UPDATE blob SET size = ?2 WHERE id = ?1", (blob, bytes.len()))?;
    let dependents: Vec<(i64, Digest)> = connection
        .prepare("SELECT b.id, b.digest FROM payload p JOIN blob b ON b.id = p.blob WHERE p.base = ?1")?
        .query_map([blob], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let stripped = Payload::new(bytes, digest_stripping::strip(bytes).as_ref(), None);
    let had_digests = has_digests(connection, blob)?.unwrap_or(!stripped.digests.is_empty());
    let write = |payload: &Payload| StoredPayload::of(payload, bytes, None).write(connection, blob);
    // If it was a delta against one of those, they can no longer be deltas against it.
    write(&stripped)?;
    let readable = || -> rusqlite::Result<usize> {
        let readers = DecompressionDictionaryCache::default();
        let payloads = PayloadReader { connection, readers: &readers };
        Ok(dependents.iter().filter(|(id, digest)| payloads.bytes(*id, BlobHash(*digest)).is_ok()).count())
    };
    let with_cuts = readable()?;
    if with_cuts < dependents.len() {
        write(&Payload { digests: Vec::new(), body: PayloadBody::Raw })?;
        if readable()? < with_cuts {
            write(&stripped)?;
        }
    }
    // Lists refer to digests by their positions in those that are stripped from the blob. If these are stored now and were
    // not before, or the other way around, the lists are wrong, and are rebuilt afterwards.
    if has_digests(connection, blob)? != Some(had_digests) {
        connection.execute("DELETE FROM mention_list WHERE blob = ?1", [blob])?;
    }
    Ok(())
}

/// Returns whether digests are stored apart from the text of a blob; `None` if nothing is stored.
fn has_digests(connection: &Connection, blob: i64) -> rusqlite::Result<Option<bool>> {
    let sql = "SELECT digests IS NOT NULL FROM payload WHERE blob = ?1";
    connection.query_row(sql, [blob], |row| row.get(0)).optional()
}

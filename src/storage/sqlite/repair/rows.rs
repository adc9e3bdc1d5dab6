//! Repairs of row ids and of hashes that are not hashes: everything else refers to rows by them.

use rusqlite::{Connection, Transaction};

use super::blobs::{RESIZED, is_proven, repair_size};
use super::types;
use crate::artifact::is_capture_of;
use crate::digest::{BlobHash, CaptureHash, Digest};
use crate::storage::PayloadDefect;
use crate::storage::check::{Repair, Subject};
use crate::storage::journal::next;
use crate::storage::sqlite::dictionaries::DecompressionDictionaryCache;
use crate::storage::sqlite::error::ReadFailure;
use crate::storage::sqlite::ids::{ARTIFACTS, BLOBS, CAPTURES, MAX_ROW, blob_id};
use crate::storage::sqlite::payload::PayloadReader;
use crate::storage::sqlite::schema;
use crate::storage::sqlite::{Result, Store};

/// Maximum number of rows that are tried at each number: each attempt reads stored bytes.
const ATTEMPTS: usize = 64;

const RENUMBERED: &str = "given its number again";

impl Store {
    /// Gives entries of the journal whose numbers were changed their own again, if the chain proves them: later entries follow
    /// the last one.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn repair_end(&self) -> Result<Vec<Repair>> {
        self.repair(|transaction| {
            transaction.pragma_update(None, "defer_foreign_keys", true)?;
            let mut repaired = Vec::new();
            entries(transaction, &mut repaired)?;
            Ok(repaired)
        })
    }

    /// Gives blobs and captures whose row ids were changed their own again, if the bytes with those row ids prove them, and
    /// other rows with impossible row ids possible ones. Restores damaged hashes that stored bytes or the journal prove.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn repair_rows(&self) -> Result<Vec<Repair>> {
        self.repair(|transaction| {
            // Rows that refer to a row id are compared at the end.
            transaction.pragma_update(None, "defer_foreign_keys", true)?;
            let mut repaired = Vec::new();
            blobs(transaction, &mut repaired)?;
            captures(transaction, &mut repaired)?;
            digests(transaction, &mut repaired)?;
            sizes(transaction, &mut repaired)?;
            types::drop_warnings(transaction)?;
            types::rename_kinds(transaction)?;
            for columns in [ARTIFACTS, CAPTURES, BLOBS] {
                renumber_impossible(transaction, columns, &mut repaired)?;
            }
            Ok(repaired)
        })
    }
}

/// Gives the entry that follows the first entries, according to the chain, the next number, as long as it has another one.
fn entries(transaction: &Transaction<'_>, repaired: &mut Vec<Repair>) -> rusqlite::Result<()> {
    schema::expect_journal_view(transaction)?;
    for _ in 0..ATTEMPTS {
        let Some((seq, own)) = moved_entry(transaction)? else { return Ok(()) };
        transaction.execute("UPDATE journal SET seq = ?2 WHERE seq = ?1", (seq, own))?;
        repaired.push(Repair { subject: Subject::Entry(own), did: RENUMBERED });
    }
    Ok(())
}

/// Returns the number of the entry that follows the first entries without a gap, and the number that it should have.
fn moved_entry(transaction: &Transaction<'_>) -> rusqlite::Result<Option<(i64, i64)>> {
    let (last, chain): (i64, rusqlite::Result<Digest>) = transaction.query_row(
        "WITH first (seq) AS (SELECT min(seq) FROM journal j WHERE seq >= 1
                AND NOT EXISTS (SELECT 1 FROM journal n WHERE n.seq = j.seq + 1)
                AND EXISTS (SELECT 1 FROM journal WHERE seq = 1))
         SELECT coalesce(f.seq, 0), iif(f.seq IS NULL, zeroblob(32), j.chain)
           FROM first f LEFT JOIN journal j ON j.seq = f.seq",
        [],
        |row| Ok((row.get(0)?, row.get(1))),
    )?;
    let (Ok(chain), Some(own)) = (chain, last.checked_add(1)) else { return Ok(None) };
    let mut moved = transaction.prepare_cached(
        "SELECT j.seq, e.entry, j.chain FROM journal j JOIN journal_entries e ON e.seq = j.seq
          WHERE j.seq NOT BETWEEN 1 AND ?1 AND NOT EXISTS (SELECT 1 FROM journal p WHERE p.seq = j.seq - 1) LIMIT ?2",
    )?;
    let mut moved = moved.query((last, ATTEMPTS as u64))?;
    while let Some(row) = moved.next()? {
        // Damaged values prove nothing.
        let (Ok(text), Ok(follows)) = (row.get::<_, String>(1), row.get::<_, Digest>(2)) else { continue };
        if next(&chain, &text) == follows {
            return Ok(Some((row.get(0)?, own)));
        }
    }
    Ok(None)
}

/// Gives blobs the row ids of payloads that no blob has, and whose bytes have their hashes.
fn blobs(transaction: &Transaction<'_>, repaired: &mut Vec<Repair>) -> rusqlite::Result<()> {
    let ids = |sql| numbers(transaction, sql);
    let lost = ids(
        "SELECT blob FROM payload WHERE blob NOT IN (SELECT id FROM blob) ORDER BY base IS NOT NULL, blob",
    )?;
    if lost.is_empty() {
        return Ok(());
    }
    for own in ids("SELECT id FROM blob WHERE id NOT IN (SELECT blob FROM payload) ORDER BY id")?
        .into_iter()
        .take(ATTEMPTS)
    {
        let digest: rusqlite::Result<Digest> =
            transaction.query_row("SELECT digest FROM blob WHERE id = ?1", [own], |row| row.get(0));
        let Ok(digest) = digest.map(BlobHash) else { continue };
        for free in lost.iter().take(ATTEMPTS) {
            if blob_of(transaction, *free)? {
                continue;
            }
            // Undoing the change by another one would leave the rows that refer to it counted as violations.
            transaction.execute_batch("SAVEPOINT attempt")?;
            transaction.execute("UPDATE blob SET id = ?2 WHERE id = ?1", (own, free))?;
            let readers = DecompressionDictionaryCache::default();
            if (PayloadReader { connection: transaction, readers: &readers }).bytes(*free, digest).is_ok() {
                transaction.execute_batch("RELEASE attempt")?;
                repaired.push(Repair { subject: Subject::Blob(digest), did: RENUMBERED });
                break;
            }
            transaction.execute_batch("ROLLBACK TO attempt; RELEASE attempt")?;
        }
    }
    Ok(())
}

fn blob_of(connection: &Connection, id: i64) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM blob WHERE id = ?1")?.exists([id])
}

/// Gives captures the row ids with which members were stored, if the members give their hashes.
fn captures(transaction: &Transaction<'_>, repaired: &mut Vec<Repair>) -> rusqlite::Result<()> {
    for id in numbers(
        transaction,
        "SELECT DISTINCT capture FROM member WHERE capture NOT IN (SELECT id FROM capture) ORDER BY capture",
    )? {
        let files: rusqlite::Result<Vec<(String, BlobHash)>> = transaction
            .prepare_cached(
                "SELECT m.name, b.digest FROM member m JOIN blob b ON b.id = m.blob WHERE m.capture = ?1 ORDER BY m.name",
            )?
            .query_map([id], |row| Ok((row.get(0)?, row.get(1).map(BlobHash)?)))?
            .collect();
        let Ok(files) = files else { continue };
        let named: Vec<(&str, BlobHash)> = files.iter().map(|(name, blob)| (name.as_str(), *blob)).collect();
        for own in numbers(
            transaction,
            "SELECT c.id FROM capture c JOIN blob b ON b.id = c.blob WHERE typeof(b.digest) = 'blob'
                AND length(b.digest) = 32 AND c.id NOT IN (SELECT capture FROM member) ORDER BY c.id",
        )? {
            let sql = "SELECT b.digest FROM capture c JOIN blob b ON b.id = c.blob WHERE c.id = ?1";
            let digest: CaptureHash = transaction.query_row(sql, [own], |row| row.get(0))?;
            if is_capture_of(digest, &named) {
                transaction.execute("UPDATE capture SET id = ?2 WHERE id = ?1", (own, id))?;
                repaired.push(Repair { subject: Subject::Capture(digest), did: RENUMBERED });
                break;
            }
        }
    }
    Ok(())
}

/// Restores hashes of blobs that have another type or length from their bytes. Seals prove them.
fn digests(transaction: &Transaction<'_>, repaired: &mut Vec<Repair>) -> rusqlite::Result<()> {
    const DAMAGED: &str = "(typeof(digest) <> 'blob' OR length(digest) <> 32)";
    for id in numbers(transaction, &format!("SELECT id FROM blob WHERE {DAMAGED} ORDER BY id"))? {
        let readers = DecompressionDictionaryCache::default();
        let payloads = PayloadReader { connection: transaction, readers: &readers };
        let unknown = BlobHash(Digest::from_bytes([0; 32]));
        let Err(ReadFailure::Defect(PayloadDefect::Hash { actual, .. })) = payloads.bytes(id, unknown) else {
            continue;
        };
        if blob_id(transaction, actual)?.is_none() && is_proven(transaction, id, actual)? {
            transaction.execute("UPDATE blob SET digest = ?2 WHERE id = ?1", (id, actual.0.as_bytes()))?;
            repaired.push(Repair { subject: Subject::Blob(actual), did: "given its hash again" });
        }
    }
    Ok(())
}

/// Restores the sizes of blobs that are not numbers.
fn sizes(transaction: &Transaction<'_>, repaired: &mut Vec<Repair>) -> rusqlite::Result<()> {
    for id in numbers(transaction, "SELECT id FROM blob WHERE typeof(size) <> 'integer' ORDER BY id")? {
        let sql = "SELECT digest FROM blob WHERE id = ?1";
        let Ok(blob) = transaction.query_row(sql, [id], |row| row.get(0).map(BlobHash)) else { continue };
        if repair_size(transaction, id, blob)? {
            repaired.push(Repair { subject: Subject::Blob(blob), did: RESIZED });
        }
    }
    Ok(())
}

/// Gives rows with row ids that no addition assigns the next ones that are free. Their order follows from the journal.
fn renumber_impossible(
    transaction: &Transaction<'_>,
    columns: &[(&str, &str)],
    repaired: &mut Vec<Repair>,
) -> rusqlite::Result<()> {
    let Some((table, column)) = columns.first() else { return Ok(()) };
    let sql =
        format!("SELECT {column} FROM {table} WHERE {column} NOT BETWEEN 1 AND {MAX_ROW} ORDER BY {column}");
    let impossible = numbers(transaction, &sql)?;
    if impossible.is_empty() {
        return Ok(());
    }
    let mut last = 0;
    for (table, column) in columns {
        let sql = format!("SELECT max({column}) FROM {table} WHERE {column} BETWEEN 1 AND {MAX_ROW}");
        last = last
            .max(transaction.query_row(&sql, [], |row| row.get::<_, Option<i64>>(0))?.unwrap_or_default());
    }
    for (id, next) in impossible.into_iter().zip(last + 1..) {
        for (table, column) in columns {
            let sql = format!("UPDATE {table} SET {column} = ?2 WHERE {column} = ?1");
            transaction.prepare_cached(&sql)?.execute((id, next))?;
        }
    }
    let subject = Subject::Table((*table).to_owned());
    repaired.push(Repair { subject, did: "numbered its rows again" });
    Ok(())
}

fn numbers(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<i64>> {
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

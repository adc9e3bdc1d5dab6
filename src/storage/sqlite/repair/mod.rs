//! Repairs that require no guessing. Each step is one transaction with its journal entries.
//!
//! A file that SQLite calls damaged is written again. Then the rows that say which bytes are stored are made those of the stored
//! bytes, and the rows of the catalog that follow from the journal are written. What is derived from the bytes is rebuilt
//! after that, as by a reindexing.

mod blobs;
mod file;

use std::collections::HashSet;

use rusqlite::Connection;

use super::check::restrict_permissions;
use super::connection::secure_delete;
use super::dictionaries::{DecompressionDictionaryCache, Dictionaries};
use super::error::is_damage;
use super::journal::SqliteJournalWriter;
use super::mentions::{MentionListReader, MentionRow};
use super::payload::PayloadReader;
use super::rows::blob_id;
use super::write::{NewCapture, SqliteWriter};
use super::{Result, StorageError, Store, mention_index, schema, unresolved, write_lock};
use crate::artifact::Kind;
use crate::clock;
use crate::digest::{BlobHash, Digest};
use crate::storage::check::finding::{
    BROKEN_CHAIN, FILE_DAMAGED, INSECURE_PERMISSIONS, SCHEMA_DIFFERS, UNREADABLE,
};
use crate::storage::check::{
    Finding, JournalReplay, ReadmittedArtifact, ReindexOutcome, Repair, Repairs, Subject,
};
use crate::storage::entry::Entry;
use crate::storage::journal::next;
use crate::storage::sql::{self, SqlRepairs, SqlSession};

/// Maximum number of entries that are tried at each number.
const ATTEMPTS: usize = 64;

impl Repairs for Store {
    fn repair_structures(&self, found: &[Finding]) -> Result<Vec<Repair>> {
        // The tables of the search index are made again by themselves.
        let is_of_search = |finding: &Finding| matches!(&finding.subject, Subject::Table(name) if name.starts_with("search_"));
        let is_of_file = |finding: &Finding| {
            [FILE_DAMAGED, SCHEMA_DIFFERS, UNREADABLE].contains(&finding.info) && !is_of_search(finding)
        };
        let is_of_blobs = |finding: &Finding| {
            is_of_file(finding) || matches!(finding.subject, Subject::Blob(_) | Subject::Table(_))
        };
        let mut repaired = Vec::new();
        if let Some(open) = found.iter().find(|finding| finding.info == INSECURE_PERMISSIONS) {
            restrict_permissions(&self.path).map_err(|source| StorageError::io(&self.path, source))?;
            repaired.push(Repair { subject: open.subject.clone(), did: "closed to others" });
        }
        if found.iter().any(is_of_file) {
            repaired.append(&mut self.rewrite()?);
        }
        let is_chain_broken = found.iter().any(|finding| finding.info == BROKEN_CHAIN);
        let are_blobs_wrong = found.iter().any(is_of_blobs);
        if repaired.is_empty() && !is_chain_broken && !are_blobs_wrong {
            return Ok(repaired);
        }
        sql::repair(self, |connection| {
            if is_chain_broken {
                renumber(connection, &mut repaired)?;
            }
            if are_blobs_wrong {
                blobs::settle(connection, &mut repaired)?;
            }
            Ok(repaired)
        })
    }

    fn restore_blob(&self, blob: BlobHash, bytes: &[u8]) -> Result<Vec<Repair>> {
        sql::repair(self, |connection| {
            let is_changed = blobs::store(connection, blob, bytes)?;
            let repaired = Repair { subject: Subject::Blob(blob), did: "restored" };
            Ok(is_changed.then_some(repaired).into_iter().collect())
        })
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
        let mut edit = self.edit(clock::now())?;
        if edit.remove_orphans()? == 0 {
            return Ok(Vec::new());
        }
        let did = vec![Repair {
            subject: Subject::Table("blob".to_owned()),
            did: "removed bytes that nothing refers to",
        }];
        let mut record = |did| edit.journal.append(edit.snapshot.connection(), Entry::from(did));
        did.iter().try_for_each(&mut record).map_err(|error| edit.snapshot.failed(error))?;
        edit.commit()?;
        Ok(did)
    }
}

impl SqlRepairs for Store {
    type Session<'s> = Connection;
    type Error = rusqlite::Error;

    fn write<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<(T, Vec<Entry>)>) -> Result<T> {
        let connection = self.connection()?;
        let write = || {
            // Deleted content is overwritten.
            secure_delete(&connection, true)?;
            // Rows that refer to missing ones are what is repaired. SQLite counts those that are added and removed, so that
            // removing one that was there before would permit another, and the other way around.
            connection.pragma_update(None, "foreign_keys", false)?;
            let transaction = write_lock::begin(&connection)?;
            let (done, entries) = work(&transaction)?;
            // The last entry may be what was repaired.
            let mut journal = SqliteJournalWriter::open(&transaction, self.actor.as_ref(), clock::now())?;
            entries.into_iter().try_for_each(|entry| journal.append(&transaction, entry))?;
            transaction.commit()?;
            Ok(done)
        };
        let written = write();
        // Additions are faster without it. If this fails, they are slower.
        let _ = secure_delete(&connection, false);
        let checked = connection.pragma_update(None, "foreign_keys", true);
        written
            .and_then(|done| checked.map(|()| done))
            .map_err(|error| StorageError::from_sqlite(&self.path, error))
    }

    fn replay(connection: &Connection) -> rusqlite::Result<Option<JournalReplay>> {
        schema::expect_journal_view(connection)?;
        sql::replay(connection)
    }

    /// The columns of additions are empty in entries that have a text.
    fn restore_entries(connection: &Connection) -> rusqlite::Result<bool> {
        let (others, at) =
            ("actor, kind, core, capture, size, source_path", sql::Dialect::Sqlite.time_of_entry());
        let empty = others.replace(',', " = NULL,");
        let sql = format!(
            "UPDATE journal AS j SET at = {at}, {empty} = NULL
              WHERE entry IS NOT NULL AND (at IS NOT {at} OR coalesce({others}) IS NOT NULL)"
        );
        Ok(connection.execute(&sql, [])? > 0)
    }

    fn write_derived(connection: &Connection, artifacts: &[&ReadmittedArtifact]) -> rusqlite::Result<()> {
        let known = delete_lists(connection, artifacts)?;
        // No bytes are stored.
        let dictionaries = Dictionaries::default();
        let mut writer = SqliteWriter::new(connection, &dictionaries)?;
        for readmitted in artifacts {
            let first = readmitted.captures.first().map(|(id, _)| id.number());
            for (id, admitted) in readmitted.admitted() {
                let kind = writer.kind(admitted.kind())?;
                let mut new = NewCapture {
                    id,
                    artifact: readmitted.artifact.id,
                    is_first: first == Some(id),
                    blobs: Vec::new(),
                };
                for member in admitted.stored() {
                    let blob = blob_id(connection, member.blob())?;
                    new.blobs.extend(blob.map(|blob| writer.stored_blob(blob)));
                }
                writer.insert_members(&new, admitted)?;
                writer.index(&new, kind, admitted)?;
            }
        }
        // Another capture may have a mention now.
        let now: HashSet<_> = writer.entries.iter().copied().collect();
        let moved = known.difference(&now).copied().collect();
        // Lookups of the previous entries already lead there.
        writer.entries.retain(|entry| !known.contains(entry));
        match mention_index::remove(connection, moved).and_then(|()| writer.finish().map(drop)) {
            Err(error) if is_damage(&error) => rebuild_mentions(connection),
            changed => changed,
        }
    }

    fn rebuild_indexes(connection: &Connection) -> rusqlite::Result<()> {
        connection.execute(&format!("DELETE FROM attribute_value WHERE {}", sql::UNUSED_VALUE), [])?;
        rebuild_mentions(connection)?;
        let readers = DecompressionDictionaryCache::default();
        unresolved::rebuild(MentionListReader { payloads: PayloadReader { connection, readers: &readers } })
    }
}

/// Gives the entry that follows the first entries, according to the chain, the next number, as long as it has another one.
fn renumber(connection: &Connection, repaired: &mut Vec<Repair>) -> rusqlite::Result<()> {
    schema::expect_journal_view(connection)?;
    for _ in 0..ATTEMPTS {
        let Some((seq, own)) = moved_entry(connection)? else { return Ok(()) };
        connection.execute("UPDATE journal SET seq = ?2 WHERE seq = ?1", (seq, own))?;
        repaired.push(Repair { subject: Subject::Entry(own), did: "given its number again" });
    }
    Ok(())
}

/// Returns the number of the entry that follows the first entries without a gap, and the number that it should have.
fn moved_entry(connection: &Connection) -> rusqlite::Result<Option<(i64, i64)>> {
    let (last, chain): (i64, rusqlite::Result<Digest>) = connection.query_row(
        "WITH first (seq) AS (SELECT min(seq) FROM journal j WHERE seq >= 1
                AND NOT EXISTS (SELECT 1 FROM journal n WHERE n.seq = j.seq + 1)
                AND EXISTS (SELECT 1 FROM journal WHERE seq = 1))
         SELECT coalesce(f.seq, 0), iif(f.seq IS NULL, zeroblob(32), j.chain)
           FROM first f LEFT JOIN journal j ON j.seq = f.seq",
        [],
        |row| Ok((row.get(0)?, row.get(1))),
    )?;
    let (Ok(chain), Some(own)) = (chain, last.checked_add(1)) else { return Ok(None) };
    let mut moved = connection.prepare_cached(
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

/// Number of entries that are added to the new mention index at once.
const ENTRIES: usize = 1 << 20;

/// Deletes the mention lists of those captures of artifacts that were admitted. Returns their entries in the mention index.
fn delete_lists(
    connection: &Connection,
    artifacts: &[&ReadmittedArtifact],
) -> rusqlite::Result<HashSet<mention_index::MentionIndexEntry>> {
    let readers = DecompressionDictionaryCache::default();
    let lists = MentionListReader { payloads: PayloadReader { connection, readers: &readers } };
    let mut known = HashSet::new();
    for (capture, _) in artifacts.iter().flat_map(|readmitted| readmitted.admitted()) {
        let mentions = readable(lists, capture)?;
        known.extend(mentions.iter().map(|mention| (mention_index::key(&mention.digest), capture)));
        connection.prepare_cached("DELETE FROM mention_list WHERE capture = ?1")?.execute([capture])?;
    }
    Ok(known)
}

/// Returns the mentions of a capture. A damaged list has no entries worth keeping; that of a damaged capture was already
/// reported.
///
/// # Errors
/// Returns an error if the list cannot be read for a reason other than damage: its entries would otherwise be lost.
fn readable(lists: MentionListReader<'_>, capture: i64) -> rusqlite::Result<Vec<MentionRow>> {
    match lists.for_capture(capture) {
        Err(error) if is_damage(&error) => Ok(Vec::new()),
        mentions => mentions,
    }
}

/// Rebuilds the mention index, and deletes the roles in which nothing is mentioned.
fn rebuild_mentions(connection: &Connection) -> rusqlite::Result<()> {
    mention_index::clear(connection)?;
    let readers = DecompressionDictionaryCache::default();
    let lists = MentionListReader { payloads: PayloadReader { connection, readers: &readers } };
    let mut entries = Vec::new();
    let mut roles = HashSet::new();
    let mut captures = connection.prepare("SELECT capture FROM mention_list ORDER BY capture")?;
    let mut captures = captures.query([])?;
    while let Some(row) = captures.next()? {
        let capture: i64 = row.get(0)?;
        let mentions = readable(lists, capture)?;
        roles.extend(mentions.iter().map(|mention| mention.role));
        entries.extend(mentions.iter().map(|mention| (mention_index::key(&mention.digest), capture)));
        if entries.len() >= ENTRIES {
            mention_index::add(connection, std::mem::take(&mut entries))?;
        }
    }
    mention_index::add(connection, entries)?;
    let used = Vec::from_iter(roles);
    let sql = "DELETE FROM role WHERE id NOT IN (SELECT value FROM rarray(?1))";
    SqlSession::execute(connection, sql, &[used.as_slice().into()]).map(drop)
}

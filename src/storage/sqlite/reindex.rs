//! Rebuilding of the index by admitting the stored artifacts again.
//!
//! The index data of each artifact is replaced in one transaction. So the vault answers correctly at any time, and an
//! interrupted run has done part of the work and no harm.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use rusqlite::{Connection, Transaction};

use super::dictionaries::{DecompressionDictionaryCache, Dictionaries};
use super::error::is_damage;
use super::ids::blob_id;
use super::journal::SqliteJournalWriter;
use super::lists::{MentionListReader, MentionRow};
use super::mention_index;
use super::payload::PayloadReader;
use super::signatures;
use super::unresolved;
use super::write::{NewCapture, SqliteWriter, StoredBlob};
use super::write_lock;
use crate::artifact::{Admitted, Kind};
use crate::storage::Actor;
use crate::storage::change::{renewed_signature, signature_entry};
use crate::storage::check::{CaptureId, ReadmittedArtifact, ReindexOutcome};
use crate::storage::entry::Entry;
use crate::storage::seal::seal;

/// Number of entries that are added to the new mention index at once.
const ENTRIES: usize = 1 << 20;

/// Rebuilds the index data of each artifact of `batch`, in one transaction.
pub(super) fn artifacts(
    connection: &mut Connection,
    batch: &[ReadmittedArtifact],
    actor: Option<&Actor>,
    at: DateTime<Utc>,
) -> rusqlite::Result<Vec<ReindexOutcome>> {
    let dictionaries = Dictionaries::load(connection)?;
    let transaction = write_lock::begin(connection)?;
    let mut journal = SqliteJournalWriter::open(&transaction, actor, at)?;
    let mut writer = SqliteWriter::new(&transaction, &dictionaries, &|_| Ok(()))?;
    let outcomes: rusqlite::Result<_> =
        batch.iter().map(|readmitted| writer.reindex(&mut journal, readmitted)).collect();
    let outcomes = outcomes?;
    let entries = std::mem::take(&mut writer.entries);
    writer.finish()?;
    match mention_index::add(&transaction, entries) {
        Err(error) if is_damage(&error) => mentions(&transaction)?,
        added => added?,
    }
    transaction.commit()?;
    Ok(outcomes)
}

impl SqliteWriter<'_> {
    fn reindex(
        &mut self,
        journal: &mut SqliteJournalWriter,
        readmitted: &ReadmittedArtifact,
    ) -> rusqlite::Result<ReindexOutcome> {
        let ReadmittedArtifact { artifact, captures } = readmitted;
        let id = artifact.id;
        let now: Vec<i64> = self.numbers("SELECT id FROM capture WHERE artifact = ?1 ORDER BY id", id)?;
        if !now.iter().eq(captures.iter().map(|(capture, _)| &capture.0)) {
            return Ok(ReindexOutcome::Changed);
        }
        let admitted =
            || captures.iter().filter_map(|(capture, admitted)| Some((capture.0, admitted.as_ref()?)));
        let Some((_, first)) = admitted().next() else { return Ok(ReindexOutcome::Done) };
        let kind = self.kind_of(id, first.kind())?;
        let kept = self.take_out(id, captures)?;
        let of_others = std::mem::take(&mut self.entries);
        for (capture, admitted) in admitted() {
            let is_first = Some(&capture) == now.first();
            let blobs = self.blobs_of(admitted)?;
            let new = NewCapture { id: capture, artifact: id, is_first, blobs };
            self.describe(&new, admitted)?;
            self.insert_members(&new, admitted)?;
            self.index(&new, kind, admitted)?;
            self.record_signature(journal, capture, admitted)?;
        }
        // Another capture may have a mention now.
        let now: HashSet<_> = self.entries.iter().copied().collect();
        let moved: Vec<_> = kept.difference(&now).copied().collect();
        if !moved.is_empty() {
            mention_index::remove(self.connection, moved)?;
        }
        // Lookups of the previous entries already lead there.
        self.entries.retain(|entry| !kept.contains(entry));
        self.entries.extend(of_others);
        Ok(ReindexOutcome::Done)
    }

    /// Records the signature that was found when admitting a capture, in the journal only if it changed.
    fn record_signature(
        &self,
        journal: &mut SqliteJournalWriter,
        capture: i64,
        admitted: &Admitted,
    ) -> rusqlite::Result<()> {
        let Some(found) = admitted.signature() else { return signatures::forget(self.connection, capture) };
        let stored = signatures::stored(self.connection, capture)?;
        let news = renewed_signature(stored.as_ref(), found);
        if stored.as_ref() == Some(&news) {
            return Ok(());
        }
        signatures::store(self.connection, capture, &news)?;
        journal.append(self.connection, signature_entry(admitted, &news))
    }

    /// Returns the row id of the kind, after correcting the kind in the vault if necessary: admission proves it.
    fn kind_of(&mut self, artifact: i64, kind: Kind) -> rusqlite::Result<i64> {
        // If the row of the kind was lost, other tables still contain its number.
        self.connection
            .prepare_cached(
                "INSERT OR IGNORE INTO kind (id, name)
                 SELECT kind, ?2 FROM artifact WHERE id = ?1 AND kind NOT IN (SELECT id FROM kind)",
            )?
            .execute((artifact, kind.name()))?;
        let id = self.kind(kind)?;
        self.connection
            .prepare_cached("UPDATE artifact SET kind = ?2 WHERE id = ?1 AND kind IS NOT ?2")?
            .execute((artifact, id))?;
        Ok(id)
    }

    /// Removes an artifact's index data, except that of captures that were not admitted. Returns its entries in the
    /// mention index.
    fn take_out(
        &mut self,
        artifact: i64,
        captures: &[(CaptureId, Option<Admitted>)],
    ) -> rusqlite::Result<HashSet<mention_index::MentionIndexEntry>> {
        let mut known = HashSet::new();
        let readers = DecompressionDictionaryCache::default();
        let lists =
            MentionListReader { payloads: PayloadReader { connection: self.connection, readers: &readers } };
        for (capture, _) in captures.iter().filter(|(_, admitted)| admitted.is_some()) {
            let mentions = readable(lists, capture.0)?;
            known.extend(mentions.iter().map(|mention| (mention_index::key(&mention.digest), capture.0)));
            for sql in
                ["DELETE FROM mention_list WHERE capture = ?1", "DELETE FROM member WHERE capture = ?1"]
            {
                self.connection.prepare_cached(sql)?.execute([capture.0])?;
            }
        }
        if captures.iter().all(|(_, admitted)| admitted.is_some()) {
            for sql in [
                "DELETE FROM attribute WHERE artifact = ?1",
                "DELETE FROM identity WHERE artifact = ?1",
                "DELETE FROM name_mention WHERE artifact = ?1",
                "UPDATE artifact SET created_at = NULL WHERE id = ?1 AND created_at IS NOT NULL",
            ] {
                self.connection.prepare_cached(sql)?.execute([artifact])?;
            }
        }
        Ok(known)
    }

    /// Returns the blobs of an artifact that is stored, as [`NewCapture`] has them.
    fn blobs_of(&self, admitted: &Admitted) -> rusqlite::Result<Vec<StoredBlob<'static>>> {
        let mut blobs = Vec::new();
        for member in admitted.stored() {
            blobs.extend(blob_id(&self.statements, member.blob())?.map(|id| self.stored_blob(id)));
        }
        Ok(blobs)
    }

    /// Corrects the fields stored with a capture.
    fn describe(&self, capture: &NewCapture<'_>, admitted: &Admitted) -> rusqlite::Result<()> {
        let seal = seal(admitted.core(), admitted.capture());
        let warnings = super::write::warnings(admitted)?;
        self.connection
            .prepare_cached(
                "UPDATE capture SET warnings = ?2, seal = ?3, size = ?4
                  WHERE id = ?1 AND (warnings IS NOT ?2 OR seal IS NOT ?3 OR size IS NOT ?4)",
            )?
            .execute((capture.id, warnings, seal, admitted.size().cast_signed()))?;
        Ok(())
    }

    fn numbers(&self, sql: &str, id: i64) -> rusqlite::Result<Vec<i64>> {
        self.connection.prepare_cached(sql)?.query_map([id], |row| row.get(0))?.collect()
    }
}

/// Removes index data without an owner, rebuilds the mention index from the lists, and records this in the journal.
pub(super) fn finish(
    connection: &mut Connection,
    artifacts: u64,
    not_admitted: u64,
    actor: Option<&Actor>,
    at: DateTime<Utc>,
) -> rusqlite::Result<()> {
    let transaction = write_lock::begin(connection)?;
    transaction.execute_batch(
        "DELETE FROM mention_list WHERE capture NOT IN (SELECT id FROM capture);
         DELETE FROM attribute WHERE artifact NOT IN (SELECT id FROM artifact);
         DELETE FROM identity WHERE artifact NOT IN (SELECT id FROM artifact);
         DELETE FROM name_mention WHERE artifact NOT IN (SELECT id FROM artifact);
         DELETE FROM signature WHERE capture NOT IN (SELECT id FROM capture);
         DELETE FROM attribute_value WHERE id NOT IN (SELECT value FROM attribute);",
    )?;
    mentions(&transaction)?;
    unresolved::rebuild(MentionListReader {
        payloads: PayloadReader {
            connection: &transaction,
            readers: &DecompressionDictionaryCache::default(),
        },
    })?;
    SqliteJournalWriter::open(&transaction, actor, at)?
        .append(&transaction, Entry::Reindex { indexed: artifacts, not_admitted })?;
    transaction.commit()
}

/// Returns the mentions of a capture. A damaged list has no entries worth keeping; that of a damaged capture was already
/// reported.
///
/// # Errors
/// Returns an error if the list cannot be read for a reason other than damage: its entries would otherwise be lost.
pub(super) fn readable(lists: MentionListReader<'_>, capture: i64) -> rusqlite::Result<Vec<MentionRow>> {
    match lists.for_capture(capture) {
        Err(error) if is_damage(&error) => Ok(Vec::new()),
        mentions => mentions,
    }
}

fn mentions(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    mention_index::clear(transaction)?;
    let readers = DecompressionDictionaryCache::default();
    let lists = MentionListReader { payloads: PayloadReader { connection: transaction, readers: &readers } };
    let mut entries = Vec::new();
    let mut roles = HashSet::new();
    let mut captures = transaction.prepare("SELECT capture FROM mention_list ORDER BY capture")?;
    let mut captures = captures.query([])?;
    while let Some(row) = captures.next()? {
        let capture: i64 = row.get(0)?;
        let mentions = readable(lists, capture)?;
        roles.extend(mentions.iter().map(|mention| mention.role));
        entries.extend(mentions.iter().map(|mention| (mention_index::key(&mention.digest), capture)));
        if entries.len() >= ENTRIES {
            mention_index::add(transaction, std::mem::take(&mut entries))?;
        }
    }
    mention_index::add(transaction, entries)?;
    let stored: Vec<i64> = transaction
        .prepare("SELECT id FROM role")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for role in stored.into_iter().filter(|role| !roles.contains(role)) {
        transaction.prepare_cached("DELETE FROM role WHERE id = ?1")?.execute([role])?;
    }
    Ok(())
}

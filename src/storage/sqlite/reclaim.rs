//! Reclaiming of space, and replacement of dictionaries that contain pieces of removed documents.
//!
//! All work is done in short transactions, each of which leaves the vault consistent, so that others can read and write
//! between them and a kill does no harm. Finally, the file is rewritten without its free pages.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension};

use super::compress::Dictionary;
use super::connection::BUSY_TIMEOUT;
use super::dictionaries::{self, IS_STALE};
use super::error::out_of_order;
use super::read::SqliteSnapshot;
use super::recode::DictionaryWithId;
use super::remove::IS_ORPHAN;
use super::store::WriteTransaction;
use super::{Result, StorageError, Store, dictionary_training, search, write_lock};
use crate::storage::entry::Entry;
use crate::storage::interface::{Erasure, JournalQueries as _, ReclaimResult, ReclaimableSpace, Remnant};
use crate::storage::sql::UNUSED_VALUE;

impl Erasure {
    /// Maximum size in bytes of files that are rewritten after every removal, which takes less than a second.
    pub const REWRITTEN: u64 = 64 << 20;
}

/// Number of payloads that are recompressed in one transaction: others wait no longer than for an addition.
const BATCH: u32 = 200;

/// Maximum size in bytes of blobs to recompress: the texts of larger ones are too large for dictionaries even without
/// their digests.
const MAX_BLOB: usize = dictionaries::MAX_TEXT * 4;

/// The SQL condition that the payload `p` is whole, and either has no dictionary and may benefit from one, or has one
/// that must be replaced.
const CANDIDATE: &str = "p.base IS NULL AND p.encoding IN (1, 2) AND (
    p.dictionary IN (SELECT d.id FROM dictionary d WHERE d.kind = ?1 AND STALE)
    OR p.dictionary IS NULL AND (SELECT b.size FROM blob b WHERE b.id = p.blob) <= ?2 AND EXISTS (
      SELECT 1 FROM capture c JOIN artifact a ON a.id = c.artifact WHERE c.blob = p.blob AND a.kind = ?1
      UNION ALL
      SELECT 1 FROM member m JOIN capture c ON c.id = m.capture JOIN artifact a ON a.id = c.artifact
       WHERE m.blob = p.blob AND a.kind = ?1))";

/// The choice of how to compress candidates.
enum CandidateCompression {
    NoCandidates,
    /// Without a dictionary.
    Nothing,
    Dictionary(Dictionary),
}

impl Store {
    /// Returns what [`Store::reclaim`] would reclaim.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn reclaimable(&self) -> Result<ReclaimableSpace> {
        let snapshot = self.snapshot()?;
        count_reclaimable(snapshot.connection()).map_err(|error| snapshot.failed(error))
    }

    /// Removes unreferenced blobs, replaces dictionaries that may contain pieces of removed documents, recompresses
    /// what was stored without a dictionary, and makes the file as small as possible.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written. The steps completed before remain in effect.
    pub fn reclaim(&self, at: DateTime<Utc>) -> Result<ReclaimResult> {
        self.empty_log()?;
        let mut done = ReclaimResult { bytes_before: self.size()?, ..ReclaimResult::default() };
        let mut edit = self.edit(at)?;
        done.blobs = edit.remove_orphans()?;
        edit.commit()?;
        for kind in self.kinds()? {
            done.recompressed += self.recompress(kind, at)?;
        }
        done.dictionaries = self.remove_dictionaries(at)?;
        let left = self.reclaimable()?;
        let has_changed = done.blobs + done.dictionaries + done.recompressed > 0;
        if !has_changed && !left.has_removals && left.free_bytes == 0 {
            return Ok(ReclaimResult::default());
        }
        let failed = |error| StorageError::from_sqlite(&self.path, error);
        let connection = self.connection()?;
        search::forget_words(&connection).map_err(failed)?;
        vacuum(&connection).map_err(failed)?;
        drop(connection);
        self.empty_log()?;
        done.bytes_after = self.size()?;
        self.record(&done, at)?;
        (done.changed, done.log_remains) = (true, !self.empty_log()?);
        done.bytes_after = self.size()?;
        Ok(done)
    }

    /// Erases the remains of removed artifacts from the vault's files, as far as this takes little time, and returns
    /// where some may be left.
    #[must_use]
    pub fn erase(&self) -> Erasure {
        let mut remnants = Vec::new();
        // The artifacts are already removed, whatever happens here.
        if let Err(error) = self.try_to_erase(&mut remnants) {
            remnants.push(Remnant::File { reason: error.to_string() });
        }
        Erasure { remnants }
    }

    fn try_to_erase(&self, remnants: &mut Vec<Remnant>) -> Result<()> {
        let failed = |error| StorageError::from_sqlite(&self.path, error);
        let connection = self.connection()?;
        if database_size(&connection).map_err(failed)? > Erasure::REWRITTEN {
            remnants.push(Remnant::LargeFile { limit: Erasure::REWRITTEN });
        } else {
            search::forget_words(&connection).map_err(failed)?;
            vacuum(&connection).map_err(failed)?;
        }
        let kinds = dictionaries::stale_kinds(&connection).map_err(failed)?;
        if !kinds.is_empty() {
            remnants.push(Remnant::Dictionaries { kinds });
        }
        drop(connection);
        if !self.empty_log()? {
            remnants.push(Remnant::Log);
        }
        Ok(())
    }

    /// Records the result in the journal, only at the end: if the process is killed before, the journal must not claim
    /// that everything was done.
    fn record(&self, done: &ReclaimResult, at: DateTime<Utc>) -> Result<()> {
        let ReclaimResult { blobs, dictionaries, recompressed, bytes_before, bytes_after, .. } = *done;
        let mut edit = self.edit(at)?;
        let entry = Entry::Gc { blobs, bytes_after, bytes_before, dictionaries, recompressed };
        let appended = edit.journal.append(edit.snapshot.connection(), entry);
        appended.map_err(|error| edit.snapshot.failed(error))?;
        edit.commit().map(drop)
    }

    /// Returns the size of the vault's file and its log in bytes.
    fn size(&self) -> Result<u64> {
        let mut log = self.path.as_os_str().to_owned();
        log.push("-wal");
        let size = std::fs::metadata(&self.path).map(|metadata| metadata.len());
        let size = size.map_err(|source| StorageError::io(&self.path, source))?;
        Ok(size + std::fs::metadata(log).map_or(0, |metadata| metadata.len()))
    }

    fn kinds(&self) -> Result<Vec<i64>> {
        self.snapshot()?.rows("SELECT id FROM kind ORDER BY id", [], |row| row.get(0))
    }

    /// Recompresses the candidates of one kind, with the dictionary of the kind or a new one. Returns their number.
    fn recompress(&self, kind: i64, at: DateTime<Utc>) -> Result<u64> {
        let dictionary = match self.dictionary_for(kind)? {
            CandidateCompression::NoCandidates => return Ok(0),
            CandidateCompression::Nothing => None,
            CandidateCompression::Dictionary(dictionary) => Some(dictionary),
        };
        let (mut recompressed, mut after) = (0, 0);
        loop {
            let edit = self.edit(at)?;
            let batch = candidates(&edit.snapshot, kind, after, BATCH)?;
            let Some((last, _)) = batch.last().copied() else { return Ok(recompressed) };
            let number = dictionary.as_ref().map(|dictionary| {
                let number = dictionaries::number(edit.connection(), kind, dictionary);
                number.map(|number| Some((number?, dictionary))).map_err(|error| edit.snapshot.failed(error))
            });
            let numbered: Option<DictionaryWithId<'_>> = number.transpose()?.flatten();
            let payloads = edit.snapshot.payloads();
            for (blob, must) in batch {
                let done = payloads.recompress(blob, numbered, must);
                recompressed += u64::from(done.map_err(|failure| edit.failed(failure))?);
            }
            edit.commit()?;
            if last <= after {
                return Err(StorageError::from_sqlite(&self.path, out_of_order("payload")));
            }
            after = last;
        }
    }

    /// Returns the dictionary to compress candidates of one kind with: the kind's own, or a new one if there are enough
    /// of them.
    fn dictionary_for(&self, kind: i64) -> Result<CandidateCompression> {
        let snapshot = self.snapshot()?;
        let sql = format!(
            "SELECT d.bytes, d.begun FROM dictionary d WHERE d.kind = ?1 AND NOT {IS_STALE} ORDER BY d.id DESC LIMIT 1"
        );
        let own = snapshot.rows(&sql, [kind], |row| Ok(Dictionary::new(row.get(0)?, row.get(1)?)))?.pop();
        let samples = candidates(&snapshot, kind, 0, u32::MAX)?;
        if samples.is_empty() {
            return Ok(CandidateCompression::NoCandidates);
        }
        if let Some(own) = own.flatten() {
            return Ok(CandidateCompression::Dictionary(own));
        }
        let begun = i64::try_from(snapshot.journal_head()?.seq).unwrap_or(i64::MAX);
        // Evenly spaced, because documents change over time.
        let step = samples.len().div_ceil(dictionaries::SAMPLES * 2).max(1);
        let samples = samples.into_iter().step_by(step).map(|(blob, _)| blob);
        let texts = dictionary_training::texts(snapshot.payloads(), samples);
        let bytes = texts.iter().map(Vec::len).sum();
        let is_enough = dictionaries::is_enough(texts.len(), bytes);
        let new = if is_enough { dictionaries::train(&texts, begun) } else { None };
        Ok(new.map_or(CandidateCompression::Nothing, CandidateCompression::Dictionary))
    }

    /// Removes unused dictionaries, including stale ones after recompressing the payloads that still use them.
    fn remove_dictionaries(&self, at: DateTime<Utc>) -> Result<u64> {
        let edit = self.edit(at)?;
        let snapshot = &edit.snapshot;
        // Other processes may have used them in the meantime, and some blobs may not have compressed with a new one.
        let sql = format!(
            "SELECT blob FROM payload WHERE dictionary IN (SELECT d.id FROM dictionary d WHERE {IS_STALE}) ORDER BY blob"
        );
        for blob in snapshot.rows(&sql, [], |row| row.get::<_, i64>(0))? {
            let done = snapshot.payloads().recompress(blob, None, true);
            done.map_err(|failure| edit.failed(failure))?;
        }
        let sql = "DELETE FROM dictionary WHERE id NOT IN
                     (SELECT p.dictionary FROM payload p WHERE p.dictionary IS NOT NULL)";
        let removed = edit.connection().execute(sql, []).map_err(|error| snapshot.failed(error))?;
        edit.commit()?;
        Ok(removed as u64)
    }
}

impl WriteTransaction<'_> {
    /// Removes the blobs that nothing refers to, and the values of attributes that no artifact has. Returns the number of blobs.
    pub(super) fn remove_orphans(&mut self) -> Result<u64> {
        let sql = format!("SELECT b.id FROM blob b WHERE {IS_ORPHAN}");
        self.remains.orphans = self.snapshot.rows(&sql, [], |row| row.get(0))?.into_iter().collect();
        let removed = self.sweep()?;
        let sql = format!("DELETE FROM attribute_value WHERE {UNUSED_VALUE}");
        self.connection().execute(&sql, []).map_err(|error| self.snapshot.failed(error))?;
        Ok(removed)
    }
}

/// Rebuilds the file without its free pages.
pub(super) fn vacuum(connection: &Connection) -> rusqlite::Result<()> {
    write_lock::in_turn(connection, BUSY_TIMEOUT, || connection.execute_batch("VACUUM"))
}

/// Returns the size of the database in bytes, whether its pages are in the file or still in the log.
fn database_size(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u64>(0));
    Ok(number("PRAGMA page_count")? * number("PRAGMA page_size")?)
}

/// Returns the candidates after the blob `after`, each with whether it must change.
fn candidates(snapshot: &SqliteSnapshot<'_>, kind: i64, after: i64, limit: u32) -> Result<Vec<(i64, bool)>> {
    let sql = format!(
        "SELECT p.blob, p.dictionary IS NOT NULL FROM payload p
          WHERE p.blob > ?3 AND {} ORDER BY p.blob LIMIT ?4",
        CANDIDATE.replace("STALE", IS_STALE)
    );
    snapshot.rows(&sql, (kind, MAX_BLOB, after, limit), |row| Ok((row.get(0)?, row.get(1)?)))
}

fn count_reclaimable(connection: &Connection) -> rusqlite::Result<ReclaimableSpace> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u64>(0));
    let orphans = format!(
        "SELECT count(*), coalesce(sum(length(p.bytes) + coalesce(length(p.digests), 0)), 0)
           FROM blob b LEFT JOIN payload p ON p.blob = b.id WHERE {IS_ORPHAN}"
    );
    let (blobs, blob_bytes) = connection.query_row(&orphans, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let dictionaries = number(&format!(
        "SELECT count(*) FROM dictionary d
          WHERE {IS_STALE} OR NOT EXISTS (SELECT 1 FROM payload p WHERE p.dictionary = d.id)"
    ))?;
    let free_bytes = number("PRAGMA freelist_count")? * number("PRAGMA page_size")?;
    Ok(ReclaimableSpace {
        blobs,
        blob_bytes,
        dictionaries,
        free_bytes,
        has_removals: has_removals(connection)?,
    })
}

/// Whether something was removed after the last journal entry of a reclamation.
fn has_removals(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT entry ->> 'action' FROM journal WHERE entry ->> 'action' IN ('gc', 'remove')
                ORDER BY seq DESC LIMIT 1";
    let last: Option<String> = connection.prepare(sql)?.query_row([], |row| row.get(0)).optional()?;
    Ok(last.as_deref() == Some("remove"))
}

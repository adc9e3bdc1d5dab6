//! Removal of artifacts and of the content that becomes unreferenced.

use rusqlite::{Connection, OptionalExtension};

use super::error::{ReadFailure, StorageError};
use super::mention_index::{self, MentionIndexReader};
use super::mentions::MentionListReader;
use super::store::{RemovalRemains, WriteTransaction};
use super::unresolved::ReferenceReader;
use super::{Result, search};
use crate::digest::CoreHash;

/// The SQL condition that the blob `b` is unreferenced.
pub(super) const IS_ORPHAN: &str = "NOT EXISTS (SELECT 1 FROM capture c WHERE c.blob = b.id)
    AND NOT EXISTS (SELECT 1 FROM member m WHERE m.blob = b.id)";

/// Removes the rows of an artifact. Returns what is left of them.
pub(super) fn take_out(
    lists: MentionListReader<'_>,
    artifact: i64,
    core: CoreHash,
) -> rusqlite::Result<RemovalRemains> {
    let connection = lists.payloads.connection;
    let references = ReferenceReader::new(lists)?;
    let mut remains = RemovalRemains::default();
    let captures = numbers(connection, "SELECT id FROM capture WHERE artifact = ?1", artifact)?;
    let values = numbers(connection, "SELECT value FROM attribute WHERE artifact = ?1", artifact)?;
    let delete = |sql, number: i64| connection.prepare_cached(sql)?.execute([number]).map(drop);
    for capture in captures {
        let blobs = "SELECT blob FROM capture WHERE id = ?1
                     UNION SELECT blob FROM member WHERE capture = ?1";
        remains.orphans.extend(numbers(connection, blobs, capture)?);
        remains.unlisted.append(&mut take_out_capture(lists, &references, capture)?);
    }
    delete("DELETE FROM attribute WHERE artifact = ?1", artifact)?;
    for value in values {
        delete(
            "DELETE FROM attribute_value
              WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM attribute a WHERE a.value = ?1)",
            value,
        )?;
    }
    delete("DELETE FROM identity WHERE artifact = ?1", artifact)?;
    delete("DELETE FROM name_mention WHERE artifact = ?1", artifact)?;
    delete("DELETE FROM artifact WHERE id = ?1", artifact)?;
    let index = MentionIndexReader::load(connection)?;
    references.lose(core, &index.captures(connection, mention_index::key(&core.0))?)?;
    Ok(remains)
}

/// Removes the rows of a capture. Returns its entries that are still in the mention index.
pub(super) fn take_out_capture(
    lists: MentionListReader<'_>,
    references: &ReferenceReader<'_>,
    capture: i64,
) -> rusqlite::Result<Vec<mention_index::MentionIndexEntry>> {
    let connection = lists.payloads.connection;
    let delete = |sql| connection.prepare_cached(sql)?.execute([capture]).map(drop);
    let list = match lists.for_capture(capture) {
        // Damage is no reason to keep a capture. Entries left in the index do no harm.
        Err(rusqlite::Error::FromSqlConversionFailure(..)) => {
            delete("DELETE FROM unresolved_reference WHERE capture = ?1")?;
            Vec::new()
        }
        list => list?,
    };
    references.forget(capture, &list)?;
    search::forget(connection, capture)?;
    delete("DELETE FROM mention_list WHERE capture = ?1")?;
    delete("DELETE FROM member WHERE capture = ?1")?;
    delete("DELETE FROM signature WHERE capture = ?1")?;
    delete("DELETE FROM capture WHERE id = ?1")?;
    Ok(list.iter().map(|mention| (mention_index::key(&mention.digest), capture)).collect())
}

impl WriteTransaction<'_> {
    /// Removes the blobs that became unreferenced, and returns their number. Deltas against them are re-encoded before.
    pub(super) fn sweep(&mut self) -> Result<u64> {
        let blobs = std::mem::take(&mut self.remains.orphans);
        let connection = self.snapshot.connection();
        let payloads = self.snapshot.payloads();
        let sweep = || {
            let mut whole = Vec::new();
            let mut swept = 0;
            let mut delete = |blob: i64| -> rusqlite::Result<()> {
                swept += 1;
                connection.prepare_cached("DELETE FROM payload WHERE blob = ?1")?.execute([blob])?;
                connection.prepare_cached("DELETE FROM blob WHERE id = ?1")?.execute([blob]).map(drop)
            };
            // Deltas first: their bases may be removed too, and then need not be kept for them.
            for blob in blobs {
                match is_difference(connection, blob)? {
                    Some(true) => delete(blob)?,
                    Some(false) => whole.push(blob),
                    None => {}
                }
            }
            for blob in whole {
                payloads.release_all(blob)?;
                delete(blob)?;
            }
            Ok(swept)
        };
        sweep().map_err(|failure| self.failed(failure))
    }

    pub(super) fn failed(&self, failure: ReadFailure) -> StorageError {
        match failure {
            ReadFailure::Database(error) => self.snapshot.failed(error),
            ReadFailure::Defect(defect) => StorageError::payload(self.snapshot.path(), defect),
        }
    }
}

/// Returns whether an unreferenced blob is stored as a delta, or `None` if the blob is not unreferenced.
fn is_difference(connection: &Connection, blob: i64) -> rusqlite::Result<Option<bool>> {
    connection
        .prepare_cached(&format!(
            "SELECT p.base IS NOT NULL FROM blob b LEFT JOIN payload p ON p.blob = b.id
              WHERE b.id = ?1 AND {IS_ORPHAN}"
        ))?
        .query_row([blob], |row| row.get(0))
        .optional()
}

/// Returns the row ids that `sql` selects for `of`.
fn numbers(connection: &Connection, sql: &str, of: i64) -> rusqlite::Result<Vec<i64>> {
    connection.prepare_cached(sql)?.query_map([of], |row| row.get(0))?.collect()
}

//! Additions to the index and removals from it.

use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::totals::Totals;
use super::{SearchIndexProgress, VERSION, drop_tables, has_tables, index_damage, is_damage, state};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::full_text::separated;
use crate::storage::interface::CapturePassages;
use crate::storage::sqlite::{Result, StorageError, Store, write_lock};

impl Store {
    /// Adds the passages of `batch` to the index, in one transaction. They must be those of the captures that come
    /// next; returns false and changes nothing if another process has already indexed them. Waits for other writers no
    /// longer than `busy_timeout`.
    ///
    /// # Errors
    /// Same as [`Storage::put`](crate::storage::Storage::put).
    pub(super) fn index_passages(&self, batch: &[CapturePassages], busy_timeout: Duration) -> Result<bool> {
        let connection = self.connection()?;
        let index = || {
            let transaction = write_lock::begin_within(&connection, busy_timeout)?;
            let Some(state) = state(&transaction)?.filter(|state| state.version == VERSION) else {
                return Ok(false);
            };
            let Some(first) = batch.first() else { return Ok(true) };
            if !follows(&transaction, state, first.id)? {
                return Ok(false);
            }
            let state = insert(&transaction, batch, state)?;
            transaction
                .execute("UPDATE search_state SET next = ?1, capture = ?2", (state.next, state.capture))?;
            transaction.commit()?;
            Ok(true)
        };
        let failed = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation) => index_damage(format!("the search index: {error}")),
            _ => error,
        };
        index().map_err(|error| StorageError::from_sqlite(&self.path, failed(error)))
    }
}

/// Returns whether the capture with this row id is the next one that the index should have.
fn follows(connection: &Connection, state: SearchIndexProgress, capture: i64) -> rusqlite::Result<bool> {
    let next: Option<i64> = connection
        .prepare_cached("SELECT min(c.id) FROM capture c JOIN blob b ON b.id = c.blob WHERE c.id > ?1")?
        .query_row([state.capture], |row| row.get(0))?;
    // It may have been removed in the meantime, along with others before it.
    Ok(state.capture < capture && next.is_none_or(|next| next >= capture))
}

/// Returns the key of a capture, or `None` if it does not exist.
fn key_of(connection: &Connection, capture: i64) -> rusqlite::Result<Option<(CoreHash, CaptureHash)>> {
    let sql = "SELECT a.core, b.digest FROM capture c JOIN artifact a ON a.id = c.artifact
                 LEFT JOIN blob b ON b.id = c.blob WHERE c.id = ?1";
    connection.prepare_cached(sql)?.query_row([capture], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

/// Inserts the passages of those captures that still exist, and returns the resulting state.
fn insert(
    connection: &Connection,
    batch: &[CapturePassages],
    mut state: SearchIndexProgress,
) -> rusqlite::Result<SearchIndexProgress> {
    for capture @ CapturePassages { id, core, hash, passages } in batch {
        match key_of(connection, *id)? {
            Some(stored) if stored == (*core, *hash) => {}
            // It was removed, and another capture got its number.
            Some(_) => return Ok(state),
            // It was removed, and another capture may get an earlier number.
            None => continue,
        }
        let rows = i64::try_from(passages.len().max(1)).unwrap_or(i64::MAX);
        let next = state.next.checked_add(rows);
        let next = next.ok_or_else(|| index_damage("the search index has no numbers left"))?;
        connection
            .prepare_cached("INSERT INTO search_capture (first, capture, passages) VALUES (?1, ?2, ?3)")?
            .execute((state.next, id, passages.len()))?;
        insert_passages(connection, state.next, capture)?;
        state.next = next;
        state.capture = *id;
    }
    Ok(state)
}

/// Inserts the passages of a capture, the first one as the row `first`.
pub(super) fn insert_passages(
    connection: &Connection,
    first: i64,
    capture: &CapturePassages,
) -> rusqlite::Result<()> {
    let numbered = (first..).zip(&capture.passages);
    for (row, (field, text)) in numbered.filter_map(|(row, text)| Some((row, text.as_ref()?))) {
        let sql = format!("INSERT INTO search_text (rowid, {}) VALUES (?1, ?2)", field.name());
        connection.prepare_cached(&sql)?.execute((row, separated(text)))?;
    }
    Ok(())
}

/// Removes a capture that is about to be removed from the index, if there is one. A damaged index is dropped as a
/// whole: nothing that is removed may stay in it.
pub(in crate::storage) fn forget(connection: &Connection, capture: i64) -> rusqlite::Result<()> {
    if !has_tables(connection)? {
        return Ok(());
    }
    match take_out(connection, capture) {
        Err(error) if is_damage(&error) => drop_tables(connection),
        outcome => outcome,
    }
}

fn take_out(connection: &Connection, capture: i64) -> rusqlite::Result<()> {
    let rows: Option<(i64, i64)> = connection
        .prepare_cached("SELECT first, passages FROM search_capture WHERE capture = ?1")?
        .query_row([capture], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((first, passages)) = rows {
        let removed = Totals::from_rows(connection, first, passages)?;
        // Only existing rows: a damaged vault may contain any number.
        let present: Vec<i64> = connection
            .prepare_cached("SELECT id FROM search_text_docsize WHERE id >= ?1 AND id < ?2")?
            .query_map([first, first.saturating_add(passages)], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let mut delete = connection.prepare_cached("DELETE FROM search_text WHERE rowid = ?1")?;
        for row in present {
            delete.execute([row])?;
        }
        removed.subtract_from_stored(connection)?;
        connection.prepare_cached("DELETE FROM search_capture WHERE first = ?1")?.execute([first])?;
    }
    // The number of the last capture is reused.
    connection
        .prepare_cached(
            "UPDATE search_state SET capture =
               min(capture, (SELECT coalesce(max(id), 0) FROM capture WHERE id <> ?1))",
        )?
        .execute([capture])
        .map(drop)
}

/// Rewrites the index without the words of removed content, which FTS5 only marks as deleted. Takes time proportional
/// to the size of the index.
pub(in crate::storage) fn forget_words(connection: &Connection) -> rusqlite::Result<()> {
    if !has_tables(connection)? {
        return Ok(());
    }
    match connection.execute("INSERT INTO search_text (search_text) VALUES ('optimize')", []) {
        Err(error) if is_damage(&error) => drop_tables(connection),
        done => done.map(drop),
    }
}

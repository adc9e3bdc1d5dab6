//! The search index, which maps words to passages. It is created on request and kept up to date from then on.
//!
//! The store is given passages and knows no formats. Texts are not stored: an answer contains the number of a matching
//! passage of a capture, and the caller reads the capture again.

mod compare;
mod pages;
mod query;

use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::connection::{BUSY_TIMEOUT, secure_delete};
use super::error::{index_damage, is_damage, is_refused_commit};
use super::read::SqliteSnapshot;
use super::rows::ArtifactId;
use super::schema::{self, SEARCH};
use super::{Result, StorageError, Store, write_lock};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::full_text::separated;
use crate::storage::interface::{
    CapturePassages, FoundPassage, FullText, FullTextSnapshot, IndexComparison, PassageGrouping, SearchIndex,
    SearchableCapture, Terms,
};
use crate::storage::sql::captures_between;
use pages::Totals;

/// The version of the tables and of their content. It is increased when either changes, or when kinds produce different
/// passages.
const VERSION: i64 = 3;

/// Returns whether the totals used for ranking match the rows in the index. An index of another version passes, since
/// it is rebuilt before it is queried.
pub(super) fn has_right_totals(connection: &Connection) -> rusqlite::Result<bool> {
    if state(connection)?.is_none_or(|state| state.version != VERSION) {
        return Ok(true);
    }
    Ok(pages::Totals::stored(connection)? == pages::Totals::counted(connection)?)
}

/// Returns whether there is a readable index of another version.
pub(super) fn has_other_version(connection: &Connection) -> bool {
    state(connection).is_ok_and(|state| state.is_some_and(|state| state.version != VERSION))
}

/// The progress of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SearchIndexProgress {
    version: i64,
    /// The last indexed capture.
    capture: i64,
    /// The number of the next passage.
    next: i64,
}

/// Returns the state of the index, or `None` if there is none.
fn state(connection: &Connection) -> rusqlite::Result<Option<SearchIndexProgress>> {
    if !exists(connection)? {
        return Ok(None);
    }
    connection
        .prepare_cached("SELECT version, capture, next FROM search_state")?
        .query_row([], |row| {
            Ok(SearchIndexProgress { version: row.get(0)?, capture: row.get(1)?, next: row.get(2)? })
        })
        .optional()?
        .map_or_else(|| Err(index_damage("the search index has no state")), |state| Ok(Some(state)))
}

/// Returns whether there is an index.
pub(super) fn exists(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM sqlite_schema WHERE name = 'search_state'")?.exists([])
}

/// Returns the hash of a capture, or `None` if it is missing.
fn hash_of(connection: &Connection, capture: i64) -> rusqlite::Result<Option<CaptureHash>> {
    let sql = "SELECT b.digest FROM capture c LEFT JOIN blob b ON b.id = c.blob WHERE c.id = ?1";
    connection.prepare_cached(sql)?.query_row([capture], |row| row.get(0)).optional()
}

impl FullTextSnapshot for SqliteSnapshot<'_> {
    fn search_index(&self) -> Result<Option<SearchIndex>> {
        let look = || {
            let Some(state) = state(self.connection())? else { return Ok(None) };
            let waiting = self
                .connection()
                .prepare_cached("SELECT count(*) FROM capture WHERE id > ?1")?
                .query_row([state.capture], |row| row.get(0))?;
            Ok(Some(SearchIndex { waiting, is_current: state.version == VERSION }))
        };
        look().map_err(|error| self.failed(error))
    }

    fn search_index_size(&self) -> Result<u64> {
        Ok(size(self.connection()).map_err(|error| self.failed(error))?.unwrap_or_default())
    }

    fn unindexed(&self, limit: u32) -> Result<Vec<SearchableCapture>> {
        let state = self.answer(state(self.connection()))?;
        match state.filter(|state| state.version == VERSION) {
            None => Ok(Vec::new()),
            Some(SearchIndexProgress { capture: after, .. }) => {
                captures_between(self, after, i64::MAX, limit)
            }
        }
    }

    fn indexed(&self, after: Option<&SearchableCapture>, limit: u32) -> Result<Vec<SearchableCapture>> {
        let state = self.answer(state(self.connection()))?;
        let Some(SearchIndexProgress { capture: last, .. }) = state else { return Ok(Vec::new()) };
        captures_between(self, after.map_or(i64::MIN, |after| after.id), last, limit)
    }

    fn search(
        &self,
        terms: &Terms,
        among: Option<&[CoreHash]>,
        grouping: PassageGrouping,
        limit: usize,
    ) -> Result<Vec<FoundPassage>> {
        Self::search(self, terms, among, grouping, limit)
    }

    fn compare_search_index(
        &self,
        watch: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Box<dyn IndexComparison>>> {
        let begun = self.compare_index(watch)?;
        Ok(begun.map(|comparison| -> Box<dyn IndexComparison> { Box::new(comparison) }))
    }
}

/// Returns the number of bytes that the index takes in the vault's file, or `None` if there is none.
pub(super) fn size(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    // By name, one table at a time, which skips all others.
    let sql = "SELECT sum((SELECT sum(d.pgsize) FROM dbstat d WHERE d.name = s.name AND d.aggregate = TRUE))
                 FROM sqlite_schema s
                WHERE s.tbl_name IN ('search_state', 'search_capture') OR s.tbl_name GLOB 'search_text_*'";
    connection.query_row(sql, [], |row| row.get(0))
}

impl FullText for Store {
    fn begin_index(&self, busy_timeout: Duration) -> Result<()> {
        self.change_search(busy_timeout, |connection| {
            drop_tables(connection)?;
            connection.execute_batch(SEARCH)?;
            connection.execute("INSERT INTO search_state VALUES (1, ?1, 0, 1)", [VERSION]).map(|_| true)
        })
        .map(drop)
    }

    fn index_passages(&self, batch: &[CapturePassages], busy_timeout: Duration) -> Result<bool> {
        Self::index_passages(self, batch, busy_timeout)
    }

    fn drop_index(&self) -> Result<bool> {
        self.change_search(BUSY_TIMEOUT, |connection| {
            let was_there = has_tables(connection)?;
            drop_tables(connection).map(|()| was_there)
        })
    }

    fn has_index_parts(&self) -> Result<bool> {
        has_tables(&*self.connection()?).map_err(|error| StorageError::from_sqlite(&self.path, error))
    }
}

impl Store {
    fn change_search(
        &self,
        busy_timeout: Duration,
        work: impl FnOnce(&Connection) -> rusqlite::Result<bool>,
    ) -> Result<bool> {
        // Tables that are dropped free their pages, also those that another table uses.
        if let Some(finding) = self.inspect()?.shared_page()? {
            return Err(StorageError::shared_page(&finding.detail));
        }
        let connection = self.connection()?;
        let change = || {
            // Words of passages that are removed later must not remain in the pages of an old index.
            secure_delete(&connection, true)?;
            let transaction = write_lock::begin_within(&connection, busy_timeout)?;
            let outcome = work(&transaction)?;
            transaction.commit()?;
            Ok(outcome)
        };
        let outcome = change();
        // If this fails, additions are slower.
        let _ = secure_delete(&connection, false);
        outcome.map_err(|error| StorageError::from_sqlite(&self.path, error))
    }
}

/// Returns whether there is any part of an index, complete or not.
fn has_tables(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached(schema::HAS_SEARCH_TABLES)?.query_row([], |row| row.get(0))
}

/// Drops those of the tables that exist.
fn drop_tables(connection: &Connection) -> rusqlite::Result<()> {
    match connection.execute_batch("DROP TABLE IF EXISTS search_text") {
        // FTS5 must be able to open a table to drop it. If it cannot, its schema entry is deleted; its shadow tables
        // are then ordinary tables.
        Err(error) if is_damage(&error) => schema::change_by_table(connection, || {
            connection.execute("DELETE FROM sqlite_schema WHERE name = 'search_text'", []).map(drop)
        })?,
        dropped => dropped?,
    }
    connection.execute_batch(
        "DROP TABLE IF EXISTS search_text_data;
         DROP TABLE IF EXISTS search_text_idx;
         DROP TABLE IF EXISTS search_text_content;
         DROP TABLE IF EXISTS search_text_docsize;
         DROP TABLE IF EXISTS search_text_config;
         DROP TABLE IF EXISTS search_capture;
         DROP TABLE IF EXISTS search_state;",
    )
}

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
            Some(ErrorCode::ConstraintViolation) if !is_refused_commit(&error) => {
                index_damage(format!("the search index: {error}"))
            }
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

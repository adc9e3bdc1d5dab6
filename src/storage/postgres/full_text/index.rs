//! Additions to the index and removals from it.

use std::collections::HashMap;

use super::search::Vector;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::interface::{CapturePassages, SearchIndex};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::parameters::ParameterRows;
use crate::storage::postgres::schema::expect_current;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::sql::SqlType::{Bytes, Integer, Text};
use crate::storage::sql::{SqlRow, SqlSession as _, SqlTable, SqlType, SqlValue};

/// The version of the content. It is increased when it changes, or when kinds produce different passages.
pub(super) const VERSION: i64 = 2;

/// The progress of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PostgresSearchState {
    pub(super) version: i64,
    /// The last indexed capture.
    pub(super) capture: i64,
}

impl PostgresSearchState {
    /// Returns the state in the first two columns of a row.
    fn of(row: &SqlRow) -> PostgresResult<Self> {
        Ok(Self { version: row.integer(0)?, capture: row.integer(1)? })
    }
}

/// Returns the state of the index, or `None` if there is none.
pub(super) fn state(session: &DatabaseTransaction<'_>) -> PostgresResult<Option<PostgresSearchState>> {
    let row = session.row("SELECT version, capture FROM search_state", &[])?;
    row.as_ref().map(PostgresSearchState::of).transpose()
}

/// Waits for others that change the index, and returns its state.
fn lock(session: &DatabaseTransaction<'_>) -> PostgresResult<Option<PostgresSearchState>> {
    let sql =
        "SELECT s.version, s.capture, v.format_version FROM search_state s, vault v WHERE s.id = 1 AND v.id = 1
               FOR UPDATE OF s FOR SHARE OF v";
    let Some(row) = session.row(sql, &[])? else { return Ok(None) };
    expect_current(session.server().name(), row.integer(2)?)?;
    PostgresSearchState::of(&row).map(Some)
}

pub(super) fn describe(session: &DatabaseTransaction<'_>) -> PostgresResult<Option<SearchIndex>> {
    let sql = "SELECT s.version, (SELECT count(*) FROM capture c WHERE c.id > s.capture) FROM search_state s";
    let index =
        |row: SqlRow| Ok(SearchIndex { waiting: row.count(1)?, is_current: row.integer(0)? == VERSION });
    session.row(sql, &[])?.map(index).transpose()
}

/// Begins an empty index.
pub(super) fn begin(session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
    let update = "UPDATE search_state SET version = $1, capture = 0 WHERE id = 1";
    if session.execute(update, &[VERSION.into()])? == 0 {
        // Another process may create it at the same time.
        let insert = "INSERT INTO search_state (id, version, capture) VALUES (1, $1, 0)
                      ON CONFLICT (id) DO UPDATE SET version = $1, capture = 0";
        session.execute(insert, &[VERSION.into()])?;
    }
    session.batch("DELETE FROM search_passage; DELETE FROM search_capture")
}

/// Removes the index, and returns whether there was one.
pub(super) fn drop(session: &DatabaseTransaction<'_>) -> PostgresResult<bool> {
    let is_there = lock(session)?.is_some();
    session.batch("DELETE FROM search_passage; DELETE FROM search_capture; DELETE FROM search_state")?;
    Ok(is_there)
}

/// Adds the passages of captures. Returns false if they are not those that come next.
pub(super) fn add(session: &DatabaseTransaction<'_>, batch: &[CapturePassages]) -> PostgresResult<bool> {
    let Some(state) = lock(session)?.filter(|state| state.version == VERSION) else { return Ok(false) };
    let Some(first) = batch.first() else { return Ok(true) };
    let next = session.row("SELECT min(id) FROM capture WHERE id > $1", &[state.capture.into()])?;
    let next = next.map(|row| row.optional_integer(0)).transpose()?.flatten();
    // It may have been removed in the meantime, along with others before it.
    if first.id <= state.capture || next.is_some_and(|next| next < first.id) {
        return Ok(false);
    }
    let keys = keys(session, batch)?;
    let (mut captures, mut passages) = (Vec::new(), Vec::new());
    let mut last = state.capture;
    for capture in batch {
        match keys.get(&capture.id) {
            Some(key) if *key == (capture.core, capture.hash) => {}
            // It was removed, and another capture got its number.
            Some(_) => break,
            // It was removed, and another capture may get an earlier number.
            None => continue,
        }
        captures.push(vec![capture.id.into(), capture.passages().len().into()]);
        passages.extend(rows(capture));
        last = capture.id;
    }
    session.insert(&SEARCH_CAPTURE, captures)?;
    let passages = ParameterRows::new(PASSAGE, passages);
    let sql = format!(
        "INSERT INTO search_passage ({}) SELECT capture, number, field, words::tsvector, rest FROM {}",
        passages.names(),
        passages.source()
    );
    session.execute(&sql, passages.parameters())?;
    session.execute("UPDATE search_state SET capture = $1", &[last.into()])?;
    Ok(true)
}

/// Returns the keys of those captures of a batch that exist.
fn keys(
    session: &DatabaseTransaction<'_>,
    batch: &[CapturePassages],
) -> PostgresResult<HashMap<i64, (CoreHash, CaptureHash)>> {
    let ids = batch.iter().map(|capture| capture.id).collect();
    let sql = "SELECT c.id, a.core, c.digest FROM capture c JOIN artifact a ON a.id = c.artifact WHERE c.id = ANY($1)";
    let rows = session.rows(sql, &[ids])?;
    rows.iter().map(|row| Ok((row.integer(0)?, (row.core(1)?, row.capture(2)?)))).collect()
}

/// Removes the passages of captures that are about to be removed.
pub(in crate::storage::postgres) fn forget(
    session: &DatabaseTransaction<'_>,
    captures: &[i64],
) -> PostgresResult<()> {
    // Who adds passages holds this lock, and finds out under it which captures exist.
    if lock(session)?.is_none() {
        return Ok(());
    }
    for table in ["search_passage", "search_capture"] {
        session.execute(&format!("DELETE FROM {table} WHERE capture = ANY($1)"), &[captures.into()])?;
    }
    let sql = "UPDATE search_state SET capture =
                 least(capture, (SELECT coalesce(max(id), 0) FROM capture WHERE id <> ALL($1)))";
    session.execute(sql, &[captures.into()]).map(|_| ())
}

/// Returns whether any table of the index has rows.
pub(super) fn has_rows(session: &DatabaseTransaction<'_>) -> PostgresResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM search_state) OR EXISTS (SELECT 1 FROM search_capture)
                      OR EXISTS (SELECT 1 FROM search_passage)";
    session.row(sql, &[])?.map_or(Ok(false), |row| Ok(row.flag(0)?))
}

/// The captures that are in the index, with the number of their passages.
const SEARCH_CAPTURE: SqlTable =
    SqlTable::new("search_capture", 0, &[("capture", Integer), ("passages", Integer)]);

/// The columns of passages.
const PASSAGE: &[(&str, SqlType)] =
    &[("capture", Integer), ("number", Integer), ("field", Text), ("words", Text), ("rest", Bytes)];

/// Returns the rows of the passages of a capture.
fn rows(capture: &CapturePassages) -> impl Iterator<Item = Vec<SqlValue>> {
    (0_i64..).zip(capture.passages()).filter_map(|(number, passage)| {
        let (field, text) = passage.as_ref()?;
        let Vector { words, rest } = Vector::new(text)?;
        Some(vec![capture.id.into(), number.into(), field.name().into(), words.into(), rest.into()])
    })
}

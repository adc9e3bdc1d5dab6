//! Comparison of the index with its expected content.
//!
//! An index of the captures' passages is built in a temporary database, and the tables of the vault's index are copied
//! beside it. FTS5 writes both as one segment, after which they are identical, page for page, if they have the same
//! words at the same places: comparing them costs little more than building one. Only if they differ, every word and
//! its place is read from both, to find the artifacts concerned.

use std::collections::HashMap;
use std::path::PathBuf;

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::super::search;
use super::{SEARCH, SqliteSnapshot, VERSION, pages, state};
use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{CapturePassages, IndexComparison, SearchDifferences};
use crate::storage::sqlite::{Result, StorageError};

/// The words of an index with their places.
const WORDS: &str =
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.search_words USING fts5vocab (main, search_text, instance)";

/// A row that is inserted into both indexes, so that neither has only one segment, which FTS5 would not rewrite.
const LAST_ROW: i64 = i64::MAX;

/// The cache size of a temporary database, in kibibytes.
const CACHE_KIBIBYTES: i64 = 64 << 10;

/// Number of rows that are copied between two progress reports.
const STEP: u64 = 1 << 12;

/// The rows of an index that belong to a capture.
#[derive(Clone, Copy)]
struct IndexRowRange {
    first: i64,
    passages: i64,
}

/// A comparison in progress.
pub(super) struct SearchComparison {
    /// The rows of captures that were not compared yet, by capture row id.
    ranges: HashMap<i64, IndexRowRange>,
    /// The vault's index.
    actual: Connection,
    /// The expected index.
    expected: Connection,
    compared: Vec<(IndexRowRange, CoreHash)>,
    /// Rows of captures that cannot be read.
    passed_over: Vec<IndexRowRange>,
    differences: SearchDifferences,
    path: PathBuf,
}

impl SqliteSnapshot<'_> {
    /// Begins to compare the index with the captures that are in it. Returns `None` if there is no index, or one of
    /// another version. Calls `watch` with the number of index rows that were read, and their total.
    ///
    /// # Errors
    /// Returns an error if the index cannot be read, or there is no space for a copy.
    pub(super) fn compare_index(&self, watch: &mut dyn FnMut(u64, u64)) -> Result<Option<SearchComparison>> {
        let vault = self.connection();
        let mut begin = || {
            if state(vault)?.is_none_or(|state| state.version != VERSION) {
                return Ok(None);
            }
            let unreachable = pages::unreachable(vault)?;
            let actual = copy(vault, watch)?;
            let undeletable = undeletable(&actual)?;
            Ok(Some(SearchComparison {
                ranges: ranges(vault)?,
                actual,
                expected: empty()?,
                compared: Vec::new(),
                passed_over: Vec::new(),
                differences: SearchDifferences { unreachable, undeletable, ..SearchDifferences::default() },
                path: self.path().to_owned(),
            }))
        };
        begin().map_err(|error| self.failed(error))
    }
}

impl IndexComparison for SearchComparison {
    fn captures(&self) -> u64 {
        self.ranges.len() as u64
    }

    fn take(&mut self, core: CoreHash, capture: &CapturePassages) -> Result<()> {
        let passages = i64::try_from(capture.passages().len()).unwrap_or(i64::MAX);
        let range = self.ranges.remove(&capture.id());
        let Some(range) = range.filter(|range| range.passages == passages && range.first > 0) else {
            self.differences.artifacts.insert(core);
            return Ok(());
        };
        match search::insert_passages(&self.expected, range.first, capture) {
            Ok(()) => self.compared.push((range, core)),
            // Its rows also belong to another capture.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                self.differences.artifacts.insert(core);
            }
            Err(error) => return Err(StorageError::from_sqlite(&self.path, error)),
        }
        Ok(())
    }

    fn pass_over(&mut self, capture: &CapturePassages) {
        self.passed_over.extend(self.ranges.remove(&capture.id()));
    }

    fn finish(mut self: Box<Self>) -> Result<SearchDifferences> {
        self.differences.strays += self.ranges.len() as u64;
        let path = std::mem::take(&mut self.path);
        self.compare().map_err(|error| StorageError::from_sqlite(&path, error))?;
        Ok(self.differences)
    }
}

impl SearchComparison {
    fn compare(&mut self) -> rusqlite::Result<()> {
        for range in &self.passed_over {
            let rows = rows_of(&self.actual, *range)?;
            let mut delete = self.actual.prepare_cached("DELETE FROM search_text WHERE rowid = ?1")?;
            for row in rows {
                delete.execute([row])?;
            }
        }
        let (actual, expected) = (&mut self.actual, &mut self.expected);
        std::thread::scope(|scope| {
            let running = scope.spawn(move || into_one_segment(actual));
            let expected = into_one_segment(expected);
            // Joining only fails if the thread panicked; the panic is resumed here.
            running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(expected)
        })?;
        if have_same_pages(&self.actual, &self.expected)? {
            return Ok(());
        }
        self.compared.sort_unstable_by_key(|(range, _)| range.first);
        let ranges: Vec<IndexRowRange> = self.compared.iter().map(|(range, _)| *range).collect();
        let (actual, strays) = sums(&self.actual, &ranges)?;
        let (expected, _) = sums(&self.expected, &ranges)?;
        self.differences.strays += strays;
        for (at, (_, core)) in self.compared.iter().enumerate() {
            if actual.get(at) != expected.get(at) {
                self.differences.artifacts.insert(*core);
            }
        }
        Ok(())
    }
}

fn ranges(connection: &Connection) -> rusqlite::Result<HashMap<i64, IndexRowRange>> {
    let mut statement = connection.prepare("SELECT capture, first, passages FROM search_capture")?;
    let range = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, IndexRowRange { first: row.get(1)?, passages: row.get(2)? }))
    };
    statement.query_map([], range)?.collect()
}

/// Opens a database that is deleted when it is closed. What does not fit into the cache is in an unnamed file.
fn temporary() -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags("", OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIBIBYTES)?;
    Ok(connection)
}

/// Creates an empty index in a temporary database, in a transaction.
fn empty() -> rusqlite::Result<Connection> {
    let connection = temporary()?;
    // References to captures do not matter here.
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.execute_batch(SEARCH)?;
    connection.execute_batch("BEGIN")?;
    Ok(connection)
}

/// Copies the tables of the vault's index into a temporary database.
fn copy(vault: &Connection, watch: &mut dyn FnMut(u64, u64)) -> rusqlite::Result<Connection> {
    let copy = empty()?;
    let tables = [
        ("search_text_data", "id, block"),
        ("search_text_idx", "segid, term, pgno"),
        ("search_text_docsize", "id, sz, origin"),
    ];
    let mut of = 0;
    for (table, _) in tables {
        of += vault.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, u64>(0))?;
    }
    let mut done = 0;
    for (table, columns) in tables {
        copy.execute(&format!("DELETE FROM {table}"), [])?;
        let mut from = vault.prepare(&format!("SELECT {columns} FROM {table}"))?;
        let places = ["?1", "?1, ?2", "?1, ?2, ?3"];
        let places = places.get(from.column_count().saturating_sub(1)).copied().unwrap_or_default();
        let mut to = copy.prepare(&format!("INSERT INTO {table} ({columns}) VALUES ({places})"))?;
        let mut rows = from.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns.split(',').count() {
                to.raw_bind_parameter(column + 1, ToSqlOutput::Borrowed(row.get_ref(column)?))?;
            }
            to.raw_execute()?;
            done += 1;
            if done % STEP == 0 {
                watch(done, of);
            }
        }
    }
    copy.execute_batch("COMMIT")?;
    // FTS5 caches the empty index in memory until one of its changes is rolled back.
    copy.execute_batch("BEGIN; DELETE FROM search_text WHERE rowid = -1; ROLLBACK; BEGIN")?;
    Ok(copy)
}

/// Returns the number of rows whose words FTS5 would not remove with them: a row says which segments have its words.
fn undeletable(index: &Connection) -> rusqlite::Result<u64> {
    index.execute_batch(WORDS)?;
    index.execute("DELETE FROM search_text WHERE rowid IN (SELECT id FROM search_text_docsize)", [])?;
    let left = index.query_row("SELECT count(DISTINCT doc) FROM temp.search_words", [], |row| row.get(0))?;
    index.execute_batch("ROLLBACK; BEGIN")?;
    Ok(left)
}

/// Makes FTS5 write an index as one segment, whatever segments it had.
fn into_one_segment(index: &Connection) -> rusqlite::Result<()> {
    index.execute("INSERT INTO search_text (rowid, response) VALUES (?1, 'last')", [LAST_ROW])?;
    index.execute_batch("COMMIT; INSERT INTO search_text (search_text) VALUES ('optimize')")
}

/// Returns whether two indexes of one segment have the same pages and the same row sizes.
fn have_same_pages(one: &Connection, other: &Connection) -> rusqlite::Result<bool> {
    let tables = [
        format!(
            "SELECT id & {}, block FROM search_text_data WHERE id >= {} ORDER BY id",
            pages::PAGE,
            pages::FIRST
        ),
        "SELECT id, sz FROM search_text_docsize ORDER BY id".to_owned(),
    ];
    for sql in tables {
        let (mut one, mut other) = (one.prepare(&sql)?, other.prepare(&sql)?);
        let (mut one, mut other) = (one.query([])?, other.query([])?);
        loop {
            match (one.next()?, other.next()?) {
                (None, None) => break,
                (Some(one), Some(other)) => {
                    if one.get_ref(0)? != other.get_ref(0)? || one.get_ref(1)? != other.get_ref(1)? {
                        return Ok(false);
                    }
                }
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// Returns the rows of the range that an index has.
fn rows_of(index: &Connection, range: IndexRowRange) -> rusqlite::Result<Vec<i64>> {
    index
        .prepare_cached("SELECT id FROM search_text_docsize WHERE id >= ?1 AND id < ?2")?
        .query_map([range.first, range.first.saturating_add(range.passages)], |row| row.get(0))?
        .collect()
}

/// Returns a sum of the index content of each range, and the number of rows and words outside all ranges.
fn sums(index: &Connection, ranges: &[IndexRowRange]) -> rusqlite::Result<(Vec<u64>, u64)> {
    let mut adding = WordHashSums { ranges, words: vec![0; ranges.len()], strays: 0, bytes: Vec::new() };
    // The number of words in each field, which FTS5 uses to weigh matches.
    let mut sizes = index.prepare("SELECT id, sz FROM search_text_docsize")?;
    let mut sizes = sizes.query([])?;
    while let Some(row) = sizes.next()? {
        adding.add(row.get(0)?, &[row.get_ref(1)?.as_blob()?]);
    }
    index.execute_batch(WORDS)?;
    let mut words = index.prepare("SELECT doc, term, col, offset FROM temp.search_words")?;
    let mut words = words.query([])?;
    while let Some(row) = words.next()? {
        let offset: i64 = row.get(3)?;
        let (term, field) = (row.get_ref(1)?.as_bytes()?, row.get_ref(2)?.as_bytes()?);
        adding.add(row.get(0)?, &[term, b"\0", field, &offset.to_le_bytes()]);
    }
    Ok((adding.words, adding.strays))
}

/// Sums of hashes of words and their places, by range, independent of their order.
struct WordHashSums<'r> {
    ranges: &'r [IndexRowRange],
    /// The sums, in the order of the ranges.
    words: Vec<u64>,
    strays: u64,
    /// The buffer for the next hash.
    bytes: Vec<u8>,
}

impl WordHashSums<'_> {
    /// Adds the content of a row of the index.
    fn add(&mut self, row: i64, parts: &[&[u8]]) {
        if row == LAST_ROW {
            return;
        }
        let at = self.ranges.partition_point(|range| range.first <= row).wrapping_sub(1);
        let range = self.ranges.get(at).filter(|range| row - range.first < range.passages);
        let (Some(range), Some(sum)) = (range, self.words.get_mut(at)) else {
            self.strays += 1;
            return;
        };
        self.bytes.clear();
        self.bytes.extend((row - range.first).to_le_bytes());
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        *sum = sum.wrapping_add(Digest::from_content(&self.bytes).key().cast_unsigned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates an index of these texts, written in transactions of `step` rows.
    fn index(texts: &[&str], step: usize) -> Connection {
        let index = empty().unwrap();
        index.execute_batch("COMMIT").unwrap();
        let rows: Vec<(i64, &&str)> = (1..).zip(texts).collect();
        for rows in rows.chunks(step) {
            index.execute_batch("BEGIN").unwrap();
            for (row, text) in rows {
                let sql = "INSERT INTO search_text (rowid, response) VALUES (?1, ?2)";
                index.execute(sql, (row, text)).unwrap();
            }
            index.execute_batch("COMMIT").unwrap();
        }
        index
    }

    /// Whether the copy of an index and another one are the same, each as one segment.
    fn are_same(one: &Connection, other: &Connection) -> bool {
        let one = copy(one, &mut |_, _| {}).unwrap();
        let other = copy(other, &mut |_, _| {}).unwrap();
        into_one_segment(&one).unwrap();
        into_one_segment(&other).unwrap();
        have_same_pages(&one, &other).unwrap()
    }

    #[test]
    fn indexes_of_the_same_words_are_the_same_however_they_were_written() {
        let texts: Vec<String> = (0..3_000_u32)
            .map(|number| {
                let words = (0..number % 50).map(|word| format!("w{} common ", word * number % 7_919));
                words.collect::<String>() + &"long ".repeat(usize::from(number % 100 == 7) * 5_000)
            })
            .collect();
        let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let all = index(&texts, 3_000);
        for step in [1, 700] {
            assert!(are_same(&all, &index(&texts, step)), "{step}");
        }
        // A deletion and a partial merge.
        let other = index(&texts, 100);
        other.execute("DELETE FROM search_text WHERE rowid = 3000", []).unwrap();
        other.execute("INSERT INTO search_text (search_text, rank) VALUES ('merge', 3)", []).unwrap();
        assert!(!are_same(&all, &other));
        texts.pop();
        assert!(are_same(&index(&texts, 5_000), &other));
        texts[1_234] = "something else";
        assert!(!are_same(&index(&texts, 5_000), &other));
        assert!(are_same(&index(&[], 1), &index(&[], 1)));
    }
}

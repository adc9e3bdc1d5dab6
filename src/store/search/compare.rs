//! The index held against what it should have.
//!
//! Every word at its place in a passage is hashed, and the hashes of a capture are added up, in whatever order they come:
//! those of the index, which has words in the order of words, and those of a small index in memory, which is filled with
//! what captures really say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::ToSqlOutput;

use super::matching::in_memory;
use super::{CapturePassages, SCHEMA, Snapshot, VERSION, keep, state};
use crate::digest::{CoreHash, Digest};
use crate::store::{Result, StoreError};

/// So many bytes of text are in memory as an index.
const BATCH_BYTES: usize = 8 << 20;

/// The words of an index with their places, and to be looked up.
const WORDS: &str =
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.search_words USING fts5vocab (main, search_text, instance);
     CREATE VIRTUAL TABLE IF NOT EXISTS temp.search_word USING fts5vocab (main, search_text, row)";

/// What an index has of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    passages: i64,
    words: u64,
}

/// The rows of an index that are of a capture.
#[derive(Clone, Copy)]
struct Range {
    first: i64,
    passages: i64,
    capture: i64,
}

/// What is not in the index as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchDifferences {
    /// Artifacts of which the index says something else than they do.
    pub artifacts: BTreeSet<CoreHash>,
    /// So many parts of the index belong to no capture that should be in it.
    pub strays: u64,
}

/// A comparison under way.
pub struct SearchComparison {
    /// What the index has of captures that were not compared yet.
    indexed: BTreeMap<i64, Sum>,
    mirror: Connection,
    /// What is in the mirror.
    waiting: Vec<(Range, CoreHash)>,
    bytes: usize,
    next: i64,
    differences: SearchDifferences,
    path: PathBuf,
}

impl Snapshot<'_> {
    /// Begins to hold the index against the captures that are in it. Nothing if there is none, or one of another version.
    ///
    /// # Errors
    /// What the database says.
    pub fn compare_search_index(&self) -> Result<Option<SearchComparison>> {
        let begin = || {
            let is_current = state(self.connection())?.is_some_and(|state| state.version == VERSION);
            is_current.then(|| sums(self.connection(), &ranges(self.connection())?)).transpose()
        };
        let Some((indexed, strays)) = begin().map_err(|error| self.failed(error))? else {
            return Ok(None);
        };
        Ok(Some(SearchComparison {
            indexed,
            mirror: mirror(self.path())?,
            waiting: Vec::new(),
            bytes: 0,
            next: 1,
            differences: SearchDifferences { strays, ..SearchDifferences::default() },
            path: self.path().to_owned(),
        }))
    }
}

impl SearchComparison {
    /// Takes what a capture of the artifact `core` says.
    ///
    /// # Errors
    /// What the database says.
    pub fn take(&mut self, core: CoreHash, capture: &CapturePassages) -> Result<()> {
        let insert = keep::insert_passages(&self.mirror, self.next, capture);
        insert.map_err(|error| StoreError::of(&self.path, error))?;
        let passages = i64::try_from(capture.passages().len()).unwrap_or(i64::MAX);
        self.waiting.push((Range { first: self.next, passages, capture: capture.id() }, core));
        self.next += passages.max(1);
        self.bytes += capture.bytes();
        if self.bytes >= BATCH_BYTES { self.compare() } else { Ok(()) }
    }

    /// What is different.
    ///
    /// # Errors
    /// What the database says.
    pub fn finish(mut self) -> Result<SearchDifferences> {
        self.compare()?;
        self.differences.strays += self.indexed.len() as u64;
        Ok(self.differences)
    }

    /// Compares what is in the mirror, and empties it.
    fn compare(&mut self) -> Result<()> {
        let ranges: Vec<Range> = self.waiting.iter().map(|(range, _)| *range).collect();
        let expected = sums(&self.mirror, &ranges).and_then(|(expected, _)| {
            self.mirror.execute("INSERT INTO search_text (search_text) VALUES ('delete-all')", [])?;
            Ok(expected)
        });
        let expected = expected.map_err(|error| StoreError::of(&self.path, error))?;
        for (range, core) in self.waiting.drain(..) {
            if self.indexed.remove(&range.capture) != expected.get(&range.capture).copied() {
                self.differences.artifacts.insert(core);
            }
        }
        self.bytes = 0;
        Ok(())
    }
}

/// An empty index in memory, with the tables of the vault's.
fn mirror(path: &Path) -> Result<Connection> {
    let made = in_memory().and_then(|mirror| {
        // What captures are is of no interest here.
        mirror.pragma_update(None, "foreign_keys", false)?;
        mirror.execute_batch(SCHEMA).map(|()| mirror)
    });
    made.map_err(|error| StoreError::of(path, error))
}

fn ranges(connection: &Connection) -> rusqlite::Result<Vec<Range>> {
    let mut statement =
        connection.prepare("SELECT first, passages, capture FROM search_capture ORDER BY first")?;
    let range = |row: &rusqlite::Row<'_>| {
        Ok(Range { first: row.get(0)?, passages: row.get(1)?, capture: row.get(2)? })
    };
    statement.query_map([], range)?.collect()
}

/// What an index has of each capture, and how many of its rows and words are of none.
fn sums(connection: &Connection, ranges: &[Range]) -> rusqlite::Result<(BTreeMap<i64, Sum>, u64)> {
    let mut adding = Adding { ranges, words: vec![0; ranges.len()], strays: 0, bytes: Vec::new() };
    // How many words there are in each field, by which matches are weighed.
    let mut sizes = connection.prepare("SELECT id, sz FROM search_text_docsize")?;
    let mut sizes = sizes.query([])?;
    while let Some(row) = sizes.next()? {
        adding.add(row.get(0)?, &[row.get_ref(1)?.as_blob()?]);
    }
    connection.execute_batch(WORDS)?;
    let mut words = connection.prepare("SELECT doc, term, col, offset FROM temp.search_words")?;
    let mut words = words.query([])?;
    let mut look_up = connection.prepare("SELECT 1 FROM temp.search_word WHERE term = ?1")?;
    let mut before = Vec::new();
    while let Some(row) = words.next()? {
        let offset: i64 = row.get(3)?;
        let (term, field) = (row.get_ref(1)?.as_bytes()?, row.get_ref(2)?.as_bytes()?);
        if term != before {
            // What is there need not be found.
            adding.strays += u64::from(!look_up.exists([ToSqlOutput::Borrowed(row.get_ref(1)?)])?);
            before = term.to_vec();
        }
        adding.add(row.get(0)?, &[term, b"\0", field, &offset.to_le_bytes()]);
    }
    let sum = |(range, words): (&Range, u64)| (range.capture, Sum { passages: range.passages, words });
    Ok((ranges.iter().zip(adding.words).map(sum).collect(), adding.strays))
}

/// Adds up hashes by capture.
struct Adding<'r> {
    ranges: &'r [Range],
    /// In the order of the ranges.
    words: Vec<u64>,
    strays: u64,
    /// For the next hash.
    bytes: Vec<u8>,
}

impl Adding<'_> {
    /// Adds what stands in a row of the index.
    fn add(&mut self, row: i64, parts: &[&[u8]]) {
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
        *sum = sum.wrapping_add(Digest::of(&self.bytes).key().cast_unsigned());
    }
}

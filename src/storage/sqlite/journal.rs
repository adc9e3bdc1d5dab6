//! The journal of a vault: its rows.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, ToSql};

use super::error::{incomplete, out_of_order, refused};
use super::schema;
use super::shared_statements::StatementProvider;
use crate::digest::Digest;
use crate::storage::entry::Entry;
use crate::storage::journal::{Actor, Head, JournalWriter};
use crate::storage::sql::SqlSession;
use crate::storage::{CaptureTarget, RecordedAddition, RecordedEntry, recorded};

/// A writer that appends entries within a transaction.
pub(super) struct SqliteJournalWriter {
    writer: JournalWriter,
    /// The last entry that has a row.
    last: Head,
}

impl SqliteJournalWriter {
    /// Creates a writer at the end of the journal for changes by `actor` at the time `at`. Times never go back: if the
    /// last entry is later, its time is used.
    pub(super) fn open(
        connection: &Connection,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
    ) -> rusqlite::Result<Self> {
        if schema::is_incomplete(connection)? {
            return Err(incomplete());
        }
        Self::at_the_end(connection, actor, at)
    }

    /// Creates a writer at the end of the journal of an incomplete copy, to adopt further entries.
    pub(super) fn open_to_adopt(connection: &Connection) -> rusqlite::Result<Self> {
        if !schema::is_incomplete(connection)? {
            return Err(refused(recorded::not_begun()));
        }
        Self::at_the_end(connection, None, DateTime::UNIX_EPOCH)
    }

    fn at_the_end(
        connection: &Connection,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
    ) -> rusqlite::Result<Self> {
        let sql = "SELECT seq, chain, at FROM journal ORDER BY seq DESC LIMIT 1";
        let (seq, chain, at_last) = match SqlSession::rows(connection, sql, &[])?.first() {
            Some(last) => (last.integer(0)?, last.digest(1)?, Some(last.time(2)?)),
            None => (0, Digest::from_bytes([0; 32]), None),
        };
        let last = Head { seq: seq.cast_unsigned(), chain };
        Ok(Self { writer: JournalWriter::new(last, at_last, actor, at), last })
    }

    /// Returns the last entry.
    pub(super) fn head(&self) -> Head {
        self.last
    }

    /// Returns the writer of the texts of entries.
    pub(super) fn writer(&mut self) -> &mut JournalWriter {
        &mut self.writer
    }

    /// Returns the last entry of a journal.
    pub(super) fn last(connection: &Connection) -> rusqlite::Result<Head> {
        Self::at_the_end(connection, None, DateTime::UNIX_EPOCH).map(|journal| journal.head())
    }

    /// Writes the row of an entry that continues the journal. An addition is stored in columns if the view returns its text
    /// again.
    pub(super) fn write(
        &mut self,
        statements: &impl StatementProvider,
        entry: &RecordedEntry,
    ) -> rusqlite::Result<()> {
        recorded::check_next(self.last, entry).map_err(refused)?;
        let seq = after(self.last.seq.cast_signed(), "journal")?;
        self.last = entry.head();
        if let Some(addition) = entry.addition()
            && entry.is_in_written_form()
        {
            return insert_addition(statements, seq, entry, &addition);
        }
        insert_text(statements, seq, entry)
    }

    /// Appends an entry from which no row of the catalog follows.
    pub(super) fn append(&mut self, connection: &Connection, entry: Entry) -> rusqlite::Result<()> {
        let entry = self.writer.record(entry).map_err(refused)?;
        self.write(connection, &entry)
    }
}

/// Inserts the row of the entry of an addition with its number: its time, its actor, what it adds, and its chain value.
fn insert_addition(
    statements: &impl StatementProvider,
    seq: i64,
    entry: &RecordedEntry,
    addition: &RecordedAddition<'_>,
) -> rusqlite::Result<()> {
    let RecordedAddition { target: CaptureTarget { capture, artifact }, kind, size, source_path } = addition;
    let size = i64::try_from(*size).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let parts: [&dyn ToSql; 9] = [
        &seq,
        &entry.at.timestamp_millis(),
        &entry.actor,
        kind,
        artifact.0.as_bytes(),
        capture.0.as_bytes(),
        &size,
        entry.record.chain.as_bytes(),
        source_path,
    ];
    statements.with(
        "INSERT INTO journal (seq, at, actor, kind, core, capture, size, chain, source_path)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        |insert| insert.execute(parts).map(drop),
    )
}

/// Inserts the row of an entry that is stored as text with its number: its time, its text and its chain value.
fn insert_text(statements: &impl StatementProvider, seq: i64, entry: &RecordedEntry) -> rusqlite::Result<()> {
    let (at, record) = (entry.at.timestamp_millis(), &entry.record);
    statements.with("INSERT INTO journal (seq, at, entry, chain) VALUES (?1, ?2, ?3, ?4)", |insert| {
        insert.execute((seq, at, &*record.entry, record.chain.as_bytes())).map(drop)
    })
}

/// Returns the number after `last`. In a damaged vault, there may be none.
pub(super) fn after(last: i64, table: &str) -> rusqlite::Result<i64> {
    last.checked_add(1).ok_or_else(|| out_of_order(table))
}

//! Appending journal entries.

use super::error::{PostgresError, PostgresResult};
use super::schema::expect_current;
use super::session::DatabaseTransaction;
use crate::storage::entry::Entry;
use crate::storage::journal::JournalWriter;
use crate::storage::sql::SqlType::{Bytes, Integer, Text};
use crate::storage::sql::{SqlRow, SqlSession as _, SqlTable};
use crate::storage::waiting::Wait;
use crate::storage::{Actor, Head, RecordedEntry, recorded};
use chrono::{DateTime, Utc};

/// Entries with what is read of their texts.
const JOURNAL: SqlTable = SqlTable::new(
    "journal",
    0,
    &[("seq", Integer), ("at", Integer), ("action", Text), ("entry", Text), ("chain", Bytes)],
);

/// A writer of the journal entries of one transaction, which holds the writer lock.
pub(super) struct PostgresJournalWriter {
    writer: JournalWriter,
    /// The last entry that has a row.
    last: Head,
    /// The entries that are not in the database yet.
    waiting: Vec<RecordedEntry>,
}

impl PostgresJournalWriter {
    /// Waits for other writers, and creates a writer at the end of the journal.
    pub(super) fn lock(
        session: &DatabaseTransaction<'_>,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
    ) -> PostgresResult<Self> {
        let (recorder, is_incomplete) = Self::lock_any(session, actor, at)?;
        if is_incomplete { Err(recorded::incomplete(session.server().name()).into()) } else { Ok(recorder) }
    }

    /// Waits for other writers. Returns the row of the end of the journal, with the version of the vault.
    pub(super) fn wait(session: &DatabaseTransaction<'_>) -> PostgresResult<Option<SqlRow>> {
        // What changes the schema locks the same rows. Under the lock, the version is what it is, not what it was when the
        // transaction began.
        let sql = "SELECT h.seq, h.at, h.chain, v.format_version, h.is_incomplete FROM head h, vault v WHERE h.id = 1 AND v.id = 1
                      FOR UPDATE OF h FOR SHARE OF v";
        let _wait = Wait::begin(|| format!("another writer of {}", session.server().name()));
        session.row(sql, &[])
    }

    /// Like [`PostgresJournalWriter::lock`], also of a vault that is an incomplete copy, and returns whether it is one.
    pub(super) fn lock_any(
        session: &DatabaseTransaction<'_>,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
    ) -> PostgresResult<(Self, bool)> {
        let row = Self::wait(session)?.ok_or_else(|| PostgresError::damaged("the journal has no head"))?;
        expect_current(session.server().name(), row.integer(3)?)?;
        let head = Head { seq: row.count(0)?, chain: row.digest(2)? };
        let last = row.optional_integer(1)?.map(|_| row.time(1)).transpose()?;
        let writer = JournalWriter::new(head, last, actor, at);
        let recorder = Self { writer, last: head, waiting: Vec::new() };
        Ok((recorder, row.flag(4)?))
    }

    /// Returns the time of the recorded changes.
    pub(super) fn at(&self) -> DateTime<Utc> {
        self.writer.at()
    }

    /// Returns the last entry that has a row.
    pub(super) fn head(&self) -> Head {
        self.last
    }

    /// Returns the writer of the texts of entries.
    pub(super) fn writer(&mut self) -> &mut JournalWriter {
        &mut self.writer
    }

    /// Adds an entry from which no row of the catalog follows. [`PostgresJournalWriter::flush`] writes it.
    pub(super) fn append(&mut self, entry: Entry) -> PostgresResult<()> {
        self.waiting.push(self.writer.record(entry)?);
        Ok(())
    }

    /// Writes the entries that were added.
    pub(super) fn flush(&mut self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.write(session, &waiting.iter().collect::<Vec<_>>())
    }

    /// Writes the rows of entries that continue the journal.
    pub(super) fn write(
        &mut self,
        session: &DatabaseTransaction<'_>,
        entries: &[&RecordedEntry],
    ) -> PostgresResult<()> {
        let Some(last) = entries.last() else { return Ok(()) };
        for entry in entries {
            recorded::check_next(self.last, entry)?;
            self.last = entry.head();
        }
        let row = |entry: &&RecordedEntry| {
            let RecordedEntry { record, at, action, .. } = entry;
            vec![
                record.seq.into(),
                at.timestamp_millis().into(),
                action.as_ref().into(),
                record.entry.as_str().into(),
                record.chain.into(),
            ]
        };
        session.insert(&JOURNAL, entries.iter().map(row).collect())?;
        session.execute(
            "UPDATE head SET seq = $1, at = $2, chain = $3 WHERE id = 1",
            &[last.record.seq.into(), last.at.timestamp_millis().into(), last.record.chain.into()],
        )?;
        Ok(())
    }
}

/// Returns whether the journal has this entry: whether a commit took effect whose answer was lost.
pub(super) fn has_entry(session: &DatabaseTransaction<'_>, head: Head) -> PostgresResult<bool> {
    let sql = "SELECT 1 FROM journal WHERE seq = $1 AND chain = $2";
    let row = session.row(sql, &[head.seq.into(), head.chain.into()])?;
    Ok(row.is_some())
}

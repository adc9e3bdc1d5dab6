//! Appending journal entries.

use chrono::{DateTime, Utc};

use super::columns::{count, digest, from_millis, value};
use super::error::{PostgresError, PostgresResult};
use super::schema::expect_current;
use super::session::DatabaseTransaction;
use super::text::to_stored;
use crate::digest::Digest;
use crate::storage::journal::{JournalEvent, JournalWriter};
use crate::storage::waiting::Wait;
use crate::storage::{Actor, ErrorKind, Head, RecordedEntry, StorageError, recorded};

/// A writer of the journal entries of one transaction, which holds the writer lock.
pub(super) struct PostgresJournalWriter {
    writer: JournalWriter,
    /// The entries that are not in the database yet.
    waiting: Vec<UnflushedEntry>,
}

struct UnflushedEntry {
    head: Head,
    at: i64,
    action: &'static str,
    entry: String,
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

    /// Like [`PostgresJournalWriter::lock`], also of a vault that is an incomplete copy, and returns whether it is one.
    pub(super) fn lock_any(
        session: &DatabaseTransaction<'_>,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
    ) -> PostgresResult<(Self, bool)> {
        // An upgrade locks the same rows. Under the lock, the version is what it is, not what it was when the transaction
        // began.
        let sql = "SELECT h.seq, h.at, h.chain, v.version, h.is_incomplete FROM head h, vault v WHERE h.id = 1 AND v.id = 1
                      FOR UPDATE OF h FOR SHARE OF v";
        let _wait = Wait::begin(|| format!("another writer of {}", session.server().name()));
        Self::read(session, sql, actor, at)
    }

    /// Creates a writer at what is the end of the journal now, to see what would be written.
    pub(super) fn without_lock(
        session: &DatabaseTransaction<'_>,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
    ) -> PostgresResult<Self> {
        let sql = "SELECT h.seq, h.at, h.chain, v.version, h.is_incomplete FROM head h, vault v
                    WHERE h.id = 1 AND v.id = 1";
        Self::read(session, sql, actor, at).map(|(recorder, _)| recorder)
    }

    fn read(
        session: &DatabaseTransaction<'_>,
        sql: &str,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
    ) -> PostgresResult<(Self, bool)> {
        let row = session.row(sql, &[])?.ok_or_else(|| PostgresError::damaged("the journal has no head"))?;
        expect_current(session.server().name(), value(&row, 3)?)?;
        let head = Head { seq: count(&row, 0)?, chain: digest(&row, 2)? };
        let last = value::<Option<i64>>(&row, 1)?.map(from_millis).transpose()?;
        let recorder = Self { writer: JournalWriter::new(head, last, actor, at), waiting: Vec::new() };
        Ok((recorder, value(&row, 4)?))
    }

    /// Returns the time of the recorded changes.
    pub(super) fn at(&self) -> DateTime<Utc> {
        self.writer.at()
    }

    pub(super) fn actor(&self) -> Option<&Actor> {
        self.writer.actor()
    }

    /// Returns the last entry.
    pub(super) fn head(&self) -> Head {
        self.writer.head()
    }

    /// Adds an entry, which [`PostgresJournalWriter::flush`] writes.
    pub(super) fn append(&mut self, event: &JournalEvent<'_>) -> PostgresResult<()> {
        let entry = self.writer.append(event).map_err(|error| {
            StorageError::new(ErrorKind::Database, "a journal entry cannot be written").with_source(error)
        })?;
        let at = self.at().timestamp_millis();
        self.waiting.push(UnflushedEntry { head: self.writer.head(), at, action: event.action(), entry });
        Ok(())
    }

    /// Adds an entry of another journal, which [`PostgresJournalWriter::flush`] writes.
    pub(super) fn adopt(&mut self, entry: &RecordedEntry) -> PostgresResult<()> {
        recorded::check_next(self.head(), entry)?;
        self.writer.adopt(entry.head(), entry.at);
        let (at, entry_text) = (entry.at.timestamp_millis(), entry.record.entry.clone());
        self.waiting.push(UnflushedEntry {
            head: entry.head(),
            at,
            action: entry.action(),
            entry: entry_text,
        });
        Ok(())
    }

    /// Returns whether nothing waits to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Writes the entries.
    pub(super) fn flush(&mut self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        let at = self.at().timestamp_millis();
        let seqs: Vec<i64> = waiting.iter().map(|waiting| waiting.head.seq.cast_signed()).collect();
        let times: Vec<i64> = waiting.iter().map(|waiting| waiting.at).collect();
        let actions: Vec<&str> = waiting.iter().map(|waiting| waiting.action).collect();
        let entries: Vec<_> = waiting.iter().map(|waiting| to_stored(&waiting.entry)).collect();
        let chains: Vec<Digest> = waiting.iter().map(|waiting| waiting.head.chain).collect();
        session.execute(
            "INSERT INTO journal (seq, at, action, entry, chain)
             SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bytea[])",
            &[&seqs, &times, &actions, &entries, &chains],
        )?;
        let head = self.head();
        session.execute(
            "UPDATE head SET seq = $1, at = $2, chain = $3 WHERE id = 1",
            &[&head.seq.cast_signed(), &at, &head.chain],
        )?;
        Ok(())
    }
}

/// Returns whether the journal has this entry: whether a commit took effect whose answer was lost.
pub(super) fn has_entry(session: &DatabaseTransaction<'_>, head: Head) -> PostgresResult<bool> {
    let row = session.row(
        "SELECT 1 FROM journal WHERE seq = $1 AND chain = $2",
        &[&head.seq.cast_signed(), &head.chain],
    )?;
    Ok(row.is_some())
}

//! The journal of a vault: its rows.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, ToSql};

use super::application_id;
use super::error::{incomplete, out_of_order, refused};
use super::rows::Milliseconds;
use super::statements::StatementProvider;
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::actor::Actor;
use crate::storage::journal::JournalWriter;
pub(super) use crate::storage::journal::{Head, JournalEvent, MAX_CAPTURES, arrival};
use crate::storage::{CaptureTarget, RecordedAddition, RecordedEntry, recorded};

/// The SQL expression for the time of an entry of the journal `j`: the one in its text, which is chained. The text of
/// an addition is built from the column.
pub(super) const AT: &str = "coalesce(CASE WHEN json_valid(j.entry)
    THEN CAST(round(unixepoch(j.entry ->> 'at', 'subsec') * 1000) AS INTEGER) END, j.at)";

/// Returns the time of the entry `seq` in milliseconds since 1970, or `None` if there is no such entry.
pub(super) fn time_of(connection: &Connection, seq: i64) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(&format!("SELECT {AT} FROM journal j WHERE j.seq = ?1"))?
        .query_row([seq], |row| row.get(0))
        .optional()
}

/// An added capture.
pub(super) struct Addition<'a> {
    /// The row id and the name of its kind.
    pub(super) kind: i64,
    pub(super) kind_name: &'static str,
    pub(super) core: CoreHash,
    pub(super) capture: CaptureHash,
    pub(super) size: u64,
    pub(super) source_path: Option<&'a str>,
}

/// A writer that appends entries within a transaction.
pub(super) struct SqliteJournalWriter {
    writer: JournalWriter,
    seq: i64,
    /// The actor's row id, once there was an addition.
    actor_id: Option<i64>,
    /// The row ids of the actors of adopted entries.
    adopted_actors: HashMap<String, i64>,
}

impl SqliteJournalWriter {
    /// Creates a writer at the end of the journal for changes by `actor` at the time `at`. Times never go back: if the
    /// last entry is later, its time is used.
    pub(super) fn open(
        connection: &Connection,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
    ) -> rusqlite::Result<Self> {
        if application_id::is_incomplete(connection)? {
            return Err(incomplete());
        }
        Self::at_the_end(connection, actor, at)
    }

    /// Creates a writer at the end of the journal of an incomplete copy, to adopt further entries.
    pub(super) fn open_to_adopt(connection: &Connection) -> rusqlite::Result<Self> {
        if !application_id::is_incomplete(connection)? {
            return Err(refused(recorded::not_begun()));
        }
        Self::at_the_end(connection, None, DateTime::UNIX_EPOCH)
    }

    fn at_the_end(
        connection: &Connection,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
    ) -> rusqlite::Result<Self> {
        let last = connection
            .prepare_cached("SELECT seq, chain, at FROM journal ORDER BY seq DESC LIMIT 1")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Milliseconds>(2)?.0)))
            .optional()?;
        let (seq, chain, last) = match last {
            Some((seq, chain, last)) => (seq, chain, Some(last)),
            None => (0_i64, Digest::from_bytes([0; 32]), None),
        };
        let head = Head { seq: seq.cast_unsigned(), chain };
        Ok(Self {
            writer: JournalWriter::new(head, last, actor, at),
            seq,
            actor_id: None,
            adopted_actors: HashMap::new(),
        })
    }

    /// Returns the number of the last entry.
    pub(super) fn seq(&self) -> i64 {
        self.seq
    }

    /// Returns the last entry.
    pub(super) fn head(&self) -> Head {
        self.writer.head()
    }

    /// Returns the time of the recorded changes.
    pub(super) fn at(&self) -> DateTime<Utc> {
        self.writer.at()
    }

    /// Appends the entry of an addition. It is stored in columns, from which the view `journal_entries` builds its
    /// text.
    pub(super) fn add(
        &mut self,
        statements: &impl StatementProvider,
        addition: &Addition<'_>,
    ) -> rusqlite::Result<()> {
        let Addition { kind, kind_name, core, capture, size, source_path } = *addition;
        let actor = self.actor_id(statements)?;
        self.chain_up(&JournalEvent::Add { capture, core, kind: kind_name, size, source_path })?;
        let target = CaptureTarget { capture, artifact: core };
        let (time, chain) = (self.at().timestamp_millis(), self.head().chain);
        let addition = RecordedAddition { target, kind: kind_name, size, source_path };
        insert_addition(statements, (self.seq, time, actor), (kind, &addition), &chain)
    }

    /// Returns the last entry of a journal.
    pub(super) fn last(connection: &Connection) -> rusqlite::Result<Head> {
        Self::at_the_end(connection, None, DateTime::UNIX_EPOCH).map(|journal| journal.head())
    }

    /// Continues with an entry of another journal. What follows from the entry is written next, and then the entry itself.
    pub(super) fn begin_adopted(&mut self, entry: &RecordedEntry) -> rusqlite::Result<()> {
        recorded::check_next(self.head(), entry).map_err(refused)?;
        self.seq = after(self.seq, "journal")?;
        self.writer.adopt(entry.head(), entry.at);
        Ok(())
    }

    /// Writes the entry that was begun. An addition is stored in columns if the view returns its text again; the vault may
    /// not have the kind of an artifact that was removed later.
    pub(super) fn adopt(&mut self, connection: &Connection, entry: &RecordedEntry) -> rusqlite::Result<()> {
        let record = &entry.record;
        if let Some(addition) = entry.addition()
            && entry.is_in_written_form()
            && let Some(kind) = kind_id(connection, addition.kind)?
        {
            let actor = self.adopted_actor(connection, entry.actor.as_deref())?;
            let numbers = (self.seq, entry.at.timestamp_millis(), actor);
            return insert_addition(connection, numbers, (kind, &addition), &record.chain);
        }
        insert_text(connection, (self.seq, entry.at.timestamp_millis()), &record.entry, &record.chain)
    }

    fn adopted_actor(
        &mut self,
        connection: &Connection,
        name: Option<&str>,
    ) -> rusqlite::Result<Option<i64>> {
        let Some(name) = name else { return Ok(None) };
        if let Some(id) = self.adopted_actors.get(name) {
            return Ok(Some(*id));
        }
        let id = actor_id(connection, name)?;
        self.adopted_actors.insert(name.to_owned(), id);
        Ok(Some(id))
    }

    /// Appends an entry of any other event.
    pub(super) fn append(
        &mut self,
        connection: &Connection,
        event: &JournalEvent<'_>,
    ) -> rusqlite::Result<()> {
        let text = self.chain_up(event)?;
        insert_text(connection, (self.seq, self.at().timestamp_millis()), &text, &self.head().chain)
    }

    fn actor_id(&mut self, statements: &impl StatementProvider) -> rusqlite::Result<Option<i64>> {
        if let (None, Some(actor)) = (self.actor_id, self.writer.actor()) {
            self.actor_id = Some(actor_id(statements, actor.name())?);
        }
        Ok(self.actor_id)
    }

    /// Extends the chain by an entry of `event` and returns its text.
    fn chain_up(&mut self, event: &JournalEvent<'_>) -> rusqlite::Result<String> {
        let seq = after(self.seq, "journal")?;
        let text = self
            .writer
            .append(event)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        self.seq = seq;
        Ok(text)
    }
}

/// Returns the row id of the actor with this name, who may be new.
fn actor_id(statements: &impl StatementProvider, name: &str) -> rusqlite::Result<i64> {
    let known = statements.with("SELECT id FROM actor WHERE name = ?1", |select| {
        select.query_row([name], |row| row.get(0)).optional()
    })?;
    if let Some(id) = known {
        return Ok(id);
    }
    // Not the number of a lost row, to which entries still refer.
    statements.with(
        "INSERT INTO actor (id, name) VALUES (
           (SELECT max(actor) + 1 FROM journal WHERE actor > (SELECT coalesce(max(id), 0) FROM actor)), ?1)
         RETURNING id",
        |insert| insert.query_row([name], |row| row.get(0)),
    )
}

/// Returns the row id of the kind with this name.
fn kind_id(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT id FROM kind WHERE name = ?1")?;
    statement.query_row([name], |row| row.get(0)).optional()
}

/// Inserts the row of an addition: its number, time and actor; the row id of its kind, and what it adds; its chain value.
fn insert_addition(
    statements: &impl StatementProvider,
    (seq, at, actor): (i64, i64, Option<i64>),
    (kind, addition): (i64, &RecordedAddition<'_>),
    chain: &Digest,
) -> rusqlite::Result<()> {
    let RecordedAddition { target: CaptureTarget { capture, artifact }, size, source_path, .. } = addition;
    let size = i64::try_from(*size).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let parts: [&dyn ToSql; 9] = [
        &seq,
        &at,
        &actor,
        &kind,
        artifact.0.as_bytes(),
        capture.0.as_bytes(),
        &size,
        chain.as_bytes(),
        source_path,
    ];
    statements.with(
        "INSERT INTO journal (seq, at, actor, kind, core, capture, size, chain, source_path)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        |insert| insert.execute(parts).map(drop),
    )
}

/// Inserts the row of an entry that is stored as text: its number and time, its text and its chain value.
fn insert_text(
    connection: &Connection,
    (seq, at): (i64, i64),
    text: &str,
    chain: &Digest,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO journal (seq, at, entry, chain) VALUES (?1, ?2, ?3, ?4)")?
        .execute((seq, at, text, chain.as_bytes()))
        .map(drop)
}

/// Returns the number after `last`. In a damaged vault, there may be none.
pub(super) fn after(last: i64, table: &str) -> rusqlite::Result<i64> {
    last.checked_add(1).ok_or_else(|| out_of_order(table))
}

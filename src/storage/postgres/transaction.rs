//! Changes of existing content.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use super::error::PostgresResult;
use super::journal::{PostgresJournalWriter, has_entry};
use super::names::{NameCache, NameRegistry};
use super::pool::PostgresServer;
use super::session::DatabaseTransaction;
use super::snapshot::PostgresSnapshot;
use super::write::RowWriter;
use super::write::blobs::Blobs;
use crate::artifact::Member;
use crate::digest::CoreHash;
use crate::storage::interface::{AppendedEntry, Snapshot, Transaction};
use crate::storage::journal::JournalWriter;
use crate::storage::sql::SqlSnapshot as _;
use crate::storage::{Actor, Head, Prepared, Result};

/// The pause before it is asked again whether a commit took effect.
const PAUSE: Duration = Duration::from_millis(20);

/// A change. It holds the writer lock.
pub(super) struct PostgresTransaction<'s> {
    new_names: NewNames<'s>,
    pub(super) view: PostgresSnapshot<'s>,
    pub(super) journal: PostgresJournalWriter,
    busy_timeout: Duration,
}

/// The names that this process remembers although they are not committed, if there are any.
struct NewNames<'s>(Option<&'s NameCache>);

impl Drop for NewNames<'_> {
    fn drop(&mut self) {
        if let Some(names) = self.0 {
            // They are read again when they are needed.
            names.set(Arc::default());
        }
    }
}

impl<'s> PostgresTransaction<'s> {
    /// Begins a change after waiting for other writers, no longer than `busy_timeout`.
    pub(super) fn begin(
        server: &'s PostgresServer,
        names: &'s NameCache,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
        busy_timeout: Duration,
    ) -> PostgresResult<Self> {
        let session = DatabaseTransaction::to_write(server, busy_timeout)?;
        let journal = PostgresJournalWriter::lock(&session, actor, at)?;
        Ok(Self::new(PostgresSnapshot { session, names }, journal, busy_timeout))
    }

    /// Continues a database transaction as a change. `journal` holds the writer lock.
    pub(super) fn new(
        view: PostgresSnapshot<'s>,
        journal: PostgresJournalWriter,
        busy_timeout: Duration,
    ) -> Self {
        Self { new_names: NewNames(None), view, journal, busy_timeout }
    }

    /// Appends entries to the journal, and executes what follows from them. `blobs` has the bytes of all that they add.
    /// Returns, for each, whether it adds a capture with bytes that the vault had before.
    pub(super) fn append_with(
        &mut self,
        entries: &[AppendedEntry<'_>],
        blobs: &mut Blobs<'_>,
    ) -> PostgresResult<Vec<bool>> {
        let session = &self.view.session;
        let contents: Vec<&Prepared> = entries.iter().filter_map(|entry| entry.content).collect();
        let known = self.view.names.get();
        let names = NameRegistry::with_all(Arc::clone(&known), session, &contents)?;
        if !Arc::ptr_eq(&known, &names) {
            self.new_names.0 = Some(self.view.names);
            self.view.names.set(Arc::clone(&names));
        }
        RowWriter { session, names: &names, blobs: &mut *blobs }.execute(entries)?;
        let recorded: Vec<_> = entries.iter().map(|entry| entry.entry).collect();
        self.journal.write(session, &recorded)?;
        let is_known = |member: &Member| !blobs.sent().contains(&member.blob());
        let reuses = |content: &Prepared| content.admitted().members().iter().any(is_known);
        Ok(entries.iter().map(|entry| entry.content.is_some_and(reuses)).collect())
    }

    /// Makes the changes durable. If the answer is lost, asks whether they are.
    pub(super) fn finish(self) -> PostgresResult<Head> {
        let Self { mut new_names, view, journal, busy_timeout } = self;
        let (head, server) = (journal.head(), view.session.server());
        match view.session.commit() {
            Err(failure) if failure.is_disconnection() => {
                if !has_taken_effect(server, head, busy_timeout)? {
                    return Err(failure);
                }
            }
            committed => committed?,
        }
        new_names.0 = None;
        Ok(head)
    }
}

/// Returns whether a commit took effect whose answer was lost.
fn has_taken_effect(server: &PostgresServer, head: Head, busy_timeout: Duration) -> PostgresResult<bool> {
    let begun = Instant::now();
    let ask = || {
        // The lock waits until the server has ended the transaction, one way or the other.
        let session = DatabaseTransaction::to_write(server, busy_timeout)?;
        PostgresJournalWriter::lock_any(&session, None, DateTime::UNIX_EPOCH)?;
        has_entry(&session, head)
    };
    loop {
        match ask() {
            Err(failure) if failure.can_be_retried() && begun.elapsed() < busy_timeout => {
                std::thread::sleep(PAUSE);
            }
            answer => return answer,
        }
    }
}

impl Transaction for PostgresTransaction<'_> {
    fn snapshot(&self) -> &dyn Snapshot {
        &self.view
    }

    fn prepare_removal(&mut self, _of: &[CoreHash]) -> Result<bool> {
        Ok(true)
    }

    fn journal(&mut self) -> &mut JournalWriter {
        self.journal.writer()
    }

    fn append(&mut self, entries: &[AppendedEntry<'_>]) -> Result<Vec<bool>> {
        let contents: Vec<&Prepared> = entries.iter().filter_map(|entry| entry.content).collect();
        let appended = self.append_with(entries, &mut Blobs::new(&contents));
        self.view.answer(appended)
    }

    fn commit(self: Box<Self>) -> Result<Head> {
        let server = self.view.session.server();
        self.finish().map_err(|failure| failure.at(server.name()))
    }
}

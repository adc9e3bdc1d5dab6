//! Changes of existing content.

mod labels;
pub(super) mod removal;

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::columns::{core, value};
use super::error::{PostgresError, PostgresResult};
use super::journal::{PostgresJournalWriter, has_entry};
use super::names::NameCache;
use super::parameter::Parameter;
use super::pool::PostgresServer;
use super::session::DatabaseTransaction;
use super::text::to_stored;
use super::view::PostgresSnapshot;
use crate::digest::CoreHash;
use crate::storage::annotations::{link_defect, note_defect, tag_defect};
use crate::storage::interface::{Annotation, Snapshot, Transaction};
use crate::storage::journal::JournalEvent;
use crate::storage::{Actor, Head, Result, StorageError};

/// A change. It holds the writer lock.
pub(super) struct PostgresTransaction<'s> {
    view: PostgresSnapshot<'s>,
    recorder: PostgresJournalWriter,
    busy_timeout: Duration,
}

/// The ends and the relation of a manual link.
struct LinkRowKey<'l> {
    relation: &'l str,
    source: CoreHash,
    target: CoreHash,
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
        let recorder = PostgresJournalWriter::lock(&session, actor, at)?;
        Ok(Self { view: PostgresSnapshot { session, names }, recorder, busy_timeout })
    }

    fn session(&self) -> &DatabaseTransaction<'s> {
        &self.view.session
    }

    fn at(&self) -> i64 {
        self.recorder.at().timestamp_millis()
    }

    /// Appends a journal entry, which snapshots of this change see.
    fn record(&mut self, event: &JournalEvent<'_>) -> PostgresResult<()> {
        self.recorder.append(event)?;
        self.recorder.flush(&self.view.session)
    }

    /// Returns the number of an artifact.
    fn expect_artifact(&self, core: CoreHash) -> PostgresResult<i64> {
        let sql = "SELECT id FROM artifact WHERE core = $1";
        let row = self.session().row(sql, &[&core])?;
        value(&row.ok_or_else(|| StorageError::gone(core))?, 0)
    }

    /// Returns whether a query has rows.
    fn exists(&self, sql: &str, parameters: &[&dyn Parameter]) -> PostgresResult<bool> {
        Ok(self.session().row(sql, parameters)?.is_some())
    }

    fn set_tag(&mut self, core: CoreHash, name: &str) -> PostgresResult<bool> {
        reject(tag_defect(name))?;
        let artifact = self.expect_artifact(core)?;
        let sql = "INSERT INTO tag AS t (name, artifact, at) VALUES ($1, $2, $3)
                   ON CONFLICT (name) DO UPDATE SET artifact = $2, at = $3 WHERE t.artifact <> $2";
        if self.session().execute(sql, &[&name, &artifact, &self.at()])? == 0 {
            return Ok(false);
        }
        self.record(&JournalEvent::Tag { core, name }).map(|()| true)
    }

    fn remove_tag(&mut self, name: &str) -> PostgresResult<bool> {
        let sql =
            "DELETE FROM tag t USING artifact a WHERE t.name = $1 AND a.id = t.artifact RETURNING a.core";
        let Some(row) = self.session().row(sql, &[&to_stored(name)])? else { return Ok(false) };
        self.record(&JournalEvent::Untag { core: core(&row, 0)?, name }).map(|()| true)
    }

    fn set_note(&mut self, core: CoreHash, text: &str) -> PostgresResult<bool> {
        reject(note_defect(text))?;
        let artifact = self.expect_artifact(core)?;
        let folded = text.to_lowercase().into_bytes();
        let sql = "INSERT INTO note AS n (artifact, text, folded, at) VALUES ($1, $2, $3, $4)
                   ON CONFLICT (artifact) DO UPDATE SET text = $2, folded = $3, at = $4 WHERE n.text <> $2";
        if self.session().execute(sql, &[&artifact, &to_stored(text), &folded, &self.at()])? == 0 {
            return Ok(false);
        }
        self.record(&JournalEvent::Note { core, note: Some(text) }).map(|()| true)
    }

    fn remove_note(&mut self, core: CoreHash) -> PostgresResult<bool> {
        let artifact = self.expect_artifact(core)?;
        if self.session().execute("DELETE FROM note WHERE artifact = $1", &[&artifact])? == 0 {
            return Ok(false);
        }
        self.record(&JournalEvent::Note { core, note: None }).map(|()| true)
    }

    fn pin(&mut self, core: CoreHash, note: Option<&str>) -> PostgresResult<bool> {
        let artifact = self.expect_artifact(core)?;
        let stored = note.map(to_stored);
        let sql = "INSERT INTO pin AS p (artifact, note, at) VALUES ($1, $2, $3)
                   ON CONFLICT (artifact) DO UPDATE SET note = $2, at = $3 WHERE p.note IS DISTINCT FROM $2";
        if self.session().execute(sql, &[&artifact, &stored, &self.at()])? == 0 {
            return Ok(false);
        }
        self.record(&JournalEvent::Pin { core, note }).map(|()| true)
    }

    fn unpin(&mut self, core: CoreHash) -> PostgresResult<bool> {
        let artifact = self.expect_artifact(core)?;
        if self.session().execute("DELETE FROM pin WHERE artifact = $1", &[&artifact])? == 0 {
            return Ok(false);
        }
        self.record(&JournalEvent::Unpin { core }).map(|()| true)
    }

    fn add_link(&mut self, link: &LinkRowKey<'_>, note: Option<&str>) -> PostgresResult<bool> {
        let LinkRowKey { relation, source, target } = *link;
        reject(link_defect(source, relation, target, note))?;
        let (from, to) = (self.expect_artifact(source)?, self.expect_artifact(target)?);
        let stored = note.map(to_stored);
        let sql = "INSERT INTO link AS l (source, relation, target, note, at) VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT (source, relation, target) DO UPDATE SET note = $4, at = $5
                    WHERE l.note IS DISTINCT FROM $4";
        if self.session().execute(sql, &[&from, &relation, &to, &stored, &self.at()])? == 0 {
            return Ok(false);
        }
        self.record(&JournalEvent::Link { note, relation, source, target }).map(|()| true)
    }

    fn remove_link(&mut self, link: &LinkRowKey<'_>) -> PostgresResult<bool> {
        let LinkRowKey { relation, source, target } = *link;
        let (from, to) = (self.expect_artifact(source)?, self.expect_artifact(target)?);
        let stored = to_stored(relation);
        let sql = "DELETE FROM link WHERE source = $1 AND relation = $2 AND target = $3";
        if self.session().execute(sql, &[&from, &stored, &to])? == 0 {
            return Ok(false);
        }
        self.record(&JournalEvent::Unlink { relation, source, target }).map(|()| true)
    }
}

impl PostgresTransaction<'_> {
    /// Makes the changes durable. If the answer is lost, asks whether they are.
    fn finish(self) -> PostgresResult<Head> {
        let (head, server, busy_timeout) = (self.recorder.head(), self.session().server(), self.busy_timeout);
        let Err(failure) = self.view.session.commit() else { return Ok(head) };
        if !failure.is_disconnection() {
            return Err(failure);
        }
        // The lock waits until the server has ended the transaction, one way or the other.
        let session = DatabaseTransaction::to_write(server, busy_timeout)?;
        PostgresJournalWriter::lock(&session, None, DateTime::UNIX_EPOCH)?;
        if has_entry(&session, head)? { Ok(head) } else { Err(failure) }
    }
}

/// Returns the error for a value with a defect.
fn reject(defect: Option<String>) -> PostgresResult<()> {
    defect.map_or(Ok(()), |defect| Err(PostgresError::from(StorageError::invalid(defect))))
}

impl Transaction for PostgresTransaction<'_> {
    fn snapshot(&self) -> &dyn Snapshot {
        &self.view
    }

    fn prepare_removal(&mut self, _of: &[CoreHash]) -> Result<bool> {
        Ok(true)
    }

    fn remove(&mut self, core: CoreHash, reason: Option<&str>) -> Result<()> {
        let outcome = self.remove_artifact(core, reason);
        self.view.answer(outcome)
    }

    fn annotate(&mut self, change: &Annotation<'_>) -> Result<bool> {
        let outcome = match *change {
            Annotation::SetLabels { cores, labels } => self.set_labels(cores, labels),
            Annotation::RemoveLabels { cores, keys } => self.remove_labels(cores, keys),
            Annotation::SetTag { core, name } => self.set_tag(core, name),
            Annotation::RemoveTag { name } => self.remove_tag(name),
            Annotation::SetNote { core, text: Some(text) } => self.set_note(core, text),
            Annotation::SetNote { core, text: None } => self.remove_note(core),
            Annotation::Pin { core, note } => self.pin(core, note),
            Annotation::Unpin { core } => self.unpin(core),
            Annotation::AddLink { source, relation, target, note } => {
                self.add_link(&LinkRowKey { relation, source, target }, note)
            }
            Annotation::RemoveLink { source, relation, target } => {
                self.remove_link(&LinkRowKey { relation, source, target })
            }
        };
        self.view.answer(outcome)
    }

    fn commit(self: Box<Self>) -> Result<Head> {
        let server = self.session().server();
        self.finish().map_err(|failure| failure.at(server.name()))
    }
}

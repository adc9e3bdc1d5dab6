//! Repairs that require no guessing. Each step is one transaction with its journal entries, under the writer lock.
//!
//! What follows from the stored bytes is rebuilt like an index. Here is what it does not follow from: which artifact a
//! capture belongs to, which its seal proves; times, positions, annotations and removals, which the journal proves; and
//! the bytes, which their hash proves.

mod annotations;
mod blobs;
mod identities;
mod journal;
mod steps;
mod tombstones;

use super::error::PostgresResult;
use super::journal::PostgresJournalWriter;
use super::parameter::Parameter;
use super::session::DatabaseTransaction;
use super::vault::PostgresStorage;
use crate::clock;
use crate::storage::check::{Repair, Subject};
use crate::storage::entry::Entry;
use crate::storage::{BUSY_TIMEOUT, Result};

impl PostgresStorage {
    /// Runs `work` and records its repairs in the journal, in one transaction.
    fn repair(
        &self,
        work: impl FnOnce(&DatabaseTransaction<'_>) -> PostgresResult<Vec<Repair>>,
    ) -> Result<Vec<Repair>> {
        let repair = || {
            let session = DatabaseTransaction::to_write(&self.server, BUSY_TIMEOUT)?;
            let recorder = PostgresJournalWriter::lock(&session, self.actor(), clock::now())?;
            let repaired = work(&session)?;
            record(&session, recorder, &repaired)?;
            session.commit()?;
            Ok(repaired)
        };
        repair().map_err(|failure: super::error::PostgresError| failure.at(self.server.name()))
    }
}

/// Appends an entry for each repair to the journal.
fn record(
    session: &DatabaseTransaction<'_>,
    mut recorder: PostgresJournalWriter,
    repaired: &[Repair],
) -> PostgresResult<()> {
    for Repair { subject, did } in repaired {
        recorder.append(Entry::Repair { did: (*did).to_owned(), subject: subject.to_string() })?;
    }
    recorder.flush(session)
}

/// Runs a statement. Returns a repair if it changed anything.
fn repaired_if_changed(
    session: &DatabaseTransaction<'_>,
    (sql, parameters): (&str, &[&dyn Parameter]),
    (subject, did): (Subject, &'static str),
) -> PostgresResult<Option<Repair>> {
    Ok((session.execute(sql, parameters)? > 0).then_some(Repair { subject, did }))
}

/// Deletes the rows of each table whose column refers to a row of `parent` that does not exist.
fn delete_strays(
    session: &DatabaseTransaction<'_>,
    tables: &[(&str, &str)],
    (parent, did): (&str, &'static str),
) -> PostgresResult<Vec<Repair>> {
    let mut repaired = Vec::new();
    for (table, column) in tables {
        let sql = format!(
            "DELETE FROM {table} x WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.id = x.{column})"
        );
        let subject = Subject::Table((*table).to_owned());
        repaired.extend(repaired_if_changed(session, (&sql, &[]), (subject, did))?);
    }
    Ok(repaired)
}

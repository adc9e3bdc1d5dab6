//! Adoption of the journal of another vault. The row of the last entry, which every writer locks, says that the vault is an
//! incomplete copy.

use std::time::{Duration, Instant};

use chrono::DateTime;

use super::columns::value;
use super::error::PostgresResult;
use super::journal::PostgresJournalWriter;
use super::session::DatabaseTransaction;
use super::transaction::PostgresTransaction;
use super::vault::PostgresStorage;
use super::view::PostgresSnapshot;
use super::write::blobs::Blobs;
use crate::storage::interface::{Adoption, AppendedEntry};
use crate::storage::recorded;
use crate::storage::{BUSY_TIMEOUT, Head, Prepared, Result};

/// The pause before a transaction that others interfered with is run again.
const PAUSE: Duration = Duration::from_millis(100);

impl Adoption for PostgresStorage {
    fn is_incomplete(&self) -> Result<bool> {
        let read = || {
            let session = DatabaseTransaction::to_read(&self.server)?;
            let row = session.row("SELECT is_incomplete FROM head WHERE id = 1", &[])?;
            row.map_or(Ok(false), |row| value(&row, 0))
        };
        read().map_err(|failure| failure.at(self.server.name()))
    }

    fn begin(&self) -> Result<Head> {
        self.retry(|_| {
            let (session, recorder, is_incomplete) = self.lock()?;
            if is_incomplete {
                return Ok(recorder.head());
            }
            let has_artifacts = session.row("SELECT 1 FROM artifact LIMIT 1", &[])?.is_some();
            if recorder.head().seq > 0 || has_artifacts {
                return Err(recorded::not_empty().into());
            }
            session.execute("UPDATE head SET is_incomplete = true WHERE id = 1", &[])?;
            session.commit()?;
            Ok(recorder.head())
        })
    }

    fn adopt(&self, entries: &[AppendedEntry<'_>]) -> Result<Head> {
        let batch: Vec<&Prepared> = entries.iter().filter_map(|entry| entry.content).collect();
        let mut blobs = Blobs::new(&batch);
        self.retry(|_| self.try_to_adopt(entries, &mut blobs))
    }

    fn finish(&self, head: Head) -> Result<()> {
        self.retry(|attempt| {
            let (session, recorder, is_incomplete) = self.lock()?;
            if recorder.head() != head || !(is_incomplete || attempt > 0) {
                return Err(recorded::not_begun().into());
            }
            session.execute("UPDATE head SET is_incomplete = false WHERE id = 1", &[])?;
            session.commit()
        })
    }
}

impl PostgresStorage {
    /// Runs `work` again from the beginning if another transaction interfered or the connection was lost. It gets the
    /// number of attempts before.
    fn retry<T>(&self, mut work: impl FnMut(u32) -> PostgresResult<T>) -> Result<T> {
        let begun = Instant::now();
        let mut attempt = 0;
        loop {
            match work(attempt) {
                Err(failure) if failure.can_be_retried() && begun.elapsed() < BUSY_TIMEOUT => {
                    std::thread::sleep(PAUSE);
                    attempt += 1;
                }
                outcome => return outcome.map_err(|failure| failure.at(self.server.name())),
            }
        }
    }

    /// Begins a transaction that holds the writer lock. Returns whether the vault is an incomplete copy.
    fn lock(&self) -> PostgresResult<(DatabaseTransaction<'_>, PostgresJournalWriter, bool)> {
        let session = DatabaseTransaction::to_write(&self.server, BUSY_TIMEOUT)?;
        let (recorder, is_incomplete) =
            PostgresJournalWriter::lock_any(&session, None, DateTime::UNIX_EPOCH)?;
        Ok((session, recorder, is_incomplete))
    }

    fn try_to_adopt(&self, entries: &[AppendedEntry<'_>], blobs: &mut Blobs<'_>) -> PostgresResult<Head> {
        blobs.begin();
        if self.server.blobs().is_external() {
            let all = blobs.all();
            blobs.store_external(DatabaseTransaction::to_read(&self.server)?, &all)?;
        }
        let (session, journal, is_incomplete) = self.lock()?;
        if !is_incomplete {
            return Err(recorded::not_begun().into());
        }
        recorded::check(journal.head(), entries)?;
        let view = PostgresSnapshot { session, names: &self.names };
        let mut transaction = PostgresTransaction::new(view, journal, BUSY_TIMEOUT);
        transaction.append_with(entries, blobs)?;
        transaction.finish()
    }
}

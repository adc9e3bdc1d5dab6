//! The storage interface.
//!
//! Everything that storing can do without the writer lock is done before it is taken: the needed blobs are determined, and the
//! bytes are sent. With the lock, what is recorded is decided again, and a fixed number of statements writes everything.
//!
//! The row of the last entry, which every writer locks, says whether the vault is an incomplete copy.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use super::error::PostgresResult;
use super::journal::PostgresJournalWriter;
use super::names::NameCache;
use super::pool::PostgresServer;
use super::session::DatabaseTransaction;
use super::snapshot::PostgresSnapshot;
use super::transaction::PostgresTransaction;
use super::vault::PostgresStorage;
use super::write::artifacts::discard;
use super::write::blobs::{Blobs, are_ours, prepare};
use super::write::blobs_of;
use crate::artifact::Admitted;
use crate::digest::{BlobHash, CoreHash, Digest};
use crate::storage::change::{PutDecision, PutState};
use crate::storage::interface::{
    Adoption, AppendedEntry, Capability, CaptureTarget, FullText, Preparer, PutOptions, Snapshot, SqlQueries,
    Storage, Transaction,
};
use crate::storage::sql::SqlSession as _;
use crate::storage::waiting::Wait;
use crate::storage::{Actor, BUSY_TIMEOUT, Head, Prepared, PutResult, Result, StorageError, recorded, sql};

impl Storage for PostgresStorage {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>> {
        let session =
            DatabaseTransaction::to_read(&self.server).map_err(|failure| failure.at(self.server.name()))?;
        Ok(Box::new(PostgresSnapshot { session, names: &self.names }))
    }

    fn transaction(&self, at: DateTime<Utc>, busy_timeout: Duration) -> Result<Box<dyn Transaction + '_>> {
        let change = PostgresTransaction::begin(&self.server, &self.names, self.actor(), at, busy_timeout);
        Ok(Box::new(change.map_err(|failure| failure.at(self.server.name()))?))
    }

    fn preparer(&self) -> Result<Box<dyn Preparer>> {
        Ok(Box::new(PostgresPreparer))
    }

    fn put(&self, batch: &[&Prepared], options: &PutOptions) -> Result<Vec<PutResult>> {
        if !are_ours(batch) {
            return Err(StorageError::invalid("the artifacts were prepared for another storage engine"));
        }
        let (server, names, actor) = (&self.server, &self.names, self.actor());
        let batch = PostgresPutBatch { server, names, actor, prepared: batch, options };
        batch.put().map_err(|failure| failure.at(self.server.name()))
    }

    fn set_actor(&mut self, actor: Actor) {
        self.actor = Some(actor);
    }

    fn full_text(&self) -> Result<&dyn FullText> {
        Ok(self)
    }

    fn sql(&self) -> Result<&dyn SqlQueries> {
        Ok(self)
    }

    fn has(&self, capability: Capability) -> bool {
        capability != Capability::FileBackup
    }
}

/// A preparer that compresses the bytes.
struct PostgresPreparer;

impl Preparer for PostgresPreparer {
    fn prepare(&self, admitted: Admitted) -> Prepared {
        prepare(admitted)
    }
}

/// A batch to be stored.
struct PostgresPutBatch<'b> {
    server: &'b PostgresServer,
    names: &'b NameCache,
    actor: Option<&'b Actor>,
    prepared: &'b [&'b Prepared],
    options: &'b PutOptions,
}

/// The pause before a batch that others interfered with is stored again, for each attempt so far.
const PUT_PAUSE: Duration = Duration::from_millis(20);

impl<'b> PostgresPutBatch<'b> {
    /// Stores the batch, again from the beginning if another transaction interfered or the connection was lost.
    fn put(&self) -> PostgresResult<Vec<PutResult>> {
        let begun = Instant::now();
        let mut wait = None;
        let mut blobs = Blobs::new(self.prepared);
        for attempt in 1.. {
            let left = self.options.busy_timeout.saturating_sub(begun.elapsed());
            match self.try_put(left, &mut blobs) {
                Err(failure) if failure.can_be_retried() && begun.elapsed() < self.options.busy_timeout => {
                    let what = || format!("the server at {} to store artifacts", self.server.name());
                    wait.get_or_insert_with(|| Wait::begin(what));
                    std::thread::sleep(PUT_PAUSE.saturating_mul(attempt).min(Duration::from_secs(1)));
                }
                outcome => return outcome,
            }
        }
        Ok(Vec::new())
    }

    fn try_put(&self, busy_timeout: Duration, blobs: &mut Blobs<'_>) -> PostgresResult<Vec<PutResult>> {
        blobs.begin();
        if self.server.blobs().is_some() {
            let view = self.view(DatabaseTransaction::to_read(self.server)?);
            let needed = blobs_of(self.decide(&view)?.contents());
            blobs.store_external(view.session, &needed)?;
        }
        let view = self.view(DatabaseTransaction::to_write(self.server, busy_timeout)?);
        let expected = blobs_of(self.decide(&view)?.contents());
        blobs.send(&view.session, &expected)?;
        let sent = blobs.sent().clone();
        let journal = PostgresJournalWriter::lock(&view.session, self.actor, self.options.at)?;
        let mut transaction = PostgresTransaction::new(view, journal, busy_timeout);
        // Others may have removed what was there, and stored or removed what this batch has.
        let decision = self.decide(&transaction.view)?;
        let needed = blobs_of(decision.contents());
        let recorded = decision.record(transaction.journal.writer())?;
        let entries = recorded.entries();
        let reuse = transaction.append_with(&entries, blobs)?;
        let unneeded: Vec<BlobHash> = sent.difference(&needed).copied().collect();
        discard(&transaction.view.session, &unneeded, self.options.at)?;
        if !entries.is_empty() {
            transaction.finish()?;
        }
        drop(entries);
        Ok(recorded.results(&reuse))
    }

    fn view(&self, session: DatabaseTransaction<'b>) -> PostgresSnapshot<'b> {
        PostgresSnapshot { session, names: self.names }
    }

    /// Decides what is to be recorded of the batch, as far as can be seen now.
    fn decide(&self, view: &PostgresSnapshot<'_>) -> PostgresResult<PutDecision<'b>> {
        let targets: Vec<CaptureTarget> =
            self.prepared.iter().flat_map(|prepared| prepared.targets()).collect();
        let cores: Vec<CoreHash> = targets.iter().map(|target| target.artifact).collect();
        let digests: Vec<&[Digest]> = self.prepared.iter().map(|prepared| prepared.digests()).collect();
        let artifacts = sql::artifacts(&view.session, &cores)?.into_iter().flatten();
        let captures = sql::captures_with(&view.session, &targets)?.into_iter().flatten();
        let state = PutState::new(artifacts, captures, sql::tombstones_with(&view.session, &digests)?);
        Ok(state.decide(self.prepared, self.options.policy))
    }
}

/// The pause before a transaction that others interfered with is run again.
const ADOPTION_PAUSE: Duration = Duration::from_millis(100);

impl Adoption for PostgresStorage {
    fn is_incomplete(&self) -> Result<bool> {
        let read = || -> PostgresResult<bool> {
            let session = DatabaseTransaction::to_read(&self.server)?;
            let row = session.row("SELECT is_incomplete FROM head WHERE id = 1", &[])?;
            row.map_or(Ok(false), |row| Ok(row.flag(0)?))
        };
        read().map_err(|failure| failure.at(self.server.name()))
    }

    fn begin_adoption(&self) -> Result<Head> {
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

    fn finish_adoption(&self, head: Head) -> Result<()> {
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
                    std::thread::sleep(ADOPTION_PAUSE);
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
        if self.server.blobs().is_some() {
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

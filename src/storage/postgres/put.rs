//! Storing artifacts.
//!
//! Everything that can be done without the writer lock is done before it is taken: the needed blobs are determined, and
//! the bytes are sent. With the lock, what is recorded is decided again, and a fixed number of statements writes everything.

use std::time::{Duration, Instant};

use super::error::PostgresResult;
use super::journal::PostgresJournalWriter;
use super::names::NameCache;
use super::pool::PostgresServer;
use super::session::DatabaseTransaction;
use super::transaction::PostgresTransaction;
use super::view::PostgresSnapshot;
use super::write::blobs::{Blobs, discard};
use super::write::blobs_of;
use crate::digest::{CoreHash, Digest};
use crate::storage::change::{PutDecision, PutState};
use crate::storage::interface::{CaptureTarget, PutOptions};
use crate::storage::sql;
use crate::storage::waiting::Wait;
use crate::storage::{Actor, Prepared, PutResult};

/// A batch to be stored.
pub(super) struct PostgresPutBatch<'b> {
    pub(super) server: &'b PostgresServer,
    pub(super) names: &'b NameCache,
    pub(super) actor: Option<&'b Actor>,
    pub(super) prepared: &'b [&'b Prepared],
    pub(super) options: &'b PutOptions,
}

/// The pause before a batch that others interfered with is stored again, for each attempt so far.
const PAUSE: Duration = Duration::from_millis(20);

impl<'b> PostgresPutBatch<'b> {
    /// Stores the batch, again from the beginning if another transaction interfered or the connection was lost.
    pub(super) fn put(&self) -> PostgresResult<Vec<PutResult>> {
        let begun = Instant::now();
        let mut wait = None;
        let mut blobs = Blobs::new(self.prepared);
        for attempt in 1.. {
            let left = self.options.busy_timeout.saturating_sub(begun.elapsed());
            match self.try_put(left, &mut blobs) {
                Err(failure) if failure.can_be_retried() && begun.elapsed() < self.options.busy_timeout => {
                    let what = || format!("the server at {} to store artifacts", self.server.name());
                    wait.get_or_insert_with(|| Wait::begin(what));
                    std::thread::sleep(PAUSE.saturating_mul(attempt).min(Duration::from_secs(1)));
                }
                outcome => return outcome,
            }
        }
        Ok(Vec::new())
    }

    fn try_put(&self, busy_timeout: Duration, blobs: &mut Blobs<'_>) -> PostgresResult<Vec<PutResult>> {
        blobs.begin();
        if self.server.blobs().is_external() {
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
        discard(&transaction.view.session, &sent, &needed, self.options.at)?;
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

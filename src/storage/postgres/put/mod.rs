//! Storing artifacts.
//!
//! Everything that can be done without the writer lock is done before it is taken: the needed blobs are determined, and
//! the bytes are sent. With the lock, the needed blobs are determined again, numbers and times are assigned, and a
//! fixed number of statements writes everything.

mod adopted;
mod blobs;
pub(super) mod preparation;
pub(super) mod reindex;
mod rows;
mod state;
mod tables;
mod updates;
mod writer;

use std::time::{Duration, Instant};

use crate::artifact::Member;
use crate::storage::interface::PutOptions;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::journal::{PostgresJournalWriter, has_entry};
use crate::storage::postgres::names::{NameCache, NameRegistry};
use crate::storage::postgres::pool::PostgresServer;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::waiting::Wait;
use crate::storage::{Actor, Head, Prepared, PutResult};
pub(super) use adopted::adopt_additions;
pub(super) use blobs::Blobs;
use state::BatchState;
use writer::{BatchWriter, RecordedSignature};

/// A batch to be stored.
pub(super) struct PostgresPutBatch<'b> {
    pub(super) server: &'b PostgresServer,
    pub(super) names: &'b NameCache,
    pub(super) actor: Option<&'b Actor>,
    pub(super) prepared: &'b [&'b Prepared],
    pub(super) options: &'b PutOptions,
    /// The state of the signature of a capture that had been lost, as the journal records it.
    pub(super) recorded: Option<&'b RecordedSignature>,
}

/// A commit whose answer was lost, with what it would return.
type UnconfirmedCommit = (Head, Vec<PutResult>);

/// The pause before a batch that others interfered with is stored again, for each attempt so far.
const PAUSE: Duration = Duration::from_millis(20);

impl PostgresPutBatch<'_> {
    /// Stores the batch, again from the beginning if another transaction interfered or the connection was lost.
    pub(super) fn put(&self) -> PostgresResult<Vec<PutResult>> {
        let begun = Instant::now();
        let (mut lost, mut wait) = (None, None);
        let mut blobs = Blobs::new(self.prepared);
        for attempt in 1.. {
            let left = self.options.busy_timeout.saturating_sub(begun.elapsed());
            match self.try_put(left, &mut blobs, &mut lost) {
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

    fn try_put(
        &self,
        busy_timeout: Duration,
        blobs: &mut Blobs<'_>,
        lost: &mut Option<UnconfirmedCommit>,
    ) -> PostgresResult<Vec<PutResult>> {
        self.store_external(blobs)?;
        let session = DatabaseTransaction::to_write(self.server, busy_timeout)?;
        let expected = self.plan(
            &session,
            PostgresJournalWriter::without_lock(&session, self.actor, self.options.at)?,
            None,
        )?;
        let sent = blobs.send(&session, expected.blobs())?;
        let recorder = PostgresJournalWriter::lock(&session, self.actor, self.options.at)?;
        if let Some((head, outcomes)) = lost.as_ref() {
            // The lock was free, so that the server has ended the transaction whose answer was lost.
            if has_entry(&session, *head)? {
                return Ok(outcomes.clone());
            }
        }
        let names = NameRegistry::with_all(self.names.get(), &session, self.prepared)?;
        let writer = self.plan(&session, recorder, Some(&names))?;
        // Others may have removed what was there, and stored or removed what this batch has.
        let sent_now = blobs.send(&session, writer.blobs())?;
        blobs::reprieve(&session, writer.blobs())?;
        blobs::discard(&session, &sent, writer.blobs(), self.options.at)?;
        let (mut outcomes, head, is_changed) = writer.write(&session)?;
        for (put, prepared) in outcomes.iter_mut().zip(self.prepared) {
            let parts = prepared.parts().into_iter();
            let mut members = parts.flat_map(|part| part.admitted().members()).map(Member::blob);
            put.reuses_bytes = !put.outcome.is_refused()
                && members.any(|blob| !sent.contains(&blob) && !sent_now.contains(&blob));
        }
        if is_changed {
            match session.commit() {
                Err(failure) if failure.is_disconnection() => {
                    *lost = Some((head, outcomes));
                    return Err(failure);
                }
                committed => committed?,
            }
            self.names.set(names);
        }
        Ok(outcomes)
    }

    /// Stores bytes that belong beside the database. Nothing is locked and no transaction waits meanwhile, however long it
    /// takes.
    fn store_external(&self, blobs: &mut Blobs<'_>) -> PostgresResult<()> {
        let blob_store = self.server.blobs();
        if !blob_store.is_external() {
            return Ok(());
        }
        let session = DatabaseTransaction::to_read(self.server)?;
        let expected = self.plan(
            &session,
            PostgresJournalWriter::without_lock(&session, self.actor, self.options.at)?,
            None,
        )?;
        let missing = Blobs::missing(&session, expected.blobs())?;
        drop(session);
        blobs.store(blob_store, &missing)
    }

    /// Returns what storing the batch changes, as far as can be seen now.
    fn plan(
        &self,
        session: &DatabaseTransaction<'_>,
        recorder: PostgresJournalWriter,
        names: Option<&NameRegistry>,
    ) -> PostgresResult<BatchWriter> {
        let state = BatchState::load(session, self.names, self.prepared)?;
        let mut writer = BatchWriter::new(state, recorder, self.options.policy);
        writer.recorded = self.recorded.cloned();
        writer.put_all(self.prepared, names)?;
        Ok(writer)
    }
}

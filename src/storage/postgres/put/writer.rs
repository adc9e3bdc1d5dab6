//! What storing a batch changes.

use std::collections::BTreeSet;

use super::rows::BatchRows;
use super::state::{BatchArtifact, BatchCapture, BatchState, RowChange};
use crate::artifact::{Admitted, CREATED_AT, Signature, SignatureState};
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::journal::JournalEvent;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::journal::PostgresJournalWriter;
use crate::storage::postgres::names::NameRegistry;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::{Head, KindConflict, Prepared, PutOutcome, PutResult, RemovedPolicy};

/// Maximum number of captures in a journal entry of captures that were seen again.
const MAX_SEEN: usize = 1_000;

/// Returns the position of an arrival: the number of its journal entry, then the position in the entry.
pub(super) fn arrival(entry: u64, position: usize) -> u64 {
    (entry << 20) + position as u64
}

/// A capture, and the state of its signature.
pub(in crate::storage::postgres) type RecordedSignature = ((CoreHash, CaptureHash), Signature);

/// A writer of one batch. It writes nothing before [`BatchWriter::write`].
pub(super) struct BatchWriter {
    state: BatchState,
    recorder: PostgresJournalWriter,
    policy: RemovedPolicy,
    /// The state of the signature of a capture that had been lost.
    pub(super) recorded: Option<RecordedSignature>,
    /// The number of the last journal entry before this batch.
    before: u64,
    /// Captures that were seen again and are not in the journal yet.
    seen: Vec<(CoreHash, CaptureHash)>,
    rows: BatchRows,
    /// The blobs of new captures.
    blobs: BTreeSet<BlobHash>,
    outcomes: Vec<PutResult>,
}

impl BatchWriter {
    pub(super) fn new(state: BatchState, recorder: PostgresJournalWriter, policy: RemovedPolicy) -> Self {
        let before = recorder.head().seq;
        Self {
            state,
            recorder,
            policy,
            recorded: None,
            before,
            seen: Vec::new(),
            rows: BatchRows::default(),
            blobs: BTreeSet::new(),
            outcomes: Vec::new(),
        }
    }

    /// Returns the blobs of new captures.
    pub(super) fn blobs(&self) -> &BTreeSet<BlobHash> {
        &self.blobs
    }

    /// Decides what happens to artifacts, in order, and stops at the first rejected one if the policy requires it. Without
    /// `names`, no rows are made, because they refer to names by number.
    pub(super) fn put_all(
        &mut self,
        batch: &[&Prepared],
        names: Option<&NameRegistry>,
    ) -> PostgresResult<()> {
        for prepared in batch {
            let put = self.put_unless_removed(prepared, names)?;
            let is_refused = put.outcome.is_refused();
            self.outcomes.push(put);
            if is_refused && self.policy == RemovedPolicy::RefuseAndStop {
                break;
            }
        }
        self.record_seen()
    }

    /// Writes everything. Returns the outcomes, the last journal entry, and whether anything was written.
    pub(super) fn write(
        mut self,
        session: &DatabaseTransaction<'_>,
    ) -> PostgresResult<(Vec<PutResult>, Head, bool)> {
        let is_changed = !self.recorder.is_empty();
        if is_changed {
            self.rows.write(session, &self.state)?;
            self.recorder.flush(session)?;
        }
        Ok((self.outcomes, self.recorder.head(), is_changed))
    }

    /// Stores an artifact, unless it or an artifact or file in it was removed, or the vault has its core hash for an
    /// artifact of another kind.
    fn put_unless_removed(
        &mut self,
        prepared: &Prepared,
        names: Option<&NameRegistry>,
    ) -> PostgresResult<PutResult> {
        let (core, capture) = (prepared.admitted().core(), prepared.admitted().capture());
        if let Some(conflict) = self.conflict(prepared) {
            return Ok(PutResult {
                core,
                capture,
                outcome: PutOutcome::KindConflict(conflict),
                reuses_bytes: false,
            });
        }
        let removed = self.state.tombstones_with(prepared.digests());
        if !removed.is_empty() && self.policy != RemovedPolicy::Readmit {
            return Ok(PutResult {
                core,
                capture,
                outcome: PutOutcome::Refused(removed),
                reuses_bytes: false,
            });
        }
        for tombstone in removed {
            let event = JournalEvent::AllowRemoved { core: tombstone.core, kind: &tombstone.kind };
            self.recorder.append(&event)?;
            self.state.forget_removal(tombstone.core);
            self.rows.readmitted.push(tombstone.core);
        }
        self.put(prepared, names)
    }

    fn conflict(&self, prepared: &Prepared) -> Option<KindConflict> {
        let (core, kind) = (prepared.admitted().core(), prepared.admitted().kind().name());
        let stored = self.state.artifacts.get(&core).map(|stored| &stored.kind);
        if let Some(stored) = stored.filter(|stored| *stored != kind) {
            return Some(KindConflict { core, kind: stored.clone() });
        }
        prepared.embedded().iter().find_map(|embedded| self.conflict(embedded))
    }

    /// Stores an artifact after those embedded in it.
    fn put(&mut self, prepared: &Prepared, names: Option<&NameRegistry>) -> PostgresResult<PutResult> {
        for embedded in prepared.embedded() {
            self.put(embedded, names)?;
        }
        let admitted = prepared.admitted();
        let (core, capture) = (admitted.core(), admitted.capture());
        let outcome = if self.state.captures.contains_key(&(core, capture)) {
            self.see(core, capture)?;
            PutOutcome::Present
        } else {
            self.record_seen()?;
            self.add(prepared, names)?
        };
        self.record_signature(admitted)?;
        // It is known when the bytes are sent.
        Ok(PutResult { core, capture, outcome, reuses_bytes: false })
    }

    /// Adds a capture, and its artifact if it is new.
    fn add(&mut self, prepared: &Prepared, names: Option<&NameRegistry>) -> PostgresResult<PutOutcome> {
        let (admitted, source_path) = (prepared.admitted(), prepared.source_path());
        let (core, capture, kind) = (admitted.core(), admitted.capture(), admitted.kind().name());
        let at = self.recorder.at().timestamp_millis();
        let arrival = arrival(self.recorder.head().seq + 1, 0);
        let created_at = created_at(admitted);
        let outcome = if let Some(known) = self.state.artifacts.get_mut(&core) {
            (known.seen_at, known.arrival) = (at, arrival);
            known.created_at = known.created_at.max(created_at);
            known.change.update();
            PutOutcome::NewCapture
        } else {
            let id = self.state.next_artifact();
            let stored = BatchArtifact {
                id,
                kind: kind.to_owned(),
                added_at: at,
                seen_at: at,
                arrival,
                created_at,
                change: RowChange::New,
            };
            self.state.artifacts.insert(core, stored);
            self.rows.artifacts.push((core, names.and_then(|names| names.kind_id(admitted.kind()))));
            PutOutcome::Added
        };
        let id = self.state.next_capture();
        let stored = BatchCapture { id, seen_at: at, signature: None, change: RowChange::New };
        self.state.captures.insert((core, capture), stored);
        let artifact = self.state.artifacts.get(&core).map_or(0, |stored| stored.id);
        self.rows.add_capture((artifact, id), prepared, names)?;
        self.blobs.extend(admitted.members().iter().map(crate::artifact::Member::blob));
        let size = admitted.size();
        self.recorder.append(&JournalEvent::Add { capture, core, kind, size, source_path })?;
        Ok(outcome)
    }

    /// Records that a capture was seen again, unless its artifact arrived in this batch.
    fn see(&mut self, core: CoreHash, capture: CaptureHash) -> PostgresResult<()> {
        let last = self.state.artifacts.get(&core).map_or(0, |stored| stored.arrival);
        if last >= arrival(self.before + 1, 0) || self.seen.contains(&(core, capture)) {
            return Ok(());
        }
        self.seen.push((core, capture));
        if self.seen.len() == MAX_SEEN { self.record_seen() } else { Ok(()) }
    }

    /// Appends the captures seen since the last entry of this action to the journal.
    fn record_seen(&mut self) -> PostgresResult<()> {
        let seen = std::mem::take(&mut self.seen);
        if seen.is_empty() {
            return Ok(());
        }
        let (cores, captures): (Vec<CoreHash>, Vec<CaptureHash>) = seen.iter().copied().unzip();
        self.recorder.append(&JournalEvent::Seen { captures: &captures, cores: &cores })?;
        let (entry, at) = (self.recorder.head().seq, self.recorder.at().timestamp_millis());
        for (position, (core, capture)) in seen.into_iter().enumerate() {
            if let Some(stored) = self.state.artifacts.get_mut(&core) {
                (stored.seen_at, stored.arrival) = (at, arrival(entry, position));
                stored.change.update();
            }
            if let Some(stored) = self.state.captures.get_mut(&(core, capture)) {
                stored.seen_at = at;
                stored.change.update();
            }
        }
        Ok(())
    }

    /// Records the result of checking a signature, in the journal only if it changed. A signature that was not checked
    /// this time does not replace the result of an earlier check.
    fn record_signature(&mut self, admitted: &Admitted) -> PostgresResult<()> {
        let (core, capture) = (admitted.core(), admitted.capture());
        let Some(found) = admitted.signature() else { return Ok(()) };
        let Some(stored) = self.state.captures.get_mut(&(core, capture)) else { return Ok(()) };
        let lost = self.recorded.as_ref().filter(|(lost, _)| *lost == (core, capture));
        let state = match stored.signature.as_ref().or(lost.map(|(_, recorded)| recorded)) {
            Some(known) if found.state == SignatureState::Unchecked => known.state,
            _ => found.state,
        };
        let news = Signature { state, key_id: found.key_id.clone() };
        if stored.signature.as_ref() == Some(&news) {
            return Ok(());
        }
        stored.signature = Some(news.clone());
        stored.change.update();
        let (key_id, state) = (news.key_id.as_deref(), state.name());
        self.recorder.append(&JournalEvent::Signature { capture, core, key_id, state })
    }
}

/// Returns the creation time that an artifact states.
pub(super) fn created_at(admitted: &Admitted) -> Option<i64> {
    let attributes = admitted.draft().attributes.iter().filter(|attribute| attribute.name == CREATED_AT);
    attributes.filter_map(|attribute| attribute.number).max()
}

//! Storing artifacts.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::recorder::MemoryJournalWriter;
use super::state::{MemoryArtifact, MemoryCapture, MemoryMember, MemoryState};
use crate::artifact::{Admitted, Signature, SignatureState};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::interface::AttributeRecord;
use crate::storage::journal::JournalEvent;
use crate::storage::{KindConflict, Prepared, PutOutcome, PutResult, RemovedPolicy, Result};

/// Maximum number of captures in a journal entry of captures that were seen again.
const MAX_SEEN: usize = 1_000;

/// Returns the position of an arrival: the number of its journal entry, then the position in the entry.
pub(super) fn arrival(entry: u64, position: usize) -> u64 {
    (entry << 20) + position as u64
}

/// A writer of one batch.
pub(super) struct MemoryWriter<'w> {
    state: &'w mut MemoryState,
    recorder: &'w mut MemoryJournalWriter,
    policy: RemovedPolicy,
    /// The number of the last journal entry before this batch.
    before: u64,
    /// Captures that were seen again and are not in the journal yet.
    seen: Vec<(CoreHash, CaptureHash)>,
}

impl<'w> MemoryWriter<'w> {
    pub(super) fn new(
        state: &'w mut MemoryState,
        recorder: &'w mut MemoryJournalWriter,
        policy: RemovedPolicy,
    ) -> Self {
        let before = state.head().seq;
        Self { state, recorder, policy, before, seen: Vec::new() }
    }

    /// Stores artifacts in order, and stops at the first rejected one if the policy requires it.
    pub(super) fn put_all(mut self, batch: &[&Prepared]) -> Result<Vec<PutResult>> {
        let mut outcomes = Vec::new();
        for prepared in batch {
            let put = self.put_unless_removed(prepared)?;
            let is_refused = put.outcome.is_refused();
            outcomes.push(put);
            if is_refused && self.policy == RemovedPolicy::RefuseAndStop {
                break;
            }
        }
        self.record_seen()?;
        Ok(outcomes)
    }

    /// Stores an artifact, unless it or an artifact or file in it was removed, or the vault has its core hash for an
    /// artifact of another kind.
    fn put_unless_removed(&mut self, prepared: &Prepared) -> Result<PutResult> {
        if let Some(conflict) = self.conflict(prepared) {
            let (core, capture) = (prepared.admitted().core(), prepared.admitted().capture());
            return Ok(PutResult {
                core,
                capture,
                outcome: PutOutcome::KindConflict(conflict),
                reuses_bytes: false,
            });
        }
        let removed = self.state.tombstones_with(prepared.digests());
        if !removed.is_empty() && self.policy != RemovedPolicy::Readmit {
            let (core, capture) = (prepared.admitted().core(), prepared.admitted().capture());
            return Ok(PutResult {
                core,
                capture,
                outcome: PutOutcome::Refused(removed),
                reuses_bytes: false,
            });
        }
        for tombstone in removed {
            let event = JournalEvent::AllowRemoved { core: tombstone.core, kind: &tombstone.kind };
            self.recorder.append(self.state, &event)?;
            self.state.tombstones.retain(|_, other| other.core != tombstone.core);
        }
        self.put(prepared)
    }

    fn conflict(&self, prepared: &Prepared) -> Option<KindConflict> {
        let (core, kind) = (prepared.admitted().core(), prepared.admitted().kind().name());
        let stored = self.state.artifact(core).map(|artifact| artifact.kind.name());
        if let Some(stored) = stored.filter(|stored| *stored != kind) {
            return Some(KindConflict { core, kind: stored.to_owned() });
        }
        prepared.embedded().iter().find_map(|embedded| self.conflict(embedded))
    }

    /// Stores an artifact after those embedded in it.
    fn put(&mut self, prepared: &Prepared) -> Result<PutResult> {
        for embedded in prepared.embedded() {
            self.put(embedded)?;
        }
        let admitted = prepared.admitted();
        let (core, capture) = (admitted.core(), admitted.capture());
        let outcome = if self.state.capture(core, capture).is_some() {
            self.see(core, capture)?;
            PutOutcome::Present
        } else {
            self.record_seen()?;
            self.add(prepared)?
        };
        self.record_signature(admitted)?;
        // Each capture has a copy of its own.
        let reuses_bytes = outcome == PutOutcome::Present;
        Ok(PutResult { core, capture, outcome, reuses_bytes })
    }

    /// Adds a capture, and its artifact if it is new.
    fn add(&mut self, prepared: &Prepared) -> Result<PutOutcome> {
        let (admitted, source_path) = (prepared.admitted(), prepared.source_path());
        let (core, at) = (admitted.core(), self.recorder.at());
        let arrival = arrival(self.state.head().seq + 1, 0);
        let mut capture = new_capture(admitted, self.state, at);
        capture.source_path = source_path.map(str::to_owned);
        let outcome = if let Some(known) = self.state.artifact_mut(core) {
            known.captures.push(capture);
            (known.seen_at, known.arrival) = (at, arrival);
            PutOutcome::NewCapture
        } else {
            let addition = self.state.all().map(|known| known.addition).max().map_or(1, |last| last + 1);
            let (kind, captures) = (admitted.kind(), vec![capture]);
            let artifact =
                MemoryArtifact { core, kind, added_at: at, seen_at: at, addition, arrival, captures };
            self.state.artifacts.insert(core, Arc::new(artifact));
            PutOutcome::Added
        };
        let (capture, kind, size) = (admitted.capture(), admitted.kind().name(), admitted.size());
        self.recorder.append(self.state, &JournalEvent::Add { capture, core, kind, size, source_path })?;
        Ok(outcome)
    }

    /// Records that a capture was seen again, unless its artifact arrived in this batch.
    fn see(&mut self, core: CoreHash, capture: CaptureHash) -> Result<()> {
        let last = self.state.artifact(core).map_or(0, |artifact| artifact.arrival);
        if last >= arrival(self.before + 1, 0) || self.seen.contains(&(core, capture)) {
            return Ok(());
        }
        self.seen.push((core, capture));
        if self.seen.len() == MAX_SEEN { self.record_seen() } else { Ok(()) }
    }

    /// Appends the captures seen since the last entry of this action to the journal.
    fn record_seen(&mut self) -> Result<()> {
        let seen = std::mem::take(&mut self.seen);
        if seen.is_empty() {
            return Ok(());
        }
        let (cores, captures): (Vec<CoreHash>, Vec<CaptureHash>) = seen.iter().copied().unzip();
        self.recorder.append(self.state, &JournalEvent::Seen { captures: &captures, cores: &cores })?;
        let (entry, at) = (self.state.head().seq, self.recorder.at());
        for (position, (core, capture)) in seen.into_iter().enumerate() {
            let Some(artifact) = self.state.artifact_mut(core) else { continue };
            (artifact.seen_at, artifact.arrival) = (at, arrival(entry, position));
            for known in artifact.captures.iter_mut().filter(|known| known.capture == capture) {
                known.seen_at = at;
            }
        }
        Ok(())
    }

    /// Records the result of checking a signature, in the journal only if it changed. A signature that was not checked
    /// this time does not replace the result of an earlier check.
    fn record_signature(&mut self, admitted: &Admitted) -> Result<()> {
        let (core, capture) = (admitted.core(), admitted.capture());
        let Some(found) = admitted.signature() else { return Ok(()) };
        let known = self.state.capture(core, capture).and_then(|capture| capture.signature.clone());
        let state = match &known {
            Some(known) if found.state == SignatureState::Unchecked => known.state,
            _ => found.state,
        };
        let news = Signature { state, key_id: found.key_id.clone() };
        if known.as_ref() == Some(&news) {
            return Ok(());
        }
        let (key_id, state) = (news.key_id.as_deref(), state.name());
        self.recorder.append(self.state, &JournalEvent::Signature { capture, core, key_id, state })?;
        let captures = self.state.artifact_mut(core).map(|artifact| &mut artifact.captures);
        for stored in captures.into_iter().flatten().filter(|stored| stored.capture == capture) {
            stored.signature = Some(news.clone());
        }
        Ok(())
    }
}

/// Returns the capture of `admitted`, without its source path, and without its signature, which is recorded after it.
pub(super) fn new_capture(
    admitted: &Admitted,
    state: &MemoryState,
    at: chrono::DateTime<chrono::Utc>,
) -> MemoryCapture {
    let draft = admitted.draft();
    let members = admitted.members().iter().map(|member| MemoryMember {
        name: member.name().to_owned(),
        blob: member.blob(),
        bytes: member.bytes().into(),
    });
    let attributes = draft.attributes.iter().map(|known| AttributeRecord {
        name: known.name.to_owned(),
        value: known.value.clone(),
        number: known.number,
    });
    let references = draft
        .refers_to
        .iter()
        .map(|(relation, name)| ((relation.name, name.as_str().to_owned()), relation.dangles));
    MemoryCapture {
        capture: admitted.capture(),
        addition: state.captures().map(|(_, known)| known.addition).max().map_or(1, |last| last + 1),
        added_at: at,
        seen_at: at,
        warnings: admitted.report().violations().to_vec(),
        signature: None,
        source_path: None,
        members: members.collect(),
        mentions: draft.mentions.iter().cloned().collect(),
        attributes: attributes.collect::<BTreeSet<_>>(),
        identified_by: draft.identified_by.iter().map(|name| name.as_str().to_owned()).collect(),
        refers_to: references.collect(),
    }
}

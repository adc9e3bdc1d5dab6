//! Treatment of artifacts that cannot be stored: those that were removed before are rejected, or their removal is
//! reverted on request; those whose core hash identifies an artifact of another kind are rejected.

use super::SqliteWriter;
use crate::storage::sqlite::ids::artifact_kind;
use crate::storage::sqlite::journal::JournalEvent;
use crate::storage::sqlite::tombstones;
use crate::storage::{KindConflict, Prepared, PutOutcome, PutResult, RemovedPolicy};

impl SqliteWriter<'_> {
    /// Stores an artifact, unless it or an artifact or file in it was removed, or the vault has its core hash for an
    /// artifact of another kind.
    pub(super) fn put_unless_removed(&mut self, prepared: &Prepared) -> rusqlite::Result<PutResult> {
        if let Some(conflict) = self.conflict(prepared)? {
            let (core, capture) = (prepared.admitted().core(), prepared.admitted().capture());
            return Ok(PutResult {
                core,
                capture,
                outcome: PutOutcome::KindConflict(conflict),
                reuses_bytes: false,
            });
        }
        let removed = tombstones::for_digests(self.transaction, prepared.digests())?;
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
            self.journal.append(self.transaction, &event)?;
            self.tombstones.delete(self.transaction, tombstone.core)?;
        }
        self.put(prepared)
    }

    fn conflict(&self, prepared: &Prepared) -> rusqlite::Result<Option<KindConflict>> {
        let admitted = prepared.admitted();
        let core = admitted.core();
        let stored = artifact_kind(&self.statements, core)?;
        if let Some(kind) = stored.filter(|kind| kind != admitted.kind().name()) {
            return Ok(Some(KindConflict { core, kind }));
        }
        for embedded in prepared.embedded() {
            if let Some(conflict) = self.conflict(embedded)? {
                return Ok(Some(conflict));
            }
        }
        Ok(None)
    }

    /// Stores artifacts in order, and stops at the first rejected one if the policy requires it.
    pub(super) fn put_all<'p>(
        &mut self,
        batch: impl IntoIterator<Item = &'p Prepared>,
    ) -> rusqlite::Result<Vec<PutResult>> {
        let mut outcomes = Vec::new();
        for prepared in batch {
            let put = self.put_unless_removed(prepared)?;
            let is_refused = put.outcome.is_refused();
            outcomes.push(put);
            if is_refused && self.policy == RemovedPolicy::RefuseAndStop {
                break;
            }
        }
        Ok(outcomes)
    }
}

//! Treatment of artifacts that were removed before: they are rejected, or their removal is reverted on request.

use super::Writer;
use crate::storage::sqlite::journal::Event;
use crate::storage::sqlite::tombstones;
use crate::storage::{Prepared, Put, PutOutcome, RemovedPolicy};

impl Writer<'_> {
    /// Stores an artifact, unless it or an artifact or file in it was removed.
    pub(super) fn put_unless_removed(&mut self, prepared: &Prepared) -> rusqlite::Result<Put> {
        let removed = tombstones::for_digests(self.transaction, prepared.digests())?;
        if !removed.is_empty() && self.policy != RemovedPolicy::TakeBack {
            let (core, capture) = (prepared.admitted().core(), prepared.admitted().capture());
            return Ok(Put { core, capture, outcome: PutOutcome::Refused(removed) });
        }
        for tombstone in removed {
            let event = Event::AllowRemoved { core: tombstone.core, kind: &tombstone.kind };
            self.journal.append(self.transaction, &event)?;
            self.tombstones.delete(self.transaction, tombstone.core)?;
        }
        self.put(prepared)
    }

    /// Stores artifacts in order, and stops at the first rejected one if the policy requires it.
    pub(super) fn put_all<'p>(
        &mut self,
        batch: impl IntoIterator<Item = &'p Prepared>,
    ) -> rusqlite::Result<Vec<Put>> {
        let mut outcomes = Vec::new();
        for prepared in batch {
            let put = self.put_unless_removed(prepared)?;
            let is_refused = matches!(put.outcome, PutOutcome::Refused(_));
            outcomes.push(put);
            if is_refused && self.policy == RemovedPolicy::RefuseAndStop {
                break;
            }
        }
        Ok(outcomes)
    }
}

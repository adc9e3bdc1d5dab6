//! Recording of captures that are added again; the time and order follow from the journal.

use super::SqliteWriter;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::sqlite::journal::{JournalEvent, MAX_CAPTURES, arrival};

impl SqliteWriter<'_> {
    /// Records that a capture of `core` with the row id `id` was seen again, unless it was added in this transaction.
    pub(super) fn see(&mut self, id: i64, core: CoreHash, capture: CaptureHash) -> rusqlite::Result<()> {
        let (artifact, last): (i64, i64) = self
            .transaction
            .prepare_cached(
                "SELECT a.id, a.arrival FROM capture c JOIN artifact a ON a.id = c.artifact WHERE c.id = ?1",
            )?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if last >= arrival(self.seen.next, 0) || !self.seen.pending.insert(id) {
            return Ok(());
        }
        self.seen.captures.push(capture);
        self.seen.cores.push(core);
        self.seen.numbers.push((id, artifact));
        if self.seen.captures.len() == MAX_CAPTURES { self.record_seen() } else { Ok(()) }
    }

    /// Appends the captures seen since the last entry to the journal.
    pub(super) fn record_seen(&mut self) -> rusqlite::Result<()> {
        if self.seen.captures.is_empty() {
            return Ok(());
        }
        let captures = std::mem::take(&mut self.seen.captures);
        let cores = std::mem::take(&mut self.seen.cores);
        self.journal.append(self.transaction, &JournalEvent::Seen { captures: &captures, cores: &cores })?;
        let at = self.journal.at().timestamp_millis();
        for (position, (capture, artifact)) in (0..).zip(std::mem::take(&mut self.seen.numbers)) {
            self.transaction
                .prepare_cached("UPDATE capture SET seen_at = ?2 WHERE id = ?1")?
                .execute((capture, at))?;
            self.arrived(artifact, arrival(self.journal.seq(), position))?;
        }
        self.seen.pending.clear();
        Ok(())
    }

    /// Records `arrival` as the last one of an artifact.
    pub(super) fn arrived(&self, artifact: i64, arrival: i64) -> rusqlite::Result<()> {
        let at = self.journal.at().timestamp_millis();
        self.transaction
            .prepare_cached("UPDATE artifact SET seen_at = ?2, arrival = ?3 WHERE id = ?1")?
            .execute((artifact, at, arrival))
            .map(drop)
    }
}

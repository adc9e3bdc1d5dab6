//! Comparison of every row and column of the catalog with the state that follows from the journal.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row};

use super::FileInspection;
use super::captures::ARTIFACT_IDS;
use super::replay::entry;
use super::scan::TableScan;
use crate::digest::{CaptureHash, Digest};
use crate::storage::check::CatalogCounts;
use crate::storage::check::comparison::{AdditionFacts, JournalComparison, JournaledArtifactRow};
use crate::storage::check::finding::{Finding, Subject};
use crate::storage::check::journal_state::{CaptureEntries, JournalState};
use crate::storage::sqlite::Result;
use crate::storage::sqlite::journal::time_of;

impl FileInspection<'_> {
    /// Compares the tables that follow from the journal with `state`, and removes the matches from `state`. The
    /// captures that remain in it are lost.
    pub(super) fn compare_catalog(
        &self,
        state: &mut JournalState,
        findings: &mut Vec<Finding>,
    ) -> Result<CatalogCounts> {
        Ok(CatalogCounts {
            signatures: self.compare_signatures(state, findings)?,
            captures: self.compare_captures(state, findings)?,
            artifacts: self.compare_artifacts(state, findings)?,
            tags: self.compare_tags(state, findings)?,
            notes: self.compare_notes(state, findings)?,
            pins: self.compare_pins(state, findings)?,
            labels: self.compare_labels(state, findings)?,
            links: self.compare_links(state, findings)?,
            tombstones: self.compare_tombstones(state, findings)?,
        })
    }

    /// Compares the captures in the vault with the journal.
    fn compare_captures(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        const SCAN: TableScan = TableScan {
            table: "capture",
            sql: "SELECT c.id, a.core, b.digest, c.added_at, c.size, k.name, c.seen_at,
                         c.source_entry
                    FROM capture c NOT INDEXED JOIN artifact a ON a.id = c.artifact
                    LEFT JOIN kind k ON k.id = a.kind LEFT JOIN blob b ON b.id = c.blob WHERE c.id BETWEEN ?1 AND ?2 ORDER BY c.id",
            ids: "SELECT id FROM capture INDEXED BY capture_by_artifact WHERE id >= ?1 ORDER BY id",
        };
        let mut compared = JournalComparison::default();
        let mut identified = HashSet::new();
        let unread = self.scan(&SCAN, findings, |row| {
            // A capture whose blob is missing is a broken reference.
            let (core, Some(capture)): (_, Option<CaptureHash>) = (row.get(1)?, row.get(2)?) else {
                return Ok(());
            };
            let entries = state.take_capture(core, capture);
            let outcome = self.compare_capture(row, capture, entries, &mut compared);
            if outcome.is_err() {
                identified.insert(row.get::<_, i64>(0)?);
            }
            outcome
        })?;
        // Those are not lost. The seal also identifies a capture.
        for id in unread.ids.iter().filter(|id| !identified.contains(*id)) {
            let seal = self
                .connection
                .prepare_cached("SELECT seal FROM capture WHERE id = ?1")
                .and_then(|mut seal| seal.query_row([id], |row| row.get::<_, Vec<u8>>(0)));
            state.has_unread_captures |= !seal.is_ok_and(|seal| state.take_sealed(&seal));
        }
        state.has_unread_captures |= unread.are_incomplete;
        Ok(compared.finish(findings))
    }

    /// Compares a row of the scan above with the journal's `entries` about it.
    fn compare_capture(
        &self,
        row: &Row<'_>,
        capture: CaptureHash,
        entries: Option<CaptureEntries>,
        compared: &mut JournalComparison,
    ) -> rusqlite::Result<()> {
        let seen = entries.map(|entries| time_of(&self.connection, entries.seen)).transpose()?;
        let added = compared.capture(capture, entries, (row.get(6)?, seen.flatten()));
        let recorded = added.map(|seq| addition(&self.connection, seq)).transpose()?;
        if let Some(recorded) = recorded.flatten() {
            // A damaged name is another one.
            let (at, size, kind) = (row.get(3)?, row.get(4)?, row.get(5).unwrap_or_default());
            let stored = AdditionFacts { at, size, kind, source_path: row.get(7)? };
            compared.addition(capture, &stored, &recorded);
        }
        Ok(())
    }

    /// Compares the arrival times and the order of the artifacts with the journal.
    fn compare_artifacts(&self, state: &JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        const SCAN: TableScan = TableScan {
            table: "artifact",
            sql: "SELECT id, core, added_at, seen_at, arrival FROM artifact NOT INDEXED
                   WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
            ids: ARTIFACT_IDS,
        };
        let mut compared = JournalComparison::default();
        self.scan(&SCAN, findings, |row| {
            let (core, added_at) = (row.get(1)?, row.get(2)?);
            let row = JournaledArtifactRow { core, added_at, seen_at: row.get(3)?, arrival: row.get(4)? };
            // The captures of those that the journal does not have are reported instead.
            match state.artifact(core) {
                Some(entries) => {
                    compared.artifact(state, entries, &row, |seq| time_of(&self.connection, seq))
                }
                None => Ok(()),
            }
        })?;
        Ok(compared.finish(findings))
    }

    fn compare_tombstones(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let mut compared = JournalComparison::default();
        let subject = Subject::Table("tombstone".to_owned());
        let is_whole = self.each_row("SELECT digest, entry FROM tombstone", subject, findings, |row| {
            let (digest, seq): (Digest, i64) = (row.get(0)?, row.get(1)?);
            let core = entry(&self.connection, seq)?.and_then(|entry| entry.removed());
            compared.tombstone(state, digest, core, seq);
            Ok(())
        })?;
        if is_whole {
            compared.lost_tombstones(state);
        }
        Ok(compared.finish(findings))
    }
}

/// Returns the addition that the entry `seq` records. An entry with a source path is named in place of the path.
fn addition(connection: &Connection, seq: i64) -> rusqlite::Result<Option<AdditionFacts<i64>>> {
    connection
        .prepare_cached(
            "SELECT at, size, kind, iif(source_path IS NULL, NULL, seq) FROM journal WHERE seq = ?1",
        )?
        .query_row([seq], |row| {
            let (at, size, kind) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(AdditionFacts { at, size, kind, source_path: row.get(3)? })
        })
        .optional()
}

//! Comparison of every row and column of the catalog with the state that follows from the journal.

use rusqlite::{Connection, OptionalExtension};

use super::FileInspection;
use super::replay::entry;
use crate::digest::{CaptureHash, Digest};
use crate::storage::check::CatalogCounts;
use crate::storage::check::comparison::{AdditionFacts, JournalComparison, JournaledArtifactRow};
use crate::storage::check::finding::{Finding, Subject};
use crate::storage::check::journal_state::JournalState;
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
        let mut compared = JournalComparison::default();
        self.look(Subject::Table("capture".to_owned()), findings, || {
            let mut statement = self.connection.prepare(
                "SELECT a.core, coalesce(c.digest, b.digest), c.added_at, c.size, a.kind, c.seen_at,
                        c.source_entry
                   FROM capture c NOT INDEXED JOIN artifact a ON a.id = c.artifact
                   LEFT JOIN blob b ON b.id = c.blob ORDER BY c.id",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                // A capture whose blob is missing is a broken reference.
                let Some(capture) = row.get::<_, Option<CaptureHash>>(1)? else { continue };
                let entries = state.take_capture(row.get(0)?, capture);
                let seen = entries.map(|entries| time_of(&self.connection, entries.seen)).transpose()?;
                let added = compared.capture(capture, entries, (row.get(5)?, seen.flatten()));
                let recorded = added.map(|seq| addition(&self.connection, seq)).transpose()?;
                if let Some(recorded) = recorded.flatten() {
                    let (at, size, kind) = (row.get(2)?, row.get(3)?, row.get(4)?);
                    let stored = AdditionFacts { at, size, kind, source_path: row.get(6)? };
                    compared.addition(capture, &stored, &recorded);
                }
            }
            Ok(())
        })?;
        Ok(compared.finish(findings))
    }

    /// Compares the arrival times and the order of the artifacts with the journal.
    fn compare_artifacts(&self, state: &JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let mut compared = JournalComparison::default();
        self.look(Subject::Table("artifact".to_owned()), findings, || {
            let mut statement = self
                .connection
                .prepare("SELECT core, added_at, seen_at, arrival FROM artifact NOT INDEXED ORDER BY id")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (core, added_at) = (row.get(0)?, row.get(1)?);
                let row = JournaledArtifactRow { core, added_at, seen_at: row.get(2)?, arrival: row.get(3)? };
                // The captures of those that the journal does not have are reported instead.
                if let Some(entries) = state.artifact(core) {
                    compared.artifact(state, entries, &row, |seq| time_of(&self.connection, seq))?;
                }
            }
            Ok(())
        })?;
        Ok(compared.finish(findings))
    }

    fn compare_tombstones(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let mut compared = JournalComparison::default();
        let read = self.look(Subject::Table("tombstone".to_owned()), findings, || {
            let mut statement = self.connection.prepare("SELECT digest, entry FROM tombstone")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (digest, seq): (Digest, i64) = (row.get(0)?, row.get(1)?);
                let core = entry(&self.connection, seq)?.and_then(|entry| entry.removed());
                compared.tombstone(state, digest, core, seq);
            }
            Ok(())
        })?;
        if read.is_some() {
            compared.lost_tombstones(state);
        }
        Ok(compared.finish(findings))
    }
}

/// Returns the addition that the entry `seq` records. The size and the kind's row id are `None` if the first schema
/// version wrote the entry for a kind without a row. An entry with a source path is named in place of the path.
fn addition(connection: &Connection, seq: i64) -> rusqlite::Result<Option<AdditionFacts<i64, i64>>> {
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

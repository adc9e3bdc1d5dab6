//! Comparison of captures, artifacts and tombstones with the state that follows from the journal.

use postgres::Row;

use super::entries::time_of;
use super::{DatabaseInspection, ROWS, read_all, table};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::check::CatalogCounts;
use crate::storage::check::comparison::{
    AdditionFacts, JournalComparison, JournaledArtifactRow, SignatureFacts, signature_facts,
};
use crate::storage::check::finding::{Finding, Subject, TOMBSTONE_DIFFERS};
use crate::storage::check::journal_state::JournalState;
use crate::storage::entry::{Entry, EntryText};
use crate::storage::postgres::columns::{capture, core, optional_text, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::snapshot::tombstones::{TOMBSTONE, tombstone};
use crate::storage::{Result, Tombstone};

/// A capture as stored, as far as the journal determines it.
struct CatalogCapture {
    core: CoreHash,
    capture: CaptureHash,
    addition: AdditionFacts<String>,
    seen_at: i64,
    signature: Option<SignatureFacts>,
}

impl DatabaseInspection<'_> {
    /// Compares the tables that follow from the journal with `state`, and removes the matches from `state`. The
    /// captures that remain in it are lost.
    pub(super) fn compare_catalog(
        &self,
        state: &mut JournalState,
        findings: &mut Vec<Finding>,
    ) -> Result<CatalogCounts> {
        let mut counts = CatalogCounts::default();
        self.compare_captures(state, &mut counts, findings)?;
        counts.artifacts = self.compare_artifacts(state, findings)?;
        self.compare_annotations(state, &mut counts, findings)?;
        counts.tombstones = self.compare_tombstones(state, findings)?;
        Ok(counts)
    }

    /// Compares the captures in the vault and the states of their signatures with the journal.
    fn compare_captures(
        &self,
        state: &mut JournalState,
        counts: &mut CatalogCounts,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let (mut compared, mut signed) = (JournalComparison::default(), JournalComparison::default());
        let read = self.look(table("capture"), findings, || {
            let sql = "SELECT a.core, c.digest, c.added_at, c.size, k.name, c.seen_at, c.signature, c.key_id, c.source_path
                         FROM capture c JOIN artifact a ON a.id = c.artifact LEFT JOIN kind k ON k.id = a.kind
                        ORDER BY c.id";
            self.scan(sql, ROWS, &mut |rows| {
                let rows = read_all(rows, &table("capture"), &mut compared.found, capture_row);
                let rows: Vec<_> = rows
                    .into_iter()
                    .map(|row| {
                        let signature = state.signatures.remove(&(row.core, row.capture));
                        (state.take_capture(row.core, row.capture), signature, row)
                    })
                    .collect();
                let seqs = rows.iter().flat_map(|(entries, signature, _)| {
                    let entries = entries.iter().flat_map(|entries| [entries.added, entries.seen]);
                    entries.chain(*signature)
                });
                let recorded = self.entries(seqs.collect())?;
                for (entries, signature, row) in rows {
                    let facts = signature.and_then(|seq| recorded.get(&seq)).and_then(signature_facts);
                    let facts = (signature.is_some(), facts.as_ref());
                    signed.signature(row.capture, row.signature.as_ref(), facts);
                    let seen = entries.and_then(|entries| time_of(&recorded, entries.seen));
                    let added = compared.capture(row.capture, entries, (row.seen_at, seen));
                    let entry = added.and_then(|seq| recorded.get(&seq));
                    if let Some(facts) = entry.and_then(addition_facts) {
                        compared.addition(row.capture, &row.addition, &facts);
                    }
                }
                Ok(())
            })
        })?;
        if read.is_some() {
            signed.lost_signatures(state);
        }
        counts.signatures = signed.finish(&mut compared.found);
        counts.captures = compared.finish(findings);
        Ok(())
    }

    /// Compares the arrival times and the order of the artifacts with the journal.
    fn compare_artifacts(&self, state: &JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let mut compared = JournalComparison::default();
        self.look(table("artifact"), findings, || {
            let sql = "SELECT core, added_at, seen_at, arrival FROM artifact ORDER BY id";
            self.scan(sql, ROWS, &mut |rows| {
                let rows = read_all(rows, &table("artifact"), &mut compared.found, |row| {
                    let (added_at, seen_at, arrival) = (value(row, 1)?, value(row, 2)?, value(row, 3)?);
                    Ok(JournaledArtifactRow { core: core(row, 0)?, added_at, seen_at, arrival })
                });
                // The captures of those that the journal does not have are reported instead.
                let rows: Vec<_> =
                    rows.into_iter().filter_map(|row| Some((state.artifact(row.core)?, row))).collect();
                let seqs =
                    rows.iter().flat_map(|(entries, row)| state.additions(row.core).chain([entries.seen]));
                let recorded = self.entries(seqs.collect())?;
                for (entries, row) in rows {
                    compared
                        .artifact(state, entries, &row, |seq| PostgresResult::Ok(time_of(&recorded, seq)))?;
                }
                Ok(())
            })
        })?;
        Ok(compared.finish(findings))
    }

    fn compare_tombstones(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let mut compared = JournalComparison::default();
        let read = self.look(table("tombstone"), findings, || {
            let sql = format!("SELECT {TOMBSTONE} FROM tombstone t ORDER BY t.entry, t.digest");
            self.scan(&sql, ROWS, &mut |rows| {
                let rows = read_all(rows, &table("tombstone"), &mut compared.found, tombstone);
                let seqs = rows.iter().map(|tombstone| tombstone.entry.cast_signed()).collect();
                let recorded = self.entries(seqs)?;
                for tombstone in rows {
                    let (digest, seq) = (tombstone.digest, tombstone.entry.cast_signed());
                    if compared.tombstone(state, digest, Some(tombstone.core), seq)
                        && recorded.get(&seq).is_none_or(|entry| !is_recorded(&tombstone, entry))
                    {
                        let (subject, detail) =
                            (Subject::Tombstone(digest), format!("it is not what entry {seq} says"));
                        compared.found.push(Finding::new(TOMBSTONE_DIFFERS, subject, detail));
                    }
                }
                Ok(())
            })
        })?;
        if read.is_some() {
            compared.lost_tombstones(state);
        }
        Ok(compared.finish(findings))
    }
}

fn capture_row(row: &Row) -> PostgresResult<CatalogCapture> {
    let signature = optional_text(row, 6)?;
    let key_id = optional_text(row, 7)?;
    let (at, size) = (value(row, 2)?, value(row, 3)?);
    Ok(CatalogCapture {
        core: core(row, 0)?,
        capture: capture(row, 1)?,
        addition: AdditionFacts {
            at,
            size,
            kind: optional_text(row, 4)?,
            source_path: optional_text(row, 8)?,
        },
        seen_at: value(row, 5)?,
        // A key without a state is not what was recorded either.
        signature: (signature.is_some() || key_id.is_some()).then(|| (signature.unwrap_or_default(), key_id)),
    })
}

/// Returns the addition that an entry records, if it records one.
fn addition_facts(entry: &EntryText) -> Option<AdditionFacts<String>> {
    let Entry::Add { kind, size, source_path, .. } = &entry.change else { return None };
    let (size, kind, source_path) = (i64::try_from(*size).ok(), Some(kind.clone()), source_path.clone());
    Some(AdditionFacts { at: entry.milliseconds(), size, kind, source_path })
}

/// Returns whether a tombstone has what the entry of the removal says.
pub(in crate::storage::postgres) fn is_recorded(tombstone: &Tombstone, entry: &EntryText) -> bool {
    let Entry::Remove { core, kind, left, reason, size, .. } = &entry.change else { return false };
    entry.milliseconds() == Some(tombstone.at.timestamp_millis())
        && *core == tombstone.core
        && *kind == tombstone.kind
        && entry.actor == tombstone.actor
        && *reason == tombstone.reason
        && *left == tombstone.left
        && *size == tombstone.size
}

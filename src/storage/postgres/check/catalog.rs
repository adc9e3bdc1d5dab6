//! Comparison of captures, artifacts and tombstones with the state that follows from the journal.

use postgres::Row;

use super::entries::{Entries, Recorded, time_of};
use super::{DatabaseInspection, ROWS, read_all, table};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::check::CatalogCounts;
use crate::storage::check::finding::{
    CAPTURE_UNRECORDED, Finding, FindingInfo, KIND_WRONG, ORDER_DIFFERS, SIGNATURE_DIFFERS, SIZE_WRONG,
    SOURCE_PATH_DIFFERS, Subject, TIME_DIFFERS, TOMBSTONE_DIFFERS,
};
use crate::storage::check::journal_state::{ArtifactEntries, CaptureEntries, JournalState};
use crate::storage::postgres::columns::{capture, core, optional_text, value};
use crate::storage::postgres::error::Outcome;
use crate::storage::postgres::snapshot::tombstones::{TOMBSTONE, tombstone};
use crate::storage::{Result, Tombstone};

const ARRIVED_BEFORE: &str = "in the journal, it arrived before the one that precedes it in the vault";
const SEEN_OTHERWISE: &str = "the journal has a different time at which it was last seen";
const SEEN_ELSEWHERE: &str =
    "the journal has it at a different position in the order in which artifacts were last seen";

/// A capture as stored, as far as the journal determines it.
struct CaptureRow {
    core: CoreHash,
    capture: CaptureHash,
    added_at: i64,
    size: i64,
    kind: Option<String>,
    seen_at: i64,
    signature: Option<(String, Option<String>)>,
    source_path: Option<String>,
}

/// An artifact as stored, as far as the journal determines it.
struct ArtifactRow {
    core: CoreHash,
    added_at: i64,
    seen_at: i64,
    arrival: i64,
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
        let mut found = Vec::new();
        let mut last = 0;
        let read = self.look(table("capture"), findings, || {
            let sql = "SELECT a.core, c.digest, c.added_at, c.size, k.name, c.seen_at, c.signature, c.key_id, c.source_path
                         FROM capture c JOIN artifact a ON a.id = c.artifact LEFT JOIN kind k ON k.id = a.kind
                        ORDER BY c.id";
            self.scan(sql, ROWS, |rows| {
                let rows = read_all(rows, &table("capture"), &mut found, capture_row);
                let rows: Vec<_> = rows
                    .into_iter()
                    .map(|row| (state.take_capture(row.core, row.capture), take_signature(state, &row), row))
                    .collect();
                let seqs = rows.iter().flat_map(|(entries, signed, _)| {
                    let entries = entries.iter().flat_map(|entries| [entries.added, entries.seen]);
                    entries.chain(*signed)
                });
                let recorded = self.entries(seqs.collect())?;
                for (entries, signed, row) in rows {
                    counts.signatures += u64::from(compare_signature(&row, signed, &recorded, &mut found));
                    let subject = Subject::Capture(row.capture);
                    let Some(entries) = entries else {
                        let detail = "no entry records that it was added";
                        found.push(Finding::new(CAPTURE_UNRECORDED, subject, detail));
                        continue;
                    };
                    counts.captures += 1;
                    if entries.added < last {
                        found.push(Finding::new(ORDER_DIFFERS, subject, ARRIVED_BEFORE));
                    }
                    last = entries.added;
                    compare_capture(&row, entries, &recorded, &mut found);
                }
                Ok(())
            })
        })?;
        if read.is_some() {
            for (_, capture) in std::mem::take(&mut state.signatures).into_keys() {
                let detail = "the journal records it, but it is missing";
                found.push(Finding::new(SIGNATURE_DIFFERS, Subject::Capture(capture), detail));
            }
        }
        append_sorted(findings, found);
        Ok(())
    }

    /// Compares the arrival times and the order of the artifacts with the journal.
    fn compare_artifacts(&self, state: &JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let (mut count, mut last) = (0, 0);
        let mut found = Vec::new();
        self.look(table("artifact"), findings, || {
            let sql = "SELECT core, added_at, seen_at, arrival FROM artifact ORDER BY id";
            self.scan(sql, ROWS, |rows| {
                let rows = read_all(rows, &table("artifact"), &mut found, |row| {
                    let (added_at, seen_at, arrival) = (value(row, 1)?, value(row, 2)?, value(row, 3)?);
                    Ok(ArtifactRow { core: core(row, 0)?, added_at, seen_at, arrival })
                });
                // The captures of those that the journal does not have are reported instead.
                let rows: Vec<_> =
                    rows.into_iter().filter_map(|row| Some((state.artifact(row.core)?, row))).collect();
                let seqs = rows
                    .iter()
                    .flat_map(|(entries, row)| additions(state, entries, row.core).chain([entries.seen]));
                let recorded = self.entries(seqs.collect())?;
                for (entries, row) in &rows {
                    count += 1;
                    let additions: Vec<i64> = additions(state, entries, row.core).collect();
                    compare_artifact((entries, row), &additions, &recorded, &mut last, &mut found);
                }
                Ok(())
            })
        })?;
        findings.append(&mut found);
        Ok(count)
    }

    fn compare_tombstones(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let mut count = 0;
        let mut found = Vec::new();
        let differs =
            |digest, detail: String| Finding::new(TOMBSTONE_DIFFERS, Subject::Tombstone(digest), detail);
        let read = self.look(table("tombstone"), findings, || {
            let sql = format!("SELECT {TOMBSTONE} FROM tombstone t ORDER BY t.entry, t.digest");
            self.scan(&sql, ROWS, |rows| {
                let rows = read_all(rows, &table("tombstone"), &mut found, tombstone);
                let seqs = rows.iter().map(|tombstone| tombstone.entry.cast_signed()).collect();
                let recorded = self.entries(seqs)?;
                for tombstone in rows {
                    let seq = tombstone.entry.cast_signed();
                    match state.tombstones.remove(&(tombstone.digest, tombstone.core)) {
                        Some(removal) if removal == seq => {
                            count += 1;
                            if recorded.get(&seq).is_none_or(|entry| !is_recorded(&tombstone, entry)) {
                                found.push(differs(
                                    tombstone.digest,
                                    format!("it is not what entry {seq} says"),
                                ));
                            }
                        }
                        Some(removal) => found.push(differs(
                            tombstone.digest,
                            format!("it refers to entry {seq}; entry {removal} removed it"),
                        )),
                        None => found.push(differs(
                            tombstone.digest,
                            format!("it refers to entry {seq}, which did not remove it"),
                        )),
                    }
                }
                Ok(())
            })
        })?;
        if read.is_some() {
            for ((digest, _), seq) in std::mem::take(&mut state.tombstones) {
                found.push(differs(digest, format!("it is missing; entry {seq} removed it")));
            }
        }
        append_sorted(findings, found);
        Ok(count)
    }
}

/// Adds findings in their order.
pub(super) fn append_sorted(findings: &mut Vec<Finding>, mut found: Vec<Finding>) {
    found.sort_by(|one, other| one.key().cmp(&other.key()));
    findings.append(&mut found);
}

fn capture_row(row: &Row) -> Outcome<CaptureRow> {
    let signature = optional_text(row, 6)?;
    let key_id = optional_text(row, 7)?;
    Ok(CaptureRow {
        core: core(row, 0)?,
        capture: capture(row, 1)?,
        added_at: value(row, 2)?,
        size: value(row, 3)?,
        kind: optional_text(row, 4)?,
        seen_at: value(row, 5)?,
        // A key without a state is not what was recorded either.
        source_path: optional_text(row, 8)?,
        signature: (signature.is_some() || key_id.is_some()).then(|| (signature.unwrap_or_default(), key_id)),
    })
}

/// Returns the entry that recorded the signature of a capture, and removes it from the state.
fn take_signature(state: &mut JournalState, row: &CaptureRow) -> Option<i64> {
    state.signatures.remove(&(row.core, row.capture))
}

/// Compares the recorded state of a signature with the entry that recorded it. Returns whether they agree.
fn compare_signature(
    row: &CaptureRow,
    signed: Option<i64>,
    recorded: &Entries,
    found: &mut Vec<Finding>,
) -> bool {
    let entry = signed.map(|seq| recorded.get(&seq));
    let detail = match (&row.signature, entry) {
        (None, None) => return false,
        (Some((state, key_id)), Some(Some(entry)))
            if entry.state.as_ref() == Some(state) && entry.key_id == *key_id =>
        {
            return true;
        }
        (Some(_), Some(_)) => "the journal records a different state or key",
        (Some(_), None) => "no entry recorded its state",
        (None, Some(_)) => "the journal records it, but it is missing",
    };
    found.push(Finding::new(SIGNATURE_DIFFERS, Subject::Capture(row.capture), detail));
    false
}

/// Compares a capture with the entries that recorded its addition and when it was last seen.
fn compare_capture(row: &CaptureRow, entries: CaptureEntries, recorded: &Entries, found: &mut Vec<Finding>) {
    let mut differs = |info: FindingInfo, detail: String| {
        found.push(Finding::new(info, Subject::Capture(row.capture), detail));
    };
    if time_of(recorded, entries.seen) != Some(row.seen_at) {
        differs(TIME_DIFFERS, SEEN_OTHERWISE.to_owned());
    }
    let Some(entry) = recorded.get(&entries.added) else { return };
    let mut expect = |is_same: bool, info: FindingInfo, what: &str| {
        if !is_same {
            differs(info, format!("the journal has a different {what}"));
        }
    };
    expect(entry.milliseconds() == Some(row.added_at), TIME_DIFFERS, "time");
    expect(entry.size.is_none_or(|size| i64::try_from(size) == Ok(row.size)), SIZE_WRONG, "size");
    expect(entry.kind.is_none() || entry.kind == row.kind, KIND_WRONG, "kind");
    expect(entry.source_path == row.source_path, SOURCE_PATH_DIFFERS, "source path");
}

/// Returns the entries that added captures of an artifact to the vault when it did not have any.
fn additions<'s>(
    state: &'s JournalState,
    entries: &ArtifactEntries,
    core: CoreHash,
) -> impl Iterator<Item = i64> + use<'s> {
    let again = state.added_again.get(&core).into_iter().flatten();
    [entries.added].into_iter().chain(again.copied())
}

/// Compares an artifact with the entries about it. `last` is the addition of the artifact before it.
fn compare_artifact(
    (entries, row): (&ArtifactEntries, &ArtifactRow),
    additions: &[i64],
    recorded: &Entries,
    last: &mut i64,
    found: &mut Vec<Finding>,
) {
    let mut differs = |info: FindingInfo, detail: &str| {
        found.push(Finding::new(info, Subject::Artifact(row.core), detail));
    };
    if time_of(recorded, entries.seen) != Some(row.seen_at) {
        differs(TIME_DIFFERS, SEEN_OTHERWISE);
    }
    if row.arrival != entries.arrival() {
        differs(ORDER_DIFFERS, SEEN_ELSEWHERE);
    }
    let arrivals: Vec<i64> =
        additions.iter().copied().filter(|seq| time_of(recorded, *seq) == Some(row.added_at)).collect();
    let Some(latest) = arrivals.last() else {
        differs(TIME_DIFFERS, "the journal has a different time");
        *last = entries.added.max(*last);
        return;
    };
    let arrival = *arrivals.iter().find(|seq| **seq > *last).unwrap_or(latest);
    if arrival < *last {
        differs(ORDER_DIFFERS, ARRIVED_BEFORE);
    }
    *last = arrival;
}

/// Returns whether a tombstone has what the entry of the removal says.
fn is_recorded(tombstone: &Tombstone, entry: &Recorded) -> bool {
    let Tombstone { at, core, kind, actor, reason, left, size, .. } = tombstone;
    entry.milliseconds() == Some(at.timestamp_millis())
        && entry.core() == Some(*core)
        && entry.kind.as_ref() == Some(kind)
        && entry.actor == *actor
        && entry.reason == *reason
        && entry.left == Some(*left)
        && entry.size == Some(*size)
}

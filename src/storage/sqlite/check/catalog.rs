//! Comparison of every row and column of the catalog with the state that follows from the journal.

use rusqlite::{Connection, OptionalExtension, Row};

use super::FileInspection;
use super::replay::entry;
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::check::CatalogCounts;
use crate::storage::check::finding::{
    CAPTURE_UNRECORDED, Finding, FindingInfo, KIND_WRONG, ORDER_DIFFERS, SIZE_WRONG, SOURCE_PATH_DIFFERS,
    Subject, TIME_DIFFERS, TOMBSTONE_DIFFERS,
};
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
        let (mut count, mut last) = (0, 0);
        let mut found = Vec::new();
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
                let subject = Subject::Capture(capture);
                let Some(entries) = state.take_capture(row.get(0)?, capture) else {
                    let detail = "no entry records that it was added";
                    found.push(Finding::new(CAPTURE_UNRECORDED, subject, detail));
                    continue;
                };
                count += 1;
                if entries.added < last {
                    found.push(Finding::new(ORDER_DIFFERS, subject.clone(), ARRIVED_BEFORE));
                }
                last = entries.added;
                compare_addition(&self.connection, entries.added, row, &subject, &mut found)?;
                if time_of(&self.connection, entries.seen)? != Some(row.get(5)?) {
                    found.push(Finding::new(TIME_DIFFERS, subject, SEEN_OTHERWISE));
                }
            }
            Ok(())
        })?;
        found.sort_by(|one, other| one.key().cmp(&other.key()));
        findings.append(&mut found);
        Ok(count)
    }

    /// Compares the arrival times and the order of the artifacts with the journal.
    fn compare_artifacts(&self, state: &JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let (mut count, mut last) = (0, 0);
        let mut found = Vec::new();
        self.look(Subject::Table("artifact".to_owned()), findings, || {
            let mut statement = self
                .connection
                .prepare("SELECT core, added_at, seen_at, arrival FROM artifact NOT INDEXED ORDER BY id")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (core, added_at): (CoreHash, i64) = (row.get(0)?, row.get(1)?);
                // Its captures are reported instead.
                let Some(entries) = state.artifact(core) else { continue };
                count += 1;
                let subject = Subject::Artifact(core);
                if time_of(&self.connection, entries.seen)? != Some(row.get(2)?) {
                    found.push(Finding::new(TIME_DIFFERS, subject.clone(), SEEN_OTHERWISE));
                }
                if row.get::<_, i64>(3)? != entries.arrival() {
                    found.push(Finding::new(ORDER_DIFFERS, subject.clone(), SEEN_ELSEWHERE));
                }
                let first = &entries.added;
                let again = state.added_again.get(&core).into_iter().flatten();
                let mut arrivals = Vec::new();
                for seq in [first].into_iter().chain(again) {
                    if time_of(&self.connection, *seq)? == Some(added_at) {
                        arrivals.push(*seq);
                    }
                }
                let Some(latest) = arrivals.last() else {
                    found.push(Finding::new(TIME_DIFFERS, subject, "the journal has a different time"));
                    last = last.max(*first);
                    continue;
                };
                let arrival = arrivals.iter().find(|seq| **seq > last).unwrap_or(latest);
                if *arrival < last {
                    found.push(Finding::new(ORDER_DIFFERS, subject, ARRIVED_BEFORE));
                }
                last = *arrival;
            }
            Ok(())
        })?;
        findings.append(&mut found);
        Ok(count)
    }

    fn compare_tombstones(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let mut count = 0;
        let mut found = Vec::new();
        let differs =
            |digest, detail: String| Finding::new(TOMBSTONE_DIFFERS, Subject::Tombstone(digest), detail);
        let read = self.look(Subject::Table("tombstone".to_owned()), findings, || {
            let mut statement = self.connection.prepare("SELECT digest, entry FROM tombstone")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (digest, seq): (Digest, i64) = (row.get(0)?, row.get(1)?);
                let core = entry(&self.connection, seq)?.and_then(|(entry, _)| entry.removed());
                match core.and_then(|core| state.tombstones.remove(&(digest, core))) {
                    Some(recorded) if recorded == seq => count += 1,
                    Some(recorded) => {
                        found.push(differs(
                            digest,
                            format!("it refers to entry {seq}; entry {recorded} removed it"),
                        ));
                    }
                    None => found
                        .push(differs(digest, format!("it refers to entry {seq}, which did not remove it"))),
                }
            }
            Ok(())
        })?;
        if read.is_some() {
            for ((digest, _), seq) in std::mem::take(&mut state.tombstones) {
                found.push(differs(digest, format!("it is missing; entry {seq} removed it")));
            }
        }
        found.sort_by(|one, other| one.key().cmp(&other.key()));
        findings.append(&mut found);
        Ok(count)
    }
}

const ARRIVED_BEFORE: &str = "in the journal, it arrived before the one that precedes it in the vault";

const SEEN_OTHERWISE: &str = "the journal has a different time at which it was last seen";
const SEEN_ELSEWHERE: &str =
    "the journal has it at a different position in the order in which artifacts were last seen";

/// The recorded values of an addition.
struct Addition {
    at: i64,
    size: Option<i64>,
    kind: Option<i64>,
    /// The entry itself if it has a source path.
    source_entry: Option<i64>,
}

/// Returns the addition that the entry `seq` records. The size and the kind's row id are `None` if the first schema
/// version wrote the entry for a kind without a row.
fn addition(connection: &Connection, seq: i64) -> rusqlite::Result<Option<Addition>> {
    connection
        .prepare_cached(
            "SELECT at, size, kind, iif(source_path IS NULL, NULL, seq) FROM journal WHERE seq = ?1",
        )?
        .query_row([seq], |row| {
            Ok(Addition { at: row.get(0)?, size: row.get(1)?, kind: row.get(2)?, source_entry: row.get(3)? })
        })
        .optional()
}

/// Compares a capture with the entry that recorded its addition. `row` has its time, its size and the row id of its
/// kind from the third column on, and the entry with its source path in the seventh.
fn compare_addition(
    connection: &Connection,
    seq: i64,
    row: &Row<'_>,
    subject: &Subject,
    found: &mut Vec<Finding>,
) -> rusqlite::Result<()> {
    let (at, size, kind): (i64, i64, i64) = (row.get(2)?, row.get(3)?, row.get(4)?);
    let Some(recorded) = addition(connection, seq)? else { return Ok(()) };
    let mut differs = |info: FindingInfo, what: &str| {
        found.push(Finding::new(info, subject.clone(), format!("the journal has a different {what}")));
    };
    if recorded.at != at {
        differs(TIME_DIFFERS, "time");
    }
    if recorded.size.is_some_and(|recorded| recorded != size) {
        differs(SIZE_WRONG, "size");
    }
    if recorded.kind.is_some_and(|recorded| recorded != kind) {
        differs(KIND_WRONG, "kind");
    }
    if recorded.source_entry != row.get(6)? {
        differs(SOURCE_PATH_DIFFERS, "source path");
    }
    Ok(())
}

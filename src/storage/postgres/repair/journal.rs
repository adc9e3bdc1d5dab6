//! Restoring what the journal proves: times, source paths, positions, annotations, tombstones and states of signatures.

use postgres::Row;

use super::{annotations, record, tombstones};
use crate::clock;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::check::comparison::{SignatureFacts, signature_facts};
use crate::storage::check::journal_state::{EntryDefect, JournalReplay, JournalRow, JournalState};
use crate::storage::check::{JournalRestoreResult, Repair, Subject};
use crate::storage::entry::{Entry, EntryText};
use crate::storage::postgres::check::entries::{entries, time_of};
use crate::storage::postgres::check::journal::written_action;
use crate::storage::postgres::columns::{capture, core, digest, optional_text, text, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::journal::PostgresJournalWriter;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::text::to_stored;
use crate::storage::postgres::vault::PostgresStorage;
use crate::storage::{BUSY_TIMEOUT, Result};

/// The number of rows that are compared at once.
const ROWS: i64 = 2_000;

impl PostgresStorage {
    /// Restores everything that the journal determines, except the order of row numbers. Other rows that the journal does
    /// not know are kept. Changes nothing if the journal's chain is broken, its end is lost, or it contains entries that
    /// this program does not understand.
    pub(super) fn restore_from_journal(&self) -> Result<JournalRestoreResult> {
        let repaired = self.repair(|session| {
            let Some(replay) = proven(session)? else { return Ok(Vec::new()) };
            let mut repaired = Vec::new();
            captures(session, &replay.state, &mut repaired)?;
            artifacts(session, &replay.state, &mut repaired)?;
            annotations::restore(session, &replay.state, &mut repaired)?;
            tombstones::restore(session, &replay.state, &mut repaired)?;
            entry_times(session, &replay, &mut repaired)?;
            entry_actions(session, &mut repaired)?;
            Ok(repaired)
        })?;
        Ok(JournalRestoreResult { repaired, is_reordered: false })
    }

    /// Restores the row that says where the journal ends, if the journal goes on beyond it, or has another chain value
    /// there. A row that names a later entry stays: the end of the journal is lost.
    pub(super) fn repair_end(&self) -> Result<Vec<Repair>> {
        let repair = || {
            let session = DatabaseTransaction::to_write(&self.server, BUSY_TIMEOUT)?;
            session.rows("SELECT seq FROM head WHERE id = 1 FOR UPDATE", &[])?;
            let Some(replay) = replay(&session)?.filter(|replay| replay.check.defect.is_none()) else {
                return Ok(Vec::new());
            };
            let head = replay.check.head;
            let sql = "UPDATE head h SET seq = j.seq, at = j.at, chain = j.chain FROM journal j
                        WHERE h.id = 1 AND j.seq = $1 AND h.seq <= j.seq
                          AND (h.seq, h.at, h.chain) IS DISTINCT FROM (j.seq, j.at, j.chain)";
            if session.execute(sql, &[&head.seq.cast_signed()])? == 0 {
                return Ok(Vec::new());
            }
            let repaired =
                vec![Repair { subject: Subject::Table("head".to_owned()), did: "set to the last entry" }];
            record(&session, PostgresJournalWriter::lock(&session, self.actor(), clock::now())?, &repaired)?;
            session.commit()?;
            Ok(repaired)
        };
        repair()
            .map_err(|failure: crate::storage::postgres::error::PostgresError| failure.at(self.server.name()))
    }
}

/// Reads the whole journal, or returns `None` if an entry cannot be read.
fn replay(session: &DatabaseTransaction<'_>) -> PostgresResult<Option<JournalReplay>> {
    let mut replay = JournalReplay::begin(None);
    let mut is_readable = true;
    session.each("SELECT seq, at, entry, chain FROM journal ORDER BY seq", &[], &mut |row| {
        match (value(row, 0), value(row, 1), digest(row, 3)) {
            (Ok(seq), Ok(at), Ok(chain)) => {
                let text = text(row, 2).ok();
                replay.take(&JournalRow { seq, text: text.as_deref(), chain, at, added: None }, None);
            }
            _ => is_readable = false,
        }
        Ok(())
    })?;
    Ok(is_readable.then_some(replay))
}

/// Returns the state that the journal proves: every entry chains and is understood, and none is missing at the end.
pub(super) fn proven(session: &DatabaseTransaction<'_>) -> PostgresResult<Option<JournalReplay>> {
    let Some(replay) = replay(session)?.filter(JournalReplay::is_proven) else { return Ok(None) };
    let head = replay.check.head;
    let is_whole = session
        .row("SELECT 1 FROM head WHERE seq = $1 AND chain = $2", &[&head.seq.cast_signed(), &head.chain])?
        .is_some();
    Ok(is_whole.then_some(replay))
}

/// Calls `take` with the rows of a query that has a number after `$1` first, and is ordered by it, some at a time.
fn in_parts(
    session: &DatabaseTransaction<'_>,
    sql: &str,
    take: &mut dyn FnMut(&[Row]) -> PostgresResult<()>,
) -> PostgresResult<()> {
    let mut last = i64::MIN;
    loop {
        let rows = session.rows(sql, &[&last, &ROWS])?;
        let Some(row) = rows.last() else { return Ok(()) };
        last = value(row, 0)?;
        take(&rows)?;
    }
}

/// A capture that the journal has, as stored.
struct JournaledCaptureRow {
    id: i64,
    core: CoreHash,
    hash: CaptureHash,
    times: (i64, i64),
    source_path: Option<String>,
    signature: Option<SignatureFacts>,
}

fn stored_capture(row: &Row) -> PostgresResult<JournaledCaptureRow> {
    let (state, key_id) = (optional_text(row, 6)?, optional_text(row, 7)?);
    Ok(JournaledCaptureRow {
        id: value(row, 0)?,
        core: core(row, 1)?,
        hash: capture(row, 2)?,
        times: (value(row, 3)?, value(row, 4)?),
        source_path: optional_text(row, 5)?,
        // A key without a state is not what was recorded either.
        signature: (state.is_some() || key_id.is_some()).then(|| (state.unwrap_or_default(), key_id)),
    })
}

/// Restores the times, the source paths and the states of signatures of captures.
fn captures(
    session: &DatabaseTransaction<'_>,
    state: &JournalState,
    repaired: &mut Vec<Repair>,
) -> PostgresResult<()> {
    let sql = "SELECT c.id, a.core, c.digest, c.added_at, c.seen_at, c.source_path, c.signature, c.key_id
                 FROM capture c JOIN artifact a ON a.id = c.artifact WHERE c.id > $1 ORDER BY c.id LIMIT $2";
    in_parts(session, sql, &mut |rows| {
        let stored = rows.iter().map(stored_capture).collect::<PostgresResult<Vec<_>>>()?;
        let known = |stored: &JournaledCaptureRow| state.capture(stored.core, stored.hash);
        let signed =
            |stored: &JournaledCaptureRow| state.signatures.get(&(stored.core, stored.hash)).copied();
        let seqs = stored.iter().filter_map(|stored| Some((known(stored)?, signed(stored))));
        let seqs = seqs.flat_map(|(entries, signed)| [entries.added, entries.seen].into_iter().chain(signed));
        let entries = entries(session, seqs.collect())?;
        for stored in &stored {
            let Some(recorded) = known(stored) else { continue };
            let signature = signed(stored).and_then(|seq| entries.get(&seq)).and_then(signature_facts);
            let times = (time_of(&entries, recorded.added), time_of(&entries, recorded.seen));
            let (Some(added), Some(seen)) = times else { continue };
            let source_path = entries.get(&recorded.added).and_then(source_path);
            let news = JournaledCaptureRow {
                times: (added, seen),
                source_path,
                signature,
                ..JournaledCaptureRow { source_path: None, signature: None, ..*stored }
            };
            restore_capture(session, stored, &news, repaired)?;
        }
        Ok(())
    })
}

fn source_path(entry: &EntryText) -> Option<String> {
    match &entry.change {
        Entry::Add { source_path, .. } => source_path.clone(),
        _ => None,
    }
}

fn restore_capture(
    session: &DatabaseTransaction<'_>,
    stored: &JournaledCaptureRow,
    news: &JournaledCaptureRow,
    repaired: &mut Vec<Repair>,
) -> PostgresResult<()> {
    let differences = [
        (stored.times != news.times, "given the journal's time"),
        (stored.source_path != news.source_path, "given the source path in the journal"),
        (stored.signature != news.signature, "given the signature's state in the journal"),
    ];
    let before = repaired.len();
    let did = differences.iter().filter(|(differs, _)| *differs).map(|(_, did)| *did);
    repaired.extend(did.map(|did| Repair { subject: Subject::Capture(stored.hash), did }));
    if repaired.len() == before {
        return Ok(());
    }
    let signature = news.signature.as_ref();
    session.execute(
        "UPDATE capture SET added_at = $2, seen_at = $3, source_path = $4, signature = $5, key_id = $6 WHERE id = $1",
        &[
            &stored.id,
            &news.times.0,
            &news.times.1,
            &news.source_path.as_deref().map(to_stored),
            &signature.map(|(state, _)| to_stored(state)),
            &signature.and_then(|(_, key_id)| key_id.as_deref().map(to_stored)),
        ],
    )?;
    Ok(())
}

/// Restores the times and the positions of artifacts.
fn artifacts(
    session: &DatabaseTransaction<'_>,
    state: &JournalState,
    repaired: &mut Vec<Repair>,
) -> PostgresResult<()> {
    let sql = "SELECT id, core, added_at, seen_at, arrival FROM artifact WHERE id > $1 ORDER BY id LIMIT $2";
    in_parts(session, sql, &mut |rows| {
        let mut stored = Vec::new();
        for row in rows {
            let core = core(row, 1)?;
            let times: (i64, i64, i64) = (value(row, 2)?, value(row, 3)?, value(row, 4)?);
            stored.extend(state.artifact(core).map(|entries| (value(row, 0), core, times, entries)));
        }
        let seqs =
            stored.iter().flat_map(|(_, core, _, entries)| state.additions(*core).chain([entries.seen]));
        let entries = entries(session, seqs.collect())?;
        for (id, core, times, recorded) in stored {
            let additions: Vec<Option<i64>> =
                state.additions(core).map(|seq| time_of(&entries, seq)).collect();
            // The journal does not say whether the artifact was lost with a capture that was added again.
            let added = if additions.contains(&Some(times.0)) {
                Some(times.0)
            } else {
                additions.first().copied().flatten()
            };
            let (Some(added), Some(seen)) = (added, time_of(&entries, recorded.seen)) else { continue };
            let news = (added, seen, recorded.arrival());
            if news != times {
                restore_artifact(session, id?, news)?;
                repaired.push(Repair { subject: Subject::Artifact(core), did: "given the journal's time" });
            }
        }
        Ok(())
    })
}

fn restore_artifact(
    session: &DatabaseTransaction<'_>,
    id: i64,
    (added, seen, arrival): (i64, i64, i64),
) -> PostgresResult<()> {
    let sql = "UPDATE artifact SET added_at = $2, seen_at = $3, arrival = $4 WHERE id = $1";
    session.execute(sql, &[&id, &added, &seen, &arrival]).map(drop)
}

/// Sets the time beside an entry to that in its text, which is chained.
fn entry_times(
    session: &DatabaseTransaction<'_>,
    replay: &JournalReplay,
    repaired: &mut Vec<Repair>,
) -> PostgresResult<()> {
    let defects = replay.defects.iter().filter(|(_, defect)| matches!(defect, EntryDefect::Time));
    let seqs: Vec<i64> = defects.map(|(seq, _)| *seq).collect();
    let recorded = entries(session, seqs.clone())?;
    for seq in seqs {
        let Some(at) = time_of(&recorded, seq) else { continue };
        let sql = "UPDATE journal SET at = $2 WHERE seq = $1";
        session.execute(sql, &[&seq, &at])?;
        repaired.push(Repair { subject: Subject::Entry(seq), did: "given the time of its text" });
    }
    Ok(())
}

/// Sets the action beside an entry to that in its text.
fn entry_actions(session: &DatabaseTransaction<'_>, repaired: &mut Vec<Repair>) -> PostgresResult<()> {
    let mut different: Vec<(i64, String)> = Vec::new();
    session.each("SELECT seq, action, entry FROM journal ORDER BY seq", &[], &mut |row| {
        let written = text(row, 2).ok().and_then(|text| written_action(&text));
        let written = written.filter(|written| value::<&str>(row, 1).ok() != Some(written.as_str()));
        if let Some(written) = written {
            different.push((value(row, 0)?, written));
        }
        Ok(())
    })?;
    for (seq, action) in different {
        let sql = "UPDATE journal SET action = $2 WHERE seq = $1";
        session.execute(sql, &[&seq, &action])?;
        repaired.push(Repair { subject: Subject::Entry(seq), did: "given the action of its text" });
    }
    Ok(())
}

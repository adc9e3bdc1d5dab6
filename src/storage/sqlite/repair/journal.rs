//! Restoring what the journal proves: times, source paths, order of addition, tags, notes, pins, labels, manual links, tombstones and
//! signature states.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Transaction};

use super::{labels, types};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::annotations::ENDS;
use crate::storage::check::comparison::signature_facts;
use crate::storage::check::journal_state::{
    ArtifactEntries, CaptureEntries, EntryDefect, JournalReplay, JournalState,
};
use crate::storage::check::{JournalRestoreResult, Repair, Subject};
use crate::storage::entry::Entry;
use crate::storage::sqlite::check::{journal_entry, replay};
use crate::storage::sqlite::ids::{ARTIFACTS, CAPTURES, artifact_id};
use crate::storage::sqlite::journal;
use crate::storage::sqlite::repair::changed;
use crate::storage::sqlite::{Result, Store};

impl Store {
    /// Restores everything that the journal determines: times and order of captures and artifacts, tags, notes, pins,
    /// labels, manual links, tombstones, and signature states of captures. Other rows that the journal does not know are kept.
    /// Changes nothing if the journal's chain is broken or it contains entries that this program does not understand.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn restore_from_journal(&self) -> Result<JournalRestoreResult> {
        let mut is_reordered = false;
        let repaired = self.repair(|transaction| {
            let replay = replay(transaction, None)?;
            if !replay.is_proven() {
                return Ok(Vec::new());
            }
            let state = &replay.state;
            let mut repaired = Vec::new();
            types::drop_unreadable(transaction, &mut repaired)?;
            captures_added(transaction, state, &mut repaired)?;
            artifact_times(transaction, state, &mut repaired)?;
            is_reordered = order(transaction, state, &mut repaired)?;
            annotations(transaction, state, &mut repaired)?;
            labels::restore(transaction, state, &mut repaired)?;
            tombstones(transaction, state, &mut repaired)?;
            signatures(transaction, state, &mut repaired)?;
            entry_times(transaction, &replay, &mut repaired)?;
            entry_columns(transaction, &mut repaired)?;
            strays(transaction, &mut repaired)?;
            Ok(repaired)
        })?;
        Ok(JournalRestoreResult { repaired, is_reordered })
    }
}

/// Returns the captures that are recorded in the journal, with their row ids, hashes and entries.
fn captures(
    connection: &Connection,
    state: &JournalState,
) -> rusqlite::Result<Vec<(i64, CaptureHash, CaptureEntries)>> {
    let mut statement = connection.prepare(
        "SELECT c.id, a.core, b.digest FROM capture c JOIN artifact a ON a.id = c.artifact
           LEFT JOIN blob b ON b.id = c.blob ORDER BY c.id",
    )?;
    let mut rows = statement.query([])?;
    let mut captures = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, core, capture): (i64, CoreHash, Option<CaptureHash>) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        captures.extend(capture.and_then(|capture| Some((id, capture, state.capture(core, capture)?))));
    }
    Ok(captures)
}

fn time_of(connection: &Connection, seq: i64) -> rusqlite::Result<i64> {
    // The state contains only numbers of existing entries.
    Ok(journal::time_of(connection, seq)?.unwrap_or_default())
}

/// Restores the times and the source paths of captures.
fn captures_added(
    transaction: &Transaction<'_>,
    state: &JournalState,
    repaired: &mut Vec<Repair>,
) -> rusqlite::Result<()> {
    for (id, capture, entries) in captures(transaction, state)? {
        let sql = "UPDATE capture SET added_at = ?2, seen_at = ?3
                    WHERE id = ?1 AND (added_at IS NOT ?2 OR seen_at IS NOT ?3)";
        let (added, seen) = (time_of(transaction, entries.added)?, time_of(transaction, entries.seen)?);
        if changed(transaction, sql, (id, added, seen))? {
            repaired.push(Repair { subject: Subject::Capture(capture), did: "given the journal's time" });
        }
        let sql = "UPDATE capture SET source_entry = (SELECT seq FROM journal WHERE seq = ?2 AND source_path IS NOT NULL)
                    WHERE id = ?1 AND source_entry IS NOT (SELECT seq FROM journal WHERE seq = ?2 AND source_path IS NOT NULL)";
        if changed(transaction, sql, (id, entries.added))? {
            let did = "given the source path in the journal";
            repaired.push(Repair { subject: Subject::Capture(capture), did });
        }
    }
    Ok(())
}

/// An artifact that is recorded in the journal.
struct JournaledArtifact {
    id: i64,
    core: CoreHash,
    /// `None` if it is damaged.
    added_at: Option<i64>,
    entries: ArtifactEntries,
    /// The entries that may have added it.
    additions: Vec<i64>,
}

fn artifacts(connection: &Connection, state: &JournalState) -> rusqlite::Result<Vec<JournaledArtifact>> {
    let mut statement = connection.prepare("SELECT id, core, added_at FROM artifact ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut artifacts = Vec::new();
    while let Some(row) = rows.next()? {
        let core: CoreHash = row.get(1)?;
        let Some(entries) = state.artifact(core) else { continue };
        let again = state.added_again.get(&core).into_iter().flatten();
        let additions = std::iter::once(entries.added).chain(again.copied()).collect();
        artifacts.push(JournaledArtifact {
            id: row.get(0)?,
            core,
            added_at: row.get_ref(2)?.as_i64().ok(),
            entries,
            additions,
        });
    }
    Ok(artifacts)
}

fn artifact_times(
    transaction: &Transaction<'_>,
    state: &JournalState,
    repaired: &mut Vec<Repair>,
) -> rusqlite::Result<()> {
    for JournaledArtifact { id, core, added_at, entries, additions } in artifacts(transaction, state)? {
        let times = additions.iter().map(|seq| time_of(transaction, *seq));
        let times: Vec<i64> = times.collect::<rusqlite::Result<_>>()?;
        let added_at = match added_at.filter(|added_at| times.contains(added_at)) {
            Some(added_at) => added_at,
            None => time_of(transaction, entries.added)?,
        };
        let sql = "UPDATE artifact SET added_at = ?2, seen_at = ?3, arrival = ?4
                    WHERE id = ?1 AND (added_at IS NOT ?2 OR seen_at IS NOT ?3 OR arrival IS NOT ?4)";
        let seen_at = time_of(transaction, entries.seen)?;
        if changed(transaction, sql, (id, added_at, seen_at, entries.arrival()))? {
            repaired.push(Repair { subject: Subject::Artifact(core), did: "given the journal's time" });
        }
    }
    Ok(())
}

fn order(
    transaction: &Transaction<'_>,
    state: &JournalState,
    repaired: &mut Vec<Repair>,
) -> rusqlite::Result<bool> {
    // Rows that refer to a number are updated in a later statement.
    transaction.pragma_update(None, "defer_foreign_keys", true)?;
    let mut arrived = Vec::new();
    for JournaledArtifact { id, added_at, entries, additions, .. } in artifacts(transaction, state)? {
        let mut latest = entries.added;
        for seq in additions {
            if Some(time_of(transaction, seq)?) == added_at {
                latest = seq;
            }
        }
        arrived.push((id, latest));
    }
    let captures =
        captures(transaction, state)?.into_iter().map(|(id, _, entries)| (id, entries.added)).collect();
    let mut is_reordered = false;
    for (table, columns, arrived) in [("artifact", ARTIFACTS, arrived), ("capture", CAPTURES, captures)] {
        if renumber(transaction, columns, &arrived)? {
            is_reordered = true;
            let subject = Subject::Table(table.to_owned());
            repaired.push(Repair { subject, did: "reordered by arrival" });
        }
    }
    Ok(is_reordered)
}

/// Reassigns row ids in the order of the rows' entries. `arrived` has each row id with its entry; `columns` are all
/// columns that contain the row ids. Returns whether anything was changed.
fn renumber(
    transaction: &Transaction<'_>,
    columns: &[(&str, &str)],
    arrived: &[(i64, i64)],
) -> rusqlite::Result<bool> {
    let mut numbers: Vec<i64> = arrived.iter().map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    let by_entry: BTreeMap<i64, i64> = arrived.iter().map(|(number, seq)| (*seq, *number)).collect();
    let pairs = by_entry.values().zip(&numbers).filter(|(old, new)| old != new);
    let pairs: Vec<(i64, i64)> = pairs.map(|(old, new)| (*old, *new)).collect();
    // Two rows for one entry, or a number that no known row has, are a different kind of damage.
    if pairs.is_empty() || by_entry.len() < numbers.len() || numbers.first().is_none_or(|first| *first < 1) {
        return Ok(false);
    }
    for (table, column) in columns {
        // In two steps, because every number is unique: numbers in use are negative in between.
        let away = format!("UPDATE {table} SET {column} = -?2 WHERE {column} = ?1");
        for pair in &pairs {
            transaction.prepare_cached(&away)?.execute(*pair)?;
        }
        let back = format!("UPDATE {table} SET {column} = -{column} WHERE {column} < 0");
        transaction.execute(&back, [])?;
    }
    Ok(true)
}

/// Restores annotations from the journal. Those of missing artifacts are skipped.
fn annotations(
    transaction: &Transaction<'_>,
    state: &JournalState,
    repaired: &mut Vec<Repair>,
) -> rusqlite::Result<()> {
    let entries = [&state.notes, &state.pins].into_iter().flat_map(BTreeMap::values);
    for seq in entries.chain(state.tags.values()).chain(state.links.values()) {
        let Some(entry) = journal_entry(transaction, *seq)? else { continue };
        let Some(at) = entry.milliseconds() else { continue };
        let subject = match entry.change {
            Entry::Tag { core, name } => {
                let Some(id) = artifact_id(transaction, core)? else { continue };
                let sql = "INSERT INTO tag (name, artifact, at) VALUES (?1, ?2, ?3)
                           ON CONFLICT DO UPDATE SET artifact = excluded.artifact, at = excluded.at
                            WHERE artifact IS NOT excluded.artifact OR at IS NOT excluded.at";
                changed(transaction, sql, (&name, id, at))?.then_some(Subject::Tag(name))
            }
            Entry::Note { core, note: Some(note) } => {
                let Some(id) = artifact_id(transaction, core)? else { continue };
                let sql = "INSERT INTO note (artifact, text, at) VALUES (?1, ?2, ?3)
                           ON CONFLICT DO UPDATE SET text = excluded.text, at = excluded.at
                            WHERE text IS NOT excluded.text OR at IS NOT excluded.at";
                changed(transaction, sql, (id, note, at))?.then_some(Subject::Note(core))
            }
            Entry::Pin { core, note } => {
                let Some(id) = artifact_id(transaction, core)? else { continue };
                let sql = "INSERT INTO pin (artifact, note, at) VALUES (?1, ?2, ?3)
                           ON CONFLICT DO UPDATE SET note = excluded.note, at = excluded.at
                            WHERE note IS NOT excluded.note OR at IS NOT excluded.at";
                changed(transaction, sql, (id, note, at))?.then_some(Subject::Pin(core))
            }
            Entry::Link { source, relation, target, note } => {
                let ends = (artifact_id(transaction, source)?, artifact_id(transaction, target)?);
                let (Some(from), Some(to)) = ends else { continue };
                let sql =
                    "INSERT INTO link (source, relation, target, note, stated_at) VALUES (?1, ?2, ?3, ?4, ?5)
                           ON CONFLICT DO UPDATE SET note = excluded.note, stated_at = excluded.stated_at
                            WHERE note IS NOT excluded.note OR stated_at IS NOT excluded.stated_at";
                changed(transaction, sql, (from, &relation, to, note, at))?.then_some(Subject::Link {
                    source,
                    relation,
                    target,
                })
            }
            _ => None,
        };
        let did = "restored from the journal";
        repaired.extend(subject.map(|subject| Repair { subject, did }));
    }
    Ok(())
}

fn tombstones(
    transaction: &Transaction<'_>,
    state: &JournalState,
    repaired: &mut Vec<Repair>,
) -> rusqlite::Result<()> {
    let mut by_digest: BTreeMap<Digest, BTreeSet<i64>> = BTreeMap::new();
    for ((digest, _), seq) in &state.tombstones {
        by_digest.entry(*digest).or_default().insert(*seq);
    }
    for (digest, recorded) in by_digest {
        let stored: BTreeSet<i64> = transaction
            .prepare_cached("SELECT entry FROM tombstone WHERE digest = ?1")?
            .query_map([digest.as_bytes()], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        if stored == recorded {
            continue;
        }
        for (sql, entries) in [
            ("DELETE FROM tombstone WHERE digest = ?1 AND entry = ?2", stored.difference(&recorded)),
            ("INSERT INTO tombstone (digest, entry) VALUES (?1, ?2)", recorded.difference(&stored)),
        ] {
            for entry in entries {
                transaction.prepare_cached(sql)?.execute((digest.as_bytes(), entry))?;
            }
        }
        repaired.push(Repair { subject: Subject::Tombstone(digest), did: "restored from the journal" });
    }
    Ok(())
}

/// Restores the signature states of the captures that the journal knows, and deletes those that it does not record.
fn signatures(
    transaction: &Transaction<'_>,
    state: &JournalState,
    repaired: &mut Vec<Repair>,
) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare(
        "SELECT c.id, a.core, b.digest, s.state, s.key_id
           FROM capture c JOIN artifact a ON a.id = c.artifact LEFT JOIN blob b ON b.id = c.blob
           LEFT JOIN signature s ON s.capture = c.id ORDER BY c.id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (core, capture): (CoreHash, Option<CaptureHash>) = (row.get(1)?, row.get(2)?);
        let Some(capture) = capture.filter(|capture| state.capture(core, *capture).is_some()) else {
            continue;
        };
        let recorded = state.signatures.get(&(core, capture)).copied();
        let recorded = recorded.map(|seq| journal_entry(transaction, seq)).transpose()?.flatten();
        let recorded = recorded.as_ref().and_then(signature_facts);
        let stored: Option<String> = row.get(3)?;
        let stored = stored.map(|state| Ok::<_, rusqlite::Error>((state, row.get(4)?))).transpose()?;
        if stored == recorded {
            continue;
        }
        let id: i64 = row.get(0)?;
        match recorded {
            Some((state, key_id)) => transaction
                .prepare_cached(
                    "INSERT OR REPLACE INTO signature (capture, state, key_id) VALUES (?1, ?2, ?3)",
                )?
                .execute((id, state, key_id))?,
            None => transaction.prepare_cached("DELETE FROM signature WHERE capture = ?1")?.execute([id])?,
        };
        let did = "given the signature's state in the journal";
        repaired.push(Repair { subject: Subject::Capture(capture), did });
    }
    Ok(())
}

/// Sets the `at` column of an entry to the time in its text, which is chained.
fn entry_times(
    transaction: &Transaction<'_>,
    replay: &JournalReplay,
    repaired: &mut Vec<Repair>,
) -> rusqlite::Result<()> {
    for (seq, defect) in &replay.defects {
        if matches!(defect, EntryDefect::Time)
            && let Some(at) = journal_entry(transaction, *seq)?.and_then(|entry| entry.milliseconds())
        {
            transaction.execute("UPDATE journal SET at = ?2 WHERE seq = ?1", (seq, at))?;
            repaired.push(Repair { subject: Subject::Entry(*seq), did: "given the time of its text" });
        }
    }
    Ok(())
}

/// Empties the columns of additions in entries that have a text, which is chained.
fn entry_columns(transaction: &Transaction<'_>, repaired: &mut Vec<Repair>) -> rusqlite::Result<()> {
    let sql = "UPDATE journal
                  SET actor = NULL, kind = NULL, core = NULL, capture = NULL, size = NULL, source_path = NULL
                WHERE entry IS NOT NULL AND coalesce(actor, kind, core, capture, size, source_path) IS NOT NULL";
    if changed(transaction, sql, [])? {
        let subject = Subject::Table("journal".to_owned());
        repaired.push(Repair { subject, did: "removed what is not in the texts of its entries" });
    }
    Ok(())
}

/// Drops rows that refer to missing artifacts. Those that the journal has were already restored.
fn strays(transaction: &Transaction<'_>, repaired: &mut Vec<Repair>) -> rusqlite::Result<()> {
    for (table, column) in ENDS {
        let sql = format!("DELETE FROM {table} WHERE {column} NOT IN (SELECT id FROM artifact)");
        if changed(transaction, &sql, [])? {
            let subject = Subject::Table(table.to_owned());
            repaired.push(Repair { subject, did: "removed rows that refer to missing artifacts" });
        }
    }
    Ok(())
}

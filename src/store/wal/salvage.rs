//! Taking out of a damaged log what it still holds.
//!
//! The rows in its frames go into a scratch vault, with those rows of the real one that they need. From there, artifacts are
//! read like from any other vault, and admitted again by who adds them: nothing is believed because it stood in the log.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::copies::{self, LogCopy};
use super::rows;
use super::{LogDefect, LoggedEntry, Sight, missing_entries, real};
use crate::clock;
use crate::digest::{CaptureHash, CoreHash};
use crate::files::StagingDir;
use crate::store::check::finding::Subject;
use crate::store::check::{Change, RecordedCapture, RecordedEntry};
use crate::store::manual_links::StatedLink;
use crate::store::{Repair, Result, Store, StoreError, pool};

/// The tables whose rows are taken from a log.
const TABLES: [&str; 7] = ["kind", "artifact", "blob", "dictionary", "payload", "capture", "member"];

/// What rows refer to: a column of a table, and the table and key of the rows that are needed.
const NEEDED: [(&str, &str, &str, &str); 6] = [
    ("capture", "artifact", "artifact", "id"),
    ("capture", "blob", "blob", "id"),
    ("member", "blob", "blob", "id"),
    ("blob", "id", "payload", "blob"),
    ("payload", "base", "blob", "id"),
    ("payload", "dictionary", "dictionary", "id"),
];

/// What rows that are needed may need in turn: a member its blob, that its payload, that another one.
const ROUNDS: usize = 4;

/// Takes out of damaged logs what they still hold.
pub struct Salvager<'s> {
    store: &'s Store,
    copies: Vec<LogCopy>,
}

/// What a damaged log still holds.
pub struct SalvagedLog {
    /// The captures that were added, and that the vault does not have.
    pub captures: Vec<RecordedCapture>,
    /// The vault that has them, as far as the log does.
    pub scratch: Option<Store>,
    /// What else was changed: the number and the text of the journal's entries.
    changes: Vec<(i64, Option<String>)>,
    copy: LogCopy,
    /// Removed at the end.
    _directory: Option<StagingDir>,
}

impl Store {
    /// What takes out of the damaged logs beside the vault what they still hold.
    ///
    /// # Errors
    /// Returns an error if the directory of the vault cannot be read.
    pub fn salvager(&self) -> Result<Salvager<'_>> {
        let copies =
            copies::pending(&real(&self.path)).map_err(|source| StoreError::io(&self.path, source))?;
        Ok(Salvager { store: self, copies })
    }
}

impl Iterator for Salvager<'_> {
    type Item = Result<SalvagedLog>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.copies.is_empty() {
            return None;
        }
        let copy = self.copies.remove(0);
        Some(self.store.salvage(copy))
    }
}

impl Store {
    fn salvage(&self, copy: LogCopy) -> Result<SalvagedLog> {
        let sight =
            Sight::of_copy(&copy, &real(&self.path)).map_err(|source| StoreError::io(&copy.path, source))?;
        let nothing = |copy| SalvagedLog {
            captures: Vec::new(),
            scratch: None,
            changes: Vec::new(),
            copy,
            _directory: None,
        };
        let Some(scan) = sight.scan.filter(|_| sight.defect_of_copy() != LogDefect::Foreign) else {
            return Ok(nothing(copy));
        };
        let connection = self.connection()?;
        let missing = missing_entries(&connection, &copy.path, &scan)?;
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = StagingDir::new_in(directory.unwrap_or(Path::new(".")))
            .map_err(|source| StoreError::io(&self.path, source))?;
        let path = directory.path("scratch");
        let scratch = Self::create(&path)?;
        let failed = |error| StoreError::from_sqlite(&path, error);
        let to = pool::connect(&path).map_err(failed)?;
        fill(&to, &connection, |scratch| {
            rows::each(&copy.path, &scan, &mut |row| scratch.take(&row, scan.broken))
        })
        .map_err(failed)?
        .map_err(|source| StoreError::io(&copy.path, source))?;
        let mut captures = Vec::new();
        for (core, capture) in lost(&missing) {
            captures.push(RecordedCapture { core, capture, kind: None });
        }
        let changes = missing.iter().filter(|entry| entry.added.is_none());
        let changes = changes.map(|entry| (entry.seq, entry.text.clone())).collect();
        Ok(SalvagedLog { captures, scratch: Some(scratch), changes, copy, _directory: Some(directory) })
    }

    /// Sets what `log` says was set and the vault does not have: tags, pins, notes and stated links. Then the copy gets
    /// another name, and is not reported any more. `added` are the captures that were taken from it.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn finish_salvage(
        &self,
        log: SalvagedLog,
        added: &HashSet<(CoreHash, CaptureHash)>,
    ) -> Result<Vec<Repair>> {
        let SalvagedLog { captures, scratch, changes, copy, _directory } = log;
        drop(scratch);
        let mut done = Vec::new();
        for (seq, text) in changes {
            let change = text.and_then(|text| RecordedEntry::parse(&text).ok()).map(|entry| entry.change);
            let is_set = change.map_or(Ok(false), |change| self.set_again(&change))?;
            let did = if is_set { "done again" } else { "not done again: do it again if it is still wanted" };
            done.append(&mut self.record_repair(Subject::Entry(seq), did)?);
        }
        for capture in captures.iter().filter(|capture| !added.contains(&capture.key())) {
            if !self.inspect()?.has_capture(capture.core, capture.capture)? {
                let did = "lost: the log does not have all of it";
                done.append(&mut self.record_repair(Subject::Capture(capture.capture), did)?);
            }
        }
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let subject = Subject::File(name(&copy.path));
        copy.retire(&real(&self.path)).map_err(|source| StoreError::io(&copy.path, source))?;
        let did = "taken from it what it still had, and renamed to .salvaged-wal";
        done.append(&mut self.record_repair(subject, did)?);
        Ok(done)
    }

    /// Sets what an entry set, where nothing else was set since.
    fn set_again(&self, change: &Change) -> Result<bool> {
        let mut edit = self.edit(clock::now())?;
        let did = match change {
            Change::Tag { core, name } => {
                match (edit.snapshot().artifact(*core)?, edit.snapshot().tagged(name)?) {
                    (Some(artifact), None) => edit.tag(&artifact, name)?,
                    _ => false,
                }
            }
            Change::Pin { core, note } => match edit.snapshot().artifact(*core)? {
                Some(artifact) if edit.snapshot().pin_of(artifact.id)?.is_none() => {
                    edit.pin(&artifact, note.as_deref())?
                }
                _ => false,
            },
            Change::Note { core, note: Some(text) } => match edit.snapshot().artifact(*core)? {
                Some(artifact) if edit.snapshot().note_of(artifact.id)?.is_none() => {
                    edit.set_note(&artifact, text)?
                }
                _ => false,
            },
            Change::Link { source, relation, target, note } => {
                let ends = edit.snapshot().artifact(*source)?.zip(edit.snapshot().artifact(*target)?);
                match &ends {
                    Some((source, target)) => {
                        edit.state_link(StatedLink { source, relation, target }, note.as_deref())?
                    }
                    None => false,
                }
            }
            _ => false,
        };
        if did {
            edit.commit()?;
        }
        Ok(did)
    }
}

/// The captures that entries of the journal added and no later one removed.
fn lost(entries: &[LoggedEntry]) -> Vec<(CoreHash, CaptureHash)> {
    let mut lost: Vec<(CoreHash, CaptureHash)> = Vec::new();
    for entry in entries {
        if let Some(added) = entry.added {
            if !lost.contains(&added) {
                lost.push(added);
            }
            continue;
        }
        let change = entry.text.as_deref().and_then(|text| RecordedEntry::parse(text).ok());
        if let Some(Change::Remove { captures, .. }) = change.map(|entry| entry.change) {
            let captures: HashSet<CaptureHash> = captures.into_iter().collect();
            lost.retain(|(_, capture)| !captures.contains(capture));
        }
    }
    lost
}

/// A vault that takes in rows.
struct Scratch<'c> {
    connection: &'c Connection,
    /// Statements that insert a row into a table, each with the number of its columns; twice, for rows that replace others
    /// and for those that do not.
    inserts: Vec<(usize, bool, String, String)>,
}

/// Fills the vault at `to` with what `read` gives it, and with those rows of the vault at `from` that are needed.
fn fill<T>(
    to: &Connection,
    from: &Connection,
    read: impl FnOnce(&mut Scratch<'_>) -> T,
) -> rusqlite::Result<T> {
    to.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; BEGIN")?;
    let mut kinds = from.prepare("SELECT id FROM kind")?;
    let kinds: Vec<i64> = kinds.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for kind in kinds {
        copy_row(from, to, "kind", "id", kind)?;
    }
    let mut inserts = Vec::new();
    for table in TABLES {
        let info = |what: &str| {
            let sql = format!("SELECT count(*) FROM pragma_table_info('{table}') WHERE {what}");
            to.query_row(&sql, [], |row| row.get::<_, usize>(0))
        };
        let (columns, is_numbered) = (info("TRUE")?, table != "member");
        let marks = vec!["?"; columns].join(", ");
        let insert = |or: &str| format!("INSERT OR {or} INTO {table} VALUES ({marks})");
        inserts.push((columns, is_numbered, insert("REPLACE"), insert("IGNORE")));
    }
    let outcome = read(&mut Scratch { connection: to, inserts });
    for _ in 0..ROUNDS {
        for (table, column, needed, key) in NEEDED {
            let sql = format!(
                "SELECT DISTINCT {column} FROM {table} t WHERE {column} IS NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM {needed} n WHERE n.{key} = t.{column})"
            );
            let mut absent = to.prepare(&sql)?;
            let absent: Vec<i64> =
                absent.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            for number in absent {
                copy_row(from, to, needed, key, number)?;
            }
        }
    }
    to.execute_batch("COMMIT")?;
    Ok(outcome)
}

/// Copies the row of `table` whose `key` is `number`, if there is one.
fn copy_row(from: &Connection, to: &Connection, table: &str, key: &str, number: i64) -> rusqlite::Result<()> {
    let mut select = from.prepare_cached(&format!("SELECT * FROM {table} WHERE {key} = ?1"))?;
    let columns = select.column_count();
    let row = select.query_row([number], |row| {
        (0..columns).map(|column| row.get(column)).collect::<rusqlite::Result<Vec<Value>>>()
    });
    if let Some(values) = row.optional()? {
        let marks = vec!["?"; columns].join(", ");
        let sql = format!("INSERT OR IGNORE INTO {table} VALUES ({marks})");
        to.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    }
    Ok(())
}

impl Scratch<'_> {
    /// Inserts `row` into every table that it fits into: the types and checks of the tables tell. A row that is in none of them
    /// belongs to another table, or is damaged. One of the frame `broken` replaces no other.
    fn take(&mut self, row: &rows::LoggedRow, broken: u64) {
        for (columns, is_numbered, replace, ignore) in &self.inserts {
            if *columns != row.columns.len() || *is_numbered != row.number.is_some() {
                continue;
            }
            let sql = if row.frame == broken { ignore } else { replace };
            let number = row.number.map(Value::Integer);
            let values = number.iter().chain(row.columns.iter().skip(usize::from(*is_numbered)));
            // What does not fit is refused.
            let _ = self
                .connection
                .prepare_cached(sql)
                .and_then(|mut insert| insert.execute(params_from_iter(values)));
        }
    }
}

//! Recovery of the content of damaged logs.
//!
//! The rows in the frames of a log are copied into a temporary vault, with the rows of the real vault that they refer
//! to. Artifacts are read from it as from any other vault, and verified again by the caller that adds them: nothing is
//! trusted because it was in the log.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use crate::clock;
use crate::digest::{CaptureHash, CoreHash};
use crate::files::StagingDir;
use crate::storage::check::{LogRestoreResult, RecordedCapture, SalvagedLog, Subject};
use crate::storage::entry::{EntryChange, EntryText};
use crate::storage::interface::LogDefect;
use crate::storage::sqlite::connection::{self, real};
use crate::storage::sqlite::store::Store;
use crate::storage::sqlite::wal::copies::{self, LogCopy};
use crate::storage::sqlite::wal::rows;
use crate::storage::sqlite::wal::{LoggedEntry, WalSnapshot, missing_entries};
use crate::storage::sqlite::{Result, StorageError};
use crate::storage::{ManualLinkKey, Storage};

/// The tables whose rows are recovered from a log.
const TABLES: [&str; 7] = ["kind", "artifact", "blob", "dictionary", "payload", "capture", "member"];

/// References between rows: a table and its column, and the table and key that it refers to.
const NEEDED: [(&str, &str, &str, &str); 6] = [
    ("capture", "artifact", "artifact", "id"),
    ("capture", "blob", "blob", "id"),
    ("member", "blob", "blob", "id"),
    ("blob", "id", "payload", "blob"),
    ("payload", "base", "blob", "id"),
    ("payload", "dictionary", "dictionary", "id"),
];

/// Maximum length of a chain of references: a member refers to its blob, the blob to its payload, and the payload to
/// another one.
const ROUNDS: usize = 4;

/// The recoverable content of a damaged log.
struct RecoverableLogContent<'s> {
    store: &'s Store,
    captures: Vec<RecordedCapture>,
    /// The temporary vault.
    scratch: Option<Store>,
    /// Other changes: the numbers and texts of the journal entries.
    changes: Vec<(i64, Option<String>)>,
    copy: LogCopy,
    /// The directory of the temporary vault, removed on drop.
    _directory: Option<StagingDir>,
}

impl SalvagedLog for RecoverableLogContent<'_> {
    fn captures(&self) -> &[RecordedCapture] {
        &self.captures
    }

    fn source(&self) -> Option<&dyn Storage> {
        let scratch: &dyn Storage = self.scratch.as_ref()?;
        Some(scratch)
    }

    fn finish(self: Box<Self>, added: &HashSet<(CoreHash, CaptureHash)>) -> Result<LogRestoreResult> {
        let store = self.store;
        store.finish_salvage(*self, added)
    }
}

impl Store {
    /// Calls `each` with every damaged log beside the vault that was copied.
    ///
    /// # Errors
    /// Returns an error if the directory of the vault or a copy cannot be read, and any error that `each` returns.
    pub(in crate::storage::sqlite) fn salvage(
        &self,
        each: &mut dyn FnMut(Box<dyn SalvagedLog + '_>) -> Result<()>,
    ) -> Result<()> {
        let copies =
            copies::pending(&real(&self.path)).map_err(|source| StorageError::io(&self.path, source))?;
        copies.into_iter().try_for_each(|copy| each(Box::new(self.salvage_copy(copy)?)))
    }

    fn salvage_copy(&self, copy: LogCopy) -> Result<RecoverableLogContent<'_>> {
        let sight = WalSnapshot::of_copy(&copy, &real(&self.path))
            .map_err(|source| StorageError::io(&copy.path, source))?;
        let nothing = |copy| RecoverableLogContent {
            store: self,
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
            .map_err(|source| StorageError::io(&self.path, source))?;
        let path = directory.path("scratch");
        let scratch = Self::create(&path)?;
        let failed = |error| StorageError::from_sqlite(&path, error);
        let to = connection::connect(&path).map_err(failed)?;
        fill(&to, &connection, |scratch| {
            rows::each(&copy.path, &scan, &mut |row| scratch.take(&row, scan.broken))
        })
        .map_err(failed)?
        .map_err(|source| StorageError::io(&copy.path, source))?;
        let mut captures = Vec::new();
        for ((core, capture), source_path) in lost(&missing) {
            captures.push(RecordedCapture { core, capture, kind: None, source_path });
        }
        let changes = missing.iter().filter(|entry| entry.added.is_none());
        let changes = changes.map(|entry| (entry.seq, entry.text.clone())).collect();
        let scratch = Some(scratch);
        Ok(RecoverableLogContent {
            store: self,
            captures,
            scratch,
            changes,
            copy,
            _directory: Some(directory),
        })
    }

    /// Restores the changes in `log` that the vault does not have: tags, pins, notes, labels and manual links. Then renames
    /// the copy, so that it is no longer reported. `added` are the captures recovered from it.
    ///
    /// # Errors
    /// As [`Storage::put`].
    fn finish_salvage(
        &self,
        log: RecoverableLogContent<'_>,
        added: &HashSet<(CoreHash, CaptureHash)>,
    ) -> Result<LogRestoreResult> {
        let RecoverableLogContent { captures, scratch, changes, copy, _directory, .. } = log;
        drop(scratch);
        let mut result = LogRestoreResult::default();
        for (seq, text) in changes {
            let change = text.and_then(|text| EntryText::parse(&text).ok()).map(|entry| entry.change);
            let is_set = change.map_or(Ok(false), |change| self.set_again(&change))?;
            let (list, did) = if is_set {
                (&mut result.repaired, "done again")
            } else {
                (&mut result.lost, "not done again: do it again if it is still wanted")
            };
            list.append(&mut self.record_repair(Subject::Entry(seq), did)?);
        }
        for capture in captures.iter().filter(|capture| !added.contains(&capture.key())) {
            if !self.inspect()?.has_capture(capture.core, capture.capture)? {
                let did = "lost: the log does not have all of it";
                result.lost.append(&mut self.record_repair(Subject::Capture(capture.capture), did)?);
            }
        }
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let subject = Subject::File(name(&copy.path));
        copy.retire(&real(&self.path)).map_err(|source| StorageError::io(&copy.path, source))?;
        let did = "taken from it what it still had, and renamed to .salvaged-wal";
        result.repaired.append(&mut self.record_repair(subject, did)?);
        Ok(result)
    }

    /// Restores the change of an entry if nothing else was set since.
    fn set_again(&self, change: &EntryChange) -> Result<bool> {
        let mut edit = self.edit(clock::now())?;
        let did = match change {
            EntryChange::Tag { core, name } => {
                match (edit.snapshot().artifact(*core)?, edit.snapshot().tagged(name)?) {
                    (Some(artifact), None) => edit.tag(artifact.core, name)?,
                    _ => false,
                }
            }
            EntryChange::Pin { core, note } => match edit.snapshot().artifact(*core)? {
                Some(artifact) if edit.snapshot().pin_of(artifact.id)?.is_none() => {
                    edit.pin(artifact.core, note.as_deref())?
                }
                _ => false,
            },
            EntryChange::Note { core, note: Some(text) } => match edit.snapshot().artifact(*core)? {
                Some(artifact) if edit.snapshot().note_of(artifact.id)?.is_none() => {
                    edit.set_note(artifact.core, text)?
                }
                _ => false,
            },
            EntryChange::Label { cores, labels } => {
                let mut is_set = false;
                for core in cores {
                    let Some(artifact) = edit.snapshot().artifact(*core)? else { continue };
                    let known = edit.snapshot().labels_of(artifact.id)?;
                    let is_free = |key: &String| !known.iter().any(|label| label.key == *key);
                    let free = labels.iter().filter(|(key, _)| is_free(key));
                    let free = free.map(|(key, value)| (key.clone(), value.clone())).collect();
                    is_set |= edit.set_labels(&[*core], &free)?;
                }
                is_set
            }
            EntryChange::Link { source, relation, target, note } => {
                let ends = edit.snapshot().artifact(*source)?.zip(edit.snapshot().artifact(*target)?);
                match &ends {
                    Some((source, target)) => edit.add_link(
                        ManualLinkKey { source: source.core, relation, target: target.core },
                        note.as_deref(),
                    )?,
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

/// Returns the captures that journal entries added and no later entry removed, each with its source path.
fn lost(entries: &[LoggedEntry]) -> Vec<((CoreHash, CaptureHash), Option<String>)> {
    let mut lost: Vec<((CoreHash, CaptureHash), Option<String>)> = Vec::new();
    for entry in entries {
        if let Some(added) = entry.added {
            if !lost.iter().any(|(known, _)| *known == added) {
                lost.push((added, entry.source_path.clone()));
            }
            continue;
        }
        let change = entry.text.as_deref().and_then(|text| EntryText::parse(text).ok());
        if let Some(EntryChange::Remove { captures, .. }) = change.map(|entry| entry.change) {
            let captures: HashSet<CaptureHash> = captures.into_iter().collect();
            lost.retain(|((_, capture), _)| !captures.contains(capture));
        }
    }
    lost
}

/// The temporary vault that rows are inserted into.
struct TemporaryVault<'c> {
    connection: &'c Connection,
    /// Statements that insert a row into a table, each with the number of columns: one for rows that replace others,
    /// and one for those that do not.
    inserts: Vec<(usize, bool, String, String)>,
}

/// Fills the vault at `to` with the rows that `read` inserts, and with the rows of the vault at `from` that they refer
/// to.
fn fill<T>(
    to: &Connection,
    from: &Connection,
    read: impl FnOnce(&mut TemporaryVault<'_>) -> T,
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
    let outcome = read(&mut TemporaryVault { connection: to, inserts });
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

impl TemporaryVault<'_> {
    /// Inserts `row` into every table whose types and checks it satisfies. A row that satisfies none belongs to another
    /// table or is damaged. A row of the frame `broken` does not replace another.
    fn take(&mut self, row: &rows::LoggedRow, broken: u64) {
        for (columns, is_numbered, replace, ignore) in &self.inserts {
            if *columns != row.columns.len() || *is_numbered != row.number.is_some() {
                continue;
            }
            let sql = if row.frame == broken { ignore } else { replace };
            let number = row.number.map(Value::Integer);
            let values = number.iter().chain(row.columns.iter().skip(usize::from(*is_numbered)));
            // SQLite rejects rows that do not fit.
            let _ = self
                .connection
                .prepare_cached(sql)
                .and_then(|mut insert| insert.execute(params_from_iter(values)));
        }
    }
}

//! Checks of the write-ahead log before SQLite reads it.
//!
//! SQLite reads a log up to the first frame that does not verify, treats that as the end, and overwrites or deletes the
//! rest. That is right after a crash, where only an unfinished transaction is lost. It is wrong if the log was damaged:
//! the transactions after the damage were acknowledged. So the log of a vault is checked here before the vault is
//! opened. A damaged log is first copied, and the copy is kept until a repair has recovered its content.
//!
//! Two facts distinguish the cases. The index of the log counts the committed frames, unless the machine was restarted
//! since. And after damage there is a commit frame, which is the last frame of a transaction to be written.

pub(super) mod copies;
mod format;
mod index;
pub(super) mod rows;
mod scan;

use std::collections::{BTreeSet, HashSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};

use super::connection::{self, real};
use super::{Result, StorageError};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::files::open_vaults::has_open;
use crate::storage::interface::{LogDamage, LogDefect};
use copies::{LogCopy, sibling_path};
use index::WalIndex;
use scan::WalScan;

/// Maximum number of scans of a log that other processes are writing to. They would have to restart it during each
/// scan.
const LOOKS: u32 = 16;

impl LogDefect {
    /// Classifies the damage to a log.
    fn of_scan(scan: &WalScan) -> Self {
        match scan.is_without_header {
            true => Self::Header,
            false if scan.broken > scan.last => Self::CutOff,
            false => Self::Frame { number: scan.broken },
        }
    }
}

/// The result of checking a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WalCheckResult {
    Sound,
    Damaged(LogDefect),
}

/// A consistent view of a log and its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalSnapshot {
    pub(super) scan: Option<WalScan>,
    index: Option<WalIndex>,
}

impl WalSnapshot {
    fn take(vault: &Path) -> io::Result<Option<Self>> {
        let index_path = sibling_path(vault, "-shm");
        let index = WalIndex::read(&index_path)?;
        let scan = WalScan::read(&sibling_path(vault, "-wal"), vault)?;
        // Another process may have restarted the log during the scan.
        Ok((WalIndex::read(&index_path)? == index).then_some(Self { scan, index }))
    }

    pub(super) fn of_copy(copy: &LogCopy, vault: &Path) -> io::Result<Self> {
        Ok(Self { scan: copy.scan(vault)?, index: copy.index()? })
    }

    /// Returns the index if it counts frames that are only in the log.
    fn counting(&self) -> Option<WalIndex> {
        self.index.filter(|index| index.frames > index.in_file)
    }

    fn verdict(&self, vault: &Path) -> io::Result<WalCheckResult> {
        let Some(scan) = self.scan else {
            return Ok(self
                .counting()
                .map_or(WalCheckResult::Sound, |_| WalCheckResult::Damaged(LogDefect::Missing)));
        };
        let is_vouched_for = self.index.is_some_and(|index| index.salts == scan.salts);
        if !is_vouched_for && scan.readable > 0 {
            let is_foreign = match is_of_vault(&sibling_path(vault, "-wal"), &scan, vault)? {
                Some(is_own) => !is_own,
                // The counted frames belong to another log, which is missing.
                None => self.counting().is_some(),
            };
            if is_foreign {
                return Ok(WalCheckResult::Damaged(LogDefect::Foreign));
            }
        }
        if !scan.is_damaged(self.index.as_ref()) {
            return Ok(WalCheckResult::Sound);
        }
        Ok(WalCheckResult::Damaged(LogDefect::of_scan(&scan)))
    }

    /// Describes the damage, and the entries found in the frames. `connection` is a connection to the vault.
    fn damage(&self, defect: LogDefect, copy: Option<PathBuf>, entries: Option<(i64, i64)>) -> LogDamage {
        let counted = self.index.map_or(0, |index| u64::from(index.frames));
        let in_file = self.index.map_or(0, |index| u64::from(index.in_file));
        let (frames, unreadable) = match (defect, self.scan) {
            (LogDefect::Foreign | LogDefect::Missing, _) | (_, None) => {
                (counted, counted.saturating_sub(in_file))
            }
            (_, Some(scan)) => (scan.last.max(counted), scan.unreadable(self.index.as_ref())),
        };
        LogDamage { defect, frames, unreadable, copy, entries }
    }
}

/// A damaged log found before the vault was opened.
pub(super) struct DamagedWal {
    sight: WalSnapshot,
    defect: LogDefect,
    copy: Option<LogCopy>,
}

/// Checks the log of the vault at `path`, which has no symbolic links and which no connection of this process has open,
/// and copies it if it does not contain everything that was committed. Returns `None` if the log is complete or was
/// copied before.
pub(super) fn detect_damage(path: &Path) -> io::Result<Option<DamagedWal>> {
    if is_unused(path)? {
        return Ok(None);
    }
    // SQLite does not read the log of an open vault again: the process that has it open knows the length of its log.
    if index::is_in_use(&sibling_path(path, "-shm"))? {
        return Ok(None);
    }
    let Some((sight, defect)) = steady_verdict(path)? else { return Ok(None) };
    if has_all_in_file(&sight, defect) {
        // The first frames of the log are older than the file: SQLite must not read them. The file may not have been
        // synced since, and without the log nothing else has what it contains.
        std::fs::File::open(path)?.sync_all()?;
        copies::copy_or_move(path, true)?.retire(path)?;
        return Ok(None);
    }
    if is_already_copied(&sight, path)? {
        return Ok(None);
    }
    let is_to_be_moved = defect == LogDefect::Foreign || is_older_than_file(&sight);
    let copy = match copies::copy_or_move(path, is_to_be_moved) {
        // SQLite cannot delete the log in this case either.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            None
        }
        copy => Some(copy?),
    };
    Ok(Some(DamagedWal { sight, defect, copy }))
}

/// Returns whether there is no log, or only an empty one that nothing says should have content.
fn is_unused(path: &Path) -> io::Result<bool> {
    let index = sibling_path(path, "-shm");
    match std::fs::metadata(sibling_path(path, "-wal")) {
        Ok(log) if log.len() > 0 => Ok(false),
        Ok(_) => Ok(WalIndex::read_copy(&index)?.is_none_or(|index| index.frames <= index.in_file)),
        Err(_) => Ok(!index.exists()),
    }
}

/// Returns whether the log of the vault at `path`, which may have been deleted, is empty and is not in use.
pub(super) fn is_left_empty(path: &Path) -> bool {
    let (log, index) = (sibling_path(path, "-wal"), sibling_path(path, "-shm"));
    let is_empty = std::fs::symlink_metadata(&log).is_ok_and(|log| log.is_file() && log.len() == 0);
    is_empty
        && !has_open(&index)
        && is_unused(path).unwrap_or(false)
        && !index::is_in_use(&index).unwrap_or(true)
}

/// Returns the damage to a log if two successive scans agree, because other processes may be writing to it.
fn steady_verdict(path: &Path) -> io::Result<Option<(WalSnapshot, LogDefect)>> {
    let mut before = None;
    for _ in 0..LOOKS {
        let Some(sight) = WalSnapshot::take(path)? else { continue };
        let WalCheckResult::Damaged(defect) = sight.verdict(path)? else { return Ok(None) };
        if before == Some((sight, defect)) {
            return Ok(before);
        }
        before = Some((sight, defect));
    }
    Ok(None)
}

/// Returns whether the readable frames are older than those already copied from the log into the file.
fn is_older_than_file(sight: &WalSnapshot) -> bool {
    let WalSnapshot { scan: Some(scan), index: Some(index) } = sight else { return false };
    index.salts == scan.salts && index.in_file > 0 && u64::from(index.in_file) >= scan.readable
}

/// Returns whether the file contains everything that the log contained, so that nothing is lost.
fn has_all_in_file(sight: &WalSnapshot, defect: LogDefect) -> bool {
    let is_all = |index: &WalIndex| index.frames > 0 && index.in_file == index.frames;
    let goes_further = |scan: &WalScan, index: &WalIndex| scan.last > u64::from(index.frames);
    match sight {
        WalSnapshot { scan: Some(scan), index: Some(index) } => {
            defect != LogDefect::Foreign
                && index.salts == scan.salts
                && is_all(index)
                && !goes_further(scan, index)
        }
        _ => false,
    }
}

/// Returns whether there is a copy with the same damage.
fn is_already_copied(sight: &WalSnapshot, path: &Path) -> io::Result<bool> {
    for copy in copies::all(path)? {
        let of_copy = WalSnapshot::of_copy(&copy, path)?;
        let is_same = match (&sight.scan, &of_copy.scan) {
            (Some(scan), Some(in_copy)) => {
                scan.is_same_damage(&sibling_path(path, "-wal"), &copy.path, in_copy)?
            }
            (None, None) => sight.index.map(|index| index.salts) == of_copy.index.map(|index| index.salts),
            _ => false,
        };
        if is_same {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether the log at `log` belongs to the vault at `vault`: it has the same page size and the same journal.
/// Returns `None` if that cannot be determined.
fn is_of_vault(log: &Path, scan: &WalScan, vault: &Path) -> io::Result<Option<bool>> {
    if scan::page_size_of(vault)?.is_some_and(|size| size != scan.page_size) {
        return Ok(Some(false));
    }
    // Opens the file without its log. A file that is empty, or that an interrupted checkpoint left incomplete, proves
    // nothing.
    let Ok(connection) = connection::open_alone(vault) else { return Ok(None) };
    let mut is_own = None;
    for entry in entries(log, scan)? {
        match chain_of(&connection, entry.seq) {
            Ok(Some(chain)) if chain == entry.chain => return Ok(Some(true)),
            Ok(Some(_)) => is_own = Some(false),
            Ok(None) => {}
            Err(_) => return Ok(None),
        }
    }
    Ok(is_own)
}

/// A journal entry found in a log.
pub(super) struct LoggedEntry {
    /// The number of the frame that contains it.
    pub(super) frame: u64,
    pub(super) seq: i64,
    pub(super) chain: Digest,
    /// The artifact and the capture, if the entry is an addition.
    pub(super) added: Option<(CoreHash, CaptureHash)>,
    /// The text of an entry that is not an addition.
    pub(super) text: Option<String>,
    /// The source path of an addition.
    pub(super) source_path: Option<String>,
}

/// Returns every journal entry in a log, once each, in no particular order.
fn entries(log: &Path, scan: &WalScan) -> io::Result<Vec<LoggedEntry>> {
    let (mut entries, mut known) = (Vec::new(), HashSet::new());
    rows::each(log, scan, &mut |row| {
        let frame = row.frame;
        let Some(entry) = LoggedEntry::from_row(frame, row.number, &row.columns) else { return };
        if known.insert((entry.seq, entry.chain)) {
            entries.push(entry);
        }
    })?;
    Ok(entries)
}

fn digest(value: &Value) -> Option<Digest> {
    match value {
        Value::Blob(bytes) => bytes.as_array().copied().map(Digest::from_bytes),
        _ => None,
    }
}

impl LoggedEntry {
    fn from_row(frame: u64, number: Option<i64>, columns: &[Value]) -> Option<Self> {
        // Rows that were written before the last column was added do not have it.
        let (columns, source_path) = columns.split_first_chunk::<9>()?;
        let [Value::Null, Value::Integer(_), _, _, core, capture, _, entry, chain] = columns else {
            return None;
        };
        let source_path = match source_path {
            [] | [Value::Null] => None,
            [Value::Text(path)] => Some(path.clone()),
            _ => return None,
        };
        let added = digest(core).zip(digest(capture));
        let text = match entry {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        let added = added.map(|(core, capture)| (CoreHash(core), CaptureHash(capture)));
        Some(Self { frame, seq: number?, chain: digest(chain)?, added, text, source_path })
    }
}

fn chain_of(connection: &Connection, seq: i64) -> rusqlite::Result<Option<Digest>> {
    connection
        .prepare_cached("SELECT chain FROM journal WHERE seq = ?1")?
        .query_row([seq], |row| row.get(0))
        .optional()
}

/// Returns the journal entries in a log that are not in the vault.
pub(super) fn missing_entries(
    connection: &Connection,
    log: &Path,
    scan: &WalScan,
) -> Result<Vec<LoggedEntry>> {
    let failed = |error| StorageError::from_sqlite(log, error);
    let mut missing = Vec::new();
    for entry in entries(log, scan).map_err(|source| StorageError::io(log, source))? {
        let is_missing = match chain_of(connection, entry.seq).map_err(failed)? {
            // A damaged frame may contain anything.
            Some(chain) => chain != entry.chain && entry.frame != scan.broken,
            None => true,
        };
        if is_missing {
            missing.push(entry);
        }
    }
    missing.sort_by_key(|entry| entry.seq);
    Ok(missing)
}

/// Returns the first and last entry numbers.
fn range(entries: &[LoggedEntry]) -> Option<(i64, i64)> {
    let numbers: BTreeSet<i64> = entries.iter().map(|entry| entry.seq).collect();
    numbers.first().copied().zip(numbers.last().copied())
}

impl DamagedWal {
    /// Describes the damage, after the vault was opened.
    pub(super) fn describe(&self, vault: &Path, connection: &Connection) -> LogDamage {
        let log =
            self.copy.as_ref().map_or_else(|| sibling_path(&real(vault), "-wal"), |copy| copy.path.clone());
        describe(&self.sight, self.defect, &log, self.copy.as_ref(), connection)
    }
}

pub(super) fn describe(
    sight: &WalSnapshot,
    defect: LogDefect,
    log: &Path,
    copy: Option<&LogCopy>,
    connection: &Connection,
) -> LogDamage {
    // If the entries cannot be read, the damage is still reported.
    let missing = sight
        .scan
        .filter(|_| defect != LogDefect::Foreign)
        .map(|scan| missing_entries(connection, log, &scan));
    let entries = missing.and_then(|missing| range(&missing.ok()?));
    sight.damage(defect, copy.map(|copy| copy.path.clone()), entries)
}

impl WalSnapshot {
    /// Returns the damage to a copied log.
    pub(super) fn defect_of_copy(&self) -> LogDefect {
        match self.scan {
            None => LogDefect::Missing,
            Some(scan) if scan.is_damaged(self.index.as_ref()) => LogDefect::of_scan(&scan),
            Some(_) => LogDefect::Foreign,
        }
    }
}

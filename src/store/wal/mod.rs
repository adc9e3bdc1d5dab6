//! The write-ahead log, looked at before SQLite does.
//!
//! SQLite reads a log up to the first frame that does not verify, takes that for the end, and overwrites or deletes the rest.
//! That is right after a crash, where only a transaction that was not finished is lost. It is wrong where the log was damaged:
//! what stands behind the damage was acknowledged. So before a vault is opened, its log is checked here. One that has lost
//! something is copied aside first, and stays there until a repair has taken what it holds.
//!
//! What tells the two cases apart: the index of the log says how many frames were committed, as long as the machine was not
//! restarted since; and behind the damage there is a frame that ends a transaction, which is the last to be written.

mod copies;
mod format;
mod index;
mod rows;
mod salvage;
mod scan;

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};

use super::check::finding::{Finding, LOG_DAMAGED, Subject};
use super::{Result, Store, StoreError, pool};
use crate::digest::{CaptureHash, CoreHash, Digest};
use copies::{LogCopy, beside};
use index::Index;
use scan::Scan;

pub use salvage::{SalvagedLog, Salvager};

/// How often a log is looked at that others write to meanwhile. They would have to start it again each time.
const LOOKS: u32 = 16;

/// What is wrong with a write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDefect {
    /// Its header does not verify, so that none of it can be read.
    Header,
    /// A frame does not verify, so that neither it nor those behind it can be read.
    Frame {
        /// The number of the frame, from 1.
        number: u64,
    },
    /// It ends before its last committed frame.
    CutOff,
    /// There is none, but there was.
    Missing,
    /// It is the log of another vault.
    Foreign,
}

impl LogDefect {
    /// What is wrong with a log that is damaged.
    fn of_scan(scan: &Scan) -> Self {
        match scan.is_without_header {
            true => Self::Header,
            false if scan.broken > scan.last => Self::CutOff,
            false => Self::Frame { number: scan.broken },
        }
    }
}

/// A write-ahead log that does not have all that was committed, found before SQLite looked at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// What is wrong.
    pub defect: LogDefect,
    /// How many frames the log has or had.
    pub frames: u64,
    /// How many of them cannot be read.
    pub unreadable: u64,
    /// Where the log was copied to; nothing if no file can be made beside the vault, so that the log stays as it is.
    pub copy: Option<PathBuf>,
    /// The first and the last entry of the journal that the unreadable frames have and the vault has not, as far as the
    /// frames tell.
    pub entries: Option<(i64, i64)>,
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { defect, frames, unreadable, copy, entries } = self;
        match defect {
            LogDefect::Header => write!(f, "the header of the write-ahead log is damaged")?,
            LogDefect::Frame { number } => {
                write!(f, "frame {number} of {frames} of the write-ahead log does not verify")?;
            }
            LogDefect::CutOff => write!(f, "the write-ahead log was cut off")?,
            LogDefect::Missing => write!(f, "the write-ahead log is missing")?,
            LogDefect::Foreign => write!(f, "the write-ahead log is that of another vault")?,
        }
        match defect {
            LogDefect::Foreign if *unreadable == 0 => {}
            _ => write!(f, "; {unreadable} of {frames} committed frames cannot be read")?,
        }
        match entries.filter(|_| *defect != LogDefect::Foreign) {
            Some((first, last)) if first == last => {
                write!(f, "; entry {first} of the journal may be missing")?;
            }
            Some((first, last)) => {
                write!(f, "; entries {first} to {last} of the journal may be missing")?;
            }
            None => write!(f, "; which entries of the journal are missing is not known")?,
        }
        match copy {
            Some(copy) => write!(f, "; what there is of the log was kept as {}", copy.display()),
            None => write!(f, "; nothing could be written beside the vault, and the log was left as it is"),
        }
    }
}

/// What a look at a log gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Sound,
    Damaged(LogDefect),
}

/// A log and its index at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sight {
    scan: Option<Scan>,
    index: Option<Index>,
}

impl Sight {
    fn take(vault: &Path) -> io::Result<Option<Self>> {
        let index_path = beside(vault, "-shm");
        let index = Index::read(&index_path)?;
        let scan = Scan::read(&beside(vault, "-wal"), vault)?;
        // Others may have started the log again meanwhile.
        Ok((Index::read(&index_path)? == index).then_some(Self { scan, index }))
    }

    fn of_copy(copy: &LogCopy, vault: &Path) -> io::Result<Self> {
        Ok(Self { scan: copy.scan(vault)?, index: copy.index()? })
    }

    /// The index, if it counts frames that are nowhere but in the log.
    fn counting(&self) -> Option<Index> {
        self.index.filter(|index| index.frames > index.in_file)
    }

    fn verdict(&self, vault: &Path) -> io::Result<Verdict> {
        let Some(scan) = self.scan else {
            return Ok(self.counting().map_or(Verdict::Sound, |_| Verdict::Damaged(LogDefect::Missing)));
        };
        let is_vouched_for = self.index.is_some_and(|index| index.salts == scan.salts);
        if !is_vouched_for && scan.readable > 0 {
            let is_foreign = match is_of_vault(&beside(vault, "-wal"), &scan, vault)? {
                Some(is_own) => !is_own,
                // Then there was another log, and it is not there.
                None => self.counting().is_some(),
            };
            if is_foreign {
                return Ok(Verdict::Damaged(LogDefect::Foreign));
            }
        }
        if !scan.is_damaged(self.index.as_ref()) {
            return Ok(Verdict::Sound);
        }
        Ok(Verdict::Damaged(LogDefect::of_scan(&scan)))
    }

    /// What cannot be read, and what the frames tell of it. `connection` is to the vault.
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

/// A damaged log that was found, before the vault was opened.
pub(super) struct Incident {
    sight: Sight,
    defect: LogDefect,
    copy: Option<LogCopy>,
}

/// Looks at the log of the vault at `path`, which no connection of this process has open, and copies it aside if it does not
/// have all that was committed. Nothing if it has, or if it was copied aside before.
pub(super) fn look(path: &Path) -> Result<Option<Incident>> {
    find(&real(path)).map_err(|source| StoreError::io(path, source))
}

/// The vault itself, if `path` is a link to it: SQLite has the log beside that.
pub(super) fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn find(path: &Path) -> io::Result<Option<Incident>> {
    if !beside(path, "-wal").exists() && !beside(path, "-shm").exists() {
        return Ok(None);
    }
    // SQLite does not look at the log of a vault that is open: who has it open knows how much is in it.
    if index::is_in_use(&beside(path, "-shm"))? {
        return Ok(None);
    }
    let Some((sight, defect)) = steady_verdict(path)? else { return Ok(None) };
    if has_all_in_file(&sight, defect) {
        // Its first frames are older than the file: SQLite must not read them.
        copies::keep(path, true)?.retire(path)?;
        return Ok(None);
    }
    if is_known(&sight, path)? {
        return Ok(None);
    }
    let is_to_be_moved = defect == LogDefect::Foreign || is_older_than_file(&sight);
    let copy = match copies::keep(path, is_to_be_moved) {
        // Then SQLite cannot delete the log either.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            None
        }
        copy => Some(copy?),
    };
    Ok(Some(Incident { sight, defect, copy }))
}

/// What is wrong with a log, if it is the same at two looks: others may be writing to it.
fn steady_verdict(path: &Path) -> io::Result<Option<(Sight, LogDefect)>> {
    let mut before = None;
    for _ in 0..LOOKS {
        let Some(sight) = Sight::take(path)? else { continue };
        let Verdict::Damaged(defect) = sight.verdict(path)? else { return Ok(None) };
        if before == Some((sight, defect)) {
            return Ok(before);
        }
        before = Some((sight, defect));
    }
    Ok(None)
}

/// Whether the readable frames are older than what was copied from the log into the file.
fn is_older_than_file(sight: &Sight) -> bool {
    let Sight { scan: Some(scan), index: Some(index) } = sight else { return false };
    index.salts == scan.salts && index.in_file > 0 && u64::from(index.in_file) >= scan.readable
}

/// Whether the file has all that the log had, so that nothing is lost.
fn has_all_in_file(sight: &Sight, defect: LogDefect) -> bool {
    let is_all = |index: &Index| index.frames > 0 && index.in_file == index.frames;
    let goes_further = |scan: &Scan, index: &Index| scan.last > u64::from(index.frames);
    match sight {
        Sight { scan: Some(scan), index: Some(index) } => {
            defect != LogDefect::Foreign
                && index.salts == scan.salts
                && is_all(index)
                && !goes_further(scan, index)
        }
        _ => false,
    }
}

/// Whether there is a copy with the same damage.
fn is_known(sight: &Sight, path: &Path) -> io::Result<bool> {
    for copy in copies::all(path)? {
        let of_copy = Sight::of_copy(&copy, path)?;
        let is_same = match (&sight.scan, &of_copy.scan) {
            (Some(scan), Some(in_copy)) => scan.is_same_damage(&beside(path, "-wal"), &copy.path, in_copy)?,
            (None, None) => sight.index.map(|index| index.salts) == of_copy.index.map(|index| index.salts),
            _ => false,
        };
        if is_same {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the log at `log` is that of the vault at `vault`: one with pages of the same size, and with the same journal. Nothing
/// if that cannot be told.
fn is_of_vault(log: &Path, scan: &Scan, vault: &Path) -> io::Result<Option<bool>> {
    if scan::page_size_of(vault)?.is_some_and(|size| size != scan.page_size) {
        return Ok(Some(false));
    }
    // The file without its log. One that is empty, or that a checkpoint left half way, tells nothing.
    let Ok(connection) = pool::open_alone(vault) else { return Ok(None) };
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

/// An entry of the journal as a log has it.
struct LoggedEntry {
    /// The frame that it was read from.
    frame: u64,
    seq: i64,
    chain: Digest,
    /// The artifact and the capture, if it is an addition.
    added: Option<(CoreHash, CaptureHash)>,
    /// The text of another entry.
    text: Option<String>,
}

/// Every entry of the journal in a log, in no order, each once.
fn entries(log: &Path, scan: &Scan) -> io::Result<Vec<LoggedEntry>> {
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
        let [Value::Null, Value::Integer(_), _, _, core, capture, _, entry, chain] = columns else {
            return None;
        };
        let added = digest(core).zip(digest(capture));
        let text = match entry {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        let added = added.map(|(core, capture)| (CoreHash(core), CaptureHash(capture)));
        Some(Self { frame, seq: number?, chain: digest(chain)?, added, text })
    }
}

fn chain_of(connection: &Connection, seq: i64) -> rusqlite::Result<Option<Digest>> {
    connection
        .prepare_cached("SELECT chain FROM journal WHERE seq = ?1")?
        .query_row([seq], |row| row.get(0))
        .optional()
}

/// Those entries of the journal in a log that the vault does not have.
fn missing_entries(connection: &Connection, log: &Path, scan: &Scan) -> Result<Vec<LoggedEntry>> {
    let failed = |error| StoreError::from_sqlite(log, error);
    let mut missing = Vec::new();
    for entry in entries(log, scan).map_err(|source| StoreError::io(log, source))? {
        let is_missing = match chain_of(connection, entry.seq).map_err(failed)? {
            // A frame that is damaged may say anything.
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

/// The first and the last one.
fn range(entries: &[LoggedEntry]) -> Option<(i64, i64)> {
    let numbers: BTreeSet<i64> = entries.iter().map(|entry| entry.seq).collect();
    numbers.first().copied().zip(numbers.last().copied())
}

impl Incident {
    /// The report of it, now that the vault is open.
    pub(super) fn describe(&self, vault: &Path, connection: &Connection) -> LogDamage {
        let log = self.copy.as_ref().map_or_else(|| beside(&real(vault), "-wal"), |copy| copy.path.clone());
        describe(&self.sight, self.defect, &log, self.copy.as_ref(), connection)
    }
}

fn describe(
    sight: &Sight,
    defect: LogDefect,
    log: &Path,
    copy: Option<&LogCopy>,
    connection: &Connection,
) -> LogDamage {
    // What cannot be read tells nothing; the damage is reported all the same.
    let missing = sight
        .scan
        .filter(|_| defect != LogDefect::Foreign)
        .map(|scan| missing_entries(connection, log, &scan));
    let entries = missing.and_then(|missing| range(&missing.ok()?));
    sight.damage(defect, copy.map(|copy| copy.path.clone()), entries)
}

impl Store {
    /// What was wrong with the write-ahead log when this store was opened, if anything was.
    #[must_use]
    pub fn log_damage(&self) -> Option<&LogDamage> {
        self.log_damage.as_deref()
    }

    /// Findings about damaged logs that were copied aside, or that could not be copied.
    ///
    /// # Errors
    /// Returns an error if the directory or a copy cannot be read.
    pub fn check_logs(&self) -> Result<Vec<Finding>> {
        let connection = self.connection()?;
        let vault = real(&self.path);
        let failed = |source| StoreError::io(&vault, source);
        let mut findings = Vec::new();
        if let Some(damage) = self.log_damage().filter(|damage| damage.copy.is_none()) {
            findings.push(finding(&beside(&vault, "-wal"), damage));
        }
        for copy in copies::pending(&vault).map_err(failed)? {
            let sight = Sight::of_copy(&copy, &vault).map_err(failed)?;
            let defect = sight.defect_of_copy();
            findings
                .push(finding(&copy.path, &describe(&sight, defect, &copy.path, Some(&copy), &connection)));
        }
        Ok(findings)
    }

    /// The copies of damaged logs beside the vault, those included that a repair is done with.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub fn log_copies(&self) -> Result<Vec<PathBuf>> {
        let copies = copies::all(&real(&self.path)).map_err(|source| StoreError::io(&self.path, source))?;
        Ok(copies.into_iter().map(|copy| copy.path).collect())
    }
}

impl Sight {
    /// What was wrong with a log that was copied.
    fn defect_of_copy(&self) -> LogDefect {
        match self.scan {
            None => LogDefect::Missing,
            Some(scan) if scan.is_damaged(self.index.as_ref()) => LogDefect::of_scan(&scan),
            Some(_) => LogDefect::Foreign,
        }
    }
}

fn finding(path: &Path, damage: &LogDamage) -> Finding {
    // Not the whole path: reports are compared between machines.
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let copy = damage.copy.as_ref().map(|copy| PathBuf::from(copy.file_name().unwrap_or_default()));
    Finding::new(LOG_DAMAGED, Subject::File(name), LogDamage { copy, ..damage.clone() }.to_string())
}

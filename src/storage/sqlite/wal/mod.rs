//! A check of the write-ahead log before SQLite reads it.
//!
//! SQLite reads a log up to the first frame that does not verify, treats that as the end, and discards the rest. That is
//! right after a crash, where only an unfinished transaction is lost. If the end of a transaction follows, the log was
//! damaged, and the rest was acknowledged: the log is then copied before the vault is opened, and the copy is a finding
//! until it is removed.

mod scan;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
use std::path::{Path, PathBuf};

use super::connection::{self, sibling_path};
use super::{Result, StorageError};
use crate::files::{self, ReplacePolicy, StagingDir, sync_directory};
use crate::storage::ErrorKind;
use crate::storage::interface::{LogDamage, LogDefect};
use scan::WalScan;

/// Suffix of the names of copies, after the name of the vault; a number follows it.
const DAMAGED: &str = ".damaged-wal-";

/// Checks the log of the vault at `path`, which has no symbolic links and which no connection of this process has open, and
/// copies the log if it is damaged.
pub(super) fn detect_damage(path: &Path) -> Result<Option<LogDamage>> {
    let log = sibling_path(path, "-wal");
    let failed = |source: io::Error| StorageError::io(&log, source);
    if fs::metadata(&log).map_or(0, |log| log.len()) == 0 {
        return Ok(None);
    }
    files::expect_readable(&log).map_err(|source| {
        let (log, reason) = (log.display(), files::describe(&source));
        let message = format!("{log}: {reason}; it has the last changes of a vault that was not closed");
        StorageError::new(ErrorKind::Io, message).with_source(source)
    })?;
    // SQLite does not read the log of an open vault again: the process that has it open knows what the log contains.
    let is_in_use = || is_in_use(&sibling_path(path, "-shm"));
    if is_in_use() {
        return Ok(None);
    }
    let Some(scan) = damaged(&log, path).map_err(failed)? else { return Ok(None) };
    // Another process may have begun to use the vault during the scan.
    if is_in_use() || damaged(&log, path).map_err(failed)? != Some(scan) {
        return Ok(None);
    }
    let copy = match copy_once(path, &log, scan) {
        // SQLite cannot discard the log in this case either.
        Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => None,
        copy => Some(copy.map_err(failed)?),
    };
    Ok(Some(describe(scan, copy)))
}

/// Returns the damage to the copied logs of the vault at `path`.
pub(super) fn damage_of_copies(path: &Path) -> io::Result<Vec<LogDamage>> {
    let mut found = Vec::new();
    for (_, copy) in copies(path)? {
        let scan = WalScan::read(&copy, path)?.unwrap_or_default();
        found.push(describe(scan, Some(copy)));
    }
    Ok(found)
}

fn describe(scan: WalScan, copy: Option<PathBuf>) -> LogDamage {
    let defect =
        if scan.is_without_header { LogDefect::Header } else { LogDefect::Frame { number: scan.broken } };
    LogDamage { defect, frames: scan.last, unreadable: scan.last - scan.readable, copy }
}

fn damaged(log: &Path, vault: &Path) -> io::Result<Option<WalScan>> {
    Ok(WalScan::read(log, vault)?.filter(|scan| scan.commits_behind > 0))
}

/// Returns the copies of damaged logs of the vault at `path` with their numbers, oldest first.
pub(super) fn copies(path: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let prefix = sibling_path(path, DAMAGED);
    let prefix = prefix.file_name().unwrap_or_default().as_encoded_bytes();
    let mut copies = Vec::new();
    for entry in fs::read_dir(files::parent(path))? {
        let copy = entry?.file_name();
        let number = copy.as_encoded_bytes().strip_prefix(prefix);
        if let Some(number) = number.and_then(|number| std::str::from_utf8(number).ok()?.parse().ok()) {
            copies.push((number, path.with_file_name(copy)));
        }
    }
    copies.sort_unstable();
    Ok(copies)
}

/// Copies the log durably, unless the last copy has the same damage: a read-only vault keeps its log.
fn copy_once(path: &Path, log: &Path, scan: WalScan) -> io::Result<PathBuf> {
    let mut last = 0;
    if let Some((number, copy)) = copies(path)?.pop() {
        if fs::metadata(&copy)?.len() == fs::metadata(log)?.len() && WalScan::read(&copy, path)? == Some(scan)
        {
            return Ok(copy);
        }
        last = number;
    }
    let copy = sibling_path(path, &format!("{DAMAGED}{}", last.saturating_add(1)));
    let staging = StagingDir::new_in(files::parent(path))?;
    let staged = staging.path("copy");
    connection::create_private(&staged)?;
    let mut file = OpenOptions::new().write(true).open(&staged)?;
    io::copy(&mut File::open(log)?, &mut file)?;
    file.sync_all()?;
    files::place(&staging, &staged, &copy, ReplacePolicy::Existing)?;
    sync_directory(files::parent(path))?;
    Ok(copy)
}

/// Returns whether a process may have the vault open: it then holds a lock on the memory that processes share.
#[cfg(unix)]
fn is_in_use(memory: &Path) -> bool {
    use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

    /// Offset of the byte that SQLite locks while a database is open.
    const OPEN: u64 = 128;

    let file = match File::open(memory) {
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
        Ok(file) => file,
    };
    let (typ, offset_type) = (FlockType::WriteLock, FlockOffsetType::Set);
    let lock = Flock { start: OPEN, length: 1, pid: None, typ, offset_type };
    !matches!(fcntl_getlk(&file, &lock), Ok(None))
}

/// The lock cannot be asked for here.
#[cfg(not(unix))]
fn is_in_use(_: &Path) -> bool {
    true
}

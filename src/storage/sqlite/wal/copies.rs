//! Copies of damaged logs beside the vault, each with the index that shows what the log should have contained.
//!
//! A copy remains until a repair has recovered its content. It is then renamed and can be deleted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::index::WalIndex;
use super::scan::WalScan;
use crate::files::{self, ReplacePolicy, StagingDir, sync_directory};
use crate::storage::sqlite::connection;

/// Suffix of the names of copies, after the name of the vault; a number follows it.
const DAMAGED: &str = ".damaged-wal-";

/// Suffix of the names of copies that a repair has processed.
const SALVAGED: &str = ".salvaged-wal-";

/// Returns `path` with `ending` appended to its file name.
pub(in crate::storage::sqlite) fn sibling_path(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// A copy of a damaged log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage::sqlite) struct LogCopy {
    pub(in crate::storage::sqlite) path: PathBuf,
    number: u32,
}

impl LogCopy {
    /// Returns the path of the index copied with the log.
    pub(in crate::storage::sqlite) fn index_path(&self) -> PathBuf {
        sibling_path(&self.path, "-shm")
    }

    /// Scans the copy. Returns `None` if the log was missing.
    pub(in crate::storage::sqlite) fn scan(&self, vault: &Path) -> io::Result<Option<WalScan>> {
        WalScan::read(&self.path, vault)
    }

    pub(in crate::storage::sqlite) fn index(&self) -> io::Result<Option<WalIndex>> {
        WalIndex::read_copy(&self.index_path())
    }

    /// Renames the copy to mark it as no longer needed.
    pub(in crate::storage::sqlite) fn retire(&self, vault: &Path) -> io::Result<PathBuf> {
        let to = sibling_path(vault, &format!("{SALVAGED}{}", self.number));
        let index = self.index_path();
        if index.exists() {
            fs::rename(&index, sibling_path(&to, "-shm"))?;
        }
        fs::rename(&self.path, &to)?;
        sync_directory(files::parent(vault))?;
        Ok(to)
    }
}

/// Returns the copies of logs of `vault` that no repair has processed, oldest first.
pub(in crate::storage::sqlite) fn pending(vault: &Path) -> io::Result<Vec<LogCopy>> {
    named(vault, DAMAGED)
}

/// Returns all copies, oldest first.
pub(in crate::storage::sqlite) fn all(vault: &Path) -> io::Result<Vec<LogCopy>> {
    let mut all = named(vault, DAMAGED)?;
    all.extend(named(vault, SALVAGED)?);
    sort(&mut all);
    Ok(all)
}

fn named(vault: &Path, infix: &str) -> io::Result<Vec<LogCopy>> {
    let Some(name) = vault.file_name() else { return Ok(Vec::new()) };
    let mut prefix = name.to_owned();
    prefix.push(infix);
    let mut copies = Vec::new();
    for entry in fs::read_dir(files::parent(vault))? {
        let entry = entry?;
        let name = entry.file_name();
        let rest = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        let number = rest.and_then(|rest| std::str::from_utf8(rest).ok()?.parse().ok());
        if let Some(number) = number {
            copies.push(LogCopy { path: vault.with_file_name(&name), number });
        }
    }
    sort(&mut copies);
    Ok(copies)
}

fn sort(copies: &mut [LogCopy]) {
    copies.sort_unstable_by_key(|copy| copy.number);
}

/// Copies the log of `vault` and its index, and syncs the copy to disk. If `moves`, the log is moved instead, so that
/// it is no longer in its place.
pub(in crate::storage::sqlite) fn copy_or_move(vault: &Path, moves: bool) -> io::Result<LogCopy> {
    let number = all(vault)?.last().map_or(1, |last| last.number.saturating_add(1));
    let path = sibling_path(vault, &format!("{DAMAGED}{number}"));
    let copy = LogCopy { path, number };
    // Copies the index first, so that a copy of a log is never without its index. An index that is not trusted now is
    // not copied, because it would be trusted later.
    let index = sibling_path(vault, "-shm");
    if WalIndex::read(&index)?.is_some() {
        copy_file(&index, &copy.index_path())?;
    }
    let log = sibling_path(vault, "-wal");
    match moves.then(|| fs::rename(&log, &copy.path)) {
        Some(Err(error)) if error.kind() == ErrorKind::NotFound => {
            write(&mut io::empty(), &copy.path)?;
        }
        Some(outcome) => outcome?,
        None => {
            if !copy_file(&log, &copy.path)? {
                // The log is missing; an empty copy records that.
                write(&mut io::empty(), &copy.path)?;
            }
        }
    }
    sync_directory(files::parent(vault))?;
    Ok(copy)
}

/// Copies a file durably; false if it does not exist.
fn copy_file(from: &Path, to: &Path) -> io::Result<bool> {
    match File::open(from) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        source => write(&mut source?, to).map(|()| true),
    }
}

/// Writes all bytes of `source` to a new file durably.
fn write(source: &mut impl Read, to: &Path) -> io::Result<()> {
    let staging = StagingDir::new_in(files::parent(to))?;
    let staged = staging.path("copy");
    connection::create_private(&staged)?;
    let mut file = OpenOptions::new().write(true).open(&staged)?;
    io::copy(source, &mut file)?;
    file.sync_all()?;
    files::place(&staging, &staged, to, ReplacePolicy::Existing)
}

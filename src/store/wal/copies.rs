//! Copies of damaged logs beside the vault, with the index that says what the log should have had.
//!
//! A copy is there until a repair has taken what it holds; then it has another name, and can be deleted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::index::Index;
use super::scan::Scan;
use crate::files::{self, Replace, StagingDir, sync_directory};
use crate::store::pool;

/// How the names of copies go on after that of the vault; a number comes after it.
const DAMAGED: &str = ".damaged-wal-";

/// The same once a repair is done with one.
const SALVAGED: &str = ".salvaged-wal-";

/// The file `path` with `ending` behind its name.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// A copy of a damaged log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogCopy {
    pub(super) path: PathBuf,
    number: u32,
}

impl LogCopy {
    /// The index that was there when the copy was made.
    pub(super) fn index_path(&self) -> PathBuf {
        beside(&self.path, "-shm")
    }

    /// What the copy has; nothing if the log was not there.
    pub(super) fn scan(&self, vault: &Path) -> io::Result<Option<Scan>> {
        Scan::read(&self.path, vault)
    }

    pub(super) fn index(&self) -> io::Result<Option<Index>> {
        Index::read_copy(&self.index_path())
    }

    /// Gives the copy the name of one that is not needed any more.
    pub(super) fn retire(&self, vault: &Path) -> io::Result<PathBuf> {
        let to = beside(vault, &format!("{SALVAGED}{}", self.number));
        let index = self.index_path();
        if index.exists() {
            fs::rename(&index, beside(&to, "-shm"))?;
        }
        fs::rename(&self.path, &to)?;
        sync_directory(files::parent(vault))?;
        Ok(to)
    }
}

/// The copies of logs of `vault` that no repair has dealt with, oldest first.
pub(super) fn pending(vault: &Path) -> io::Result<Vec<LogCopy>> {
    named(vault, DAMAGED)
}

/// All copies, oldest first.
pub(super) fn all(vault: &Path) -> io::Result<Vec<LogCopy>> {
    let mut all = named(vault, DAMAGED)?;
    all.extend(named(vault, SALVAGED)?);
    all.sort_by_key(|copy| copy.number);
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
    copies.sort_by_key(|copy| copy.number);
    Ok(copies)
}

/// Copies the log of `vault` and its index, and makes sure that the copy outlives a power loss; or moves the log instead, so
/// that it is not at its place any more.
pub(super) fn keep(vault: &Path, moves: bool) -> io::Result<LogCopy> {
    let number = all(vault)?.last().map_or(1, |last| last.number.saturating_add(1));
    let path = beside(vault, &format!("{DAMAGED}{number}"));
    let copy = LogCopy { path, number };
    // The index comes first: where the copy of the log is, both are. One that is not believed now would be later.
    let index = beside(vault, "-shm");
    if Index::read(&index)?.is_some() {
        copy_file(&index, &copy.index_path())?;
    }
    let log = beside(vault, "-wal");
    match moves.then(|| fs::rename(&log, &copy.path)) {
        Some(Err(error)) if error.kind() == ErrorKind::NotFound => {
            write(&mut io::empty(), &copy.path)?;
        }
        Some(outcome) => outcome?,
        None => {
            if !copy_file(&log, &copy.path)? {
                // The log is missing; the empty copy says so.
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
    pool::create_private(&staged)?;
    let mut file = OpenOptions::new().write(true).open(&staged)?;
    io::copy(source, &mut file)?;
    file.sync_all()?;
    files::place(&staging, &staged, to, Replace::Existing)
}

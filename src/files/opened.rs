//! The vaults that this process has open, whose files it must not open in another way.
//!
//! SQLite keeps processes apart with locks that belong to a process and a file, and the system drops all of them as soon as
//! the process closes the file, however it was opened. If a process that uses a vault reads the vault's file like any other,
//! as when it looks for artifacts in the directory that it is in, the next process takes the vault for unused, removes its
//! log, and what is written to that log afterwards is lost.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::open_vaults;

/// Opens a file to read it, unless it is one of those of a vault that this process has open.
///
/// # Errors
/// Returns an error if the file cannot be opened, or must not be.
pub fn open(path: &Path) -> io::Result<File> {
    if open_vaults::has_open(path) {
        return Err(in_use());
    }
    File::open(path)
}

/// The error of who would open a file of a vault that this process has open.
pub(crate) fn in_use() -> io::Error {
    io::Error::other(InUse)
}

/// Whether an error is that of [`in_use`].
pub(crate) fn is_in_use(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<InUse>)
}

#[derive(Debug, thiserror::Error)]
#[error("this is the vault itself, or one of its files (-wal, -shm, -journal)")]
struct InUse;

//! Opening of files, except those of vaults that this process has open.
//!
//! SQLite coordinates processes with locks that belong to a process and a file, and the system releases all of them
//! when the process closes the file, whichever handle it used. If a process that uses a vault also reads the vault's
//! file in another way, for example when it searches the containing directory for artifacts, the next process takes the
//! vault for unused and removes its log, and later writes to that log are lost.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::files::open_vaults;

/// Opens a file for reading, unless it belongs to a vault that this process has open.
///
/// # Errors
/// Returns an error if the file cannot be opened, or belongs to such a vault.
pub fn open(path: &Path) -> io::Result<File> {
    if open_vaults::has_open(path) {
        return Err(in_use());
    }
    File::open(path)
}

/// Returns the error for opening a file of a vault that this process has open.
pub(crate) fn in_use() -> io::Error {
    io::Error::other(VaultFileInUse)
}

/// Returns whether an error is that of [`in_use`].
pub(crate) fn is_in_use(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<VaultFileInUse>)
}

#[derive(Debug, thiserror::Error)]
#[error("this is the vault itself, or one of its files")]
struct VaultFileInUse;

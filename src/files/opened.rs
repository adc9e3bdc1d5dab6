//! The vaults that this process has open, whose files it must not open in another way.
//!
//! SQLite keeps processes apart with locks that belong to a process and a file, and the system drops all of them as soon as
//! the process closes the file, however it was opened. If a process that uses a vault reads the vault's file like any other,
//! as when it looks for artifacts in the directory that it is in, the next process takes the vault for unused, removes its
//! log, and what is written to that log afterwards is lost.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::protected::files_of;

/// Their paths, with links resolved where there was a file.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn open_vaults() -> MutexGuard<'static, Vec<PathBuf>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says that a vault is open as long as this exists.
pub(crate) struct OpenVault(PathBuf);

impl OpenVault {
    /// Of the vault that is, or will be, at `path`.
    pub(crate) fn at(path: &Path) -> Self {
        let path = fs::canonicalize(path).or_else(|_| std::path::absolute(path));
        let path = path.unwrap_or_default();
        open_vaults().push(path.clone());
        Self(path)
    }
}

impl Drop for OpenVault {
    fn drop(&mut self) {
        let mut open = open_vaults();
        if let Some(at) = open.iter().position(|path| *path == self.0) {
            open.swap_remove(at);
        }
    }
}

/// Whether a file is one of those of a vault that this process has open, by its device and its number there.
#[cfg(unix)]
pub(crate) fn is_of_open_vault(device: u64, number: u64) -> bool {
    use std::os::unix::fs::MetadataExt;
    let is_it =
        |path: PathBuf| fs::metadata(path).is_ok_and(|file| file.dev() == device && file.ino() == number);
    open_vaults().iter().any(|vault| files_of(vault).any(is_it))
}

/// Opens a file to read it, unless it is one of those of a vault that this process has open.
///
/// # Errors
/// Returns an error if the file cannot be opened, or must not be.
pub fn open(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let file = fs::metadata(path)?;
        if is_of_open_vault(file.dev(), file.ino()) {
            return Err(in_use());
        }
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

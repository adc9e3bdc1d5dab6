//! Files that the library writes beside the vault: whole or not at all, on the disk when the call returns, and never over
//! a file of the vault.
//!
//! Everything is made in a staging directory beside its destination, synced, renamed, and the directory that it is in is
//! synced as well: after a power loss the name has what it had before, or all of what was written. A process that is
//! killed leaves its staging directory behind; the next file that is written into the same directory removes it.

mod directory;
mod opened;
mod protected;
mod staged;
mod staging;

use std::io;
use std::path::{Path, PathBuf};

pub use directory::{create_dir_all, sync_directory};
pub(crate) use directory::{expect_readable, parent, sync_ancestors};
pub use opened::open;
pub(crate) use opened::{in_use, is_in_use};
pub use protected::is_of_vault;
pub use staged::{StagedFile, write, write_directory};
pub(crate) use staged::{check_target, staging_for};
pub(crate) use staging::{Replace, StagingDir, place};

/// Who may do what with a file that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// Its owner may read and write it (0600; a directory: 0700), unless the umask is stricter.
    #[default]
    Owner,
    /// Everybody whom the umask allows (0666).
    Umask,
    /// These bits, whatever the umask is. A directory can be entered by those who may read.
    Exactly(u32),
}

/// How a file is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions<'v> {
    /// Whether a file that is there already is replaced. A link is replaced, not followed.
    pub replace: bool,
    /// The permissions of the new file; those of the one that it replaces do not matter.
    pub permissions: Permissions,
    /// The vault whose own files must not be overwritten.
    pub vault: Option<&'v Path>,
}

/// Why a file was not written. Its name has what it had before.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// There is a file already, and it must not be replaced.
    #[error("cannot write {}: it already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be written there, for a reason other than a system error.
    #[error("cannot write {}: {reason}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The system error.
    #[error("cannot write {}: {}", path.display(), describe(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl WriteError {
    fn refused(path: &Path, reason: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), reason: reason.into() }
    }

    fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path: path.clone(), source }
    }
}

/// The message of a system error. A full disk has the same message everywhere.
#[must_use]
pub fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "the disk is full: the quota is used up".to_owned(),
        io::ErrorKind::FileTooLarge => "the disk is full, or files must not become so large".to_owned(),
        _ => error.to_string(),
    }
}

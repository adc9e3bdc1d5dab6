//! Files that the library writes beside the vault: completely or not at all, synced to disk when the call returns, and
//! never over a file of the vault.
//!
//! Everything is written in a staging directory beside its destination, synced and renamed, and then the containing
//! directory is synced: after a power loss the name has its old content, or the complete new content. A killed process
//! leaves its staging directory behind; the next write into the same directory removes it, and recovers the files that an
//! interrupted move has renamed.

pub(crate) mod open_vaults;
pub(crate) mod set_aside;
mod staged;
mod staging;

use std::io;
use std::path::{Path, PathBuf};

pub use open_vaults::{VaultIdentity, open};
pub(crate) use open_vaults::{in_use, is_in_use};
pub use staged::{StagedDirectory, StagedFile, is_of_vault, write, write_directory};
pub(crate) use staged::{check_target, staging_for};
pub(crate) use staging::{ReplacePolicy, StagingDir, expect_readable, parent, place, sync_ancestors};
pub use staging::{create_dir_all, sync_directory};

/// The permissions of a written file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// Readable and writable by its owner only (0600; a directory: 0700), further restricted by the umask.
    #[default]
    Owner,
    /// Readable and writable by everyone, as the umask permits (0666).
    Umask,
    /// These bits, regardless of the umask. On a directory, read permission also grants permission to enter it.
    Exactly(u32),
}

/// Options for writing a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions<'v> {
    /// Whether an existing file is replaced. A link is replaced, not followed.
    pub replace: bool,
    /// The permissions of the new file; those of a replaced file are ignored.
    pub permissions: Permissions,
    /// The vault whose own files must not be overwritten.
    pub vault: Option<&'v Path>,
}

/// The reason that a file was not written. Existing content at its path is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum FileWriteError {
    /// The file exists and must not be replaced.
    #[error("cannot write {}: it already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written at this path, for the given reason.
    #[error("cannot write {}: {reason}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A system error.
    #[error("cannot write {}: {}", path.display(), describe(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl FileWriteError {
    fn refused(path: &Path, reason: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), reason: reason.into() }
    }

    /// Returns what makes a system error about `path` one of these.
    pub fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path: path.clone(), source }
    }
}

/// Returns the message for a system error. A full disk has the same message on every platform.
#[must_use]
pub fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "the disk is full: the quota is exceeded".to_owned(),
        io::ErrorKind::FileTooLarge => "the disk is full, or the file size limit is exceeded".to_owned(),
        _ => error.to_string(),
    }
}

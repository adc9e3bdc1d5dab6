use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::types::Type;
use rusqlite::{ErrorCode, ffi};

use super::pool;
use super::write_lock::OTHERS_WROTE;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::files;

/// An error of a store operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The vault does not exist.
    #[error("there is no vault at {}", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The file is not a vault.
    #[error("{} is not a vault: {reason}", path.display())]
    NotAVault {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The path of the vault is empty.
    #[error("the path of the vault is empty")]
    EmptyPath,
    /// The file has several names. SQLite names the log after the name under which a vault is opened, so changes
    /// written under one name are not seen, and may be overwritten, under another.
    #[error(
        "{} has {links} hard links, but a vault must have only one: data written under one name would be lost under \
         another",
        path.display()
    )]
    HardLinks {
        /// One of the file's names.
        path: PathBuf,
        /// How many there are.
        links: u64,
    },
    /// The vault was written by a newer program.
    #[error(
        "{} has schema version {found}, but this version of runvault supports versions up to {supported}; \
         use a newer runvault",
        path.display()
    )]
    Newer {
        /// The vault.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version that this program supports.
        supported: i64,
    },
    /// The vault was written by an older program and must be upgraded before use.
    #[error("{} was written by an older version of runvault ({found}) and must be upgraded first", path.display())]
    Older {
        /// The vault.
        path: PathBuf,
        /// The outdated version.
        found: String,
    },
    /// A vault cannot be created because the file exists.
    #[error("{} already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// No space is left on the vault's file system.
    #[error("the disk is full: no space left for {}; this step was not stored, free some space and retry", path.display())]
    Full {
        /// The vault.
        path: PathBuf,
    },
    /// The vault or its directory is read-only.
    #[error("{} is read-only: the file, its directory or its file system is not writable", path.display())]
    ReadOnly {
        /// The vault.
        path: PathBuf,
    },
    /// Other processes were writing, so that this process could not write or read within its timeout.
    #[error("{} is in use: {reason}", path.display())]
    Busy {
        /// The vault.
        path: PathBuf,
        /// What the other processes did during the wait.
        reason: BusyReason,
    },
    /// Stored bytes are damaged.
    #[error("the bytes stored for {core} (capture {capture}) are damaged: {defect}")]
    Damaged {
        /// The artifact.
        core: CoreHash,
        /// The capture.
        capture: CaptureHash,
        /// The defect.
        defect: Box<PayloadDefect>,
    },
    /// An artifact no longer exists.
    #[error("{core} was removed in the meantime")]
    Gone {
        /// The artifact.
        core: CoreHash,
    },
    /// A tag, note or manual link is not valid. Nothing was changed.
    #[error("{0}")]
    NotAnAnnotation(String),
    /// An artifact is pinned and cannot be removed.
    #[error("{core} is pinned")]
    Pinned {
        /// The artifact.
        core: CoreHash,
    },
    /// A payload that has to be re-encoded cannot be read. Nothing was changed.
    #[error("{}: {defect}; it cannot be re-encoded, and nothing was changed", path.display())]
    Payload {
        /// The vault.
        path: PathBuf,
        /// The defect.
        defect: Box<PayloadDefect>,
    },
    /// The file is damaged.
    #[error("{} is damaged ({source})", path.display())]
    Corrupt {
        /// The vault.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
    /// The index derived from the artifacts is damaged; the artifacts may be intact.
    #[error("the index of {} is damaged: {message}", path.display())]
    Index {
        /// The vault.
        path: PathBuf,
        /// The defect.
        message: String,
    },
    /// A database error.
    #[error("{}: {source}", path.display())]
    Database {
        /// The vault.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
    /// The schema could not be migrated.
    #[error("{}: {message}", path.display())]
    Schema {
        /// The vault.
        path: PathBuf,
        /// The cause.
        message: String,
    },
    /// An I/O error.
    #[error("{}: {}", path.display(), files::describe(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// What other processes did during the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyReason {
    /// A process held the lock, and nothing was written.
    Held,
    /// Other processes wrote.
    Contended,
}

impl fmt::Display for BusyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Held => {
                "a process held its write lock during the whole wait but wrote nothing; it may be suspended, or running \
                 a long transaction"
            }
            Self::Contended => {
                "other processes wrote to it during the whole wait; try again when fewer are writing"
            }
        })
    }
}

/// A defect of stored bytes.
#[derive(Debug, thiserror::Error)]
pub enum PayloadDefect {
    /// They have a different hash.
    #[error("blob {blob} now has the hash {actual}")]
    Hash {
        /// The expected hash.
        blob: BlobHash,
        /// The actual hash.
        actual: BlobHash,
    },
    /// They cannot be decompressed.
    #[error("blob {blob} cannot be decompressed: {message}")]
    Compression {
        /// The expected hash.
        blob: BlobHash,
        /// The cause.
        message: String,
    },
    /// They are missing.
    #[error("blob {blob} has no stored bytes")]
    Missing {
        /// The expected hash.
        blob: BlobHash,
    },
    /// They belong to another artifact or capture.
    #[error("the stored bytes belong to another artifact or capture")]
    NotItsOwn,
    /// The capture has no members.
    #[error("the capture has no members")]
    NoMembers,
}

impl StoreError {
    /// Returns whether retrying may succeed without a change to the vault: when another process has finished, or space
    /// has become available.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Full { .. } | Self::ReadOnly { .. } | Self::Busy { .. } | Self::Io { .. } => true,
            // The system also reports this for quotas and disconnected disks.
            Self::Database { source, .. } => source.sqlite_error_code() == Some(ErrorCode::SystemIoFailure),
            _ => false,
        }
    }

    /// Returns the error for a table whose rows are not in the order of their row ids, so that lookups miss some.
    pub(crate) fn out_of_order(path: &Path, table: &str) -> Self {
        Self::from_sqlite(path, out_of_order(table))
    }

    /// Returns the same error for another path: the final name of a file instead of its temporary name.
    pub(super) fn about(self, path: &Path) -> Self {
        let path = path.to_owned();
        match self {
            Self::Full { .. } => Self::Full { path },
            Self::ReadOnly { .. } => Self::ReadOnly { path },
            Self::Database { source, .. } => Self::Database { path, source },
            Self::Io { source, .. } => Self::Io { path, source },
            other => other,
        }
    }

    /// Creates an error from an I/O error of the file at `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            _ => Self::Io { path, source },
        }
    }

    pub(super) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        if let Some(message) = index_damage_in(&source) {
            return Self::Index { path, message: message.to_owned() };
        }
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseCorrupt) if is_of_search_index(&source) => {
                Self::Index { path, message: "the search index is malformed".to_owned() }
            }
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, source },
            // The file itself is readable: its log cannot be created.
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::SystemIoFailure)
                if pool::is_without_room(&path) =>
            {
                Self::Full { path }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy) => {
                let others_wrote = matches!(
                    &source,
                    rusqlite::Error::SqliteFailure(_, Some(message)) if message == OTHERS_WROTE
                );
                Self::Busy {
                    path,
                    reason: if others_wrote { BusyReason::Contended } else { BusyReason::Held },
                }
            }
            Some(ErrorCode::NotADatabase) => {
                Self::NotAVault { path, reason: "it is not an SQLite database".to_owned() }
            }
            _ => Self::Database { path, source },
        }
    }
}

/// Whether the damaged table is a virtual table, which only the search index is.
fn is_of_search_index(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_CORRUPT_VTAB)
}

/// A description of index damage, carried inside a database error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct IndexDamage(String);

/// Returns the error for index content that cannot have been written by this program.
pub(super) fn index_damage(message: impl Into<String>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, Box::new(IndexDamage(message.into())))
}

/// Returns the error for a table whose rows are not in the order of their row ids, so that lookups miss some.
pub(super) fn out_of_order(table: &str) -> rusqlite::Error {
    let message = format!("the rows of {table} are not in the order of their numbers");
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(message))
}

/// Returns the message of an error made by [`index_damage`].
pub(super) fn index_damage_in(error: &rusqlite::Error) -> Option<&str> {
    let rusqlite::Error::FromSqlConversionFailure(_, _, cause) = error else { return None };
    cause.downcast_ref().map(|IndexDamage(message)| message.as_str())
}

/// An error that prevents reading stored bytes.
pub(super) enum ReadFailure {
    Database(rusqlite::Error),
    Defect(PayloadDefect),
}

impl From<rusqlite::Error> for ReadFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<PayloadDefect> for ReadFailure {
    fn from(defect: PayloadDefect) -> Self {
        Self::Defect(defect)
    }
}

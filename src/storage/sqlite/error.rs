//! Errors of SQLite as storage errors.

use std::fmt;
use std::path::Path;

use rusqlite::types::Type;
use rusqlite::{ErrorCode, ffi};

use super::connection;
use super::write_lock::OTHERS_WROTE;
pub(super) use crate::storage::error::{ErrorKind, PayloadDefect, StorageError};
use crate::storage::recorded;

/// The reason why a lock was not obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BusyReason {
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

impl StorageError {
    /// Creates an error about the vault at `path`, with a message that follows the path.
    pub(super) fn about(kind: ErrorKind, path: &Path, message: impl fmt::Display) -> Self {
        Self::new(kind, format!("{} {message}", path.display()))
    }

    /// Creates the error for a vault that does not exist.
    pub(super) fn missing(path: &Path) -> Self {
        Self::new(ErrorKind::Missing, format!("there is no vault at {}", path.display()))
    }

    /// Creates the error for a file that exists already.
    pub(super) fn exists(path: &Path) -> Self {
        Self::about(ErrorKind::Exists, path, "already exists")
    }

    /// Creates the error for a file that is not a vault.
    pub(super) fn not_a_vault(path: &Path, reason: impl fmt::Display) -> Self {
        Self::about(ErrorKind::NotAVault, path, format_args!("is not a vault: {reason}"))
    }

    /// Creates the error for a file that has several names. SQLite names the log after the name under which a vault is
    /// opened, so changes written under one name are not seen, and may be overwritten, under another.
    pub(super) fn hard_links(path: &Path, links: u64) -> Self {
        let message = format_args!(
            "has {links} hard links, but a vault must have only one: data written under one name would be lost under \
             another"
        );
        Self::about(ErrorKind::HardLinks, path, message)
    }

    /// Creates the error for a file that is mounted under a name of its own.
    pub(super) fn mounted(path: &Path) -> Self {
        let message = "is a mount point: mount the directory that contains the vault instead, because the vault's log must be \
                       beside it under every name";
        Self::about(ErrorKind::MountPoint, path, message)
    }

    /// Creates the error for a vault of a newer program.
    pub(super) fn newer(path: &Path, found: i64, supported: i64) -> Self {
        let message = format_args!(
            "has schema version {found}, but this version of runvault supports versions up to {supported}; \
             use a newer runvault"
        );
        Self::about(ErrorKind::Newer, path, message)
    }

    /// Creates the error for a vault of a build before the first release.
    pub(super) fn older(path: &Path, version: i64) -> Self {
        Self::about(ErrorKind::Older, path, Self::earlier_build(version))
    }

    /// Creates the error for a vault that others use.
    pub(super) fn busy(path: &Path, reason: BusyReason) -> Self {
        Self::about(ErrorKind::Busy, path, format_args!("is in use: {reason}"))
    }

    /// Creates the error for a payload that has to be re-encoded and cannot be read.
    pub(super) fn payload(path: &Path, defect: PayloadDefect) -> Self {
        let message =
            format!("{}: {defect}; it cannot be re-encoded, and nothing was changed", path.display());
        Self::new(ErrorKind::Damaged, message).with_source(defect)
    }

    fn index(path: &Path, message: &str) -> Self {
        let text = format!("the index of {} is damaged: {message}", path.display());
        Self::new(ErrorKind::IndexDamaged, text).with_source(message)
    }

    /// Creates the error for a file that is not the one that was opened.
    pub(super) fn replaced(path: &Path) -> Self {
        let message = "was removed or replaced, overwritten with another vault or given a second name while it was in use, so \
                       it is not used any more";
        Self::about(ErrorKind::Replaced, path, message)
    }

    pub(super) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        Self::from_sqlite_named(path, path, source)
    }

    /// Creates an error of the file at `at` that reports it as `path`: its final name instead of its temporary name.
    pub(super) fn from_sqlite_named(at: &Path, path: &Path, source: rusqlite::Error) -> Self {
        let source = match source {
            rusqlite::Error::UserFunctionError(cause) => match cause.downcast::<Self>() {
                Ok(refused) => return *refused,
                Err(cause) => rusqlite::Error::UserFunctionError(cause),
            },
            source => source,
        };
        if let Some(message) = index_damage_in(&source) {
            return Self::index(path, message);
        }
        if is_incomplete(&source) {
            return recorded::incomplete(path.display());
        }
        if is_refused_commit(&source) {
            return Self::replaced(path);
        }
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::full(path),
            Some(ErrorCode::DatabaseCorrupt) if is_of_search_index(&source) => {
                Self::index(path, "the search index is malformed")
            }
            Some(ErrorCode::DatabaseCorrupt) => {
                Self::about(ErrorKind::VaultDamaged, path, format_args!("is damaged ({source})"))
                    .with_source(source)
            }
            // The file itself is readable: its log cannot be created.
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::SystemIoFailure)
                if connection::is_without_room(at) =>
            {
                Self::full(path)
            }
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
                let message = "is read-only: the file, its directory or its file system is not writable";
                Self::about(ErrorKind::ReadOnly, path, message)
            }
            Some(ErrorCode::DatabaseBusy) => {
                let others_wrote = matches!(
                    &source,
                    rusqlite::Error::SqliteFailure(_, Some(message)) if message == OTHERS_WROTE
                );
                Self::busy(path, if others_wrote { BusyReason::Contended } else { BusyReason::Held })
            }
            Some(ErrorCode::NotADatabase) => Self::not_a_vault(path, "it is not an SQLite database"),
            // A value that the schema does not allow there.
            None if is_value(&source) => {
                Self::about(ErrorKind::VaultDamaged, path, format_args!("is damaged ({source})"))
                    .with_source(source)
            }
            code => {
                let kind = match code {
                    Some(ErrorCode::SystemIoFailure) => ErrorKind::Device,
                    _ => ErrorKind::Database,
                };
                Self::new(kind, format!("{}: {source}", path.display())).with_source(source)
            }
        }
    }
}

/// Whether a stored value has another type than its column, or is not valid there.
fn is_value(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
    )
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

/// Returns the database error that carries a storage error.
pub(super) fn refused(error: StorageError) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(Box::new(error))
}

/// The error for writing to an incomplete copy, carried inside a database error.
#[derive(Debug, thiserror::Error)]
#[error("the vault is an incomplete copy")]
struct IncompleteCopyError;

/// Returns the error for writing to a vault that is an incomplete copy.
pub(super) fn incomplete() -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(Box::new(IncompleteCopyError))
}

/// Returns whether a transaction was not committed because another file took the place of the vault's.
pub(super) fn is_refused_commit(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_CONSTRAINT_COMMITHOOK)
}

fn is_incomplete(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::UserFunctionError(cause) if cause.is::<IncompleteCopyError>())
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

/// Whether an error indicates damage of the vault rather than a failure of the system.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    !matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::OutOfMemory
                | ErrorCode::SystemIoFailure
                | ErrorCode::DiskFull
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::OperationInterrupted
        )
    )
}

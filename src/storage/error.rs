//! The error of every engine.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::{io, result};

use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::files;

/// The result of a storage operation.
pub type Result<T> = result::Result<T, StorageError>;

/// An error of a storage operation: what a caller can act on, and a message for people.
#[derive(Debug)]
pub struct StorageError {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kind of a storage error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The vault does not exist.
    Missing,
    /// The database that the address names does not exist.
    NoDatabase,
    /// A vault cannot be created because there is something.
    Exists,
    /// The file or database is not a vault.
    NotAVault,
    /// The file of the vault has several names, so that changes could be lost.
    HardLinks,
    /// The file of the vault is a mount point, so that its log would not be beside it.
    MountPoint,
    /// The file of the vault is not the one that was opened any more. Nothing was changed.
    Replaced,
    /// The vault was written by a newer program.
    Newer,
    /// The vault was written by a build before the first release, and this program cannot read it.
    Older,
    /// The vault is a copy of another one that was not completed.
    Incomplete,
    /// No space is left.
    Full,
    /// The vault cannot be written.
    ReadOnly,
    /// Others were using the vault, so that this operation could not run within its timeout.
    Busy,
    /// The stored bytes of an artifact are damaged.
    Damaged,
    /// The vault itself is damaged.
    VaultDamaged,
    /// The index derived from the artifacts is damaged; the artifacts may be intact.
    IndexDamaged,
    /// An artifact no longer exists.
    Gone,
    /// A value is not valid: a tag, a note, a manual link or an address. Nothing was changed.
    Invalid,
    /// An artifact is pinned and cannot be removed.
    Pinned,
    /// The engine cannot do this.
    Unsupported,
    /// A file cannot be read or written.
    Io,
    /// The device of the vault cannot be read or written. Systems also report this for quotas and disconnected disks.
    Device,
    /// The server of the vault cannot be reached, or refuses the connection.
    Connection,
    /// The database reported another error.
    Database,
}

impl StorageError {
    /// Creates an error with a message.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Returns the same error with its cause.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// Returns the message for a vault of a build before the first release, without the vault's name.
    pub(super) fn earlier_build(version: i64) -> String {
        format!(
            "was written by a build of runvault before the first release (schema version {version}), which this program cannot \
             read"
        )
    }

    /// Creates the error for an artifact that no longer exists.
    #[must_use]
    pub fn gone(core: CoreHash) -> Self {
        Self::new(ErrorKind::Gone, format!("{core} was removed in the meantime"))
    }

    /// Creates the error for an artifact that is pinned and cannot be removed.
    #[must_use]
    pub fn pinned(core: CoreHash) -> Self {
        Self::new(ErrorKind::Pinned, format!("{core} is pinned"))
    }

    /// Creates the error for a value that is not valid.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Creates the error for an operation that the engine does not support.
    #[must_use]
    pub fn unsupported(operation: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Unsupported, format!("this storage engine does not support {operation}"))
    }

    /// Creates the error for damaged bytes of a capture. Its source is the defect.
    #[must_use]
    pub fn damaged(core: CoreHash, capture: CaptureHash, defect: PayloadDefect) -> Self {
        let message = format!("the bytes stored for {core} (capture {capture}) are damaged: {defect}");
        Self::new(ErrorKind::Damaged, message).with_source(defect)
    }

    /// Creates the error for a file with a page that is used twice; `detail` names the page.
    pub(crate) fn shared_page(detail: &str) -> Self {
        let message = format!("a page of the vault's file is used twice, and nothing was changed: {detail}");
        Self::new(ErrorKind::VaultDamaged, message)
    }

    /// Creates an error from an I/O error of the file at `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::full(path),
            _ => {
                let message = format!("{}: {}", path.display(), files::describe(&source));
                Self::new(ErrorKind::Io, message).with_source(source)
            }
        }
    }

    /// Creates the error for a vault without space.
    pub(in crate::storage) fn full(path: &Path) -> Self {
        let path = path.display();
        let message = format!(
            "the disk is full: no space left for {path}; this step was not stored, free some space and retry"
        );
        Self::new(ErrorKind::Full, message)
    }

    /// Returns what kind of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the cause without where it occurred, or the message if there is no cause.
    #[must_use]
    pub fn cause(&self) -> String {
        self.source.as_ref().map_or_else(|| self.message.clone(), ToString::to_string)
    }

    /// Returns whether the file is damaged or the database reports an unexpected error. A failure of the device is
    /// not: what it prevented may succeed later.
    pub(crate) fn is_of_damaged_file(&self) -> bool {
        matches!(self.kind(), ErrorKind::VaultDamaged | ErrorKind::Database)
    }

    /// Returns whether the error is caused by damage to the vault.
    #[must_use]
    pub(crate) fn is_of_damage(&self) -> bool {
        self.is_of_damaged_file() || matches!(self.kind(), ErrorKind::IndexDamaged | ErrorKind::Damaged)
    }

    /// Returns whether retrying may succeed without a change to the vault: when another process has finished, or space
    /// has become available.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        use ErrorKind::{Busy, Connection, Device, Full, Io, ReadOnly};
        matches!(self.kind, Full | ReadOnly | Busy | Io | Device | Connection)
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StorageError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source: &(dyn Error + 'static) = self.source.as_deref()?;
        Some(source)
    }
}

/// A defect of stored bytes.
#[derive(Clone, Debug, thiserror::Error)]
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
    /// An object in object storage does not have them.
    #[error("{defect} (object {object})")]
    Object {
        /// The object.
        object: String,
        /// The defect of the bytes in it.
        defect: Box<PayloadDefect>,
    },
    /// They belong to another artifact or capture.
    #[error("the stored bytes belong to another artifact or capture")]
    NotItsOwn,
    /// The capture has no members.
    #[error("the capture has no members")]
    NoMembers,
}

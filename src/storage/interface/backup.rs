//! Backups of a whole vault.

use std::path::PathBuf;

use crate::digest::BlobHash;
use crate::storage::check::{CatalogCounts, Finding};
use crate::storage::{Head, StorageError};

/// Options of a backup.
#[derive(Clone, Copy, Debug)]
pub struct BackupOptions {
    /// Whether an existing file is replaced.
    pub force: bool,
    /// Percentage of the payloads that are read back and hashed again; everything else is always checked.
    pub sample: f64,
}

impl Default for BackupOptions {
    fn default() -> Self {
        Self { force: false, sample: 100.0 }
    }
}

/// Progress of a backup. The counts grow up to the totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupProgress {
    /// Pages of the file were copied.
    Copied {
        /// The number so far.
        pages: u64,
        /// The total number.
        of: u64,
    },
    /// Payloads of the copy were hashed again.
    Checked {
        /// The number so far.
        blobs: u64,
        /// The total number.
        of: u64,
    },
}

/// A completed backup. It passed SQLite's integrity check, a foreign key check and the hash check of the sampled
/// payloads, and its journal ends as the vault's does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Its path.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Number of artifacts.
    pub artifacts: u64,
    /// Number of captures.
    pub captures: u64,
    /// Number of payloads.
    pub blobs: u64,
    /// Number of payloads that were read back and hashed again.
    pub checked: u64,
    /// Its journal head.
    pub journal: Head,
    /// Counts of the catalog rows that agree with the journal.
    pub catalog: CatalogCounts,
    /// Breaks in the journal's chain and differences between the catalog and the journal. The copy is exact, so the
    /// vault has the same findings.
    pub findings: Vec<Finding>,
}

/// An error that prevented a backup. The destination then has its previous content.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The destination exists and `force` is not set.
    #[error("cannot back up to {}: it already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The backup cannot be written there.
    #[error("cannot back up to {}: {reason}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The copy is not sound and was discarded.
    #[error(
        "the copy of {} was discarded because it failed verification: {defect}; if this happens again, the vault \
         itself is damaged",
        path.display()
    )]
    Unsound {
        /// The vault.
        path: PathBuf,
        /// The defect of the copy.
        defect: String,
    },
    /// A payload of the copy is damaged, and the copy was discarded.
    #[error(
        "the copy of {} was discarded: blob {blob} is damaged ({defect}); if this happens again, the vault \
         itself is damaged",
        path.display()
    )]
    Payload {
        /// The vault.
        path: PathBuf,
        /// The payload.
        blob: BlobHash,
        /// Its defect.
        defect: String,
    },
    /// A store error.
    #[error(transparent)]
    Store(#[from] StorageError),
}

//! Maintenance of a vault: checks, repairs, indexes, space, backups and statistics. Stored bytes are measured for
//! statistics, and not read.

use std::fmt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Capability;
use super::records::ArtifactRecord;
use crate::digest::BlobHash;
use crate::files::FileWriteError;
use crate::storage::check::{CatalogCounts, Finding, Inspection, Repairs};
use crate::storage::{Head, Result, StorageError, TimeBasis};

/// Maintenance of a vault. What an engine has no need of does nothing; what it cannot do returns an error of the kind
/// [`Unsupported`](crate::storage::ErrorKind::Unsupported).
///
/// Every method returns an error if the vault cannot be read or written.
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait Maintenance: Send + Sync {
    /// Begins a check of the current state, which does not trust the content. Unlike a snapshot, it is also available
    /// for a damaged vault.
    fn inspect(&self) -> Result<Box<dyn Inspection + '_>> {
        Err(StorageError::unsupported(Capability::Check))
    }

    /// Returns the damage to the log that was found when the vault was opened, if any.
    fn log_damage(&self) -> Option<&LogDamage> {
        None
    }

    /// Reports damaged logs that were copied, or that could not be copied.
    fn check_logs(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }

    /// Finds damage because of which writing to the vault can overwrite intact data. Nothing may then be written.
    fn check_pages(&self) -> Result<Option<Finding>> {
        Ok(None)
    }

    /// Returns the copies of damaged logs.
    fn log_copies(&self) -> Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    /// Returns the steps of repairs and of rebuilding indexes.
    fn repairs(&self) -> Result<&dyn Repairs> {
        Err(StorageError::unsupported(Capability::Repair))
    }

    /// Returns what [`Maintenance::reclaim`] would reclaim.
    fn reclaimable(&self) -> Result<ReclaimableSpace>;

    /// Removes what is not needed any more, and frees its space. The steps completed before an error remain in effect.
    fn reclaim(&self, at: DateTime<Utc>) -> Result<ReclaimResult>;

    /// Erases the remains of removed artifacts, as far as this takes little time, and returns where some may be left.
    fn erase(&self) -> Erasure;

    /// Copies the current state of the vault to the file `path`, and checks the copy. Others can read and write during
    /// the backup.
    ///
    /// # Errors
    /// Returns a [`BackupError`] if the backup cannot be made; `path` then has its previous content.
    fn backup(
        &self,
        path: &Path,
        options: &BackupOptions,
        watch: &mut dyn FnMut(BackupProgress),
    ) -> std::result::Result<Backup, BackupError> {
        let _ = (path, options, watch);
        Err(StorageError::unsupported(Capability::FileBackup).into())
    }
}

/// A kind of damage to a write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDefect {
    /// The header does not verify, so that no part of the log can be read.
    Header,
    /// A frame does not verify, so that neither it nor those after it can be read.
    Frame {
        /// The number of the frame, from 1.
        number: u64,
    },
}

/// A write-ahead log with committed changes after a part that does not verify, found before SQLite read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// The defect.
    pub defect: LogDefect,
    /// Number of frames that the log has.
    pub frames: u64,
    /// Number of frames that cannot be read.
    pub unreadable: u64,
    /// Path of the copy of the log, or `None` if no file can be created beside the vault; the log then remains
    /// unchanged.
    pub copy: Option<PathBuf>,
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { defect, frames, unreadable, copy } = self;
        match defect {
            LogDefect::Header => write!(f, "the header of the write-ahead log is damaged")?,
            LogDefect::Frame { number } => {
                write!(f, "frame {number} of {frames} of the write-ahead log failed verification")?;
            }
        }
        write!(f, "; {unreadable} of {frames} frames cannot be read, and the changes in them are missing")?;
        match copy {
            Some(copy) => write!(f, "; the log was saved as {}", copy.display()),
            None => write!(f, "; nothing could be written next to the vault, and the log was left unchanged"),
        }
    }
}

/// The reclaimable space of a vault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReclaimableSpace {
    /// Number of unreferenced blobs.
    pub blobs: u64,
    /// The stored size of these blobs in bytes.
    pub blob_bytes: u64,
    /// Number of dictionaries that are unused, or that may contain pieces of removed documents.
    pub dictionaries: u64,
    /// Number of free bytes in the file.
    pub free_bytes: u64,
    /// Whether something was removed since the file was last rewritten.
    pub has_removals: bool,
}

/// The result of reclaiming disk space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ReclaimAnswer)]
pub struct ReclaimResult {
    /// Number of unreferenced blobs that were removed.
    pub blobs: u64,
    /// Number of objects in object storage that were deleted because no artifact was stored with them: interrupted uploads.
    pub orphans: u64,
    /// Number of dictionaries that were removed.
    pub dictionaries: u64,
    /// Number of payloads that were recompressed.
    pub recompressed: u64,
    /// The size of the vault's files in bytes before; 0 if nothing was to be done.
    pub bytes_before: u64,
    /// Their size afterwards; 0 if nothing was to be done.
    pub bytes_after: u64,
    /// Whether there was something to do. Otherwise, nothing was changed.
    pub changed: bool,
    /// Whether removed data remains in the write-ahead log, because others were reading from it.
    pub log_remains: bool,
}

/// The remains of removed artifacts in the vault's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erasure {
    /// The parts that contain, or may contain, remains until [`Maintenance::reclaim`] has run. If it is empty, nothing
    /// remains except what other artifacts also have.
    pub remnants: Vec<Remnant>,
}

impl Erasure {
    /// Returns whether nothing remains.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.remnants.is_empty()
    }
}

/// A part of the vault's files that may still contain removed bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RemnantSummary)]
#[serde(tag = "part", rename_all = "kebab-case")]
pub enum Remnant {
    /// The pages of a file that is too large to be rewritten after every removal.
    // Removed content was overwritten in place, but SQLite may have left copies of parts where it moved rows before, and
    // the search index still has words.
    LargeFile {
        /// The size in bytes up to which files are rewritten.
        limit: u64,
    },
    /// The pages of the file, which could not be rewritten.
    File {
        /// The reason.
        reason: String,
    },
    /// The dictionaries with which documents of some kinds are compressed.
    Dictionaries {
        /// The ids of the kinds.
        kinds: Vec<String>,
    },
    /// The write-ahead log, because others were still reading from it.
    Log,
    /// The files of a database server: dead rows until they are vacuumed, the write-ahead log, replicas and backups.
    /// Reclaiming space does not remove them.
    // The engine controls none of them, so this is always listed.
    Database,
    /// Object storage: the bytes stay for a day, longer while their pack has other blobs, and in versions of objects that
    /// the storage keeps.
    // Which it keeps is not known, so this is always listed.
    Objects,
}

impl Remnant {
    /// Returns whether reclaiming space removes it.
    #[must_use]
    pub fn is_reclaimable(&self) -> bool {
        !matches!(self, Self::Database | Self::Objects)
    }
}

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

impl From<FileWriteError> for BackupError {
    fn from(error: FileWriteError) -> Self {
        match error {
            FileWriteError::Exists { path } => Self::Exists { path },
            FileWriteError::Refused { path, reason } => Self::Refused { path, reason },
            FileWriteError::Io { path, source } => StorageError::io(&path, source).into(),
        }
    }
}

/// The statistics of a vault that follow from its content, and are the same for every engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// The content of each kind that has any, by name.
    pub kinds: Vec<KindTotals>,
    /// The stored blobs.
    pub blobs: BlobCounts,
    /// Number of manual links.
    pub manual_links: u64,
    /// Number of tags.
    pub tags: u64,
    /// Number of pinned artifacts.
    pub pins: u64,
    /// Number of artifacts with a note.
    pub notes: u64,
    /// Number of labels; one that several artifacts have counts for each of them.
    pub labels: u64,
    /// Number of journal entries.
    pub journal_entries: u64,
    /// The largest, the oldest and the newest artifacts.
    pub extremes: Extremes,
    /// The time that determines which artifacts are oldest and newest, and the day of each.
    pub by: TimeBasis,
    /// Number of artifacts without this time; only of times that artifacts state can there be any.
    pub undated: u64,
    /// The content of each day that has any, oldest first.
    pub days: Vec<Day>,
}

/// The content of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KindTotals {
    /// The name of the kind.
    pub kind: String,
    /// Number of artifacts.
    pub artifacts: u64,
    /// Number of their captures.
    pub captures: u64,
    /// The size of the captures in bytes, as they were received.
    pub bytes: u64,
}

/// The stored blobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobCounts {
    /// Number of blobs: each distinct file of a capture.
    pub blobs: u64,
    /// Their size in bytes before compression.
    pub bytes: u64,
    /// Number of blobs that several captures share.
    pub shared: u64,
}

/// The size of what an engine stores, and of its indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineStatistics {
    /// The size of the blobs in bytes after compression, with the digests that were stripped from them and without the dictionaries.
    pub stored_bytes: u64,
    /// Number of blobs that are stored as deltas.
    pub differences: u64,
    /// Number of dictionaries.
    pub dictionaries: u64,
    /// Their size in bytes.
    pub dictionary_bytes: u64,
    /// The size of the full-text search index in bytes; `None` if there is none.
    pub search_bytes: Option<u64>,
    /// The size of the vault's file in bytes.
    pub file_bytes: u64,
    /// The free part of that, in bytes.
    pub free_bytes: u64,
    /// Number of mentioned digests in the index; the same digest in two captures counts twice.
    pub mentions: u64,
}

/// The artifacts with extreme sizes and times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extremes {
    /// The largest artifacts, at most [`Extremes::LARGEST`], largest first; those of equal size in the order in which
    /// they were added.
    pub largest: Vec<ArtifactSize>,
    /// The oldest artifact, if any has a time.
    pub oldest: Option<ArtifactTime>,
    /// The newest artifact, if any has a time.
    pub newest: Option<ArtifactTime>,
}

impl Extremes {
    /// Maximum number of largest artifacts that are listed.
    pub const LARGEST: usize = 5;
}

/// An artifact with one of its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactTime {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// The time.
    pub at: DateTime<Utc>,
}

/// An artifact with its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactSize {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// The size of its captures in bytes.
    pub bytes: u64,
    /// Number of its captures.
    pub captures: u64,
}

/// The content of one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Day {
    /// The day, in UTC.
    #[schema(value_type = String, format = Date)]
    pub date: NaiveDate,
    /// Number of artifacts.
    pub artifacts: u64,
    /// Number of captures. Of times that artifacts state, those of these artifacts; otherwise, a capture belongs to the
    /// day on which it was itself added or last seen.
    pub captures: u64,
    /// The size of the captures in bytes.
    pub bytes: u64,
}

impl Statistics {
    /// Returns the number of artifacts.
    #[must_use]
    pub fn artifacts(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.artifacts).sum()
    }

    /// Returns the number of captures.
    #[must_use]
    pub fn captures(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.captures).sum()
    }

    /// Returns the size of all captures in bytes, as they were received.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.bytes).sum()
    }
}

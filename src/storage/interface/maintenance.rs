//! Maintenance of a vault: checks, repairs, indexes, space and backups.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::backup::{Backup, BackupError, BackupOptions, BackupProgress};
use super::capabilities::Capability;
use super::log_damage::LogDamage;
use super::space::{Erasure, ReclaimResult, ReclaimableSpace};
use crate::storage::check::{Finding, Inspection, ReadmittedArtifact, ReindexOutcome, Repairs};
use crate::storage::{Result, StorageError};

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

    /// Returns the steps of repairs.
    fn repairs(&self) -> Result<&dyn Repairs> {
        Err(StorageError::unsupported(Capability::Repair))
    }

    /// Rebuilds all index data of the artifacts of `batch`, in one transaction. Returns the outcome of each, in their
    /// order.
    fn reindex(&self, batch: &[ReadmittedArtifact]) -> Result<Vec<ReindexOutcome>> {
        let _ = batch;
        Err(StorageError::unsupported(Capability::Reindex))
    }

    /// Completes [`Maintenance::reindex`]: rebuilds what is about all artifacts, and records in the journal how many
    /// there were and how many of them were not admitted.
    fn finish_reindex(&self, artifacts: u64, not_admitted: u64) -> Result<()> {
        let _ = (artifacts, not_admitted);
        Err(StorageError::unsupported(Capability::Reindex))
    }

    /// Returns what [`Maintenance::reclaim`] would reclaim.
    fn reclaimable(&self) -> Result<ReclaimableSpace>;

    /// Removes what is not needed any more, and frees its space. Returns `None` if there was nothing to do. The steps
    /// completed before an error remain in effect.
    fn reclaim(&self, at: DateTime<Utc>) -> Result<Option<ReclaimResult>>;

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

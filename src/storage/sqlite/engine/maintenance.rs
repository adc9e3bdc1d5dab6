//! Maintenance of vault files.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::storage::Result;
use crate::storage::check::{Finding, Inspection, Readmitted, Reindexed, Repairs};
use crate::storage::interface::{
    Backup, BackupError, BackupOptions, BackupProgress, Erasure, LogDamage, Maintenance, Reclaimable,
    Reclaimed,
};
use crate::storage::sqlite::Store;

impl Maintenance for Store {
    fn inspect(&self) -> Result<Box<dyn Inspection + '_>> {
        Ok(Box::new(Self::inspect(self)?))
    }

    fn log_damage(&self) -> Option<&LogDamage> {
        Self::log_damage(self)
    }

    fn check_logs(&self) -> Result<Vec<Finding>> {
        Self::check_logs(self)
    }

    fn log_copies(&self) -> Result<Vec<PathBuf>> {
        Self::log_copies(self)
    }

    fn upgrade_copies(&self) -> Vec<PathBuf> {
        Self::upgrade_copies(self)
    }

    fn repairs(&self) -> Result<&dyn Repairs> {
        Ok(self)
    }

    fn reindex(&self, batch: &[Readmitted]) -> Result<Vec<Reindexed>> {
        Self::reindex(self, batch)
    }

    fn finish_reindex(&self, artifacts: u64, not_admitted: u64) -> Result<()> {
        Self::finish_reindex(self, artifacts, not_admitted)
    }

    fn reclaimable(&self) -> Result<Reclaimable> {
        Self::reclaimable(self)
    }

    fn reclaim(&self, at: DateTime<Utc>) -> Result<Option<Reclaimed>> {
        Self::reclaim(self, at)
    }

    fn erase(&self) -> Erasure {
        Self::erase(self)
    }

    fn backup(
        &self,
        path: &Path,
        options: &BackupOptions,
        watch: &mut dyn FnMut(BackupProgress),
    ) -> std::result::Result<Backup, BackupError> {
        Self::backup(self, path, options, watch)
    }
}

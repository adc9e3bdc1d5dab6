//! Maintenance of vault files.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::storage::Result;
use crate::storage::check::{Finding, Inspection, ReadmittedArtifact, ReindexOutcome, Repairs};
use crate::storage::forward::forward_to_inherent;
use crate::storage::interface::{
    Backup, BackupError, BackupOptions, BackupProgress, Erasure, LogDamage, Maintenance, ReclaimResult,
    ReclaimableSpace,
};
use crate::storage::sqlite::Store;

impl Maintenance for Store {
    forward_to_inherent! {
        fn log_damage(&self) -> Option<&LogDamage>;
        fn check_logs(&self) -> Result<Vec<Finding>>;
        fn check_pages(&self) -> Result<Option<Finding>>;
        fn log_copies(&self) -> Result<Vec<PathBuf>>;
        fn reindex(&self, batch: &[ReadmittedArtifact]) -> Result<Vec<ReindexOutcome>>;
        fn finish_reindex(&self, artifacts: u64, not_admitted: u64) -> Result<()>;
        fn reclaimable(&self) -> Result<ReclaimableSpace>;
        fn reclaim(&self, at: DateTime<Utc>) -> Result<Option<ReclaimResult>>;
        fn erase(&self) -> Erasure;
        fn backup(
            &self,
            path: &Path,
            options: &BackupOptions,
            watch: &mut dyn FnMut(BackupProgress),
        ) -> std::result::Result<Backup, BackupError>;
    }

    fn inspect(&self) -> Result<Box<dyn Inspection + '_>> {
        Ok(Box::new(Self::inspect(self)?))
    }

    fn repairs(&self) -> Result<&dyn Repairs> {
        Ok(self)
    }
}

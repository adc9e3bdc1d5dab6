//! Findings about damaged write-ahead logs.

use std::path::{Path, PathBuf};

use crate::storage::check::finding::{Finding, LOG_DAMAGED, Subject};
use crate::storage::interface::LogDamage;
use crate::storage::sqlite::connection::{log_of, real};
use crate::storage::sqlite::store::Store;
use crate::storage::sqlite::wal;
use crate::storage::sqlite::{Result, StorageError};

impl Store {
    /// Returns the damage to the write-ahead log found when this store was opened, if any.
    #[must_use]
    pub fn log_damage(&self) -> Option<&LogDamage> {
        self.log_damage.as_deref()
    }

    /// Reports damaged logs that were copied, or that could not be copied.
    ///
    /// # Errors
    /// Returns an error if the directory or a copy cannot be read.
    pub fn check_logs(&self) -> Result<Vec<Finding>> {
        let vault = real(&self.path);
        let copied = wal::damage_of_copies(&vault).map_err(|source| StorageError::io(&vault, source))?;
        let without_copy = self.log_damage().filter(|damage| damage.copy.is_none());
        Ok(without_copy.into_iter().chain(&copied).map(|damage| finding(&vault, damage)).collect())
    }

    /// Returns the copies of damaged logs beside the vault.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub fn log_copies(&self) -> Result<Vec<PathBuf>> {
        let copies = wal::copies(&real(&self.path)).map_err(|source| StorageError::io(&self.path, source))?;
        Ok(copies.into_iter().map(|(_, copy)| copy).collect())
    }
}

fn finding(vault: &Path, damage: &LogDamage) -> Finding {
    // Only file names: reports are compared between machines.
    let name = |path: &Path| PathBuf::from(path.file_name().unwrap_or_default());
    let copy = damage.copy.as_deref().map(name);
    let subject = copy.clone().unwrap_or_else(|| name(&log_of(vault))).to_string_lossy().into_owned();
    Finding::new(LOG_DAMAGED, Subject::File(subject), LogDamage { copy, ..damage.clone() }.to_string())
}

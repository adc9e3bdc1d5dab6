//! Findings about damaged write-ahead logs.

use std::path::{Path, PathBuf};

use crate::storage::check::finding::{Finding, LOG_DAMAGED, Subject};
use crate::storage::interface::LogDamage;
use crate::storage::sqlite::connection::real;
use crate::storage::sqlite::store::Store;
use crate::storage::sqlite::wal::copies::{self, sibling_path};
use crate::storage::sqlite::wal::{WalSnapshot, describe};
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
        let connection = self.connection()?;
        let vault = real(&self.path);
        let failed = |source| StorageError::io(&vault, source);
        let mut findings = Vec::new();
        if let Some(damage) = self.log_damage().filter(|damage| damage.copy.is_none()) {
            findings.push(finding(&sibling_path(&vault, "-wal"), damage));
        }
        for copy in copies::pending(&vault).map_err(failed)? {
            let sight = WalSnapshot::of_copy(&copy, &vault).map_err(failed)?;
            let defect = sight.defect_of_copy();
            findings
                .push(finding(&copy.path, &describe(&sight, defect, &copy.path, Some(&copy), &connection)));
        }
        Ok(findings)
    }

    /// Returns the copies of damaged logs beside the vault, including those that a repair has processed.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub fn log_copies(&self) -> Result<Vec<PathBuf>> {
        let copies = copies::all(&real(&self.path)).map_err(|source| StorageError::io(&self.path, source))?;
        Ok(copies.into_iter().map(|copy| copy.path).collect())
    }
}

fn finding(path: &Path, damage: &LogDamage) -> Finding {
    // Only the file name: reports are compared between machines.
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let copy = damage.copy.as_ref().map(|copy| PathBuf::from(copy.file_name().unwrap_or_default()));
    Finding::new(LOG_DAMAGED, Subject::File(name), LogDamage { copy, ..damage.clone() }.to_string())
}

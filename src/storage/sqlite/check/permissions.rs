//! Findings about the files of a vault: who can write them, and damaged write-ahead logs.

use std::path::{Path, PathBuf};

use super::FileInspection;
use crate::storage::check::finding::{Finding, INSECURE_PERMISSIONS, LOG_DAMAGED, Subject};
use crate::storage::interface::LogDamage;
use crate::storage::sqlite::connection::{log_of, real};
use crate::storage::sqlite::store::Store;
use crate::storage::sqlite::{Result, StorageError, wal};

/// The write permissions of group and others.
const OTHERS: u32 = 0o022;

impl FileInspection<'_> {
    /// Returns findings about the permissions of the vault's files.
    #[must_use]
    pub(super) fn permissions(&self) -> Vec<Finding> {
        let files = files(self.path).into_iter();
        let open = files.filter_map(|file| Some((mode(&file).filter(|mode| mode & OTHERS != 0)?, file)));
        // The other files inherit their permissions from the first when they are created.
        let open = open.take(1);
        let finding = |(mode, file): (u32, PathBuf)| {
            // Only the file name: reports are compared between machines.
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Finding::new(
                INSECURE_PERMISSIONS,
                Subject::File(name),
                format!("its mode is {:04o}", mode & 0o7777),
            )
        };
        open.map(finding).collect()
    }
}

fn files(path: &Path) -> Vec<PathBuf> {
    let with = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    ["", "-wal", "-shm"].map(with).into()
}

#[cfg(unix)]
fn mode(path: &Path) -> Option<u32> {
    std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).ok()?).into()
}

#[cfg(not(unix))]
fn mode(_: &Path) -> Option<u32> {
    None
}

/// Restricts write permission for the vault's files to the owner.
#[cfg(unix)]
pub(in crate::storage) fn restrict_permissions(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for file in files(path) {
        if let Some(mode) = mode(&file).filter(|mode| mode & OTHERS != 0) {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode & 0o7777 & !OTHERS))?;
        }
    }
    Ok(())
}

/// Restricts write permission for the vault's files to the owner.
#[cfg(not(unix))]
pub(in crate::storage) fn restrict_permissions(_: &Path) -> std::io::Result<()> {
    Ok(())
}

impl Store {
    /// Reports damaged logs that were copied, or that could not be copied.
    ///
    /// # Errors
    /// Returns an error if the directory or a copy cannot be read.
    pub(in crate::storage::sqlite) fn check_logs(&self) -> Result<Vec<Finding>> {
        let vault = real(&self.path);
        let copied = wal::damage_of_copies(&vault).map_err(|source| StorageError::io(&vault, source))?;
        let without_copy = self.log_damage.as_deref().filter(|damage| damage.copy.is_none());
        Ok(without_copy.into_iter().chain(&copied).map(|damage| finding(&vault, damage)).collect())
    }
}

fn finding(vault: &Path, damage: &LogDamage) -> Finding {
    // Only file names: reports are compared between machines.
    let name = |path: &Path| PathBuf::from(path.file_name().unwrap_or_default());
    let copy = damage.copy.as_deref().map(name);
    let subject = copy.clone().unwrap_or_else(|| name(&log_of(vault))).to_string_lossy().into_owned();
    Finding::new(LOG_DAMAGED, Subject::File(subject), LogDamage { copy, ..damage.clone() }.to_string())
}

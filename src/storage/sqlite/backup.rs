//! Online backup of a whole vault.
//!
//! The copy is made with SQLite's backup interface, on a connection that holds a snapshot: exactly that state is
//! copied, its journal head is known beforehand and compared afterwards, and neither writers nor readers wait. `VACUUM
//! INTO` would produce a smaller file, but it chooses its own snapshot, so that there would be nothing to compare with,
//! and its file would not be in WAL mode.

mod verify;

use std::path::Path;

use super::copy::copy;
use super::staging::{CreateDatabaseError, StagedDatabase};
use super::store::Store;
use crate::storage::interface::{Backup, BackupError, BackupOptions, BackupProgress};

impl From<CreateDatabaseError> for BackupError {
    fn from(error: CreateDatabaseError) -> Self {
        match error {
            CreateDatabaseError::Exists(path) => Self::Exists { path },
            CreateDatabaseError::Refused { path, reason } => Self::Refused { path, reason },
            CreateDatabaseError::Store(error) => Self::Store(error),
        }
    }
}

impl Store {
    /// Copies the current state of the vault to the file `path`; other connections may read and write during the copy.
    /// The copy is made under a temporary name in the same directory, readable by its owner only, is synced to disk,
    /// opened and checked, and only then renamed. Leftovers of an interrupted backup are removed by the next one to the
    /// same path. Until the copy is complete, concurrent writes stay in the vault's write-ahead log, which grows.
    ///
    /// # Errors
    /// Returns a [`BackupError`] if the backup cannot be made; `path` then has its previous content.
    pub fn backup(
        &self,
        path: &Path,
        options: &BackupOptions,
        watch: &mut dyn FnMut(BackupProgress),
    ) -> Result<Backup, BackupError> {
        let place = StagedDatabase::at(path, self.path(), options.force)?;
        let snapshot = self.snapshot()?;
        let head = snapshot.journal_head()?;
        copy(snapshot.connection(), (place.temp_path(), path), watch)?;
        drop(snapshot);
        let verified = verify::verify(place.temp_path(), self.path(), head, options.sample, watch)?;
        let bytes = place.finish()?;
        let verify::BackupVerification { artifacts, captures, blobs, checked, catalog, findings } = verified;
        let path = path.to_owned();
        Ok(Backup { path, bytes, artifacts, captures, blobs, checked, journal: head, catalog, findings })
    }
}

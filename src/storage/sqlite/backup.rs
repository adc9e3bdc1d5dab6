//! Online backup of a whole vault.
//!
//! The copy is made with SQLite's backup interface, on a connection that holds a snapshot: exactly that state is
//! copied, its journal head is known beforehand and compared afterwards, and neither writers nor readers wait. `VACUUM
//! INTO` would produce a smaller file, but it chooses its own snapshot, so that there would be nothing to compare with,
//! and its file would not be in WAL mode.

mod verify;

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup as Copying, StepResult};

use crate::storage::interface::{Backup, BackupError, BackupOptions, BackupProgress, JournalQueries as _};
use crate::storage::sqlite::error::BusyReason;
use crate::storage::sqlite::staging::{CreateDatabaseError, StagedDatabase};
use crate::storage::sqlite::store::Store;
use crate::storage::sqlite::{StorageError, connection};

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

/// Number of pages that are copied per step; progress is reported after each step.
const PAGES: i32 = 1024;

/// Copies the database as seen by the connection `from` into a new file, which errors report as `name`.
pub(super) fn copy(
    from: &Connection,
    (to, name): (&Path, &Path),
    watch: &mut dyn FnMut(BackupProgress),
) -> Result<(), StorageError> {
    let failed = |error| StorageError::from_sqlite_named(to, name, error);
    connection::create_private(to).map_err(|error| StorageError::io(name, error))?;
    let mut target = connection::connect(to).map_err(failed)?;
    let copying = Copying::new(from, &mut target).map_err(failed)?;
    loop {
        let step = copying.step(PAGES).map_err(failed)?;
        let progress = copying.progress();
        let (left, of) = (count(progress.remaining), count(progress.pagecount));
        watch(BackupProgress::Copied { pages: of.saturating_sub(left), of });
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            // The copy is not shared, and the snapshot has already been read.
            _ => return Err(StorageError::busy(name, BusyReason::Held)),
        }
    }
}

fn count(pages: i32) -> u64 {
    u64::try_from(pages).unwrap_or_default()
}

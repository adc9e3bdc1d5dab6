//! A copy of a whole vault, made while others use it.
//!
//! The copy is made with SQLite's backup interface, on a connection that holds a snapshot: what is copied is exactly that
//! state, whose journal head is known before and compared afterwards, and neither writers nor readers wait. `VACUUM INTO`
//! would give a smaller file, but it chooses its moment itself, so that there would be nothing to compare with, and its
//! file would not be in WAL mode.

mod verify;

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup as Copying, StepResult};

use super::check::CatalogCounts;
use super::check::finding::Finding;
use super::place::{Place, PlaceError};
use super::pool;
use super::{BusyReason, Head, Store, StoreError};
use crate::digest::BlobHash;

/// So many pages are copied at a time, so that somebody can be told how far it is.
const PAGES: i32 = 1024;

/// How a backup is made.
#[derive(Clone, Copy, Debug)]
pub struct BackupOptions {
    /// Whether a file that is there already is replaced.
    pub force: bool,
    /// How many percent of the payloads are read back and hashed again; everything else is always checked.
    pub sample: f64,
}

impl Default for BackupOptions {
    fn default() -> Self {
        Self { force: false, sample: 100.0 }
    }
}

/// How far a backup is. The counts grow up to those of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupProgress {
    /// Pages of the file were copied.
    Copied {
        /// So many.
        pages: u64,
        /// Of so many.
        of: u64,
    },
    /// Payloads of the copy were hashed again.
    Checked {
        /// So many.
        blobs: u64,
        /// Of so many.
        of: u64,
    },
}

/// A backup that was made. SQLite's integrity check of it, its references and the hashes of what was read back are right,
/// and its journal ends as the vault's does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// How many artifacts it has.
    pub artifacts: u64,
    /// How many captures of them.
    pub captures: u64,
    /// How many payloads.
    pub blobs: u64,
    /// How many of them were read back and hashed again.
    pub checked: u64,
    /// Its journal.
    pub journal: Head,
    /// How much of its catalog is as its journal says.
    pub catalog: CatalogCounts,
    /// Where its journal does not chain, or its catalog is not what the journal says. The copy is exact, so the same is to
    /// be found in the vault.
    pub findings: Vec<Finding>,
}

/// Why there is no backup. Nothing is under its name then but what was there before.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is a file already, and nobody said that it may be replaced.
    #[error("cannot back up to {}: it exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The backup cannot be put there.
    #[error("cannot back up to {}: {reason}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The copy is not sound, and was thrown away.
    #[error(
        "the copy of {} was not kept, for it is not sound: {defect}; if a second try says the same, the vault \
         itself is damaged",
        path.display()
    )]
    Unsound {
        /// The vault.
        path: PathBuf,
        /// What is wrong with the copy.
        defect: String,
    },
    /// The copy has a payload that is not what it was, and was thrown away.
    #[error(
        "the copy of {} was not kept: blob {blob} is damaged ({defect}); if a second try says the same, the vault \
         itself is damaged",
        path.display()
    )]
    Payload {
        /// The vault.
        path: PathBuf,
        /// The payload.
        blob: BlobHash,
        /// What is wrong with it.
        defect: String,
    },
    /// What the store says.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<PlaceError> for BackupError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Exists(path) => Self::Exists { path },
            PlaceError::Refused { path, reason } => Self::Refused { path, reason },
            PlaceError::Store(error) => Self::Store(error),
        }
    }
}

impl Store {
    /// Copies the vault, as it is now, to the file `path`; others may read and write meanwhile. The copy is made under
    /// another name beside it, readable by its owner only, is written to the disk, opened and checked, and only then gets
    /// its name. What a backup left that was interrupted is removed by the next one to the same place. Until it is copied,
    /// what others write stays in the vault's log, which grows.
    ///
    /// # Errors
    /// [`BackupError`]; `path` has then what it had before.
    pub fn backup(
        &self,
        path: &Path,
        options: &BackupOptions,
        watch: &mut dyn FnMut(BackupProgress),
    ) -> Result<Backup, BackupError> {
        let place = Place::at(path, self.path(), options.force)?;
        let snapshot = self.snapshot()?;
        let head = snapshot.journal_head()?;
        copy(snapshot.connection(), (place.unfinished(), path), watch)?;
        drop(snapshot);
        let verified = verify::verify(place.unfinished(), self.path(), head, options.sample, watch)?;
        let bytes = place.finish()?;
        let verify::Verified { artifacts, captures, blobs, checked, catalog, findings } = verified;
        let path = path.to_owned();
        Ok(Backup { path, bytes, artifacts, captures, blobs, checked, journal: head, catalog, findings })
    }
}

/// Copies what is seen on the connection `from` into a new file, which errors call `name`.
pub(super) fn copy(
    from: &Connection,
    (to, name): (&Path, &Path),
    watch: &mut dyn FnMut(BackupProgress),
) -> Result<(), StoreError> {
    let failed = |error| StoreError::of(to, error).about(name);
    pool::create_private(to).map_err(|error| StoreError::io(name, error))?;
    let mut target = pool::connect(to).map_err(failed)?;
    let copying = Copying::new(from, &mut target).map_err(failed)?;
    loop {
        let step = copying.step(PAGES).map_err(failed)?;
        let progress = copying.progress();
        let (left, of) = (count(progress.remaining), count(progress.pagecount));
        watch(BackupProgress::Copied { pages: of.saturating_sub(left), of });
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            // Nobody else uses the copy, and the snapshot is read already.
            _ => return Err(StoreError::Busy { path: name.to_owned(), reason: BusyReason::Held }),
        }
    }
}

fn count(pages: i32) -> u64 {
    u64::try_from(pages).unwrap_or_default()
}

//! Copying of a whole database with the backup interface of SQLite.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup as Copying, StepResult};

use super::StorageError;
use super::connection;
use super::error::BusyReason;
use crate::storage::interface::BackupProgress;

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

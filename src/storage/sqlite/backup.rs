//! Online backup of a whole vault.
//!
//! The copy is made with SQLite's backup interface, on a connection that holds a snapshot: exactly that state is
//! copied, its journal head is known beforehand and compared afterwards, and neither writers nor readers wait. `VACUUM
//! INTO` would produce a smaller file, but it chooses its own snapshot, so that there would be nothing to compare with,
//! and its file would not be in WAL mode.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup as Copying, StepResult};

use super::SqliteSnapshot;
use super::error::ReadFailure;
use crate::digest::BlobHash;
use crate::storage::check::{CatalogCounts, Finding, Inspection, JournalInspection};
use crate::storage::interface::{Backup, BackupError, BackupOptions, BackupProgress, JournalQueries as _};
use crate::storage::sqlite::connection;
use crate::storage::sqlite::error::BusyReason;
use crate::storage::sqlite::staging::StagedDatabase;
use crate::storage::sqlite::store::Store;
use crate::storage::{CreationPolicy, Head, Result, StorageError};

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
    ) -> std::result::Result<Backup, BackupError> {
        let place = StagedDatabase::at(path, self.path(), options.force)?;
        let snapshot = self.snapshot()?;
        let head = snapshot.journal_head()?;
        copy(snapshot.connection(), place.temp_path(), path, watch)?;
        drop(snapshot);
        let verified = verify(place.temp_path(), self.path(), head, options.sample, watch)?;
        let bytes = place.finish()?;
        let BackupVerification { artifacts, captures, blobs, checked, catalog, findings } = verified;
        let path = path.to_owned();
        Ok(Backup { path, bytes, artifacts, captures, blobs, checked, journal: head, catalog, findings })
    }
}

/// Number of pages that are copied per step; progress is reported after each step.
const PAGES: i32 = 1024;

/// Copies the database as seen by the connection `from` into a new file, which errors report as `name`.
pub(super) fn copy(
    from: &Connection,
    to: &Path,
    name: &Path,
    watch: &mut dyn FnMut(BackupProgress),
) -> Result<()> {
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

/// The result of verifying a copy.
struct BackupVerification {
    artifacts: u64,
    captures: u64,
    blobs: u64,
    checked: u64,
    catalog: CatalogCounts,
    findings: Vec<Finding>,
}

/// Opens the copy at `path` of the vault at `original` and checks it: SQLite's integrity, the journal head, the hashes
/// of `sample` percent of the payloads, and the catalog against the journal.
fn verify(
    path: &Path,
    original: &Path,
    head: Head,
    sample: f64,
    watch: &mut dyn FnMut(BackupProgress),
) -> std::result::Result<BackupVerification, BackupError> {
    let unsound = |defect: String| BackupError::Unsound { path: original.to_owned(), defect };
    let store = Store::open(path, CreationPolicy::Never).map_err(|error| unsound(error.to_string()))?;
    let snapshot = store.snapshot()?;
    if let Some(defect) = snapshot.database_defect()? {
        return Err(unsound(defect));
    }
    let copied = snapshot.journal_head()?;
    if copied != head {
        return Err(unsound(format!(
            "its journal ends with {} at entry {}, that of the vault with {} at entry {}",
            copied.chain, copied.seq, head.chain, head.seq
        )));
    }
    let blobs = snapshot.blobs()?;
    let of = blobs.len() as u64;
    let mut checked = 0;
    for ((id, blob), done) in blobs.into_iter().zip(1..) {
        if is_in_sample(blob, head, sample) {
            check(&snapshot, original, id, blob)?;
            checked += 1;
        }
        watch(BackupProgress::Checked { blobs: done, of });
    }
    let (artifacts, captures) = snapshot.counts()?;
    let inspection: &dyn Inspection = &store.inspect()?;
    let JournalInspection { counts: catalog, findings, .. } = inspection.compare_journal(None)?;
    Ok(BackupVerification { artifacts, captures, blobs: of, checked, catalog, findings })
}

/// Whether a payload is in the sample to check. The sample changes with every change of the vault.
fn is_in_sample(blob: BlobHash, head: Head, percent: f64) -> bool {
    const PARTS: u16 = 10_000;
    let mixed = (blob.0.key() ^ head.chain.key()).rem_euclid(i64::from(PARTS));
    percent >= 100.0 || u16::try_from(mixed).is_ok_and(|part| f64::from(part) < percent * 100.0)
}

fn check(
    snapshot: &SqliteSnapshot<'_>,
    original: &Path,
    id: i64,
    blob: BlobHash,
) -> std::result::Result<(), BackupError> {
    match snapshot.payloads().bytes(id, blob) {
        Ok(_) => Ok(()),
        Err(ReadFailure::Database(error)) => Err(StorageError::from_sqlite(original, error).into()),
        Err(ReadFailure::Defect(defect)) => {
            let (path, defect) = (original.to_owned(), defect.to_string());
            Err(BackupError::Payload { path, blob, defect })
        }
    }
}

impl SqliteSnapshot<'_> {
    /// Returns the first defect that SQLite finds in the file, if any.
    fn database_defect(&self) -> Result<Option<String>> {
        let found = self.rows("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0))?;
        if let Some(defect) = found.into_iter().find(|line| line != "ok") {
            return Ok(Some(defect));
        }
        let orphans = self.rows("PRAGMA foreign_key_check", [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(2)?))
        })?;
        Ok(orphans
            .first()
            .map(|(from, to)| format!("a row of {from} refers to one of {to} that does not exist")))
    }

    /// Returns all blobs with their row ids.
    fn blobs(&self) -> Result<Vec<(i64, BlobHash)>> {
        self.rows("SELECT id, digest FROM blob ORDER BY id", [], |row| {
            Ok((row.get(0)?, BlobHash(row.get(1)?)))
        })
    }

    /// Returns the number of artifacts and captures.
    fn counts(&self) -> Result<(u64, u64)> {
        let sql = "SELECT (SELECT count(*) FROM artifact), (SELECT count(*) FROM capture)";
        let counts = self.rows(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(counts.into_iter().next().unwrap_or_default())
    }
}

//! Verification of the copy of a vault.

use std::path::Path;

use crate::digest::BlobHash;
use crate::storage::check::{CatalogCounts, Finding, Inspection, JournalInspection};
use crate::storage::interface::{BackupError, BackupProgress, JournalQueries as _};
use crate::storage::sqlite::error::ReadFailure;
use crate::storage::sqlite::{SqliteSnapshot, Store};
use crate::storage::{Head, Result, StorageError};

/// The result of verifying a copy.
pub(super) struct BackupVerification {
    pub(super) artifacts: u64,
    pub(super) captures: u64,
    pub(super) blobs: u64,
    pub(super) checked: u64,
    pub(super) catalog: CatalogCounts,
    pub(super) findings: Vec<Finding>,
}

/// Opens the copy at `path` of the vault at `original` and checks it: SQLite's integrity, the journal head, the hashes
/// of `sample` percent of the payloads, and the catalog against the journal.
pub(super) fn verify(
    path: &Path,
    original: &Path,
    head: Head,
    sample: f64,
    watch: &mut dyn FnMut(BackupProgress),
) -> std::result::Result<BackupVerification, BackupError> {
    let unsound = |defect: String| BackupError::Unsound { path: original.to_owned(), defect };
    let store = Store::open(path).map_err(|error| unsound(error.to_string()))?;
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

//! Copies a vault to another file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::api::{FindingSummary, PathName};
use crate::digest::Digest;
use crate::storage::{Backup, BackupError, BackupOptions, BackupProgress, Capability};

/// A request to copy the current state of a vault to a file, and to check the copy. Others can read and write during
/// the backup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// The path of the file, on the machine of the vault.
    #[schema(value_type = String)]
    pub path: PathBuf,
    /// Whether an existing file is replaced.
    #[serde(default)]
    pub force: bool,
    /// Percentage of the blobs that are read back and hashed again; everything else is always checked.
    #[serde(default = "default_sample")]
    pub sample: f64,
}

/// Returns the default sample.
fn default_sample() -> f64 {
    100.0
}

/// A completed backup. It passed the integrity check of the database and the hash check of the sampled blobs, and its
/// journal ends as the vault's does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupAnswer {
    /// Its file.
    #[serde(flatten)]
    pub file: PathName,
    /// Its size in bytes.
    pub bytes: u64,
    /// Number of artifacts.
    pub artifacts: u64,
    /// Number of captures.
    pub captures: u64,
    /// Number of blobs.
    pub blobs: u64,
    /// Number of blobs that were read back and hashed again.
    pub blobs_checked: u64,
    /// Number of journal entries.
    pub journal_entries: u64,
    /// The digest of the whole journal.
    pub journal_head: Digest,
    /// Number of breaks in the journal's chain and of differences between the catalog and the journal. The copy is
    /// exact, so the vault has the same.
    pub findings: u64,
    /// The first 10 of them.
    pub first_findings: Vec<FindingSummary>,
}

/// Maximum number of findings that are listed.
const LISTED: usize = 10;

impl BackupRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`BackupError::Exists`] if the file exists and is not to be replaced, [`BackupError::Refused`] if it
    /// cannot be written, [`BackupError::Unsound`] and [`BackupError::Payload`] if the copy failed its check, and
    /// [`BackupError::Store`] if the vault cannot be read; with the kind
    /// [`Unsupported`](crate::storage::ErrorKind::Unsupported) if the engine has no file. The file then has its previous
    /// content.
    pub fn run(&self, vault: &Vault) -> Result<BackupAnswer, BackupError> {
        self.run_watched(vault, &mut |_| {})
    }

    /// Creates a request that replaces no file and checks all blobs.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), force: false, sample: default_sample() }
    }

    /// Runs the operation, and calls `watch` with its progress.
    ///
    /// ```
    /// # use runvault::{Vault, intake::ExamineOptions, vault::backup::BackupRequest};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let request = BackupRequest::new(directory.path().join("copy.vault"));
    /// let mut steps = 0;
    /// let backup = request.run_watched(&vault, &mut |_| steps += 1)?;
    /// assert_eq!((backup.artifacts, backup.journal_entries), (1, 1));
    /// assert!(steps > 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as [`Self::run`].
    pub fn run_watched(
        &self,
        vault: &Vault,
        watch: &mut dyn FnMut(BackupProgress),
    ) -> Result<BackupAnswer, BackupError> {
        let options = BackupOptions { force: self.force, sample: self.sample };
        vault.storage.expect(Capability::FileBackup)?;
        vault.storage.backup(&self.path, &options, watch).map(BackupAnswer::from)
    }
}

impl From<Backup> for BackupAnswer {
    fn from(backup: Backup) -> Self {
        let Backup { path, bytes, artifacts, captures, blobs, checked, journal, findings, .. } = backup;
        Self {
            file: path.as_path().into(),
            bytes,
            artifacts,
            captures,
            blobs,
            blobs_checked: checked,
            journal_entries: journal.seq,
            journal_head: journal.chain,
            findings: findings.len() as u64,
            first_findings: findings.iter().take(LISTED).map(FindingSummary::from).collect(),
        }
    }
}

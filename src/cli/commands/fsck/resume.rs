//! A file that records the progress of a check, so that the next check can resume it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use runvault::digest::CoreHash;
use runvault::files::{self, WriteOptions};
use serde::{Deserialize, Serialize};

use crate::cli::output::exit::CommandError;

/// Minimum time between writes of the file.
const EVERY: Duration = Duration::from_secs(1);

/// The progress of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FsckPosition {
    /// The scope of the check; a check of another scope cannot resume it.
    #[serde(rename = "asked")]
    pub(crate) scope: String,
    /// The last checked artifact.
    pub(crate) after: Option<CoreHash>,
    /// Number of checked artifacts, and below of reported findings.
    pub(crate) artifacts: u64,
    pub(crate) findings: u64,
}

/// The file, and its next contents.
pub(crate) struct FsckResumeFile {
    path: PathBuf,
    /// The vault, whose files must not be overwritten.
    vault: PathBuf,
    pub(crate) position: FsckPosition,
    written: Instant,
}

impl FsckResumeFile {
    /// Opens the progress of a check with the scope `scope` in the file `path`; starts at the beginning if there is no
    /// such file.
    pub(crate) fn open(path: &Path, scope: &str, vault: &Path) -> Result<Self, CommandError> {
        let failed = |error: &dyn std::fmt::Display| {
            CommandError::CouldNotRun(format!("cannot resume from {}: {error}", path.display()))
        };
        if files::is_of_vault(path, vault) {
            return Err(failed(&"this is the vault itself, or one of its files"));
        }
        let position = match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                failed(&format!("it is not a progress file ({error}); remove it to start over"))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                FsckPosition { scope: scope.to_owned(), ..FsckPosition::default() }
            }
            Err(error) => return Err(failed(&error)),
        };
        if position.scope != scope {
            let message = format!(
                "it belongs to a check with other options ({}); remove it to start over",
                position.scope
            );
            return Err(failed(&message));
        }
        Ok(Self { path: path.to_owned(), vault: vault.to_owned(), position, written: Instant::now() })
    }

    /// Records that everything up to this artifact was checked and reported.
    pub(crate) fn checked(&mut self, core: CoreHash) -> io::Result<()> {
        self.position.after = Some(core);
        self.position.artifacts += 1;
        if self.written.elapsed() < EVERY {
            return Ok(());
        }
        self.written = Instant::now();
        self.write()
    }

    /// Writes the file atomically.
    pub(crate) fn write(&self) -> io::Result<()> {
        let bytes = serde_json::to_vec(&self.position)?;
        let options = WriteOptions { replace: true, vault: Some(&self.vault), ..WriteOptions::default() };
        files::write(&self.path, &options, &bytes).map_err(io::Error::other)
    }

    /// Removes the file after a complete check.
    pub(crate) fn done(self) {
        // The file may never have been written.
        let _ = std::fs::remove_file(&self.path);
    }
}

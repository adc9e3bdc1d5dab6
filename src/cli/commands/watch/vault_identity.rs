//! Detection of a removed or replaced vault file.

use std::fs;
use std::path::{Path, PathBuf};

use super::CommandError;

/// The file of a vault that is open for days. If it is removed or replaced, artifacts would be stored in a file that is
/// no longer reachable.
pub(super) struct VaultIdentity {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl VaultIdentity {
    /// Records the identity of the vault that was just opened at `path`.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), identity: identity(path) }
    }

    /// Returns an error if there is now another file, or none, at the path.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        if self.identity == identity(&self.path) {
            return Ok(());
        }
        Err(CommandError::CouldNotRun(format!(
            "{} was removed or replaced, so added artifacts would be lost; stopped, run \"runvault \
             watch\" again",
            self.path.display()
        )))
    }
}

/// Returns the identity of a file, independent of its name.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Returns whether the file exists: on other systems an open file cannot be replaced.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|_| (0, 0))
}

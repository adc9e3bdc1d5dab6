//! Whether the vault that is written to is still the one at its path.

use std::fs;
use std::path::{Path, PathBuf};

use super::Failure;

/// The file of a vault that is held open for days. Somebody may remove it, or put another one in its place; what is
/// stored then is stored in a file that nobody can reach.
pub(super) struct Held {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl Held {
    /// Of the vault that was opened at `path` just now.
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), identity: identity(path) }
    }

    /// Fails if another file or none is at the path now.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.identity == identity(&self.path) {
            return Ok(());
        }
        Err(Failure::CouldNotRun(format!(
            "{} was removed or replaced, and what is added would be lost; nothing more is taken, start \"runvault \
             watch\" again",
            self.path.display()
        )))
    }
}

/// What tells files apart whatever they are called.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Elsewhere, what is open cannot be replaced; at most it is not there.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|_| (0, 0))
}

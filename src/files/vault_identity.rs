//! Detection of a removed or replaced vault file.

use std::fs;
use std::path::{Path, PathBuf};

/// The file of a vault that is open for a long time. If it is removed or replaced, artifacts would be stored in a file
/// that is no longer reachable.
#[derive(Clone, Debug)]
pub struct VaultIdentity {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl VaultIdentity {
    /// Records the identity of the vault that was just opened at `path`. A database has none, and never changes.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), identity: identity(path) }
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the same file is still at the path.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.identity == identity(&self.path)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_file_and_another_one_are_detected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("v");
        fs::write(&path, "one").unwrap();
        let identity = VaultIdentity::new(&path);
        assert!(identity.is_unchanged());
        let kept = directory.path().join("kept");
        fs::rename(&path, &kept).unwrap();
        assert!(!identity.is_unchanged());
        if cfg!(unix) {
            fs::write(&path, "two").unwrap();
            assert!(!identity.is_unchanged());
        }
        assert!(VaultIdentity::new(Path::new("postgresql://host/database")).is_unchanged());
    }
}

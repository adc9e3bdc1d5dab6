//! The files of a vault, which must not be overwritten.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::parent;
use crate::files::open_vaults::files_of;

/// Returns whether writing to `path` would overwrite or replace a file of `vault`: the database, its log and the files
/// beside it, under any name that leads to them (symbolic or hard link), or under a name that SQLite would use for
/// them. A directory belongs to the vault if it contains the vault.
#[must_use]
pub fn is_of_vault(path: &Path, vault: &Path) -> bool {
    let real = fs::canonicalize(vault).ok();
    let spellings = [Some(vault.to_owned()), real.clone()];
    let files: Vec<PathBuf> = spellings.iter().flatten().flat_map(|vault| files_of(vault)).collect();
    let target = fs::canonicalize(path).ok();
    let is_above = matches!((&target, &real), (Some(target), Some(real)) if real.starts_with(target));
    is_above
        || files.iter().any(|file| {
            has_same_name(path, file)
                || target.as_ref().is_some_and(|target| has_same_name(target, file))
                || is_same_file(path, file)
        })
}

/// Returns whether both paths are the same name in the same directory, whether or not the file exists.
fn has_same_name(one: &Path, other: &Path) -> bool {
    let is_same = match (one.file_name(), other.file_name()) {
        (Some(one), Some(other)) => is_same_name(one, other),
        _ => false,
    };
    is_same && is_same_file(parent(one), parent(other))
}

/// Returns whether the names are the same on the usual file systems of this platform: some ignore case.
fn is_same_name(one: &OsStr, other: &OsStr) -> bool {
    if cfg!(any(target_os = "macos", windows)) { one.eq_ignore_ascii_case(other) } else { one == other }
}

/// Whether both paths lead to one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        identity(one).is_some_and(|one| Some(one) == identity(other))
    }
    #[cfg(not(unix))]
    {
        let real = |path: &Path| fs::canonicalize(path).ok();
        real(one).is_some_and(|one| Some(one) == real(other))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_leads_to_a_file_of_the_vault_is_of_the_vault() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("d")).unwrap();
        for name in ["d/v", "d/v-shm", "other"] {
            fs::write(path(name), "").unwrap();
        }
        std::os::unix::fs::symlink("d/v", path("link")).unwrap();
        std::os::unix::fs::symlink("d", path("e")).unwrap();
        fs::hard_link(path("d/v-shm"), path("hard")).unwrap();
        for vault in ["d/v", "link", "e/v", "d/../d/v"] {
            for name in ["d/v", "d/v-wal", "d/v-journal", "link", "e/v-wal", "hard", "e/../d/v", "d", "."] {
                assert!(is_of_vault(&path(name), &path(vault)), "{name} of {vault}");
            }
            for name in ["other", "d/v-wa", "v-wal", "v", "no/v-wal"] {
                assert!(!is_of_vault(&path(name), &path(vault)), "{name} of {vault}");
            }
        }
        // A vault that does not exist yet.
        assert!(is_of_vault(&path("d/new-wal"), &path("e/new")));
        assert!(!is_of_vault(&path("new-wal"), &path("e/new")));
    }
}

//! Directories that survive a power loss, and staging directories, in which files are written before they are renamed.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir};

use super::set_aside;

/// The directory that `path` is in.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs the entries of `directory` to disk: files that were created, renamed or removed there.
///
/// # Errors
/// Returns an error if the directory cannot be opened or synced.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    // On other platforms, directories cannot be opened as files, and the system writes their entries with the files.
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Checks that a file is readable, without opening it.
#[cfg(unix)]
pub(crate) fn expect_readable(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, rustix::fs::Access::READ_OK)?)
}

/// Checks that a file is readable.
#[cfg(not(unix))]
pub(crate) fn expect_readable(path: &Path) -> io::Result<()> {
    File::open(path).map(drop)
}

/// Creates `directory` and its missing parents. They are synced to disk when this returns.
///
/// # Errors
/// Returns an error if a directory cannot be created or synced.
pub fn create_dir_all(directory: &Path) -> io::Result<()> {
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    let above = parent(directory);
    if above != directory {
        create_dir_all(above)?;
    }
    match fs::create_dir(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => {}
        outcome => outcome?,
    }
    sync_directory(above)
}

/// Syncs the entries of `directory` and of all directories above it to disk. One of them may have been created by a
/// process that ended before it synced it. Those that cannot be opened belong to other users, and existed before.
pub(crate) fn sync_ancestors(directory: &Path) -> io::Result<()> {
    sync_directory(directory)?;
    let real = fs::canonicalize(directory)?;
    for above in real.ancestors().skip(1) {
        match sync_directory(above) {
            Err(error) if is_of_others(&error) => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

/// Returns whether a directory cannot be synced because it belongs to other users, or to a file system that cannot be
/// written.
fn is_of_others(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::InvalidInput
            | ErrorKind::Unsupported
    )
}

/// The prefix of the names of staging directories. It does not depend on their content: any command removes those of
/// any other.
const PREFIX: &str = ".runvault-unfinished-";

/// The name of the lock file. It is locked while a process uses the directory; the lock of a terminated process is
/// released.
const LOCK: &str = "lock";

/// The name of the directory that contains a replaced directory, under its own name, until the new one is in place, if
/// they could not be exchanged in one step.
const REPLACED: &str = "replaced";

/// A directory beside the destination of a file, accessible to its owner only, in which the file is written.
pub(crate) struct StagingDir {
    directory: TempDir,
    _lock: File,
}

impl StagingDir {
    /// Creates a staging directory in `directory`, and removes those left there by killed processes.
    pub(crate) fn new_in(directory: &Path) -> io::Result<Self> {
        remove_leftovers(directory);
        loop {
            let staging = Builder::new().prefix(PREFIX).tempdir_in(directory)?;
            let path = staging.path().join(LOCK);
            let locked = restrict_to_owner(staging.path())
                .and_then(|()| File::create_new(&path))
                .and_then(|file| file.lock().map(|()| file));
            match locked {
                // Another process may have removed it as a leftover before it was locked.
                Ok(_) if !path.exists() => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Ok(lock) => return Ok(Self { directory: staging, _lock: lock }),
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the path of the entry `name` in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

#[cfg(unix)]
fn restrict_to_owner(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))
}

#[cfg(not(unix))]
fn restrict_to_owner(_: &Path) -> io::Result<()> {
    Ok(())
}

/// How an existing file or directory of that name is handled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplacePolicy {
    /// It is kept, and the error is [`ErrorKind::AlreadyExists`].
    Never,
    /// A file is replaced, and a directory is replaced by a directory.
    Existing,
}

/// Renames `staged` in `staging`, which must be synced, to `path`; the name is synced to disk when this returns. At
/// every moment `path` has its old or its complete new content, with one exception: where the file system cannot
/// exchange directories, a directory that is being replaced is briefly missing. If the process is killed in that
/// moment, the next staging directory beside it restores the old content.
pub(crate) fn place(
    staging: &StagingDir,
    staged: &Path,
    path: &Path,
    replace: ReplacePolicy,
) -> io::Result<()> {
    let is_directory = staged.is_dir();
    match replace {
        ReplacePolicy::Never => rename_to_free(staged, path, is_directory)?,
        ReplacePolicy::Existing if is_directory && path.exists() => exchange(staging, staged, path)?,
        ReplacePolicy::Existing => fs::rename(staged, path)?,
    }
    sync_directory(parent(path))
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_with(from: &Path, to: &Path, flags: rustix::fs::RenameFlags) -> Option<io::Result<()>> {
    use rustix::fs::{CWD, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, flags) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => None,
        outcome => Some(outcome.map_err(io::Error::from)),
    }
}

/// Renames `from` to `to`, unless `to` exists.
fn rename_to_free(from: &Path, to: &Path, is_directory: bool) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    if let Some(outcome) = rename_with(from, to, rustix::fs::RenameFlags::NOREPLACE) {
        return outcome;
    }
    if is_directory {
        // This can only replace an empty directory that was created since the check.
        return if fs::symlink_metadata(to).is_ok() {
            Err(ErrorKind::AlreadyExists.into())
        } else {
            fs::rename(from, to)
        };
    }
    tempfile::TempPath::try_from_path(from)?.persist_noclobber(to).map_err(|error| error.error)
}

/// Replaces the directory at `path` with the directory `staged`.
fn exchange(staging: &StagingDir, staged: &Path, path: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    if let Some(outcome) = rename_with(staged, path, rustix::fs::RenameFlags::EXCHANGE) {
        return outcome;
    }
    let replaced = staging.path(REPLACED);
    fs::create_dir(&replaced)?;
    let old = replaced.join(path.file_name().ok_or(ErrorKind::InvalidFilename)?);
    fs::rename(path, &old)?;
    fs::rename(staged, path).inspect_err(|_| {
        // The error to return is the first one.
        let _ = fs::rename(&old, path);
    })
}

/// Removes the staging directories that no process uses any more, and recovers files that were set aside. Those that
/// cannot be removed are harmless.
fn remove_leftovers(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut is_any_set_aside = false;
    for entry in entries.flatten() {
        is_any_set_aside |= set_aside::is_set_aside(&entry.file_name());
        let is_one = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if is_one && entry.file_type().is_ok_and(|file_type| file_type.is_dir()) {
            remove_leftover(directory, &entry.path());
        }
    }
    if is_any_set_aside {
        #[cfg(unix)]
        let _ = File::open(directory).map(set_aside::recover);
    }
}

fn remove_leftover(directory: &Path, path: &Path) {
    let remove = || {
        give_back(directory, path);
        fs::remove_dir_all(path)
    };
    let removed = match File::open(path.join(LOCK)) {
        // Before it is locked, it is empty; if it has no lock but is not empty, its removal was interrupted. The lock
        // may have been created in between.
        Err(error) if error.kind() == ErrorKind::NotFound && is_empty(path) => fs::remove_dir(path),
        Err(error) if error.kind() == ErrorKind::NotFound && !path.join(LOCK).exists() => remove(),
        Err(_) => return,
        Ok(lock) => match lock.try_lock() {
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return,
            Ok(()) => remove(),
        },
    };
    // Another process may be removing it.
    let _ = removed;
}

/// Restores directories whose replacement was interrupted, unless their names are taken.
fn give_back(directory: &Path, staging: &Path) {
    let Ok(entries) = fs::read_dir(staging.join(REPLACED)) else { return };
    for entry in entries.flatten() {
        let name: &OsStr = &entry.file_name();
        // If the new directory is already in place, the old one is no longer needed.
        let _ = rename_to_free(&entry.path(), &directory.join(name), true);
    }
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_about_to_be_replaced_gets_its_name_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let killed = |name: &str| path(&format!("{PREFIX}{name}/{REPLACED}/pack"));
        fs::create_dir_all(killed("first")).unwrap();
        fs::write(killed("first").join("run.json"), "old").unwrap();
        drop(StagingDir::new_in(directory.path()).unwrap());
        assert_eq!(fs::read(path("pack/run.json")).unwrap(), b"old");
        // The name is already taken.
        fs::create_dir_all(killed("second")).unwrap();
        fs::write(killed("second").join("run.json"), "older").unwrap();
        drop(StagingDir::new_in(directory.path()).unwrap());
        assert_eq!(fs::read(path("pack/run.json")).unwrap(), b"old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn where_a_process_works_stays() {
        let directory = tempfile::tempdir().unwrap();
        let working = StagingDir::new_in(directory.path()).unwrap();
        fs::write(working.path("new"), "half").unwrap();
        fs::write(directory.path().join(".runvault-aside-0123456789abcdef"), "moved aside").unwrap();
        let other = StagingDir::new_in(directory.path()).unwrap();
        assert_eq!(fs::read(working.path("new")).unwrap(), b"half");
        place(&working, &working.path("new"), &directory.path().join("file"), ReplacePolicy::Never).unwrap();
        fs::write(other.path("new"), "other").unwrap();
        let refused = place(&other, &other.path("new"), &directory.path().join("file"), ReplacePolicy::Never);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::AlreadyExists);
        drop((working, other));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}

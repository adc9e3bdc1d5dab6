//! Directories and directory entries that survive a power loss.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

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

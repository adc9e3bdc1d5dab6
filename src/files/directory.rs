//! Directories, and the names in them, that outlast a power loss.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// The directory that `path` is in.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes the names in `directory` to the disk: files that were created, renamed or removed there.
///
/// # Errors
/// Returns an error if the directory cannot be opened or synced.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    // Elsewhere, directories cannot be opened as files, and the system writes their names with the files.
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Makes sure that a file can be read, without opening it.
#[cfg(unix)]
pub(crate) fn expect_readable(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, rustix::fs::Access::READ_OK)?)
}

/// Makes sure that a file can be read.
#[cfg(not(unix))]
pub(crate) fn expect_readable(path: &Path) -> io::Result<()> {
    File::open(path).map(drop)
}

/// Creates `directory` and those above it that are missing. What was created is on the disk when this returns.
///
/// # Errors
/// Returns an error if one of them cannot be created or synced.
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

/// Writes the names of `directory` and of all directories above it to the disk. One of them may have been created by a
/// process that did not come to that. Those that cannot be opened belong to others, and were there before.
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

/// Whether a directory belongs to others, or to a file system that cannot be written.
fn is_of_others(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::InvalidInput
            | ErrorKind::Unsupported
    )
}

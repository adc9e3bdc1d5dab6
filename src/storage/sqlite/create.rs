//! Creation of the file of a vault: complete or not at all.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use super::connection::{self, sibling_path};
use super::schema;
use super::{Result, StorageError};
use crate::files::{self, ReplacePolicy, StagingDir};

/// Creates an empty vault at `path` that only its owner can read and write, and its missing parent directories, unless
/// there is a file. It has another name until all of it is on disk, so that a creation that fails or is interrupted leaves
/// no part of it. Its name is on disk when this returns.
pub(super) fn create(path: &Path) -> Result<()> {
    if path.as_os_str().is_empty() {
        return Err(connection::empty_path());
    }
    let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
    if exists(path) {
        // What is there becomes a vault when it is opened, or is the reason for an error.
        return connection::create_file(path);
    }
    let directory = files::parent(path);
    files::create_dir_all(directory).map_err(|source| StorageError::io(directory, source))?;
    connection::expect_files_beside(&connection::real(directory).join(path.file_name().unwrap_or_default()))?;
    if ["-journal", "-wal"].iter().any(|ending| exists(&sibling_path(path, ending))) {
        // They become part of the vault when it is opened, or are the reason for an error.
        return connection::create_file(path);
    }
    let failed = |source| StorageError::io(path, source);
    // The error would contain the name of the staging directory.
    let staging = StagingDir::new_in(directory).map_err(|error| failed(error.kind().into()))?;
    let staged = staging.path("vault");
    connection::create_private(&staged).map_err(failed)?;
    fill(&staged).map_err(|error| StorageError::from_sqlite_named(&staged, path, error))?;
    File::open(&staged).and_then(|file| file.sync_all()).map_err(failed)?;
    match files::place(&staging, &staged, path, ReplacePolicy::Never) {
        // Another process has created it in the meantime.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        placed => placed.map_err(failed)?,
    }
    files::sync_ancestors(directory).map_err(|source| StorageError::io(directory, source))
}

fn fill(staged: &Path) -> rusqlite::Result<()> {
    let mut connection = connection::connect(staged)?;
    schema::create_alone(&mut connection)?;
    connection.close().map_err(|(_, error)| error)
}

/// Returns whether the file at `path` is what an interrupted creation in an empty file leaves: a database with one page,
/// which has no tables, and without a log.
pub(super) fn is_unfinished(path: &Path) -> bool {
    let header = || {
        let mut header = [0; 100];
        File::open(path)?.read_exact(&mut header)?;
        std::io::Result::Ok((header, fs::metadata(path)?.len()))
    };
    let Ok((header, length)) = header() else { return false };
    let number = |at: usize| header.get(at..).and_then(|rest| rest.first_chunk::<4>()).copied();
    let page =
        header.get(16..18).map_or(0, |size| size.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)));
    let is_log_empty = ["-wal", "-journal"]
        .iter()
        .all(|ending| fs::metadata(sibling_path(path, ending)).map_or(true, |log| log.len() == 0));
    let [version, application] = [60, 68].map(number);
    header.starts_with(b"SQLite format 3\0")
        && length == page
        && (version, application) == (Some([0; 4]), Some([0; 4]))
        && is_log_empty
}

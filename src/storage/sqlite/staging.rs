//! A staging directory for a database that is built beside the vault and gets its final name only when it is complete.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::connection::{self, sibling_path};
use crate::files::{self, FileWriteError, ReplacePolicy, StagingDir, WriteOptions};

/// The path that a database will have, and a directory beside it in which it is built: SQLite puts further files beside
/// a database in use.
pub(super) struct StagedDatabase<'v> {
    path: PathBuf,
    staging: StagingDir,
    temp_path: PathBuf,
    options: WriteOptions<'v>,
}

impl<'v> StagedDatabase<'v> {
    /// Creates a staging directory for a file that is made from `vault` and will be at `path`. Removes the leftovers of
    /// interrupted processes.
    pub(super) fn at(path: &Path, vault: &'v Path, force: bool) -> Result<Self, FileWriteError> {
        let options = WriteOptions { replace: force, vault: Some(vault), ..WriteOptions::default() };
        files::check_target(path, &options)?;
        remove_unused_log(path);
        check_alone(path)?;
        let staging = files::staging_for(path)?;
        let unfinished = staging.path("copy");
        Ok(Self { path: path.to_owned(), staging, temp_path: unfinished, options })
    }

    /// Returns the temporary path.
    pub(super) fn temp_path(&self) -> &Path {
        &self.temp_path
    }

    /// Moves the file to its final path; returns its size in bytes.
    pub(super) fn finish(self) -> Result<u64, FileWriteError> {
        let Self { path, temp_path: unfinished, options, staging } = &self;
        let bytes = sync(unfinished).map_err(FileWriteError::io(unfinished))?;
        // A log left by an earlier database would be applied to the new one.
        check_alone(path)?;
        files::check_target(path, options)?;
        let replace = if options.replace { ReplacePolicy::Existing } else { ReplacePolicy::Never };
        files::place(staging, unfinished, path, replace).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => FileWriteError::Exists { path: path.clone() },
            _ => FileWriteError::io(path)(error),
        })?;
        Ok(bytes)
    }
}

/// Lets SQLite remove the log of the database at `path` if no process has it open: one that was killed leaves it.
fn remove_unused_log(path: &Path) {
    if sibling_path(path, "-wal").exists() {
        // What is no vault, or cannot be written, keeps its log, which is then the reason for an error.
        let read =
            |connection: Connection| connection.query_row("SELECT 1 FROM sqlite_schema", [], |_| Ok(()));
        let _ = connection::connect(path).and_then(read);
    }
}

/// Checks that there is no log of a database at `path`: it would be applied to the new one.
fn check_alone(path: &Path) -> Result<(), FileWriteError> {
    for ending in ["-wal", "-journal"] {
        let name = sibling_path(path, ending);
        if fs::symlink_metadata(&name).is_ok() {
            let name = name.display();
            let reason = format!(
                "{name} exists, so a vault with this name is in use or was not closed; choose another file, or move \
                 both away"
            );
            return Err(FileWriteError::Refused { path: path.to_owned(), reason });
        }
    }
    Ok(())
}

/// Syncs the file at `path` to disk; returns its size.
fn sync(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

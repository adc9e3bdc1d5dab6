//! Files and directories that are written completely or not at all, and never over a file of a vault.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::staging::{ReplacePolicy, StagingDir, parent, place};
use super::{FileWriteError, Permissions, WriteOptions, files_of};

/// A file with a temporary name until all of it is synced to disk. It is removed if it is dropped before
/// [`StagedFile::commit`].
pub struct StagedFile<'v> {
    file: File,
    staged: PathBuf,
    staging: StagingDir,
    path: PathBuf,
    options: WriteOptions<'v>,
}

impl<'v> StagedFile<'v> {
    /// Starts writing the file `path`.
    ///
    /// # Errors
    /// Returns [`FileWriteError::Exists`] if the file exists and must not be replaced, [`FileWriteError::Refused`] if
    /// `path` is a file of the vault, is not a file, or is not the name of a file in an existing, writable directory,
    /// and [`FileWriteError::Io`] on other system errors, such as a full disk.
    pub fn create(path: &Path, options: &WriteOptions<'v>) -> Result<Self, FileWriteError> {
        check_target(path, options)?;
        let staging = staging_for(path)?;
        let staged = staging.path("new");
        let file = create(&staged, options.permissions).map_err(FileWriteError::io(path))?;
        Ok(Self { file, staged, staging, path: path.to_owned(), options: *options })
    }

    /// Renames the file to its final name. Its content and its name are synced to disk when this returns.
    ///
    /// # Errors
    /// Same as [`StagedFile::create`]: the file at the path may have changed since.
    pub fn commit(self) -> Result<(), FileWriteError> {
        let failed = FileWriteError::io(&self.path);
        set_permissions(&self.file, self.options.permissions).map_err(&failed)?;
        self.file.sync_all().map_err(&failed)?;
        check_target(&self.path, &self.options)?;
        finish(&self.staging, &self.staged, &self.path, self.options.replace)
    }
}

impl Write for StagedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes `bytes` to the file `path`. They are synced to disk when this returns.
///
/// # Errors
/// Same as [`StagedFile::create`].
pub fn write(path: &Path, options: &WriteOptions<'_>, bytes: &[u8]) -> Result<(), FileWriteError> {
    let mut file = StagedFile::create(path, options)?;
    file.write_all(bytes).map_err(FileWriteError::io(path))?;
    file.commit()
}

/// A directory with a temporary name until all of it is synced to disk. It is removed if it is dropped before
/// [`StagedDirectory::commit`].
pub struct StagedDirectory<'v> {
    staged: PathBuf,
    staging: StagingDir,
    path: PathBuf,
    options: WriteOptions<'v>,
    /// Whether it takes the place of an empty directory.
    fills: bool,
}

impl<'v> StagedDirectory<'v> {
    /// Starts writing the directory `path`. An existing directory is replaced with all its content if `options` allow it;
    /// anything else is not replaced.
    ///
    /// # Errors
    /// Returns [`FileWriteError::Exists`] if `path` exists and must not be replaced, [`FileWriteError::Refused`] if it
    /// is not a directory, contains a file of the vault, or is not in an existing, writable directory, and
    /// [`FileWriteError::Io`] on other system errors, such as a full disk.
    pub fn create(path: &Path, options: &WriteOptions<'v>) -> Result<Self, FileWriteError> {
        Self::start(path, options, false)
    }

    /// Starts writing the directory `path`, which must not exist, or be empty.
    ///
    /// # Errors
    /// Same as [`StagedDirectory::create`].
    pub fn create_or_fill(path: &Path, options: &WriteOptions<'v>) -> Result<Self, FileWriteError> {
        Self::start(path, options, is_empty_directory(path))
    }

    fn start(path: &Path, options: &WriteOptions<'v>, fills: bool) -> Result<Self, FileWriteError> {
        // Without a trailing slash, with which a link would be followed.
        let path: PathBuf = path.components().collect();
        if !fills {
            check_directory(&path, options)?;
        }
        let staging = staging_for(&path)?;
        let staged = staging.path("new");
        fs::DirBuilder::new().create(&staged).map_err(FileWriteError::io(&path))?;
        Ok(Self { staged, staging, path, options: *options, fills })
    }

    /// Writes the file `name` in it, and syncs it to disk.
    ///
    /// # Errors
    /// Returns [`FileWriteError::Io`] if the file cannot be written or exists.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), FileWriteError> {
        let mut file = self.create_file(name)?;
        file.write_all(bytes).map_err(FileWriteError::io(&self.path))?;
        self.close_file(&file)
    }

    /// Creates the file `name` in it.
    ///
    /// # Errors
    /// Returns [`FileWriteError::Io`] if the file cannot be created or exists.
    pub fn create_file(&self, name: &str) -> Result<File, FileWriteError> {
        create(&self.staged.join(name), self.options.permissions).map_err(FileWriteError::io(&self.path))
    }

    /// Sets the permissions of a complete file, and syncs it to disk.
    ///
    /// # Errors
    /// Returns [`FileWriteError::Io`] on a system error, such as a full disk.
    pub fn close_file(&self, file: &File) -> Result<(), FileWriteError> {
        let closed = set_permissions(file, self.options.permissions).and_then(|()| file.sync_all());
        closed.map_err(FileWriteError::io(&self.path))
    }

    /// Renames the directory to its final name. Its content and its name are synced to disk when this returns.
    ///
    /// # Errors
    /// Same as [`StagedDirectory::create`]: what is at the path may have changed since.
    pub fn commit(self) -> Result<(), FileWriteError> {
        let failed = FileWriteError::io(&self.path);
        let sync = || {
            let directory = File::open(&self.staged)?;
            set_directory_permissions(&directory, self.options.permissions)?;
            if cfg!(unix) { directory.sync_all() } else { Ok(()) }
        };
        sync().map_err(&failed)?;
        if self.fills {
            // This fails if it is not empty any more.
            fs::remove_dir(&self.path).map_err(&failed)?;
        }
        check_directory(&self.path, &self.options)?;
        finish(&self.staging, &self.staged, &self.path, self.options.replace)
    }
}

fn is_empty_directory(path: &Path) -> bool {
    let is_directory = fs::symlink_metadata(path).is_ok_and(|there| there.is_dir());
    is_directory
        && path.file_name().is_some()
        && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Writes a directory of `files`, as names and contents, to `path`. It is synced to disk when this returns. An existing
/// directory is replaced with all its content if `options` allow it; anything else is not replaced.
///
/// # Errors
/// Same as [`StagedDirectory::create`].
pub fn write_directory<'f>(
    path: &Path,
    options: &WriteOptions<'_>,
    files: impl IntoIterator<Item = (&'f str, &'f [u8])>,
) -> Result<(), FileWriteError> {
    let mut directory = StagedDirectory::create(path, options)?;
    for (name, bytes) in files {
        directory.write(name, bytes)?;
    }
    directory.commit()
}

/// Creates the staging directory for the file `path`.
pub(crate) fn staging_for(path: &Path) -> Result<StagingDir, FileWriteError> {
    let directory = parent(path);
    if !directory.is_dir() {
        return Err(FileWriteError::refused(path, "there is no such directory"));
    }
    // The error would contain the name of the staging directory, which the caller does not know.
    StagingDir::new_in(directory).map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FileWriteError::io(path)(error),
        kind => FileWriteError::refused(path, format!("cannot write to its directory: {kind}")),
    })
}

fn finish(staging: &StagingDir, staged: &Path, path: &Path, replace: bool) -> Result<(), FileWriteError> {
    let replace = if replace { ReplacePolicy::Existing } else { ReplacePolicy::Never };
    place(staging, staged, path, replace).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => FileWriteError::Exists { path: path.to_owned() },
        _ => FileWriteError::io(path)(error),
    })
}

/// Checks that a file may be written to `path`.
pub(crate) fn check_target(path: &Path, options: &WriteOptions<'_>) -> Result<(), FileWriteError> {
    let ends_in_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(FileWriteError::io(path)(error)),
        Ok(there) if !is_replaceable(path, &there) => {
            return Err(FileWriteError::refused(path, "it exists and is not a file"));
        }
        Ok(_) if ends_in_slash => {}
        Ok(_) => {
            check_not_of_vault(path, options)?;
            return if options.replace {
                Ok(())
            } else {
                Err(FileWriteError::Exists { path: path.to_owned() })
            };
        }
    }
    if path.file_name().is_none() || ends_in_slash {
        return Err(FileWriteError::refused(path, "this is not a file name"));
    }
    check_not_of_vault(path, options)
}

/// Returns whether the existing entry is a file, or a link to a file, a directory or nothing. The target of a link is
/// not changed. A link to a device, such as /dev/stdout, means the device and is not replaced.
fn is_replaceable(path: &Path, there: &fs::Metadata) -> bool {
    let leads_to_file = || fs::metadata(path).map_or(true, |meant| meant.is_file() || meant.is_dir());
    there.is_file() || (there.is_symlink() && leads_to_file())
}

/// Checks that a directory may be written to `path`.
fn check_directory(path: &Path, options: &WriteOptions<'_>) -> Result<(), FileWriteError> {
    let refused = |reason: &str| Err(FileWriteError::refused(path, reason));
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(FileWriteError::io(path)(error)),
        Ok(_) if !options.replace => return Err(FileWriteError::Exists { path: path.to_owned() }),
        Ok(there) if !there.is_dir() => return refused("it exists and is not a directory"),
        Ok(_) if path.file_name().is_none() => {
            return refused("it cannot be replaced under this path; use one that ends in its name");
        }
        Ok(_) => {}
    }
    check_not_of_vault(path, options)
}

fn check_not_of_vault(path: &Path, options: &WriteOptions<'_>) -> Result<(), FileWriteError> {
    if options.vault.is_some_and(|vault| is_of_vault(path, vault)) {
        let reason = "this is the vault itself, or one of its files";
        return Err(FileWriteError::refused(path, reason));
    }
    Ok(())
}

/// Creates a file. At no time does it have more permissions than its final ones.
fn create(path: &Path, permissions: Permissions) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        let mode = if permissions == Permissions::Umask { 0o666 } else { 0o600 };
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    }
    let _ = permissions;
    options.open(path)
}

#[cfg(unix)]
fn set_permissions(file: &File, permissions: Permissions) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    match permissions {
        Permissions::Exactly(mode) => file.set_permissions(fs::Permissions::from_mode(mode)),
        Permissions::Owner | Permissions::Umask => Ok(()),
    }
}

/// Sets the permissions of a directory. The umask was applied when it was created. Read permission also grants
/// permission to enter it.
#[cfg(unix)]
fn set_directory_permissions(directory: &File, permissions: Permissions) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = match permissions {
        Permissions::Umask => return Ok(()),
        Permissions::Owner => directory.metadata()?.permissions().mode() & 0o700,
        Permissions::Exactly(mode) => mode | ((mode & 0o444) >> 2),
    };
    directory.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_permissions(_: &File, _: Permissions) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn set_directory_permissions(_: &File, _: Permissions) -> io::Result<()> {
    Ok(())
}

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

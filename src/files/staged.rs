//! Files and directories that are written completely or not at all.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::directory::parent;
use super::staging::{ReplacePolicy, StagingDir, place};
use super::{FileWriteError, Permissions, WriteOptions, is_of_vault};

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

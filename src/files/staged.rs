//! Files and directories that are written whole.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::directory::parent;
use super::staging::{Replace, StagingDir, place};
use super::{Permissions, WriteError, WriteOptions, is_of_vault};

/// A file that has another name until all of it is on the disk. Dropped before [`StagedFile::commit`], it is removed.
pub struct StagedFile<'v> {
    file: File,
    staged: PathBuf,
    staging: StagingDir,
    path: PathBuf,
    options: WriteOptions<'v>,
}

impl<'v> StagedFile<'v> {
    /// Begins to write the file `path`.
    ///
    /// # Errors
    /// Returns [`WriteError::Exists`] if there is a file that must not be replaced, [`WriteError::Refused`] if `path` is a
    /// file of the vault, something else than a file, or not the name of a file in an existing directory, and
    /// [`WriteError::Io`] if the directory cannot be written.
    pub fn create(path: &Path, options: &WriteOptions<'v>) -> Result<Self, WriteError> {
        check_target(path, options)?;
        let staging = staging_for(path)?;
        let staged = staging.path("new");
        let file = create(&staged, options.permissions).map_err(WriteError::io(path))?;
        Ok(Self { file, staged, staging, path: path.to_owned(), options: *options })
    }

    /// Gives the file its name. Its bytes and its name are on the disk when this returns.
    ///
    /// # Errors
    /// As for [`StagedFile::create`]: what the name stands for may have changed since.
    pub fn commit(self) -> Result<(), WriteError> {
        let failed = WriteError::io(&self.path);
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

/// Writes `bytes` to the file `path`. They are on the disk when this returns.
///
/// # Errors
/// As for [`StagedFile::create`].
pub fn write(path: &Path, options: &WriteOptions<'_>, bytes: &[u8]) -> Result<(), WriteError> {
    let mut file = StagedFile::create(path, options)?;
    file.write_all(bytes).map_err(WriteError::io(path))?;
    file.commit()
}

/// Makes a directory of `files`, names and contents, at `path`. It is on the disk when this returns. A directory that is
/// there is replaced with all that is in it, if `options` allow that; anything else is not.
///
/// # Errors
/// Returns [`WriteError::Exists`] if there is something that must not be replaced, [`WriteError::Refused`] if that is no
/// directory, or has a file of the vault in it, and [`WriteError::Io`] if it cannot be written.
pub fn write_directory<'f>(
    path: &Path,
    options: &WriteOptions<'_>,
    files: impl IntoIterator<Item = (&'f str, &'f [u8])>,
) -> Result<(), WriteError> {
    // Without a slash at the end, behind which a link would be followed.
    let path: &Path = &path.components().collect::<PathBuf>();
    check_directory(path, options)?;
    let staging = staging_for(path)?;
    let staged = staging.path("new");
    make_directory(&staged, options.permissions, files).map_err(WriteError::io(path))?;
    check_directory(path, options)?;
    finish(&staging, &staged, path, options.replace)
}

fn make_directory<'f>(
    staged: &Path,
    permissions: Permissions,
    files: impl IntoIterator<Item = (&'f str, &'f [u8])>,
) -> io::Result<()> {
    fs::DirBuilder::new().create(staged)?;
    for (name, bytes) in files {
        let mut file = create(&staged.join(name), permissions)?;
        file.write_all(bytes)?;
        set_permissions(&file, permissions)?;
        file.sync_all()?;
    }
    let directory = File::open(staged)?;
    set_directory_permissions(&directory, permissions)?;
    if cfg!(unix) { directory.sync_all() } else { Ok(()) }
}

/// Where the file `path` can be made.
pub(crate) fn staging_for(path: &Path) -> Result<StagingDir, WriteError> {
    let directory = parent(path);
    if !directory.is_dir() {
        return Err(WriteError::refused(path, "there is no such directory"));
    }
    // The error would name a directory with a name that the caller does not know.
    StagingDir::new_in(directory).map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => WriteError::io(path)(error),
        kind => WriteError::refused(path, format!("cannot write to its directory: {kind}")),
    })
}

fn finish(staging: &StagingDir, staged: &Path, path: &Path, replace: bool) -> Result<(), WriteError> {
    let replace = if replace { Replace::Existing } else { Replace::Never };
    place(staging, staged, path, replace).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => WriteError::Exists { path: path.to_owned() },
        _ => WriteError::io(path)(error),
    })
}

/// Makes sure that a file may be put at `path`.
pub(crate) fn check_target(path: &Path, options: &WriteOptions<'_>) -> Result<(), WriteError> {
    let ends_in_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(WriteError::io(path)(error)),
        Ok(there) if !is_replaceable(path, &there) => {
            return Err(WriteError::refused(path, "it exists and is not a file"));
        }
        Ok(_) if ends_in_slash => {}
        Ok(_) => {
            check_not_of_vault(path, options)?;
            return if options.replace { Ok(()) } else { Err(WriteError::Exists { path: path.to_owned() }) };
        }
    }
    if path.file_name().is_none() || ends_in_slash {
        return Err(WriteError::refused(path, "this is not the name of a file"));
    }
    check_not_of_vault(path, options)
}

/// Whether what is there is a file, or a link to one or to nothing. What a link leads to is not touched, but a device is
/// meant where one is named, as by /dev/stdout.
fn is_replaceable(path: &Path, there: &fs::Metadata) -> bool {
    let leads_to_file = || fs::metadata(path).map_or(true, |meant| meant.is_file() || meant.is_dir());
    there.is_file() || (there.is_symlink() && leads_to_file())
}

/// Makes sure that a directory may be put at `path`.
fn check_directory(path: &Path, options: &WriteOptions<'_>) -> Result<(), WriteError> {
    let refused = |reason: &str| Err(WriteError::refused(path, reason));
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(WriteError::io(path)(error)),
        Ok(_) if !options.replace => return Err(WriteError::Exists { path: path.to_owned() }),
        Ok(there) if !there.is_dir() => return refused("it exists and is not a directory"),
        Ok(_) if path.file_name().is_none() => {
            return refused("it cannot be replaced by this name; use a path that ends in its name");
        }
        Ok(_) => {}
    }
    check_not_of_vault(path, options)
}

fn check_not_of_vault(path: &Path, options: &WriteOptions<'_>) -> Result<(), WriteError> {
    if options.vault.is_some_and(|vault| is_of_vault(path, vault)) {
        let reason = "this is the vault itself, or one of its files (-wal, -shm, -journal)";
        return Err(WriteError::refused(path, reason));
    }
    Ok(())
}

/// Creates a file. At no time does it have more permissions than in the end.
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

/// The umask was applied when the directory was made. Who may read its files may enter it.
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

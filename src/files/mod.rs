//! Files that the library writes beside the vault: completely or not at all, synced to disk when the call returns, and
//! never over a file of the vault.
//!
//! Everything is written in a staging directory beside its destination, synced and renamed, and then the containing
//! directory is synced: after a power loss the name has its old content, or the complete new content. A killed process
//! leaves its staging directory behind; the next write into the same directory removes it, and recovers the files that an
//! interrupted move has renamed.
//!
//! Of the vaults that this process has open, a registry is kept, so that no other code opens and closes their files, and that
//! their removal or replacement is detected.
//!
//! SQLite coordinates processes with locks that belong to a process and a file, and the system releases all of them
//! when the process closes the file, whichever handle it used. If a process that uses a vault also reads the vault's
//! file in another way, for example when it searches the containing directory for artifacts, the next process takes the
//! vault for unused and removes its log, and later writes to that log are lost.

pub(crate) mod set_aside;
mod staged;
mod staging;

pub use staged::{StagedDirectory, StagedFile, is_of_vault, write, write_directory};
pub(crate) use staged::{check_target, staging_for};
pub(crate) use staging::{ReplacePolicy, StagingDir, expect_readable, parent, place, sync_ancestors};
pub use staging::{create_dir_all, sync_directory};

use std::collections::BTreeMap;
#[cfg(unix)]
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

/// The permissions of a written file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// Readable and writable by its owner only (0600; a directory: 0700), further restricted by the umask.
    #[default]
    Owner,
    /// Readable and writable by everyone, as the umask permits (0666).
    Umask,
    /// These bits, regardless of the umask. On a directory, read permission also grants permission to enter it.
    Exactly(u32),
}

/// Options for writing a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions<'v> {
    /// Whether an existing file is replaced. A link is replaced, not followed.
    pub replace: bool,
    /// The permissions of the new file; those of a replaced file are ignored.
    pub permissions: Permissions,
    /// The vault whose own files must not be overwritten.
    pub vault: Option<&'v Path>,
}

/// The reason that a file was not written. Existing content at its path is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum FileWriteError {
    /// The file exists and must not be replaced.
    #[error("cannot write {}: it already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written at this path, for the given reason.
    #[error("cannot write {}: {reason}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A system error.
    #[error("cannot write {}: {}", path.display(), describe(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl FileWriteError {
    fn refused(path: &Path, reason: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), reason: reason.into() }
    }

    /// Returns what makes a system error about `path` one of these.
    pub fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path: path.clone(), source }
    }
}

/// Returns the message for a system error. A full disk has the same message on every platform.
#[must_use]
pub fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "the disk is full: the quota is exceeded".to_owned(),
        io::ErrorKind::FileTooLarge => "the disk is full, or the file size limit is exceeded".to_owned(),
        _ => error.to_string(),
    }
}

/// The identity of a file, regardless of its name.
type DeviceInode = (u64, u64);

/// The suffixes of the names of a vault's files: the database, its log, the memory that processes share, and the journal of
/// SQLite's other mode, which SQLite would roll back into the database.
const SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Returns the paths of all files that SQLite uses for the vault at `path`.
pub(crate) fn files_of(path: &Path) -> impl Iterator<Item = PathBuf> {
    SUFFIXES.iter().map(move |suffix| {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        file.into()
    })
}

/// The open vaults.
static OPEN: Mutex<BTreeMap<DeviceInode, OpenVault>> = Mutex::new(BTreeMap::new());

struct OpenVault {
    /// The number of registrations.
    count: usize,
    /// Its files.
    files: Vec<PathBuf>,
}

impl OpenVault {
    fn new(path: &Path) -> Self {
        Self { count: 0, files: files_of(path).collect() }
    }
}

/// A registration of an open vault, which counts as open until this is dropped.
pub(crate) struct Registration {
    identity: Option<DeviceInode>,
}

impl Registration {
    /// Registers the vault at `path` as open, after calling `look` to examine its files if it was not open before.
    /// `look` receives the path without symbolic links.
    ///
    /// # Errors
    /// Returns the error of `look`.
    pub(crate) fn after<T, E>(
        path: &Path,
        look: impl FnOnce(&Path) -> Result<T, E>,
    ) -> Result<(Self, Option<T>), E> {
        let mut open = OPEN.lock();
        let is_open = identity(path).is_some_and(|identity| open.contains_key(&identity));
        let path = target(path);
        let seen = if is_open { None } else { Some(look(&path)?) };
        Ok((Self::in_open(&path, &mut open), seen))
    }

    fn in_open(path: &Path, open: &mut BTreeMap<DeviceInode, OpenVault>) -> Self {
        let identity = identity(path);
        if let Some(identity) = identity {
            open.entry(identity).or_insert_with(|| OpenVault::new(path)).count += 1;
        }
        Self { identity }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some(identity) = self.identity else { return };
        let mut open = OPEN.lock();
        if let Some(vault) = open.get_mut(&identity) {
            vault.count -= 1;
            if vault.count == 0 {
                open.remove(&identity);
            }
        }
    }
}

/// Returns the target of a symbolic link: SQLite uses the other files beside it.
fn target(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns whether SQLite has the file at `path`, or the target of a link there, open in this process.
fn has_open(path: &Path) -> bool {
    let open = OPEN.lock();
    if open.is_empty() {
        return false;
    }
    let Some(own) = identity(path) else { return false };
    let mut files = open.values().flat_map(|vault| &vault.files);
    files.any(|file| identity(file) == Some(own))
}

/// Returns whether a file that SQLite has open in this process has this name, in any directory. A vault has one name: a
/// file with several hard links is refused.
#[cfg(unix)]
pub(crate) fn has_open_named(name: &OsStr) -> bool {
    OPEN.lock().values().flat_map(|vault| &vault.files).any(|file| file.file_name() == Some(name))
}

/// Returns whether SQLite has the file with this device and inode number open in this process.
#[cfg(unix)]
pub(crate) fn has_open_file(device: u64, number: u64) -> bool {
    let open = OPEN.lock();
    open.values().flat_map(|vault| &vault.files).any(|file| identity(file) == Some((device, number)))
}

/// Returns the identity of a file, regardless of its name.
#[cfg(unix)]
fn identity(path: &Path) -> Option<DeviceInode> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// On other platforms, locks belong to the file handle.
#[cfg(not(unix))]
fn identity(_: &Path) -> Option<DeviceInode> {
    None
}

/// The file of a vault that is open for a long time. If it is removed or replaced, artifacts would be stored in a file
/// that is no longer reachable.
#[derive(Clone, Debug)]
pub struct VaultIdentity {
    path: PathBuf,
    found: (bool, Option<DeviceInode>),
}

impl VaultIdentity {
    /// Records the identity of the vault that was just opened at `path`. A database has none, and never changes.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), found: existence(path) }
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the same file is still at the path.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.found == existence(&self.path)
    }
}

/// Returns whether a file exists, and its identity. On systems without identities, an open file cannot be replaced.
fn existence(path: &Path) -> (bool, Option<DeviceInode>) {
    (path.exists(), identity(path))
}

/// Opens a file for reading, unless it belongs to a vault that this process has open.
///
/// # Errors
/// Returns an error if the file cannot be opened, or belongs to such a vault.
pub fn open(path: &Path) -> io::Result<File> {
    if has_open(path) {
        return Err(in_use());
    }
    File::open(path)
}

/// Returns the error for opening a file of a vault that this process has open.
pub(crate) fn in_use() -> io::Error {
    io::Error::other(VaultFileInUse)
}

/// Returns whether an error is that of [`in_use`].
pub(crate) fn is_in_use(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<VaultFileInUse>)
}

#[derive(Debug, thiserror::Error)]
#[error("this is the vault itself, or one of its files")]
struct VaultFileInUse;

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn files_of_a_vault_are_known_as_long_as_it_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["v", "v-wal", "other"] {
            fs::write(path(name), "").unwrap();
        }
        std::os::unix::fs::symlink("v-wal", path("link")).unwrap();
        let register = || Registration::after(&path("v"), |_| Ok::<_, ()>(())).unwrap().0;
        let registrations = [register(), register()];
        for registration in registrations {
            assert!(has_open(&path("v")) && has_open(&path("v-wal")) && has_open(&path("link")));
            assert!(!has_open(&path("other")));
            assert!(!has_open(&path("v-shm")), "there is none");
            drop(registration);
        }
        assert!(!has_open(&path("v")));
    }

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

//! Registry of the vaults that this process has open, so that no other code opens and closes their files.
//!
//! POSIX releases all locks of a process on a file when the process closes the file, even if it has other handles of
//! it. SQLite takes this into account for the files that it opens itself. If other code reads them, for example when
//! adding a directory that contains the vault, other processes take this one for terminated: they delete the log that
//! it writes to, and shrink the memory that it maps.

use std::collections::BTreeMap;
#[cfg(unix)]
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
        let mut open = open();
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
        let mut open = open();
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
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns whether SQLite has the file at `path`, or the target of a link there, open in this process.
pub(crate) fn has_open(path: &Path) -> bool {
    let open = open();
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
    open().values().flat_map(|vault| &vault.files).any(|file| file.file_name() == Some(name))
}

/// Returns whether SQLite has the file with this device and inode number open in this process.
#[cfg(unix)]
pub(crate) fn has_open_file(device: u64, number: u64) -> bool {
    let open = open();
    open.values().flat_map(|vault| &vault.files).any(|file| identity(file) == Some((device, number)))
}

fn open() -> MutexGuard<'static, BTreeMap<DeviceInode, OpenVault>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<DeviceInode> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// On other platforms, locks belong to the file handle.
#[cfg(not(unix))]
fn identity(_: &Path) -> Option<DeviceInode> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn files_of_a_vault_are_known_as_long_as_it_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["v", "v-wal", "other"] {
            std::fs::write(path(name), "").unwrap();
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
}

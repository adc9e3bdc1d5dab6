//! Which vaults this process has open.
//!
//! POSIX takes all locks of a process on a file away when the process closes the file, however often it has it open. SQLite
//! knows that of the files that it opens itself. So nothing else may open and close a file that SQLite has open here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What tells files apart whatever they are called.
type Identity = (u64, u64);

/// How often each vault is open.
static OPEN: Mutex<BTreeMap<Identity, usize>> = Mutex::new(BTreeMap::new());

/// As long as this is there, its vault counts as open.
pub(in crate::store) struct Registration {
    identity: Option<Identity>,
}

impl Registration {
    /// Counts the vault at `path`, which is open already, as open once more.
    pub(in crate::store) fn new(path: &Path) -> Self {
        Self::in_open(path, &mut open())
    }

    fn in_open(path: &Path, open: &mut BTreeMap<Identity, usize>) -> Self {
        let identity = identity(path);
        if let Some(identity) = identity {
            *open.entry(identity).or_insert(0) += 1;
        }
        Self { identity }
    }

    /// Counts the vault at `path` as open, after `look` looked at its files if it was not open before.
    pub(in crate::store) fn after<T, E>(
        path: &Path,
        look: impl FnOnce() -> Result<T, E>,
    ) -> Result<(Self, Option<T>), E> {
        let mut open = open();
        let is_open = identity(path).is_some_and(|identity| open.contains_key(&identity));
        let seen = if is_open { None } else { Some(look()?) };
        Ok((Self::in_open(path, &mut open), seen))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some(identity) = self.identity else { return };
        let mut open = open();
        if let Some(count) = open.get_mut(&identity) {
            *count -= 1;
            if *count == 0 {
                open.remove(&identity);
            }
        }
    }
}

fn open() -> MutexGuard<'static, BTreeMap<Identity, usize>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Elsewhere, locks belong to what was opened.
#[cfg(not(unix))]
fn identity(_: &Path) -> Option<Identity> {
    None
}

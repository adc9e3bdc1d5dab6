//! Where a database beside the vault is made, and where it goes: under its own name only when it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir, TempPath};

use super::StoreError;
use super::pool::sync_directory;

/// Its lock is held as long as somebody works in the directory. A process that is gone holds none.
const LOCK: &str = "lock";

/// Why a database cannot be put somewhere.
pub(super) enum PlaceError {
    /// There is a file already, and nobody said that it may be replaced.
    Exists(PathBuf),
    /// For another reason.
    Refused { path: PathBuf, reason: String },
    /// What the system says.
    Store(StoreError),
}

/// The file that a database is to become, and a directory beside it in which it is made: a database is never alone while
/// it is used.
pub(super) struct Place {
    path: PathBuf,
    workplace: TempDir,
    unfinished: PathBuf,
    force: bool,
    _lock: File,
}

impl Place {
    /// A place for what is made of `vault` to become `path`. Removes what was left there by who was interrupted.
    pub(super) fn at(path: &Path, vault: &Path, force: bool) -> Result<Self, PlaceError> {
        let refused = |reason: &str| PlaceError::Refused { path: path.to_owned(), reason: reason.to_owned() };
        let name = path.file_name().ok_or_else(|| refused("this is not the name of a file"))?;
        let directory = parent(path);
        if !directory.is_dir() {
            return Err(refused("there is no such directory"));
        }
        check_free(path, vault, force)?;
        let prefix = prefix(name);
        remove_leftovers(directory, &prefix);
        let (workplace, lock) = workplace(directory, &prefix).map_err(|error| {
            // The error would name a directory with a name that nobody gave.
            refused(&format!("nothing can be written into its directory: {}", error.kind()))
        })?;
        let unfinished = workplace.path().join("copy");
        Ok(Self { path: path.to_owned(), workplace, unfinished, force, _lock: lock })
    }

    /// Where to make it.
    pub(super) fn unfinished(&self) -> &Path {
        &self.unfinished
    }

    /// Gives it its name; gives its size in bytes.
    pub(super) fn finish(self) -> Result<u64, PlaceError> {
        let Self { path, unfinished, force, workplace, .. } = &self;
        let bytes = sync(unfinished).map_err(failed(unfinished))?;
        // The log of a database that was here would be taken for that of the new one.
        check_alone(path)?;
        let made = TempPath::try_from_path(unfinished).map_err(failed(unfinished))?;
        let placed = if *force { made.persist(path) } else { made.persist_noclobber(path) };
        placed.map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => PlaceError::Exists(path.clone()),
            _ => failed(path)(error.error),
        })?;
        let directory = parent(path);
        sync_directory(directory).map_err(failed(directory))?;
        // What is left of the workplace if this fails, the next one removes.
        let _ = fs::remove_dir_all(workplace.path());
        Ok(bytes)
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> PlaceError {
    let path = path.to_owned();
    move |source| PlaceError::Store(StoreError::io(&path, source))
}

/// The directory that `path` is in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes sure that a database may be put at `path`, as far as can be told beforehand.
fn check_free(path: &Path, vault: &Path, force: bool) -> Result<(), PlaceError> {
    let refused = |reason: &str| PlaceError::Refused { path: path.to_owned(), reason: reason.to_owned() };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(path)(error)),
        Ok(_) if is_same(path, vault) => return Err(refused("this is the vault itself")),
        Ok(there) if !there.is_file() && !there.is_symlink() => {
            return Err(refused("it is there and is not a file"));
        }
        Ok(_) if !force => return Err(PlaceError::Exists(path.to_owned())),
        Ok(_) => {}
    }
    check_alone(path)
}

/// Makes sure that there is no log of a database at `path`: it would be applied to the new one.
fn check_alone(path: &Path) -> Result<(), PlaceError> {
    for ending in ["-wal", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        if fs::symlink_metadata(&name).is_ok() {
            let name = Path::new(&name).display();
            let reason = format!(
                "{name} is there, so a vault of this name is in use or was not closed; name another file, or move \
                 both away"
            );
            return Err(PlaceError::Refused { path: path.to_owned(), reason });
        }
    }
    Ok(())
}

/// Whether both paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
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

/// How the names of the directories begin in which `name` is made.
pub(super) fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".unfinished-");
    prefix
}

/// A new directory, which nobody but its owner can enter, and its lock.
pub(super) fn workplace(directory: &Path, prefix: &OsStr) -> io::Result<(TempDir, File)> {
    loop {
        let workplace = Builder::new().prefix(prefix).tempdir_in(directory)?;
        let path = workplace.path().join(LOCK);
        match File::create_new(&path).and_then(|file| file.lock().map(|()| file)) {
            // Somebody else may have taken it for a leftover before it was locked.
            Ok(_) if !path.exists() => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(file) => return Ok((workplace, file)),
            Err(error) => return Err(error),
        }
    }
}

/// Removes the directories in which nobody works any more. What cannot be removed does no harm.
fn remove_leftovers(directory: &Path, prefix: &OsStr) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let is_one = entry.file_name().as_encoded_bytes().starts_with(prefix.as_encoded_bytes());
        if is_one && entry.file_type().is_ok_and(|file_type| file_type.is_dir()) {
            remove_leftover(&entry.path());
        }
    }
}

fn remove_leftover(path: &Path) {
    let removed = match File::open(path.join(LOCK)) {
        // Before it is locked, it is empty; where the lock is gone and something else is left, removing it was interrupted.
        Err(error) if error.kind() == ErrorKind::NotFound && is_empty(path) => fs::remove_dir(path),
        Err(error) if error.kind() == ErrorKind::NotFound => fs::remove_dir_all(path),
        Err(_) => return,
        Ok(lock) => match lock.try_lock() {
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return,
            Ok(()) => fs::remove_dir_all(path),
        },
    };
    // Somebody else may be removing it.
    let _ = removed;
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Writes the file at `path` to the disk; gives its size.
fn sync(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

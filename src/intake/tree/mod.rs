//! Open directories and their entries.
//!
//! The target of a path can change at any time: anyone who may write in a directory can replace a component of a path
//! by a symbolic link. Therefore a path is used only to open a directory, the directory is compared with the expected
//! one, and files are read, renamed and removed by name within the open directory. Where the system has no such calls
//! (not Unix), paths are used.

mod entry;
#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

pub(super) use entry::{FileId, FileKind, FileState, OpenDirEntry, now};
pub(super) use system::OpenDir;

#[cfg(not(unix))]
use portable as system;
#[cfg(unix)]
use unix as system;

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use system::TOO_MANY_LINKS;

use crate::files::set_aside::is_set_aside;

/// A path to an entry found in a directory. It is valid only as long as it leads there through that directory.
#[derive(Clone, Debug)]
pub struct FoundPath {
    path: PathBuf,
    /// The directory it was found in; unknown for paths from elsewhere.
    parent: Option<FileId>,
    /// That directory, while it is open elsewhere.
    open_parent: Weak<OpenDir>,
}

impl FoundPath {
    /// Returns the path of `name` in `directory`.
    pub(in crate::intake) fn within(directory: &OpenDir, name: &OsStr) -> Self {
        Self::again(directory.path().join(name), Some(directory.id()))
    }

    /// Like [`FoundPath::within`], for a directory that remains open for a while.
    pub(in crate::intake) fn within_open(directory: &Arc<OpenDir>, name: &OsStr) -> Self {
        Self { open_parent: Arc::downgrade(directory), ..Self::within(directory, name) }
    }

    /// Creates a path that was found before, in the directory with this identity.
    pub(in crate::intake) fn again(path: PathBuf, parent: Option<FileId>) -> Self {
        Self { path, parent, open_parent: Weak::new() }
    }

    /// Returns the identity of the directory it was found in, if known.
    pub(in crate::intake) fn parent_id(&self) -> Option<FileId> {
        self.parent
    }
}

impl From<PathBuf> for FoundPath {
    fn from(path: PathBuf) -> Self {
        Self::again(path, None)
    }
}

impl From<FoundPath> for PathBuf {
    fn from(found: FoundPath) -> Self {
        found.path
    }
}

impl Deref for FoundPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

/// The result of reopening a directory.
pub(in crate::intake) enum ReopenResult {
    Same(OpenDir),
    /// The path leads to another directory, to none, or through a link.
    Replaced,
}

impl OpenDir {
    /// Opens the directory at `path` if it is the one with this identity.
    ///
    /// # Errors
    /// Returns an error if the path does not exist, or if the directory cannot be opened.
    pub(in crate::intake) fn reopen(path: &Path, id: FileId) -> io::Result<ReopenResult> {
        match Self::open(path) {
            Ok(directory) if directory.id() == id => Ok(ReopenResult::Same(directory)),
            Ok(_) => Ok(ReopenResult::Replaced),
            Err(error) if is_no_directory(&error) => Ok(ReopenResult::Replaced),
            Err(error) => Err(error),
        }
    }

    /// Returns all of its entries, unordered. If `recovers`, files that a killed process had
    /// [set aside](crate::files::set_aside) are recovered first.
    pub(in crate::intake) fn all_entries(&self, recovers: bool) -> io::Result<Vec<OpenDirEntry>> {
        let entries = self.entries(usize::MAX)?;
        if !recovers || !entries.iter().any(|entry| is_set_aside(&entry.name)) {
            return Ok(entries);
        }
        self.recover();
        self.entries(usize::MAX)
    }

    /// Opens the directory that contains `found`, and fails if that is not the one in which it was found.
    pub(in crate::intake) fn parent_of(found: &FoundPath) -> io::Result<Arc<Self>> {
        let path = parent(found);
        let Some(id) = found.parent else { return Self::open(path).map(Arc::new) };
        if let Some(open) = found.open_parent.upgrade() {
            return match Self::id_at(path) {
                Ok(now) if now == id => Ok(open),
                Err(error) if !is_no_directory(&error) => Err(error),
                _ => Err(replaced()),
            };
        }
        match Self::reopen(path, id)? {
            ReopenResult::Same(directory) => Ok(Arc::new(directory)),
            ReopenResult::Replaced => Err(replaced()),
        }
    }
}

/// Returns the directory part of a path.
pub(in crate::intake) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// Returns the error of reading from a directory that has been replaced.
pub(in crate::intake) fn replaced() -> io::Error {
    io::Error::other("its directory was replaced while it was read")
}

/// Returns whether opening a directory failed because the entry is not a directory: a file, or a link that is not
/// followed.
pub(in crate::intake) fn is_no_directory(error: &io::Error) -> bool {
    let is_link = TOO_MANY_LINKS.is_some_and(|number| error.raw_os_error() == Some(number));
    is_link || error.kind() == ErrorKind::NotADirectory
}

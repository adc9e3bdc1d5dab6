//! Metadata of files and directory entries.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::time::{Duration, SystemTime};

use crate::clock;

/// The identity of a file or directory on the machine, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::intake) struct FileId {
    pub(super) device: u64,
    pub(super) number: u64,
}

/// The type of a directory entry. Links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::intake) enum FileKind {
    File,
    Directory,
    Link,
    /// A device, a pipe or a socket.
    Other,
}

/// The state of a file at one moment. It differs after the file was written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::intake) struct FileState {
    pub(in crate::intake) id: FileId,
    pub(in crate::intake) kind: FileKind,
    pub(in crate::intake) size: u64,
    /// The modification time, which programs can set.
    pub(in crate::intake) modified: Option<SystemTime>,
    /// The time of the last change to the contents, the name or anything else, by the system clock. Only on Unix.
    pub(in crate::intake) changed: Option<SystemTime>,
}

impl FileState {
    /// Returns the time since the last write, if known. A modification time in the future is ignored in favor of the
    /// system's change time.
    pub(in crate::intake) fn quiet(&self, now: SystemTime) -> Option<Duration> {
        let since = |time: Option<SystemTime>| now.duration_since(time?).ok();
        since(self.modified).or_else(|| since(self.changed))
    }

    /// Returns whether `later`, of the same or another file, is this file with unchanged contents, as far as the system
    /// records. A rename does not matter.
    pub(in crate::intake) fn has_same_contents(&self, later: &Self) -> bool {
        (self.id, self.kind, self.size, self.modified) == (later.id, later.kind, later.size, later.modified)
    }
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(in crate::intake) struct OpenDirEntry {
    pub(in crate::intake) name: OsString,
    pub(in crate::intake) kind: FileKind,
}

/// Returns the current time, for comparison with file times.
pub(in crate::intake) fn now() -> SystemTime {
    clock::now().into()
}

/// Returns the error of opening a file that has been replaced by something else.
pub(super) fn not_a_file() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is no longer a file")
}

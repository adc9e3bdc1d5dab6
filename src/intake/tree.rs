//! Open directories and their entries.
//!
//! The target of a path can change at any time: anyone who may write in a directory can replace a component of a path
//! by a symbolic link. Therefore a path is used only to open a directory, the directory is compared with the expected
//! one, and files are read, renamed and removed by name within the open directory. Where the system has no such calls
//! (not Unix), paths are used.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::clock;
use crate::files::set_aside::is_set_aside;

#[cfg(not(unix))]
use portable as system;
#[cfg(unix)]
use unix as system;

pub(super) use system::OpenDir;

/// The identity of a file or directory on the machine, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileId {
    device: u64,
    number: u64,
}

/// The type of a directory entry. Links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FileKind {
    File,
    Directory,
    Link,
    /// A device, a pipe or a socket.
    Other,
}

/// The state of a file at one moment. It differs after the file was written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileState {
    pub(super) id: FileId,
    pub(super) kind: FileKind,
    pub(super) size: u64,
    /// The modification time, which programs can set.
    pub(super) modified: Option<SystemTime>,
    /// The time of the last change to the contents, the name or anything else, by the system clock. Only on Unix.
    pub(super) changed: Option<SystemTime>,
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: OsString,
    pub(super) kind: FileKind,
}

/// A path to an entry found in a directory. It is valid only as long as it leads there through that directory.
#[derive(Clone, Debug)]
pub struct FoundPath {
    path: PathBuf,
    /// The directory it was found in; unknown for paths from elsewhere.
    parent: Option<FileId>,
}

/// The result of reopening a directory.
pub(super) enum Reopened {
    Same(OpenDir),
    /// The path leads to another directory, to none, or through a link.
    Replaced,
}

impl FileState {
    /// Returns the time since the last write, if known. A modification time in the future is ignored in favour of the
    /// system's change time.
    pub(super) fn quiet(&self, now: SystemTime) -> Option<Duration> {
        let since = |time: Option<SystemTime>| now.duration_since(time?).ok();
        since(self.modified).or_else(|| since(self.changed))
    }

    /// Returns whether `later`, of the same or another file, is this file with unchanged contents, as far as the system
    /// records. A rename does not matter.
    pub(super) fn has_same_contents(&self, later: &Self) -> bool {
        (self.id, self.kind, self.size, self.modified) == (later.id, later.kind, later.size, later.modified)
    }
}

impl FoundPath {
    /// Returns the path of `name` in `directory`.
    pub(super) fn within(directory: &OpenDir, name: &OsStr) -> Self {
        Self { path: directory.path().join(name), parent: Some(directory.id()) }
    }

    /// Creates a path that was found before, in the directory with this identity.
    pub(super) fn again(path: PathBuf, parent: Option<FileId>) -> Self {
        Self { path, parent }
    }

    /// Returns the identity of the directory it was found in, if known.
    pub(super) fn parent_id(&self) -> Option<FileId> {
        self.parent
    }
}

impl From<PathBuf> for FoundPath {
    fn from(path: PathBuf) -> Self {
        Self { path, parent: None }
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

impl OpenDir {
    /// Opens the directory at `path` if it is the one with this identity.
    ///
    /// # Errors
    /// Returns an error if the path does not exist, or if the directory cannot be opened.
    pub(super) fn reopen(path: &Path, id: FileId) -> io::Result<Reopened> {
        match Self::open(path) {
            Ok(directory) if directory.id() == id => Ok(Reopened::Same(directory)),
            Ok(_) => Ok(Reopened::Replaced),
            Err(error) if is_no_directory(&error) => Ok(Reopened::Replaced),
            Err(error) => Err(error),
        }
    }

    /// Returns all of its entries, unordered. If `recovers`, files that a killed process had
    /// [set aside](crate::files::set_aside) are recovered first.
    pub(super) fn all_entries(&self, recovers: bool) -> io::Result<Vec<Entry>> {
        let entries = self.entries(usize::MAX)?;
        if !recovers || !entries.iter().any(|entry| is_set_aside(&entry.name)) {
            return Ok(entries);
        }
        self.recover();
        self.entries(usize::MAX)
    }

    /// Opens the directory that contains `found`, and fails if that is not the one in which it was found.
    pub(super) fn parent_of(found: &FoundPath) -> io::Result<Self> {
        let path = parent(found);
        let Some(id) = found.parent else { return Self::open(path) };
        match Self::reopen(path, id)? {
            Reopened::Same(directory) => Ok(directory),
            Reopened::Replaced => Err(replaced()),
        }
    }
}

/// Returns the directory part of a path.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// Returns the current time, for comparison with file times.
pub(super) fn now() -> SystemTime {
    clock::now().into()
}

/// Returns the error of reading from a directory that has been replaced.
pub(super) fn replaced() -> io::Error {
    io::Error::other("its directory was replaced while it was read")
}

/// Returns whether opening a directory failed because the entry is not a directory: a file, or a link that is not
/// followed.
pub(super) fn is_no_directory(error: &io::Error) -> bool {
    let is_link = system::TOO_MANY_LINKS.is_some_and(|number| error.raw_os_error() == Some(number));
    is_link || error.kind() == ErrorKind::NotADirectory
}

#[cfg(unix)]
mod unix {
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStringExt;

    use crate::files::open_vaults;
    use crate::files::{in_use, set_aside};
    use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, RawMode, Stat};

    use super::{
        Duration, Entry, File, FileId, FileKind, FileState, OsStr, OsString, Path, PathBuf, SystemTime, io,
    };

    /// The error of opening a link that must not be followed.
    pub(super) const TOO_MANY_LINKS: Option<i32> = Some(rustix::io::Errno::LOOP.raw_os_error());

    /// A handle of a directory, which is stable while it is open.
    #[derive(Debug)]
    pub(in crate::intake) struct OpenDir {
        path: PathBuf,
        id: FileId,
        handle: OwnedFd,
    }

    impl OpenDir {
        /// Opens the directory at `path`; links are followed.
        pub(in crate::intake) fn open(path: &Path) -> io::Result<Self> {
            Self::new(path.to_owned(), fs::openat(fs::CWD, path, directory(), Mode::empty())?)
        }

        /// Opens the directory at `path`, which must not be a link itself.
        pub(in crate::intake) fn open_no_follow(path: &Path) -> io::Result<Self> {
            // A trailing slash would make the system follow the link.
            let plain: PathBuf = path.components().collect();
            let flags = directory() | OFlags::NOFOLLOW;
            Self::new(path.to_owned(), fs::openat(fs::CWD, &plain, flags, Mode::empty())?)
        }

        /// Opens the directory `name` in this one; a link is not followed.
        pub(in crate::intake) fn open_directory(&self, name: &OsStr) -> io::Result<Self> {
            let flags = directory() | OFlags::NOFOLLOW;
            Self::new(self.path.join(name), fs::openat(&self.handle, name, flags, Mode::empty())?)
        }

        fn new(path: PathBuf, handle: OwnedFd) -> io::Result<Self> {
            let id = id(&fs::fstat(&handle)?);
            Ok(Self { path, id, handle })
        }

        /// Returns the path by which it was opened.
        pub(in crate::intake) fn path(&self) -> &Path {
            &self.path
        }

        /// Returns its identity.
        pub(in crate::intake) fn id(&self) -> FileId {
            self.id
        }

        /// Returns at most `most` of its entries, unordered.
        pub(in crate::intake) fn entries(&self, most: usize) -> io::Result<Vec<Entry>> {
            let mut entries = Vec::new();
            for entry in Dir::read_from(&self.handle)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." {
                    continue;
                }
                if entries.len() == most {
                    break;
                }
                let name = OsString::from_vec(name.to_vec());
                let kind = match entry.file_type() {
                    FileType::Unknown => self.state(&name)?.kind,
                    known => kind(known),
                };
                entries.push(Entry { name, kind });
            }
            Ok(entries)
        }

        /// Recovers files that a killed process had [set aside](crate::files::set_aside).
        pub(in crate::intake) fn recover(&self) {
            set_aside::recover(&self.handle);
        }

        /// Returns the state of the entry `name`; a link is not followed.
        pub(in crate::intake) fn state(&self, name: &OsStr) -> io::Result<FileState> {
            Ok(state(&fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?))
        }

        /// Opens the file `name` for reading; a link is not followed, and only a regular file is opened.
        pub(in crate::intake) fn open_file(&self, name: &OsStr) -> io::Result<File> {
            self.open_as(name, OFlags::NOFOLLOW)
        }

        /// Opens the file `name`, which the user named, for reading; a link is followed.
        pub(in crate::intake) fn open_file_following(&self, name: &OsStr) -> io::Result<File> {
            self.open_as(name, OFlags::empty())
        }

        fn open_as(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
            // The file may have been replaced by a pipe; opening it must not wait for a writer.
            let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
            let is_followed = !flags.contains(OFlags::NOFOLLOW);
            if is_followed || open_vaults::has_open_named(name) {
                let follow = if is_followed { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
                let FileId { device, number } = id(&fs::statat(&self.handle, name, follow)?);
                if open_vaults::has_open_file(device, number) {
                    return Err(in_use());
                }
            }
            let file = File::from(fs::openat(&self.handle, name, flags, Mode::empty())?);
            if file.metadata()?.is_file() { Ok(file) } else { Err(super::not_a_file()) }
        }

        /// Renames the entry `from` to `to`.
        pub(in crate::intake) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            Ok(fs::renameat(&self.handle, from, &self.handle, to)?)
        }

        /// Creates a hard link `to` to the file `from`, if `to` does not exist.
        pub(in crate::intake) fn link(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            Ok(fs::linkat(&self.handle, from, &self.handle, to, AtFlags::empty())?)
        }

        /// Removes the file `name`.
        pub(in crate::intake) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
            Ok(fs::unlinkat(&self.handle, name, AtFlags::empty())?)
        }

        /// Removes the directory `name`, which must be empty.
        pub(in crate::intake) fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
            Ok(fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR)?)
        }
    }

    fn directory() -> OFlags {
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
    }

    fn kind(file_type: FileType) -> FileKind {
        match file_type {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Link,
            _ => FileKind::Other,
        }
    }

    /// Returns the identity in `stat`. The types of the fields differ between systems.
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "not on each system"
    )]
    fn id(stat: &Stat) -> FileId {
        FileId { device: stat.st_dev as u64, number: u64::from(stat.st_ino) }
    }

    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_fallible_conversions,
        reason = "not on each system"
    )]
    fn state(stat: &Stat) -> FileState {
        let time = |seconds: Option<i64>, nanoseconds: Option<u32>| time(seconds?, nanoseconds?);
        let mode: RawMode = stat.st_mode;
        FileState {
            id: id(stat),
            kind: kind(FileType::from_raw_mode(mode)),
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: time(i64::try_from(stat.st_mtime).ok(), u32::try_from(stat.st_mtime_nsec).ok()),
            changed: time(i64::try_from(stat.st_ctime).ok(), u32::try_from(stat.st_ctime_nsec).ok()),
        }
    }

    fn time(seconds: i64, nanoseconds: u32) -> Option<SystemTime> {
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let epoch = SystemTime::UNIX_EPOCH;
        let second = if seconds < 0 { epoch.checked_sub(whole) } else { epoch.checked_add(whole) };
        second?.checked_add(Duration::from_nanos(nanoseconds.into()))
    }

    #[cfg(target_os = "linux")]
    use std::{ffi::CStr, os::fd::BorrowedFd};

    #[cfg(target_os = "linux")]
    impl FileId {
        /// Returns the identity of the file that the entry `name` of `directory` refers to; links are followed, and a
        /// remote file server is not contacted.
        pub(in crate::intake) fn from_target(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<Self> {
            use rustix::fs::StatxFlags;
            let stat = fs::statx(directory, name, AtFlags::STATX_DONT_SYNC, StatxFlags::INO)?;
            Ok(Self { device: fs::makedev(stat.stx_dev_major, stat.stx_dev_minor), number: stat.stx_ino })
        }
    }
}

/// Returns the error of opening a file that has been replaced by something else.
fn not_a_file() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is no longer a file")
}

#[cfg(not(unix))]
mod portable {
    use std::fs;

    use super::{Entry, File, FileId, FileKind, FileState, OsStr, Path, PathBuf, io};

    pub(super) const TOO_MANY_LINKS: Option<i32> = None;

    /// A directory, accessed by its path.
    #[derive(Debug)]
    pub(in crate::intake) struct OpenDir {
        path: PathBuf,
    }

    const UNKNOWN: FileId = FileId { device: 0, number: 0 };

    impl OpenDir {
        pub(in crate::intake) fn open(path: &Path) -> io::Result<Self> {
            if fs::metadata(path)?.is_dir() {
                Ok(Self { path: path.to_owned() })
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }

        pub(in crate::intake) fn open_no_follow(path: &Path) -> io::Result<Self> {
            if fs::symlink_metadata(path)?.is_dir() {
                Ok(Self { path: path.to_owned() })
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }

        pub(in crate::intake) fn open_directory(&self, name: &OsStr) -> io::Result<Self> {
            Self::open_no_follow(&self.path.join(name))
        }

        pub(in crate::intake) fn path(&self) -> &Path {
            &self.path
        }

        #[allow(clippy::unused_self, reason = "elsewhere it is a field")]
        pub(in crate::intake) fn id(&self) -> FileId {
            UNKNOWN
        }

        pub(in crate::intake) fn entries(&self, most: usize) -> io::Result<Vec<Entry>> {
            let entries = fs::read_dir(&self.path)?.take(most);
            entries
                .map(|entry| {
                    let entry = entry?;
                    Ok(Entry { name: entry.file_name(), kind: kind(entry.file_type()?) })
                })
                .collect()
        }

        #[allow(clippy::unused_self, reason = "elsewhere files are locked, which recovery needs")]
        pub(in crate::intake) fn recover(&self) {}

        pub(in crate::intake) fn state(&self, name: &OsStr) -> io::Result<FileState> {
            let metadata = fs::symlink_metadata(self.path.join(name))?;
            Ok(FileState {
                id: UNKNOWN,
                kind: kind(metadata.file_type()),
                size: metadata.len(),
                modified: metadata.modified().ok(),
                changed: None,
            })
        }

        pub(in crate::intake) fn open_file(&self, name: &OsStr) -> io::Result<File> {
            match self.state(name)?.kind {
                FileKind::File => self.open_file_following(name),
                _ => Err(super::not_a_file()),
            }
        }

        pub(in crate::intake) fn open_file_following(&self, name: &OsStr) -> io::Result<File> {
            File::open(self.path.join(name))
        }

        pub(in crate::intake) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            fs::rename(self.path.join(from), self.path.join(to))
        }

        pub(in crate::intake) fn link(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            fs::hard_link(self.path.join(from), self.path.join(to))
        }

        pub(in crate::intake) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_file(self.path.join(name))
        }

        pub(in crate::intake) fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_dir(self.path.join(name))
        }
    }

    fn kind(file_type: fs::FileType) -> FileKind {
        if file_type.is_symlink() {
            FileKind::Link
        } else if file_type.is_dir() {
            FileKind::Directory
        } else if file_type.is_file() {
            FileKind::File
        } else {
            FileKind::Other
        }
    }
}

//! Open directories on Unix.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, RawMode, Stat};

use super::entry::{FileId, FileKind, FileState, OpenDirEntry, not_a_file};
use crate::files;
use crate::files::{in_use, set_aside};

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

    /// Returns the identity of what is at `path`; links are followed.
    pub(in crate::intake) fn id_at(path: &Path) -> io::Result<FileId> {
        Ok(id(&fs::statat(fs::CWD, path, AtFlags::empty())?))
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
    pub(in crate::intake) fn entries(&self, most: usize) -> io::Result<Vec<OpenDirEntry>> {
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
            entries.push(OpenDirEntry { name, kind });
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
        if is_followed || files::has_open_named(name) {
            let follow = if is_followed { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
            let FileId { device, number } = id(&fs::statat(&self.handle, name, follow)?);
            if files::has_open_file(device, number) {
                return Err(in_use());
            }
        }
        let file = File::from(fs::openat(&self.handle, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(not_a_file()) }
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

#[allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions, reason = "not on each system")]
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

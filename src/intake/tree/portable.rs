//! Directories on other systems, accessed by path.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::entry::{FileId, FileKind, FileState, OpenDirEntry, not_a_file};

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

    pub(in crate::intake) fn id_at(path: &Path) -> io::Result<FileId> {
        Self::open(path).map(|directory| directory.id())
    }

    pub(in crate::intake) fn path(&self) -> &Path {
        &self.path
    }

    #[allow(clippy::unused_self, reason = "elsewhere it is a field")]
    pub(in crate::intake) fn id(&self) -> FileId {
        UNKNOWN
    }

    pub(in crate::intake) fn entries(&self, most: usize) -> io::Result<Vec<OpenDirEntry>> {
        let entries = fs::read_dir(&self.path)?.take(most);
        entries
            .map(|entry| {
                let entry = entry?;
                Ok(OpenDirEntry { name: entry.file_name(), kind: kind(entry.file_type()?) })
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
            _ => Err(not_a_file()),
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

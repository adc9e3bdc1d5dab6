//! Files, read only up to the limits.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::tree::{self, FileId, FoundPath, OpenDir};
use super::verdict::ExamineOptions;
use crate::artifact::document;
use crate::intake::archive::ArchiveFormat;
use crate::json::reader::Limits;
use crate::validation::Report;

/// The number of bytes at the start of a file that distinguish text from binary data, and most kinds from each other.
pub(super) const HEAD_BYTES: u64 = 64 << 10;

/// An open file whose beginning has been read.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) file: File,
    size: u64,
    pub(super) head: Vec<u8>,
    /// The directory that it was opened in, if its path has one.
    pub(super) directory: Option<FileId>,
}

pub(super) enum FileContents {
    Whole(Vec<u8>),
    TooLarge { head: Vec<u8>, report: Report },
}

impl OpenFile {
    /// Opens a file that was named explicitly. A link is followed.
    pub(super) fn open_named(path: &Path) -> io::Result<Self> {
        let Some(name) = path.file_name() else { return Self::new(File::open(path)?, None) };
        let directory = OpenDir::open(tree::parent(path))?;
        Self::new(directory.open_file_following(name)?, Some(directory.id()))
    }

    /// Opens a file that was found in a directory. Links are not followed.
    pub(super) fn open_found(path: &FoundPath) -> io::Result<Self> {
        let Some(name) = path.file_name() else { return Err(tree::replaced()) };
        let directory = OpenDir::parent_of(path)?;
        Self::new(directory.open_file(name)?, Some(directory.id()))
    }

    /// Reads the beginning of a file that was opened in `directory`.
    pub(super) fn new(mut file: File, directory: Option<FileId>) -> io::Result<Self> {
        let size = file.metadata()?.len();
        let head = read_head(&mut file, size)?;
        Ok(Self { file, size, head, directory })
    }

    /// Returns the approximate memory needed to examine the file, in bytes. A compressed file counts as the maximum,
    /// because its size is unknown.
    pub(super) fn weight(&self) -> u64 {
        if ArchiveFormat::can_grow(&self.head) { u64::MAX } else { self.size }
    }

    /// Reads the rest, up to the limit: a file may also grow while it is read.
    pub(super) fn read(self, options: &ExamineOptions) -> io::Result<FileContents> {
        let Self { file, size, head, .. } = self;
        let limit = options.admit.limits.bytes.min(Limits::MAX_BYTES);
        let too_large = |head, size| {
            let report = document::too_large(size, limit).into();
            Ok(FileContents::TooLarge { head, report })
        };
        if size > limit {
            return too_large(head, size);
        }
        let mut bytes = head;
        if bytes.len() as u64 == size && size > 0 {
            return Ok(FileContents::Whole(bytes));
        }
        bytes.reserve_exact(usize::try_from(size).unwrap_or(0).saturating_sub(bytes.len()));
        let left = (limit + 1).saturating_sub(bytes.len() as u64);
        file.take(left).read_to_end(&mut bytes)?;
        match bytes.len() as u64 {
            size if size > limit => too_large(bytes, size),
            _ => Ok(FileContents::Whole(bytes)),
        }
    }
}

/// Returns the beginning of a file of `size` bytes, or all of it if it is small. Most files are small and are read with
/// one call; a file of unknown size is reported by the system with size 0.
fn read_head(file: &mut File, size: u64) -> io::Result<Vec<u8>> {
    let length = if size == 0 { HEAD_BYTES } else { size.min(HEAD_BYTES) };
    let mut head = Vec::with_capacity(usize::try_from(size.min(length)).unwrap_or_default());
    file.take(length).read_to_end(&mut head)?;
    Ok(head)
}

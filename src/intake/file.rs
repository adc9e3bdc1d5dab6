//! Files, archives and directories, read only up to the limits.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::Path;

use super::archive::{self, ArchiveContents, ArchiveError, ArchiveFormat};
use super::tree::{self, FileId, FileKind, FoundPath, OpenDir};
use super::verdict::{DocumentVerdict, ExamineOptions, Rejection, SourceError, admitted};
use crate::artifact::{Admitted, Directory, DirectoryEntry, EntryContent, Kind, document};
use crate::formats;
use crate::json::reader::{Limit, Limits};
use crate::validation::{Report, Violation};

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

/// Examines an archive that is intended to be an artifact.
pub(super) fn examine_archive(
    format: ArchiveFormat,
    input: impl Read + Seek,
    options: &ExamineOptions,
) -> Result<Admitted, Rejection> {
    let contents = read_archive(format, input, options);
    let kind = options.kind.or_else(|| recognize_archive(&contents.entries));
    admit_archive(contents, kind, options)
}

/// Examines an archive that was found in a directory.
pub(super) fn examine_found_archive(
    format: ArchiveFormat,
    input: impl Read + Seek,
    options: &ExamineOptions,
) -> DocumentVerdict {
    let contents = read_archive(format, input, options);
    let recognized = recognize_archive(&contents.entries);
    let may_be_one = match &contents.error {
        None => recognized.is_some(),
        // If a broken archive cannot be identified as something else, it must not be skipped silently.
        Some(ArchiveError::Broken(_)) if contents.entries.is_empty() => true,
        Some(_) => contents.entries.iter().any(|entry| is_member(&entry.name)),
    };
    if !may_be_one {
        let orphan = contents.entries.iter().find_map(orphan_entry).filter(|_| contents.error.is_none());
        if let Some((kind, violation)) = orphan {
            return DocumentVerdict::Rejected(Rejection::new(Some(kind), violation.into()));
        }
        if !options.strict {
            return DocumentVerdict::NoArtifact;
        }
    }
    admit_archive(contents, options.kind.or(recognized), options).into()
}

/// Returns the violation for an entry that is a file of an artifact that the archive does not contain.
fn orphan_entry(entry: &DirectoryEntry) -> Option<(Kind, Violation)> {
    let bytes = entry.bytes()?;
    formats::ALL.into_iter().find_map(|kind| Some((kind, kind.orphan(&entry.name, bytes)?)))
}

/// Returns whether this is the name of a file of any kind whose artifacts are directories.
pub(super) fn is_member(name: &str) -> bool {
    let mut kinds = formats::ALL.into_iter().filter(|kind| kind.is_of_directories());
    kinds.any(|kind| kind.members().contains(&name))
}

fn read_archive(format: ArchiveFormat, input: impl Read + Seek, options: &ExamineOptions) -> ArchiveContents {
    let limits = &options.admit.limits;
    let limits =
        archive::ArchiveLimits { bytes: limits.bytes.min(Limits::MAX_BYTES), entries: limits.entries };
    archive::read(format, input, &is_member, limits)
}

fn admit_archive(
    contents: ArchiveContents,
    kind: Option<Kind>,
    options: &ExamineOptions,
) -> Result<Admitted, Rejection> {
    if let Some(error) = contents.error {
        return Err(Rejection::new(kind, archive_report(&error)));
    }
    let Some(kind) = kind else {
        return Err(Rejection::new(None, document::unrecognized("the archive is not an artifact").into()));
    };
    let directory = Directory { entries: contents.entries };
    admitted(kind, kind.admit_directory(directory, &options.admit))
}

fn recognize_archive(entries: &[DirectoryEntry]) -> Option<Kind> {
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    formats::recognize_directory(&names, &mut |name| {
        let entry = entries.iter().find(|entry| entry.name == name);
        entry.and_then(DirectoryEntry::bytes).unwrap_or_default().to_vec()
    })
}

pub(super) fn archive_report(error: &ArchiveError) -> Report {
    match error {
        ArchiveError::Broken(_) => document::broken_archive(error.to_string()),
        ArchiveError::TooLarge(_) => document::beyond(Limit::Bytes, error.to_string()),
        ArchiveError::TooManyEntries(_) => document::beyond(Limit::Entries, error.to_string()),
        ArchiveError::TooDense | ArchiveError::ListTooLarge | ArchiveError::NameTooLong => {
            document::too_much(error.to_string())
        }
    }
    .into()
}

/// Returns the kind of artifact that a directory with these entries is intended to be, if it is one.
pub(super) fn recognize_directory(directory: &OpenDir, entries: &[tree::OpenDirEntry]) -> Option<Kind> {
    // Directories may have very many entries, of which only a few can matter.
    let readable = entries.iter().filter_map(|entry| Some((entry.name.to_str()?, entry.kind)));
    let candidates: Vec<(&str, FileKind)> = readable.filter(|(name, _)| is_member(name)).collect();
    let all: Vec<&str> = candidates.iter().map(|(name, _)| *name).collect();
    formats::recognize_directory(&all, &mut |name| {
        let is_file = candidates.contains(&(name, FileKind::File));
        let head = is_file.then(|| head(directory, OsStr::new(name)));
        head.and_then(Result::ok).unwrap_or_default()
    })
}

fn head(directory: &OpenDir, name: &OsStr) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    directory.open_file(name)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Returns the total size of the files that [`read_directory`] would read.
pub(super) fn weigh_directory(path: &Path, kind: Kind) -> u64 {
    let size = |name: &&str| fs::symlink_metadata(path.join(name)).map_or(0, |metadata| metadata.len());
    kind.members().iter().map(size).sum()
}

/// A directory that was read: its files or the rejection, and its identity.
pub(super) struct LoadedDirectory {
    pub(super) contents: Result<Directory, Report>,
    pub(super) id: Option<FileId>,
}

impl From<Report> for LoadedDirectory {
    fn from(report: Report) -> Self {
        Self { contents: Err(report), id: None }
    }
}

/// Reads a directory that is intended to be an artifact of `kind`. Links are not followed, and only regular files are
/// opened.
pub(super) fn read_directory(
    path: &FoundPath,
    kind: Kind,
    options: &ExamineOptions,
) -> Result<LoadedDirectory, SourceError> {
    let shown = path.to_string_lossy();
    let most = options.admit.limits.entries;
    let (opened, entries) = match list_directory(path, most) {
        Ok(listed) => listed,
        Err(error) if tree::is_no_directory(&error) => {
            return Ok(kind.unreadable(&shown, "this is not a directory").into());
        }
        Err(error) => return Ok(kind.unreadable(&shown, &error.to_string()).into()),
    };
    if entries.len() > most {
        let message = ArchiveError::TooManyEntries(most).to_string();
        return Ok(Report::from(document::beyond(Limit::Entries, message)).into());
    }
    let limit = options.admit.limits.bytes.min(Limits::MAX_BYTES);
    let mut left = limit;
    let mut directory = Directory { entries: Vec::new() };
    for entry in entries {
        let name = entry.name.to_string_lossy().into_owned();
        let is_member = kind.members().contains(&name.as_str());
        let content = match entry.kind {
            FileKind::Link => EntryContent::Link,
            FileKind::Directory | FileKind::Other => EntryContent::Other,
            FileKind::File if !is_member => EntryContent::Unexpected,
            FileKind::File => {
                let read = opened.open_file(&entry.name).and_then(|file| read_file(file, left));
                EntryContent::File(read.map_err(SourceError::at(&path.join(&entry.name)))?)
            }
        };
        if let EntryContent::File(bytes) = &content {
            match left.checked_sub(bytes.len() as u64) {
                Some(rest) => left = rest,
                None => return Ok(Report::from(document::files_too_large(limit)).into()),
            }
        }
        directory.entries.push(DirectoryEntry { name, content });
    }
    Ok(LoadedDirectory { contents: Ok(directory), id: Some(opened.id()) })
}

/// Opens a directory and lists its entries, only as many as needed to detect more than `most`.
fn list_directory(path: &FoundPath, most: usize) -> io::Result<(OpenDir, Vec<tree::OpenDirEntry>)> {
    let opened = match (path.parent_id(), path.file_name()) {
        (Some(_), Some(name)) => OpenDir::parent_of(path)?.open_directory(name)?,
        _ => OpenDir::open_no_follow(path)?,
    };
    let mut entries = opened.entries(most.saturating_add(1))?;
    entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok((opened, entries))
}

/// Reads a file, only as far as needed to detect more than `limit` bytes.
fn read_file(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let size = usize::try_from(file.metadata()?.len().min(limit)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(size);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

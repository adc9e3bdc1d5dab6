//! Directories that are one artifact.

use std::fs::{self, DirEntry, File};
use std::io::{self, Read};
use std::path::Path;

use super::file::HEAD_BYTES;
use super::packed::is_member;
use super::{ExamineOptions, SourceError};
use crate::archive::ArchiveError;
use crate::artifact::{Directory, Entry, EntryContent, Kind, document};
use crate::canonical::reader::Limits;
use crate::kinds;
use crate::verify::Report;

/// The kind of artifact that a directory with these entries is meant to be, if it is one.
pub(super) fn recognise(entries: &[DirEntry]) -> Option<Kind> {
    // Directories may have very many entries. Only a few can matter.
    let readable = entries.iter().filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry)));
    let candidates: Vec<(String, &DirEntry)> = readable.filter(|(name, _)| is_member(name)).collect();
    let all: Vec<&str> = candidates.iter().map(|(name, _)| name.as_str()).collect();
    kinds::recognise_directory(&all, &mut |wanted| {
        let entry = candidates.iter().find(|(name, _)| name == wanted);
        entry.and_then(|(_, entry)| head(entry).ok()).unwrap_or_default()
    })
}

fn head(entry: &DirEntry) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    if entry.file_type()?.is_file() {
        File::open(entry.path())?.take(HEAD_BYTES).read_to_end(&mut head)?;
    }
    Ok(head)
}

/// The size of the files that [`read`] would read.
pub(super) fn weigh(path: &Path, kind: Kind) -> u64 {
    let size = |name: &&str| fs::symlink_metadata(path.join(name)).map_or(0, |metadata| metadata.len());
    kind.members().iter().map(size).sum()
}

/// Reads a directory that is meant to be an artifact of `kind`. Links are not followed, and nothing but regular files is
/// opened. The inner error is why it can be none.
pub(super) fn read(
    path: &Path,
    kind: Kind,
    options: &ExamineOptions,
) -> Result<Result<Directory, Report>, SourceError> {
    let shown = path.to_string_lossy();
    let most = options.admit.limits.entries;
    let entries = match list(path, most) {
        Ok(Some(entries)) => entries,
        Ok(None) => return Ok(Err(kind.unreadable(&shown, "this is not a directory"))),
        Err(error) => return Ok(Err(kind.unreadable(&shown, &error.to_string()))),
    };
    if entries.len() > most {
        return Ok(Err(document::too_much(ArchiveError::TooManyEntries(most).to_string()).into()));
    }
    let limit = options.admit.limits.bytes.min(Limits::MAX_BYTES);
    let mut left = limit;
    let mut directory = Directory { entries: Vec::new() };
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let at = entry.path();
        let file_type = entry.file_type().map_err(SourceError::at(&at))?;
        let is_member = kind.members().contains(&name.as_str());
        let content = match (file_type.is_symlink(), file_type.is_file()) {
            (true, _) => EntryContent::Link,
            (false, false) => EntryContent::Other,
            (false, true) if !is_member => EntryContent::Stranger,
            (false, true) => EntryContent::File(read_file(&at, left).map_err(SourceError::at(&at))?),
        };
        if let EntryContent::File(bytes) = &content {
            match left.checked_sub(bytes.len() as u64) {
                Some(rest) => left = rest,
                None => return Ok(Err(document::files_too_large(limit).into())),
            }
        }
        directory.entries.push(Entry { name, content });
    }
    Ok(Ok(directory))
}

/// The entries of a directory, but no more than show that there are more than `most`; nothing if it is none.
fn list(path: &Path, most: usize) -> io::Result<Option<Vec<DirEntry>>> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return Ok(None);
    }
    let entries = fs::read_dir(path)?.take(most.saturating_add(1));
    let mut entries: Vec<DirEntry> = entries.collect::<io::Result<_>>()?;
    entries.sort_by_cached_key(DirEntry::file_name);
    Ok(Some(entries))
}

/// Reads a file, but no more than shows that it has more than `limit` bytes.
fn read_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let size = usize::try_from(file.metadata()?.len().min(limit)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(size);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

//! Archives that are one artifact.

use std::io::{Read, Seek};

use super::options::ExamineOptions;
use super::verdict::{DocumentVerdict, Rejection, admitted};
use crate::artifact::{Admitted, Directory, DirectoryEntry, Kind, document};
use crate::formats;
use crate::intake::archive::{self, ArchiveContents, ArchiveError, ArchiveFormat};
use crate::json::reader::{Limit, Limits};
use crate::validation::{Report, Violation};

/// Examines an archive that is intended to be an artifact.
pub(super) fn examine(
    format: ArchiveFormat,
    input: impl Read + Seek,
    options: &ExamineOptions,
) -> Result<Admitted, Rejection> {
    let contents = read(format, input, options);
    let kind = options.kind.or_else(|| recognize(&contents.entries));
    judge(contents, kind, options)
}

/// Examines an archive that was found in a directory.
pub(super) fn examine_found(
    format: ArchiveFormat,
    input: impl Read + Seek,
    options: &ExamineOptions,
) -> DocumentVerdict {
    let contents = read(format, input, options);
    let recognized = recognize(&contents.entries);
    let may_be_one = match &contents.error {
        None => recognized.is_some(),
        // If a broken archive cannot be identified as something else, it must not be skipped silently.
        Some(ArchiveError::Broken(_)) if contents.entries.is_empty() => true,
        Some(_) => contents.entries.iter().any(|entry| is_member(&entry.name)),
    };
    if !may_be_one {
        let orphan = contents.entries.iter().find_map(orphan).filter(|_| contents.error.is_none());
        if let Some((kind, violation)) = orphan {
            return DocumentVerdict::Rejected(Rejection::new(Some(kind), violation.into()));
        }
        if !options.strict {
            return DocumentVerdict::NoArtifact;
        }
    }
    judge(contents, options.kind.or(recognized), options).into()
}

/// Returns the violation for an entry that is a file of an artifact that the archive does not contain.
fn orphan(entry: &DirectoryEntry) -> Option<(Kind, Violation)> {
    let bytes = entry.bytes()?;
    formats::ALL.into_iter().find_map(|kind| Some((kind, kind.orphan(&entry.name, bytes)?)))
}

/// Returns whether this is the name of a file of any kind whose artifacts are directories.
pub(super) fn is_member(name: &str) -> bool {
    let mut kinds = formats::ALL.into_iter().filter(|kind| kind.is_of_directories());
    kinds.any(|kind| kind.members().contains(&name))
}

fn read(format: ArchiveFormat, input: impl Read + Seek, options: &ExamineOptions) -> ArchiveContents {
    let limits = &options.admit.limits;
    let limits =
        archive::ArchiveLimits { bytes: limits.bytes.min(Limits::MAX_BYTES), entries: limits.entries };
    archive::read(format, input, &is_member, limits)
}

fn judge(
    contents: ArchiveContents,
    kind: Option<Kind>,
    options: &ExamineOptions,
) -> Result<Admitted, Rejection> {
    if let Some(error) = contents.error {
        return Err(Rejection::new(kind, report(&error)));
    }
    let Some(kind) = kind else {
        return Err(Rejection::new(None, document::unrecognized("the archive is not an artifact").into()));
    };
    let directory = Directory { entries: contents.entries };
    admitted(kind, kind.admit_directory(directory, &options.admit))
}

fn recognize(entries: &[DirectoryEntry]) -> Option<Kind> {
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    formats::recognize_directory(&names, &mut |name| {
        let entry = entries.iter().find(|entry| entry.name == name);
        entry.and_then(DirectoryEntry::bytes).unwrap_or_default().to_vec()
    })
}

fn report(error: &ArchiveError) -> Report {
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

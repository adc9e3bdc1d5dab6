//! Files found in a directory, which may be anything. A file that resembles an artifact but cannot be admitted is
//! rejected, so that it is not mistaken for stored.

use std::io;
use std::path::Path;

use memchr::memchr;

use super::document::{admit, ambiguous, file_name, owner, unread, unrecognized};
use super::file::{FileContents, OpenFile};
use super::options::ExamineOptions;
use super::packed;
use super::verdict::{DocumentVerdict, Rejection};
use crate::artifact::{Kind, Recognition, document};
use crate::formats::{self, recognize_all};
use crate::intake::archive::{self, ArchiveFormat};
use crate::validation::Violation;

/// Examines an entry that is neither a file nor a directory by its name.
pub(super) fn examine_other(path: &Path, options: &ExamineOptions) -> DocumentVerdict {
    let violation = || {
        let message =
            "is a link, device or pipe; these are not opened in directories; to add it, name it explicitly";
        Violation::new(document::UNRECOGNISED, "", message)
    };
    match owner(&file_name(path)) {
        None => passed_over(options, violation),
        kind => DocumentVerdict::Rejected(Rejection::new(kind, violation().into())),
    }
}

/// Returns the verdict on a file of a vault in use, which is not opened; `error` is the reason.
pub(super) fn examine_own(error: &io::Error, options: &ExamineOptions) -> DocumentVerdict {
    passed_over(options, || Violation::new(document::UNRECOGNISED, "", error.to_string()))
}

pub(super) fn examine(path: &Path, file: OpenFile, options: &ExamineOptions) -> io::Result<DocumentVerdict> {
    let file_name = file_name(path);
    if let Some(kind) = options.kind_of_any_bytes() {
        return Ok(match file.read(options)? {
            FileContents::Whole(bytes) => admit(kind, bytes, &file_name, options).into(),
            FileContents::TooLarge { report, .. } => {
                DocumentVerdict::Rejected(Rejection::new(Some(kind), report))
            }
        });
    }
    if options.may_be_archive()
        && let Some(format) = ArchiveFormat::detect(&file.head)
    {
        return Ok(packed::examine_found(format, file.file, options));
    }
    if let Some(what) = archive::unread(&file.head) {
        return Ok(examine_unread(&file_name, what, options));
    }
    let owner = owner(&file_name);
    if owner.is_none() && memchr(0, &file.head).is_some() && resembled(&file.head).is_empty() {
        return Ok(passed_over(options, || {
            Violation::new(document::UNRECOGNISED, "", "no kind recognizes the file, which is not text")
        }));
    }
    let contents = file.read(options)?;
    let (FileContents::Whole(bytes) | FileContents::TooLarge { head: bytes, .. }) = &contents;
    let mut kinds = resembled(bytes);
    if kinds.is_empty() {
        kinds.extend(owner);
    }
    let kind = match (options.kind, kinds.as_slice()) {
        (_, []) => return Ok(examine_unrecognized(&file_name, bytes, options)),
        (Some(requested), kinds) if kinds.contains(&requested) => requested,
        (None, [kind]) => *kind,
        (None, several) => return Ok(DocumentVerdict::Rejected(ambiguous(several))),
        (Some(_), others) => {
            return Ok(passed_over(options, || {
                let names: Vec<&str> = others.iter().map(|kind| kind.name()).collect();
                let message = format!("this is recognized as {}", names.join(" and "));
                Violation::new(document::UNRECOGNISED, "", message)
            }));
        }
    };
    Ok(match contents {
        FileContents::Whole(bytes) => admit(kind, bytes, &file_name, options).into(),
        FileContents::TooLarge { report, .. } => {
            DocumentVerdict::Rejected(Rejection::new(Some(kind), report))
        }
    })
}

/// Returns the verdict on a file that is not an artifact: rejected in strict mode, else skipped.
pub(super) fn passed_over(options: &ExamineOptions, why: impl FnOnce() -> Violation) -> DocumentVerdict {
    if options.strict {
        DocumentVerdict::Rejected(Rejection::new(None, why().into()))
    } else {
        DocumentVerdict::NoArtifact
    }
}

/// Returns the kinds that a document resembles. It was found, not named, so common words are not enough.
fn resembled(bytes: &[u8]) -> Vec<Kind> {
    let sure = |bytes: &[u8]| -> Vec<Kind> {
        let recognized = recognize_all(bytes).into_iter();
        recognized
            .filter(|(_, recognition)| *recognition == Recognition::Surely)
            .map(|(kind, _)| kind)
            .collect()
    };
    let head = bytes.get(..ZEROS_WITHIN).unwrap_or(bytes);
    if memchr(0, head).is_none() {
        return sure(bytes);
    }
    let text = without_zeros(head);
    // Text never contains these, and almost all other files do.
    let is_text = !text.iter().any(|byte| (1..=8).contains(byte));
    if is_text { sure(&text) } else { Vec::new() }
}

/// Size in bytes of the part of a document in which zero bytes are ignored.
const ZEROS_WITHIN: usize = 64 << 10;

/// Returns `head` without zero bytes, which remain after a full disk or a power loss, or are part of UTF-16.
fn without_zeros(head: &[u8]) -> Vec<u8> {
    let marks: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
    let unmarked = marks.into_iter().find_map(|mark| head.strip_prefix(mark)).unwrap_or(head);
    unmarked.iter().copied().filter(|byte| *byte != 0).collect()
}

/// Examines a file that no kind recognizes: it may be a fragment of an artifact of several files.
fn examine_unrecognized(file_name: &str, bytes: &[u8], options: &ExamineOptions) -> DocumentVerdict {
    let requested =
        formats::ALL.into_iter().filter(|kind| options.kind.is_none_or(|requested| requested == *kind));
    let mut orphans = requested.filter_map(|kind| Some((kind, kind.orphan(file_name, bytes)?)));
    match orphans.next() {
        Some((kind, violation)) => DocumentVerdict::Rejected(Rejection::new(Some(kind), violation.into())),
        None => passed_over(options, || unrecognized(bytes, options)),
    }
}

/// Examines a file in an unsupported archive or compression format by its name.
fn examine_unread(file_name: &str, what: &str, options: &ExamineOptions) -> DocumentVerdict {
    let inside = archive::decompressed_name(file_name).and_then(owner);
    let kind = owner(file_name).or(inside);
    let is_meant = archive::is_tar_name(file_name) && options.may_be_archive()
        || kind.is_some_and(|kind| options.kind.is_none_or(|requested| requested == kind));
    let rejection = unread(kind, what);
    if is_meant || options.strict {
        DocumentVerdict::Rejected(rejection)
    } else {
        DocumentVerdict::NoArtifact
    }
}

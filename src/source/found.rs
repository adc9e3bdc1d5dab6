//! Files that were found in a directory: they may be anything. What resembles an artifact and cannot be admitted is
//! rejected all the same; nobody should believe that it was stored.

use std::io;
use std::path::Path;

use memchr::memchr;

use super::file::{Contents, OpenFile};
use super::{
    ExamineOptions, Rejection, Verdict, admit, ambiguous, file_name, owner, packed, recognise_all, unread,
    unrecognised,
};
use crate::archive::{self, Format};
use crate::artifact::{Kind, Recognition, document};
use crate::kinds;
use crate::verify::Violation;

/// Judges what is neither a file nor a directory by its name.
pub(super) fn examine_other(path: &Path, options: &ExamineOptions) -> Verdict {
    let violation = || {
        let message = "is a link, device or pipe; in directories these are not opened, name it to add it";
        Violation::new(document::UNRECOGNISED, "", message)
    };
    match owner(&file_name(path)) {
        None => passed_over(options, violation),
        kind => Verdict::Rejected(Rejection::new(kind, violation().into())),
    }
}

/// Judges a file of the vault that is in use, which is not opened; `error` says so.
pub(super) fn examine_own(error: &io::Error, options: &ExamineOptions) -> Verdict {
    passed_over(options, || Violation::new(document::UNRECOGNISED, "", error.to_string()))
}

pub(super) fn examine(path: &Path, file: OpenFile, options: &ExamineOptions) -> io::Result<Verdict> {
    let file_name = file_name(path);
    if options.may_be_archive()
        && let Some(format) = Format::of(&file.head)
    {
        return Ok(packed::examine_found(format, file.file, options));
    }
    if let Some(what) = archive::unread(&file.head) {
        return Ok(examine_unread(&file_name, what, options));
    }
    let owner = owner(&file_name);
    if owner.is_none() && memchr(0, &file.head).is_some() && resembled(&file.head).is_empty() {
        return Ok(passed_over(options, || {
            Violation::new(document::UNRECOGNISED, "", "no kind recognises the file, which is not text")
        }));
    }
    let contents = file.read(options)?;
    let (Contents::Whole(bytes) | Contents::TooLarge { head: bytes, .. }) = &contents;
    let mut kinds = resembled(bytes);
    if kinds.is_empty() {
        kinds.extend(owner);
    }
    let kind = match (options.kind, kinds.as_slice()) {
        (_, []) => return Ok(examine_unrecognised(&file_name, bytes, options)),
        (Some(wanted), kinds) if kinds.contains(&wanted) => wanted,
        (None, [kind]) => *kind,
        (None, several) => return Ok(Verdict::Rejected(ambiguous(several))),
        (Some(_), others) => {
            return Ok(passed_over(options, || {
                let names: Vec<&str> = others.iter().map(|kind| kind.name()).collect();
                let message = format!("this is recognised as {}", names.join(" and "));
                Violation::new(document::UNRECOGNISED, "", message)
            }));
        }
    };
    Ok(match contents {
        Contents::Whole(bytes) => admit(kind, bytes, options).into(),
        Contents::TooLarge { report, .. } => Verdict::Rejected(Rejection::new(Some(kind), report)),
    })
}

/// The verdict on what is no artifact.
pub(super) fn passed_over(options: &ExamineOptions, why: impl FnOnce() -> Violation) -> Verdict {
    if options.strict { Verdict::Rejected(Rejection::new(None, why().into())) } else { Verdict::NoArtifact }
}

/// The kinds that a document resembles which was found, not named, so that common words are not enough.
fn resembled(bytes: &[u8]) -> Vec<Kind> {
    let sure = |bytes: &[u8]| -> Vec<Kind> {
        let recognised = recognise_all(bytes).into_iter();
        recognised
            .filter(|(_, recognition)| *recognition == Recognition::Surely)
            .map(|(kind, _)| kind)
            .collect()
    };
    let head = bytes.get(..ZEROS_WITHIN).unwrap_or(bytes);
    if memchr(0, head).is_none() {
        return sure(bytes);
    }
    let text = without_zeros(head);
    // No text has these, and almost all other files do.
    let is_text = !text.iter().any(|byte| (1..=8).contains(byte));
    if is_text { sure(&text) } else { Vec::new() }
}

/// How far into a document zeros are left out.
const ZEROS_WITHIN: usize = 64 << 10;

/// What is left of a document when a disk was full or a machine lost power, or when it is UTF-16: bytes that are zero are no
/// part of it.
fn without_zeros(head: &[u8]) -> Vec<u8> {
    let marks: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
    let unmarked = marks.into_iter().find_map(|mark| head.strip_prefix(mark)).unwrap_or(head);
    unmarked.iter().copied().filter(|byte| *byte != 0).collect()
}

/// Judges a file that no kind recognises: it may be what is left of an artifact of several files.
fn examine_unrecognised(file_name: &str, bytes: &[u8], options: &ExamineOptions) -> Verdict {
    let wanted = kinds::ALL.into_iter().filter(|kind| options.kind.is_none_or(|wanted| wanted == *kind));
    let mut orphans = wanted.filter_map(|kind| Some((kind, kind.orphan(file_name, bytes)?)));
    match orphans.next() {
        Some((kind, violation)) => Verdict::Rejected(Rejection::new(Some(kind), violation.into())),
        None => passed_over(options, || unrecognised(bytes, options)),
    }
}

/// Judges a file by its name that is an archive or compressed in a way that is not read.
fn examine_unread(file_name: &str, what: &str, options: &ExamineOptions) -> Verdict {
    let inside = archive::decompressed_name(file_name).and_then(owner);
    let kind = owner(file_name).or(inside);
    let is_meant = archive::is_tar_name(file_name) && options.may_be_archive()
        || kind.is_some_and(|kind| options.kind.is_none_or(|wanted| wanted == kind));
    let rejection = unread(kind, what);
    if is_meant || options.strict { Verdict::Rejected(rejection) } else { Verdict::NoArtifact }
}

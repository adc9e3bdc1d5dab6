//! Inputs opened for examination, and files found in a directory, which may be anything. A file that resembles an
//! artifact but cannot be admitted is rejected; others are passed over.

use std::io;
use std::path::Path;

use memchr::memchr;

use super::archive::{self, ArchiveFormat};
use super::document::{
    admit, ambiguous, decompress, decompressed_name, examine_document, examine_named, file_name, owner,
    unread, unrecognized,
};
use super::file::{self, FileContents, HEAD_BYTES, OpenFile};
use super::inputs::{self, DeclaredCapture, InputItem};
use super::original::InputLocation;
use super::verdict::{DocumentVerdict, ExamineOptions, Rejection, SourceError, admitted};
use crate::artifact::{Kind, Recognition, document};
use crate::files;
use crate::formats::{self, recognize_all};
use crate::validation::Violation;

impl InputItem {
    /// Opens a file, so that its size is known; other items are not accessed.
    #[must_use]
    pub fn open(self) -> OpenedInput {
        let file = match &self {
            Self::Named(path) => Some(OpenFile::open_named(path)),
            Self::Found(path) => Some(OpenFile::open_found(path)),
            Self::NotAFile(_)
            | Self::Directory { .. }
            | Self::End { .. }
            | Self::Document { .. }
            | Self::Declared(_) => None,
        };
        OpenedInput { item: self, file }
    }

    /// Reads a file that was found, so that it is added as it is, whatever its content. Other items, and files beyond the
    /// limits, are returned as they are.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub(crate) fn into_attachment(self, options: &ExamineOptions) -> Result<Self, SourceError> {
        let Self::Found(path) = &self else { return Ok(self) };
        let read = OpenFile::open_found(path).and_then(|file| file.read(options));
        Ok(match read.map_err(SourceError::at(path))? {
            FileContents::Whole(bytes) => {
                Self::Declared(DeclaredCapture::attachment(path.as_os_str().to_owned(), bytes))
            }
            FileContents::TooLarge { .. } => self,
        })
    }
}

/// An item ready to be examined.
#[derive(Debug)]
pub struct OpenedInput {
    item: InputItem,
    /// The file if the item is one, or the error of opening it.
    file: Option<io::Result<OpenFile>>,
}

impl OpenedInput {
    /// Creates an item that is not accessed before it is examined.
    pub(super) fn later(item: InputItem) -> Self {
        Self { item, file: None }
    }

    /// Returns the approximate memory needed to examine it, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match (&self.item, &self.file) {
            (_, Some(file)) => file.as_ref().map_or(0, OpenFile::weight),
            (InputItem::Directory { path, kind, .. }, _) => file::weigh_directory(path, *kind),
            (InputItem::Document { bytes, .. }, _) => bytes.len() as u64,
            (InputItem::Declared(declared), _) => declared.size(),
            (
                InputItem::Named(_) | InputItem::Found(_) | InputItem::NotAFile(_) | InputItem::End { .. },
                _,
            ) => 0,
        }
    }

    /// Reads and examines it.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub fn examine(self, options: &ExamineOptions) -> Result<DocumentVerdict, SourceError> {
        self.examine_in_place(options).map(|(verdict, _)| verdict)
    }

    /// Like [`examine`](Self::examine), and also returns the file or directory that it was read from, if any.
    pub(crate) fn examine_in_place(
        self,
        options: &ExamineOptions,
    ) -> Result<(DocumentVerdict, Option<InputLocation>), SourceError> {
        match self.item {
            InputItem::Document { name, bytes } => Ok((examine_document(bytes, &name, options).into(), None)),
            InputItem::Declared(declared) => Ok((inputs::examine(declared, options).into(), None)),
            InputItem::Named(path) => {
                let at = SourceError::at(&path);
                let file = self.file.unwrap_or_else(|| OpenFile::open_named(&path)).map_err(at)?;
                let is_packed = ArchiveFormat::can_grow(&file.head);
                let place = InputLocation::from_file(path.clone(), file.directory, true).packed(is_packed);
                let verdict = examine_named(&path, file, options).map_err(SourceError::at(&path))?;
                Ok((verdict, Some(place)))
            }
            InputItem::Found(path) => {
                let file = match self.file.unwrap_or_else(|| OpenFile::open_found(&path)) {
                    Err(error) if files::is_in_use(&error) => {
                        return Ok((examine_own(&error, options), None));
                    }
                    file => file.map_err(SourceError::at(&path))?,
                };
                let is_packed = ArchiveFormat::can_grow(&file.head);
                let place =
                    InputLocation::from_file(path.to_path_buf(), file.directory, false).packed(is_packed);
                let verdict = examine_found(&path, file, options).map_err(SourceError::at(&path))?;
                Ok((verdict, Some(place)))
            }
            InputItem::NotAFile(path) => Ok((examine_other(&path, options), None)),
            InputItem::End { .. } => Ok((DocumentVerdict::NoArtifact, None)),
            InputItem::Directory { path, kind, .. } => {
                let read = file::read_directory(&path, kind, options)?;
                let verdict = match read.contents {
                    Ok(directory) => admitted(kind, kind.admit_directory(directory, &options.admit)).into(),
                    Err(report) => DocumentVerdict::Rejected(Rejection::new(Some(kind), report)),
                };
                Ok((verdict, Some(InputLocation::from_directory(path.into(), read.id))))
            }
        }
    }
}

/// Reads and examines `item`.
///
/// # Errors
/// Returns an error if it cannot be read.
pub fn examine(item: InputItem, options: &ExamineOptions) -> Result<DocumentVerdict, SourceError> {
    OpenedInput::later(item).examine(options)
}

/// Examines an entry that is neither a file nor a directory by its name.
fn examine_other(path: &Path, options: &ExamineOptions) -> DocumentVerdict {
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
fn examine_own(error: &io::Error, options: &ExamineOptions) -> DocumentVerdict {
    passed_over(options, || Violation::new(document::UNRECOGNISED, "", error.to_string()))
}

fn examine_found(path: &Path, file: OpenFile, options: &ExamineOptions) -> io::Result<DocumentVerdict> {
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
        return Ok(file::examine_found_archive(format, file.file, options));
    }
    if archive::is_compressed(&file.head) {
        // Most compressed files are something else, and need not be decompressed to their end.
        let head = archive::decompressed_head(&file.head, HEAD_BYTES);
        let file_name = decompressed_name(&file_name);
        if owner(file_name).is_some() || !resembled(&head).is_empty() {
            return Ok(match decompress(file.file, options) {
                Ok(bytes) => examine_contents(file_name, FileContents::Whole(bytes), options),
                Err(rejection) => DocumentVerdict::Rejected(rejection),
            });
        }
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
    Ok(examine_contents(&file_name, file.read(options)?, options))
}

/// Examines a document that was found.
fn examine_contents(file_name: &str, contents: FileContents, options: &ExamineOptions) -> DocumentVerdict {
    let (FileContents::Whole(bytes) | FileContents::TooLarge { head: bytes, .. }) = &contents;
    let mut kinds = resembled(bytes);
    if kinds.is_empty() {
        kinds.extend(owner(file_name));
    }
    let kind = match (options.kind, kinds.as_slice()) {
        (_, []) => return examine_unrecognized(file_name, bytes, options),
        (Some(requested), kinds) if kinds.contains(&requested) => requested,
        (None, [kind]) => *kind,
        (None, several) => return DocumentVerdict::Rejected(ambiguous(several)),
        (Some(_), others) => {
            return passed_over(options, || {
                let names: Vec<&str> = others.iter().map(|kind| kind.name()).collect();
                let message = format!("this is recognized as {}", names.join(" and "));
                Violation::new(document::UNRECOGNISED, "", message)
            });
        }
    };
    match contents {
        FileContents::Whole(bytes) => admit(kind, bytes, file_name, options).into(),
        FileContents::TooLarge { report, .. } => {
            DocumentVerdict::Rejected(Rejection::new(Some(kind), report))
        }
    }
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

//! From paths to verdicts: finding files, recognising kinds by content, admitting documents.

pub mod archive;
mod beside;
mod candidate;
mod continuation;
mod directory;
mod file;
mod found;
mod inputs;
mod opened;
mod original;
mod packed;
pub mod pipeline;
mod removing;
mod settling;
mod stated;
mod tree;
mod writers;

use std::ffi::OsString;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use crate::artifact::{AdmitOptions, Admitted, Kind, document};
use crate::formats;
use crate::json::reader::{self, Limits};
use crate::validation::{Report, Violation};
use archive::Format;

use file::{Contents, OpenFile};

pub(crate) use beside::attach;
pub use continuation::{Continuation, Predecessor};
pub use inputs::Inputs;
pub use opened::Opened;
pub(crate) use original::Place;
pub use original::{KeepReason, MoveOptions, MoveOutcome, Original};
pub use settling::{PollingWatcher, Scan};
pub use stated::{STATED, Stated};
pub use tree::FoundPath;

/// Options for examining documents, and for handling those that were removed from a vault before.
#[derive(Clone, Debug, Default)]
pub struct ExamineOptions {
    /// Requires this kind instead of recognising it.
    pub kind: Option<Kind>,
    /// The options of admission.
    pub admit: AdmitOptions,
    /// Whether an artifact that was removed from a vault before is stored again. Otherwise it is rejected. Has no
    /// effect if nothing is stored.
    pub allow_removed: bool,
    /// Whether files in directories that are not artifacts are rejected instead of skipped.
    pub strict: bool,
}

impl ExamineOptions {
    /// Returns whether archives are opened: unless documents of one kind are requested.
    fn may_be_archive(&self) -> bool {
        self.kind.is_none_or(Kind::is_of_directories)
    }

    /// Returns the requested kind if any bytes are an artifact of it.
    fn kind_of_any_bytes(&self) -> Option<Kind> {
        self.kind.filter(|kind| kind.takes_any_bytes())
    }
}

/// The result of examining a document.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "each is taken apart where it is made; there are never many")]
pub enum Verdict {
    /// It is an artifact.
    Admitted(Admitted),
    /// It is intended to be an artifact but is not valid.
    Rejected(Rejection),
    /// It is another file, found in a directory.
    NoArtifact,
}

/// The reason a document is not an artifact.
#[derive(Debug)]
pub struct Rejection {
    /// The kind that it is intended to be of, if it was recognised.
    pub kind: Option<Kind>,
    /// Its violations.
    pub report: Report,
    /// The document, if it may be the rest of one whose beginning is elsewhere.
    pub continuation: Option<Box<Continuation>>,
}

impl Rejection {
    /// Creates a rejection of a document intended to be of `kind`.
    #[must_use]
    pub fn new(kind: Option<Kind>, report: Report) -> Self {
        Self { kind, report, continuation: None }
    }
}

impl From<Result<Admitted, Rejection>> for Verdict {
    fn from(outcome: Result<Admitted, Rejection>) -> Self {
        match outcome {
            Ok(admitted) => Self::Admitted(admitted),
            Err(rejection) => Self::Rejected(rejection),
        }
    }
}

/// An input to examine.
#[derive(Debug)]
pub enum Input {
    /// A file, or a directory with everything below it.
    Path(PathBuf),
    /// A document that was already read, with the name for reports.
    Document {
        /// The name.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// A file or document that [`Inputs`] found.
#[derive(Debug)]
pub enum Item {
    /// A file that was named explicitly: it is an artifact or rejected.
    Named(PathBuf),
    /// A file in a directory: it need not be an artifact.
    Found(FoundPath),
    /// The end of a directory that was named explicitly, after all its items. Its verdict is that it is not an
    /// artifact; the caller counts whether the directory contained any.
    End {
        /// Its path.
        path: PathBuf,
        /// The number of items found in it.
        items: u64,
    },
    /// A link, device or pipe in a directory: never opened. It is rejected if it has a name defined by a format.
    NotAFile(PathBuf),
    /// A directory that is intended to be one artifact.
    Directory {
        /// Its path.
        path: FoundPath,
        /// Its kind.
        kind: Kind,
        /// Whether it was named explicitly.
        named: bool,
    },
    /// A document that was already read.
    Document {
        /// The name.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A byte form with declared hashes.
    Stated(Stated),
}

impl Item {
    /// Returns the number of items in the directory whose end it is, or `None` if it is not an end.
    pub(crate) fn items(&self) -> Option<u64> {
        match self {
            Self::End { items, .. } => Some(*items),
            _ => None,
        }
    }

    /// Returns the name for reports. The name of a file need not be UTF-8.
    #[must_use]
    pub fn name(&self) -> OsString {
        match self {
            Self::Named(path) | Self::NotAFile(path) | Self::End { path, .. } => {
                path.clone().into_os_string()
            }
            Self::Found(path) | Self::Directory { path, .. } => path.as_os_str().to_owned(),
            Self::Document { name, .. } => name.into(),
            Self::Stated(Stated { name, .. }) => name.clone(),
        }
    }
}

/// The error for a file or directory that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct SourceError {
    /// The path.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

impl SourceError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self { path: path.to_owned(), source }
    }
}

/// Reads and examines `item`.
///
/// # Errors
/// Returns an error if it cannot be read.
pub fn examine(item: Item, options: &ExamineOptions) -> Result<Verdict, SourceError> {
    Opened::later(item).examine(options)
}

pub use formats::{recognise, recognise_all};

/// Returns the rejection of a directory that was named explicitly and in which nothing was recognised. `options` are
/// those that its files were examined with.
#[must_use]
pub fn nothing_recognised(options: &ExamineOptions) -> Rejection {
    let of_kind = options.kind.map(|kind| format!(" of the kind {}", kind.name())).unwrap_or_default();
    let message = format!("neither this directory nor any file in it is recognised as an artifact{of_kind}");
    let report = Violation::new(document::UNRECOGNISED, "", message).into();
    Rejection::new(options.kind, report)
}

/// Returns the kind of a document, if one is required or recognised.
///
/// # Errors
/// Returns a rejection if several kinds recognise it.
fn meant(document: &[u8], options: &ExamineOptions) -> Result<Option<Kind>, Rejection> {
    if options.kind.is_some() {
        return Ok(options.kind);
    }
    let kinds: Vec<Kind> = recognise_all(document).into_iter().map(|(kind, _)| kind).collect();
    match kinds.as_slice() {
        [] => Ok(None),
        [kind] => Ok(Some(*kind)),
        several => Err(ambiguous(several)),
    }
}

/// Returns the rejection of a document that several kinds recognise.
fn ambiguous(kinds: &[Kind]) -> Rejection {
    Rejection::new(None, document::ambiguous(kinds).into())
}

/// Returns the kind whose file names match `file_name`. It only affects how a malformed document is reported.
fn owner(file_name: &str) -> Option<Kind> {
    formats::ALL.into_iter().find(|kind| kind.owns_file_name(file_name))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Examines a document that is intended to be an artifact, or an archive of one. `file_name` determines how an
/// unrecognised document is reported.
///
/// # Errors
/// Returns a rejection with the intended kind and the violations.
pub fn examine_document(
    bytes: Vec<u8>,
    file_name: &str,
    options: &ExamineOptions,
) -> Result<Admitted, Rejection> {
    let limit = options.admit.limits.bytes.min(Limits::MAX_BYTES);
    let is_too_large = bytes.len() as u64 > limit;
    if options.may_be_archive()
        && let Some(format) = Format::detect(&bytes).filter(|_| !is_too_large)
    {
        return packed::examine(format, Cursor::new(bytes), options);
    }
    let any = options.kind_of_any_bytes();
    if let Some(what) = archive::unread(&bytes).filter(|_| !is_too_large && any.is_none()) {
        return Err(unread(options.kind.or_else(|| owner(file_name)), what));
    }
    let kind = meant(&bytes, options)?.or_else(|| owner(file_name));
    match kind {
        kind if is_too_large => Err(Rejection::new(kind, document::larger_than(limit).into())),
        Some(kind) if kind.is_of_directories() => {
            let message = "this is a file, neither a directory nor an archive";
            Err(Rejection::new(Some(kind), kind.unreadable(file_name, message)))
        }
        Some(kind) => admit(kind, bytes, options),
        None => Err(Rejection::new(None, unrecognised(&bytes, options).into())),
    }
}

fn examine_named(path: &Path, file: OpenFile, options: &ExamineOptions) -> io::Result<Verdict> {
    let file_name = file_name(path);
    if let Some(what) = archive::unread(&file.head).filter(|_| options.kind_of_any_bytes().is_none()) {
        return Ok(Verdict::Rejected(unread(options.kind.or_else(|| owner(&file_name)), what)));
    }
    if options.may_be_archive() {
        if let Some(format) = Format::detect(&file.head) {
            return Ok(packed::examine(format, file.file, options).into());
        }
        if let Some(kind) = options.kind.filter(|kind| kind.is_of_directories()) {
            let message = "this is a file, neither a directory nor an archive";
            let report = kind.unreadable(&path.to_string_lossy(), message);
            return Ok(Verdict::Rejected(Rejection::new(Some(kind), report)));
        }
    }
    Ok(match file.read(options)? {
        Contents::Whole(bytes) => examine_document(bytes, &file_name, options).into(),
        Contents::TooLarge { head, report } => {
            let kind = meant(&head, options).unwrap_or_default().or_else(|| owner(&file_name));
            Verdict::Rejected(Rejection::new(kind, report))
        }
    })
}

/// Returns the rejection of a file in an unsupported archive or compression format.
fn unread(kind: Option<Kind>, what: &str) -> Rejection {
    let message = format!(
        "this is {what}, which is not supported; decompress it first, or pack as zip, tar, tar.gz or tar.zst"
    );
    Rejection::new(kind, Violation::new(document::UNRECOGNISED, "", message).into())
}

fn admit(kind: Kind, bytes: Vec<u8>, options: &ExamineOptions) -> Result<Admitted, Rejection> {
    let Some(rest) = kind.continues(&bytes, &options.admit.limits) else {
        return admitted(kind, kind.admit(bytes, &options.admit));
    };
    let continuation = Continuation::new(kind, rest, bytes.clone());
    admitted(kind, kind.admit(bytes, &options.admit))
        .map_err(|rejection| Rejection { continuation: Some(Box::new(continuation)), ..rejection })
}

fn admitted(kind: Kind, outcome: Result<Admitted, Report>) -> Result<Admitted, Rejection> {
    outcome.map_err(|report| Rejection::new(Some(kind), report))
}

/// Returns the violation for a document that was named explicitly and that no kind recognises.
fn unrecognised(bytes: &[u8], options: &ExamineOptions) -> Violation {
    let limits = &options.admit.limits;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_jsonl = |text: &[u8]| {
        let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        text.contains(&b'\n') && lines.all(|line| line.starts_with(b"{") && line.ends_with(b"}"))
    };
    let read = match first {
        Some(b'{' | b'[') if !is_jsonl(bytes) => reader::read(bytes, limits).map(drop),
        _ => reader::utf8(bytes, limits).map(drop),
    };
    let message = match (read, first) {
        (Err(error), _) => return document::violation(&error),
        (Ok(()), None) => "the document is empty".to_owned(),
        (Ok(()), _) => "no kind recognises the document".to_owned(),
    };
    Violation::new(document::UNRECOGNISED, "", message)
}

//! From paths to verdicts: finding files, recognising kinds by content, admitting documents.

mod continuation;
mod directory;
mod file;
mod found;
mod inputs;
mod opened;
mod original;
mod packed;
mod removing;
mod settling;
mod stated;
mod tree;
mod writers;

use std::ffi::OsString;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use crate::archive::{self, Format};
use crate::artifact::{AdmitOptions, Admitted, Kind, document};
use crate::canonical::reader::{self, Limits};
use crate::kinds;
use crate::verify::{Report, Violation};

use file::{Contents, OpenFile};

pub use continuation::{Continuation, Wanted};
pub use inputs::Inputs;
pub use opened::Opened;
pub(crate) use original::Place;
pub use original::{Kept, MoveOptions, Original, Taken};
pub use settling::{Look, Settling};
pub use stated::{STATED, Stated};
pub use tree::FoundPath;

/// How documents are examined, and what is done with those that were removed from a vault before.
#[derive(Clone, Debug, Default)]
pub struct ExamineOptions {
    /// Insist on this kind instead of recognising it.
    pub kind: Option<Kind>,
    /// What the checks need to know.
    pub admit: AdmitOptions,
    /// Whether an artifact that was removed from a vault before is stored there again. Otherwise it is rejected. Makes no
    /// difference where nothing is stored.
    pub allow_removed: bool,
    /// Reject what is found in directories and is no artifact, instead of passing it over.
    pub strict: bool,
}

impl ExamineOptions {
    /// Whether archives are looked into: unless documents of one kind are asked for.
    fn may_be_archive(&self) -> bool {
        self.kind.is_none_or(Kind::is_of_directories)
    }
}

/// What examining a document gave.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "each is taken apart where it is made; there are never many")]
pub enum Verdict {
    /// It is an artifact.
    Admitted(Admitted),
    /// It is meant to be an artifact and is none.
    Rejected(Rejection),
    /// It is something else, found in a directory.
    NoArtifact,
}

/// Why a document is no artifact.
#[derive(Debug)]
pub struct Rejection {
    /// The kind it is meant to be of, as far as that can be told.
    pub kind: Option<Kind>,
    /// Its violations.
    pub report: Report,
    /// The document, if it may be the rest of one whose beginning is elsewhere.
    pub continuation: Option<Box<Continuation>>,
}

impl Rejection {
    /// A rejection of what is meant to be of `kind`.
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

/// Something to examine.
#[derive(Debug)]
pub enum Input {
    /// A file, or a directory with all that is below it.
    Path(PathBuf),
    /// A document that was read already, under the name to report it by.
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
    /// A file that was asked for by its name: it is an artifact or a rejection.
    Named(PathBuf),
    /// A file in a directory: it may be no artifact.
    Found(FoundPath),
    /// The end of a directory that was named, after everything that was found in it. Examined, it is no artifact; whoever
    /// counts knows whether anything in the directory was one.
    End {
        /// Where it is.
        path: PathBuf,
        /// How many items were found in it.
        items: u64,
    },
    /// A link, device or pipe in a directory: never opened. One that has a name which a format gives is a rejection.
    NotAFile(PathBuf),
    /// A directory that is meant to be one artifact.
    Directory {
        /// Where it is.
        path: FoundPath,
        /// Of which kind.
        kind: Kind,
        /// Whether it was asked for by its name.
        named: bool,
    },
    /// A document that was read already.
    Document {
        /// The name.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A byte form of which it is stated what it is.
    Stated(Stated),
}

impl Item {
    /// How many items there were in the directory that it is the end of; nothing if it is no end.
    pub(crate) fn items(&self) -> Option<u64> {
        match self {
            Self::End { items, .. } => Some(*items),
            _ => None,
        }
    }

    /// The name to report it by. That of a file may be no UTF-8.
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

/// A file or directory could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct SourceError {
    /// Which.
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
/// If it cannot be read.
pub fn examine(item: Item, options: &ExamineOptions) -> Result<Verdict, SourceError> {
    Opened::later(item).examine(options)
}

pub use kinds::{recognise, recognise_all};

/// Why a directory that was named is refused in which nothing was recognised. `options` are those that the files in it
/// were examined with.
#[must_use]
pub fn nothing_recognised(options: &ExamineOptions) -> Rejection {
    let of_kind = options.kind.map(|kind| format!(" of the kind {}", kind.name())).unwrap_or_default();
    let message = format!(
        "nothing in this directory is recognised as an artifact{of_kind}, and neither is the directory itself"
    );
    let report = Violation::new(document::UNRECOGNISED, "", message).into();
    Rejection::new(options.kind, report)
}

/// The kind that a document is meant to be of, if one is wanted or recognised.
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

/// Why a document is refused that several kinds recognise.
fn ambiguous(kinds: &[Kind]) -> Rejection {
    Rejection::new(None, document::ambiguous(kinds).into())
}

/// The kind whose files have names like `file_name`. It decides nothing but how a broken document is reported.
fn owner(file_name: &str) -> Option<Kind> {
    kinds::ALL.into_iter().find(|kind| kind.owns_file_name(file_name))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Examines a document that is meant to be an artifact, or an archive of one. `file_name` says how to report one that cannot be recognised.
///
/// # Errors
/// The kind it is meant to be of, and its violations.
pub fn examine_document(
    bytes: Vec<u8>,
    file_name: &str,
    options: &ExamineOptions,
) -> Result<Admitted, Rejection> {
    let limit = options.admit.limits.bytes.min(Limits::MAX_BYTES);
    let is_too_large = bytes.len() as u64 > limit;
    if options.may_be_archive()
        && let Some(format) = Format::of(&bytes).filter(|_| !is_too_large)
    {
        return packed::examine(format, Cursor::new(bytes), options);
    }
    if let Some(what) = archive::unread(&bytes).filter(|_| !is_too_large) {
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
    if let Some(what) = archive::unread(&file.head) {
        return Ok(Verdict::Rejected(unread(options.kind.or_else(|| owner(&file_name)), what)));
    }
    if options.may_be_archive() {
        if let Some(format) = Format::of(&file.head) {
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

/// Why a file is refused that is an archive or compressed in a way that is not read.
fn unread(kind: Option<Kind>, what: &str) -> Rejection {
    let message = format!(
        "this is {what}, which is not read; decompress it first, or pack it as zip, tar, tar.gz or tar.zst"
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

/// Why no kind recognises a document that was named.
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
        (Ok(()), _) => {
            format!("no kind recognises the document; --kind insists on one of {}", kinds::names())
        }
    };
    Violation::new(document::UNRECOGNISED, "", message)
}

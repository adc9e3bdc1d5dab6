//! From paths to verdicts: finding files, recognising kinds by content, admitting documents.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::artifact::{AdmitOptions, Admitted, Kind, document};
use crate::canonical::reader;
use crate::kinds;
use crate::verify::{Report, Violation};

/// How documents are examined.
#[derive(Clone, Debug, Default)]
pub struct ExamineOptions {
    /// Insist on this kind instead of recognising it.
    pub kind: Option<Kind>,
    /// What the checks need to know.
    pub admit: AdmitOptions,
}

/// What examining a document gave.
#[derive(Debug)]
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
    Found(PathBuf),
    /// A link, device or pipe in a directory: never opened.
    NotAFile(PathBuf),
    /// A document that was read already.
    Document {
        /// The name.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

impl Item {
    /// The name to report it by.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Named(path) | Self::Found(path) | Self::NotAFile(path) => {
                path.to_string_lossy().into_owned()
            }
            Self::Document { name, .. } => name.clone(),
        }
    }

    /// About how many bytes examining it takes into memory.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Self::Named(path) | Self::Found(path) => fs::metadata(path).map_or(0, |metadata| metadata.len()),
            Self::NotAFile(_) => 0,
            Self::Document { bytes, .. } => bytes.len() as u64,
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

/// Walks through inputs: everything in a directory in the order of names, links not followed.
#[derive(Debug)]
pub struct Inputs {
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
enum Waiting {
    Input(Input),
    Entry(fs::DirEntry),
}

impl Inputs {
    /// All of `inputs`, in their order.
    #[must_use]
    pub fn new(inputs: Vec<Input>) -> Self {
        Self { waiting: inputs.into_iter().map(Waiting::Input).collect() }
    }

    fn named(&mut self, path: PathBuf) -> Result<Option<Item>, SourceError> {
        // Unlike in directories, a link that is named is meant.
        let metadata = fs::metadata(&path).map_err(SourceError::at(&path))?;
        if metadata.is_dir() {
            self.enter(&path)?;
            Ok(None)
        } else if metadata.is_file() {
            Ok(Some(Item::Named(path)))
        } else {
            let reason = "is neither a file nor a directory; to read from a pipe, use - and redirect it";
            Err(SourceError { path, source: io::Error::new(io::ErrorKind::InvalidInput, reason) })
        }
    }

    fn found(&mut self, entry: &fs::DirEntry) -> Result<Option<Item>, SourceError> {
        let path = entry.path();
        let file_type = entry.file_type().map_err(SourceError::at(&path))?;
        if file_type.is_dir() {
            self.enter(&path)?;
            Ok(None)
        } else if file_type.is_file() {
            Ok(Some(Item::Found(path)))
        } else {
            Ok(Some(Item::NotAFile(path)))
        }
    }

    fn enter(&mut self, directory: &Path) -> Result<(), SourceError> {
        let entries: io::Result<Vec<_>> = fs::read_dir(directory).and_then(Iterator::collect);
        let mut entries = entries.map_err(SourceError::at(directory))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries.into_iter().rev() {
            self.waiting.push_front(Waiting::Entry(entry));
        }
        Ok(())
    }
}

impl Iterator for Inputs {
    type Item = Result<Item, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let item = match self.waiting.pop_front()? {
                Waiting::Input(Input::Document { name, bytes }) => Ok(Some(Item::Document { name, bytes })),
                Waiting::Input(Input::Path(path)) => self.named(path),
                Waiting::Entry(entry) => self.found(&entry),
            };
            if let Some(item) = item.transpose() {
                return Some(item);
            }
        }
    }
}

/// Reads and examines `item`.
///
/// # Errors
/// If it cannot be read.
pub fn examine(item: Item, options: &ExamineOptions) -> Result<Verdict, SourceError> {
    match item {
        Item::Document { name, bytes } => Ok(examine_document(bytes, &name, options).into()),
        Item::Named(path) => examine_named(&path, options).map_err(SourceError::at(&path)),
        Item::Found(path) => examine_found(&path, options).map_err(SourceError::at(&path)),
        Item::NotAFile(_) => Ok(Verdict::NoArtifact),
    }
}

pub use kinds::recognise;

/// The kind whose files have names like `file_name`. It decides nothing but how a broken document is reported.
fn owner(file_name: &str) -> Option<Kind> {
    kinds::ALL.into_iter().find(|kind| kind.owns_file_name(file_name))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Examines a document that is meant to be an artifact. `file_name` says how to report one that cannot be recognised.
///
/// # Errors
/// The kind it is meant to be of, and its violations.
pub fn examine_document(
    bytes: Vec<u8>,
    file_name: &str,
    options: &ExamineOptions,
) -> Result<Admitted, Rejection> {
    let kind = options.kind.or_else(|| recognise(&bytes)).or_else(|| owner(file_name));
    match kind {
        Some(kind) => admit(kind, bytes, options),
        None => Err(Rejection { kind: None, report: unrecognised(&bytes, options).into() }),
    }
}

fn examine_named(path: &Path, options: &ExamineOptions) -> io::Result<Verdict> {
    let file_name = file_name(path);
    Ok(match OpenFile::open(path)?.read(options)? {
        Contents::Whole(bytes) => examine_document(bytes, &file_name, options).into(),
        Contents::TooLarge { head, report } => {
            let kind = options.kind.or_else(|| recognise(&head)).or_else(|| owner(&file_name));
            Verdict::Rejected(Rejection { kind, report })
        }
    })
}

fn examine_found(path: &Path, options: &ExamineOptions) -> io::Result<Verdict> {
    let owner = owner(&file_name(path));
    let file = OpenFile::open(path)?;
    if owner.is_none() && file.head.contains(&0) {
        return Ok(Verdict::NoArtifact);
    }
    let contents = file.read(options)?;
    let (Contents::Whole(bytes) | Contents::TooLarge { head: bytes, .. }) = &contents;
    let recognised = recognise(bytes).or(owner);
    let kind = match recognised {
        Some(kind) if options.kind.is_none_or(|wanted| wanted == kind) => kind,
        _ => return Ok(Verdict::NoArtifact),
    };
    Ok(match contents {
        Contents::Whole(bytes) => admit(kind, bytes, options).into(),
        Contents::TooLarge { report, .. } => Verdict::Rejected(Rejection { kind: Some(kind), report }),
    })
}

fn admit(kind: Kind, bytes: Vec<u8>, options: &ExamineOptions) -> Result<Admitted, Rejection> {
    kind.admit(bytes, &options.admit).map_err(|report| Rejection { kind: Some(kind), report })
}

/// Why no kind recognises a document that was named.
fn unrecognised(bytes: &[u8], options: &ExamineOptions) -> Violation {
    let limits = &options.admit.limits;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let read = match first {
        Some(b'{' | b'[') => reader::read(bytes, limits).map(drop),
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

/// Enough of a file to tell text from anything else, and most kinds from each other.
const HEAD_BYTES: u64 = 64 << 10;

/// A file of which the beginning was read.
struct OpenFile {
    file: File,
    size: u64,
    head: Vec<u8>,
}

enum Contents {
    Whole(Vec<u8>),
    TooLarge { head: Vec<u8>, report: Report },
}

impl OpenFile {
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut head = Vec::new();
        file.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
        Ok(Self { file, size, head })
    }

    /// Reads the rest, but no more than the limit allows: a file may also grow while it is read.
    fn read(self, options: &ExamineOptions) -> io::Result<Contents> {
        let Self { file, size, head } = self;
        let limit = options.admit.limits.bytes;
        let too_large = |head, size| {
            let report = document::too_large(size, limit).into();
            Ok(Contents::TooLarge { head, report })
        };
        if size > limit {
            return too_large(head, size);
        }
        let mut bytes = head;
        bytes.reserve_exact(usize::try_from(size).unwrap_or(0).saturating_sub(bytes.len()));
        let left = (limit + 1).saturating_sub(bytes.len() as u64);
        file.take(left).read_to_end(&mut bytes)?;
        match bytes.len() as u64 {
            size if size > limit => too_large(bytes, size),
            _ => Ok(Contents::Whole(bytes)),
        }
    }
}

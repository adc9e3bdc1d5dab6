//! The options and the results of examining a document.

use std::io;
use std::path::{Path, PathBuf};

use crate::artifact::{AdmitOptions, Admitted, Kind, PredecessorReference};
use crate::digest::Digest;
use crate::validation::{Report, Violation};

/// Options for examining documents, and for handling those that were removed from a vault before.
#[derive(Clone, Debug, Default)]
pub struct ExamineOptions {
    /// Requires this kind instead of recognizing it.
    pub kind: Option<Kind>,
    /// The options of admission.
    pub admit: AdmitOptions,
    /// Whether an artifact that was removed from a vault before is stored again. Otherwise it is rejected. Has no
    /// effect if nothing is stored.
    pub allow_removed: bool,
    /// Whether files in directories that are not artifacts are rejected instead of skipped.
    pub strict: bool,
    /// Whether the path of a document is not recorded with its capture. Has no effect if nothing is stored.
    pub without_source_path: bool,
}

impl ExamineOptions {
    /// Returns whether archives are opened: unless documents of one kind are requested.
    pub(super) fn may_be_archive(&self) -> bool {
        self.kind.is_none_or(Kind::is_of_directories)
    }

    /// Returns the requested kind if any bytes are an artifact of it.
    pub(super) fn kind_of_any_bytes(&self) -> Option<Kind> {
        self.kind.filter(|kind| kind.info().takes_any_bytes)
    }
}

/// The result of examining a document.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "each is taken apart where it is made; there are never many")]
pub enum DocumentVerdict {
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
    /// The kind that it is intended to be of, if it was recognized.
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

impl From<Result<Admitted, Rejection>> for DocumentVerdict {
    fn from(outcome: Result<Admitted, Rejection>) -> Self {
        match outcome {
            Ok(admitted) => Self::Admitted(admitted),
            Err(rejection) => Self::Rejected(rejection),
        }
    }
}

/// Returns the outcome of admitting a document of `kind`.
pub(super) fn admitted(kind: Kind, outcome: Result<Admitted, Report>) -> Result<Admitted, Rejection> {
    outcome.map_err(|report| Rejection::new(Some(kind), report))
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
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self { path: path.to_owned(), source }
    }
}

/// The predecessor that a document continues.
#[derive(Clone, Copy, Debug)]
pub struct Predecessor {
    /// The kind of both.
    pub kind: Kind,
    /// The core hash of the document up to that point.
    pub after: Digest,
    /// The group of the roles under which longer documents mention it.
    pub group: &'static str,
}

/// A document that is the rest of a longer one. If the beginning is known, both are admitted as one document.
#[derive(Debug)]
pub struct Continuation {
    kind: Kind,
    rest: PredecessorReference,
    document: Vec<u8>,
}

impl Continuation {
    /// Creates the continuation for `document`, which states its predecessor.
    pub(super) fn new(kind: Kind, rest: PredecessorReference, document: Vec<u8>) -> Self {
        Self { kind, rest, document }
    }

    /// Returns the kind of both parts.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the predecessor that it continues.
    #[must_use]
    pub fn predecessor(&self) -> Predecessor {
        Predecessor { kind: self.kind, after: self.rest.after, group: self.rest.group }
    }

    /// Returns the bytes of the document.
    #[must_use]
    pub fn document(&self) -> &[u8] {
        &self.document
    }

    /// Joins the document to the part of `beginning` that precedes it, and admits both as one document.
    ///
    /// # Errors
    /// Returns the violations of the whole; those in this document have their locations in it.
    pub fn admit_after(&self, beginning: &[u8], options: &AdmitOptions) -> Result<Admitted, Report> {
        self.kind.admit_joined(beginning, &self.rest, &self.document, options)
    }

    /// Returns the report for a document whose beginning is missing.
    #[must_use]
    pub fn unmatched(&self) -> Report {
        let PredecessorReference { rule, path, what, after, .. } = &self.rest;
        let message = format!(
            "continues the {what} {}, but nothing that is known ends with it; \
             the file with the beginning must come before this one, or together with it",
            after.hex()
        );
        Violation::new(*rule, path.clone(), message).into()
    }
}

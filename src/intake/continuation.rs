//! Documents whose beginning is elsewhere, as written by a program that continues after its file was moved away.

use crate::artifact::{AdmitOptions, Admitted, Kind, PredecessorReference};
use crate::digest::Digest;
use crate::validation::{Report, Violation};

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

//! Documents whose beginning is elsewhere, as a program leaves them that goes on writing after its file was taken away.

use crate::artifact::{AdmitOptions, Admitted, Kind, Rest};
use crate::digest::Digest;
use crate::verify::{Report, Violation};

/// What a document continues.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The kind of both.
    pub kind: Kind,
    /// The core hash of the document up to there.
    pub after: Digest,
    /// The group of roles in which longer documents mention it.
    pub group: &'static str,
}

/// A document that is the rest of a longer one. Where the beginning is known, both are admitted as one document.
#[derive(Debug)]
pub struct Continuation {
    kind: Kind,
    rest: Rest,
    document: Vec<u8>,
}

impl Continuation {
    /// Of `document`, which says what it continues.
    pub(super) fn new(kind: Kind, rest: Rest, document: Vec<u8>) -> Self {
        Self { kind, rest, document }
    }

    /// The kind of both parts.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What it continues.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        Wanted { kind: self.kind, after: self.rest.after, group: self.rest.group }
    }

    /// The bytes of the document.
    #[must_use]
    pub fn document(&self) -> &[u8] {
        &self.document
    }

    /// Puts the document after `beginning`, as far as that goes before it, and admits both as one document.
    ///
    /// # Errors
    /// The violations of the whole; those of this document have their places in it.
    pub fn admit_after(&self, beginning: &[u8], options: &AdmitOptions) -> Result<Admitted, Report> {
        self.kind.admit_joined(beginning, &self.rest, &self.document, options)
    }

    /// The report of a document whose beginning is nowhere.
    #[must_use]
    pub fn unmatched(&self) -> Report {
        let Rest { rule, path, what, after, .. } = &self.rest;
        let message = format!(
            "continues the {what} {}, and the vault has nothing that ends with it; add the file with the beginning \
             first, or both together",
            after.hex()
        );
        Violation::new(*rule, path.clone(), message).into()
    }
}

//! The result of examining a document.

use super::continuation::Continuation;
use crate::artifact::{Admitted, Kind};
use crate::validation::Report;

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

//! Examined documents, before they are stored.

use std::ffi::OsString;

use crate::artifact::Admitted;
use crate::digest::CoreHash;
use crate::intake::{ArtifactSource, Continuation, DocumentVerdict, InputLocation, Rejection, SourceError};

/// An examined document, with the value made from its admission.
pub(super) struct Examination<A> {
    pub(super) path: OsString,
    pub(super) original: Option<ArtifactSource>,
    pub(super) continues: Option<CoreHash>,
    pub(super) verdict: ExaminationResult<A>,
    /// Whether it represents the end of a directory.
    pub(super) is_end: bool,
}

impl<A> Examination<A> {
    /// Creates an examination; `make` converts an admitted artifact. `items` is set for the end of a directory.
    pub(super) fn new(
        path: OsString,
        items: Option<u64>,
        examined: (DocumentVerdict, Option<InputLocation>),
        make: &impl Fn(Admitted) -> A,
    ) -> Self {
        let (verdict, place) = examined;
        let mut original = None;
        let verdict = match verdict {
            DocumentVerdict::Admitted(admitted) => {
                original = ArtifactSource::new(place, &admitted);
                ExaminationResult::Admitted(make(admitted))
            }
            DocumentVerdict::Rejected(mut rejection) => match rejection.continuation.take() {
                Some(continuation) => {
                    ExaminationResult::Rest(ContinuingDocument { place, rejection, continuation })
                }
                None => ExaminationResult::Rejected(rejection),
            },
            DocumentVerdict::NoArtifact => {
                items.map_or(ExaminationResult::NoArtifact, ExaminationResult::End)
            }
        };
        Self { path, original, continues: None, verdict, is_end: items.is_some() }
    }

    /// Creates the examination of a document that is not admitted.
    pub(super) fn rejected(path: OsString, rejection: Rejection) -> Self {
        Self {
            path,
            original: None,
            continues: None,
            verdict: ExaminationResult::Rejected(rejection),
            is_end: false,
        }
    }
}

/// The verdict on a document, with the value made from its admission.
pub(super) enum ExaminationResult<A> {
    Admitted(A),
    Rejected(Rejection),
    /// The rest of a document, which is rejected if its beginning is unknown.
    Rest(ContinuingDocument),
    NoArtifact,
    /// The end of a directory, with the number of items in it.
    End(u64),
}

/// A document that is the rest of another one.
pub(super) struct ContinuingDocument {
    pub(super) place: Option<InputLocation>,
    pub(super) rejection: Rejection,
    pub(super) continuation: Box<Continuation>,
}

/// An examined document, or the error of reading it.
pub(super) type ExaminedItem<A> = std::result::Result<Examination<A>, SourceError>;

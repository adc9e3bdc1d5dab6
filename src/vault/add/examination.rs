//! Examined documents, before they are stored.

use std::ffi::OsString;

use crate::digest::CoreHash;
use crate::intake::{ArtifactSource, Continuation, InputLocation, Rejection, SourceError};

/// An examined document, with the value made from its admission.
pub(super) struct Examination<A> {
    pub(super) path: OsString,
    pub(super) original: Option<ArtifactSource>,
    pub(super) continues: Option<CoreHash>,
    pub(super) verdict: ExaminationResult<A>,
    /// Whether it represents the end of a directory.
    pub(super) is_end: bool,
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

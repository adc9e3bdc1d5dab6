//! Reasons why there is no page.

use std::error::Error;

use axum::http::StatusCode;

use crate::digest::CoreHash;
use crate::storage::{ErrorKind, StorageError};
use crate::vault::HashTarget;
use crate::vault::LookupError;
use crate::vault::search::SearchError;

/// The reason why there is no page.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    /// A parameter of the address is not valid.
    #[error("{0}")]
    BadRequest(String),
    /// A field of a form is not valid. The page of the form says so beside the field.
    #[error("{}: {message}", .field.replace('_', " "))]
    Field {
        /// The name of the field.
        field: &'static str,
        /// What is wrong.
        message: String,
    },
    /// There is no page at this address.
    #[error("there is no page at this address")]
    NoPage,
    /// The artifact cannot be found.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The search is not possible.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The vault cannot be read.
    #[error(transparent)]
    Store(#[from] StorageError),
}

impl PageError {
    /// Returns the status of the response.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) | Self::Field { .. } => StatusCode::BAD_REQUEST,
            Self::NoPage => StatusCode::NOT_FOUND,
            Self::Lookup(error) => of_lookup(error),
            Self::Search(error) => of_search(error),
            Self::Store(error) => of_store(error),
        }
    }

    /// Returns the artifacts that an ambiguous text can mean.
    pub(super) fn candidates(&self) -> Vec<CoreHash> {
        let core = |target: &HashTarget| match target {
            HashTarget::Artifact(core) | HashTarget::Capture(core, _) => *core,
        };
        match self {
            Self::Lookup(LookupError::Ambiguous { candidates, .. }) => candidates.iter().map(core).collect(),
            Self::Lookup(LookupError::AmbiguousName { candidates, .. }) => {
                candidates.iter().map(|artifact| artifact.core).collect()
            }
            Self::Lookup(LookupError::AmbiguousHandle { meanings, .. }) => {
                meanings.iter().map(|(_, core)| *core).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the error that a hint can be given for.
    pub(super) fn cause(&self) -> &(dyn Error + 'static) {
        match self {
            Self::BadRequest(_) | Self::Field { .. } | Self::NoPage => self,
            Self::Lookup(error) => error,
            Self::Search(error) => error,
            Self::Store(error) => error,
        }
    }
}

fn of_lookup(error: &LookupError) -> StatusCode {
    match error {
        LookupError::NotFound(_)
        | LookupError::NoSuchTag(_)
        | LookupError::NoSuchName { .. }
        | LookupError::Mentioned(_)
        | LookupError::NotMentioned { .. }
        | LookupError::LatestOutOfRange { .. }
        | LookupError::CaptureNotFound { .. } => StatusCode::NOT_FOUND,
        LookupError::Removed(_) => StatusCode::GONE,
        LookupError::Ambiguous { .. }
        | LookupError::AmbiguousName { .. }
        | LookupError::AmbiguousHandle { .. }
        | LookupError::AmbiguousMention { .. } => StatusCode::MULTIPLE_CHOICES,
        LookupError::Store(error) => of_store(error),
        LookupError::Unreadable { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn of_search(error: &SearchError) -> StatusCode {
    match error {
        SearchError::Store(error) => of_store(error),
        SearchError::NoIndex | SearchError::StaleIndex => StatusCode::NOT_FOUND,
        SearchError::Differs { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn of_store(error: &StorageError) -> StatusCode {
    match error.kind() {
        ErrorKind::Gone => StatusCode::GONE,
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Busy | ErrorKind::Connection => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

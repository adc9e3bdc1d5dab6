//! Reasons why a tool has no result.

use std::error::Error;

use crate::storage::StorageError;
use crate::vault::LookupError;
use crate::vault::search::SearchError;

/// The reason why a tool has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum ToolError {
    /// An argument is not valid.
    #[error("{0}")]
    Invalid(String),
    /// The cursor is not one of this tool.
    #[error("the cursor is not one that this tool returned")]
    Cursor,
    /// The server does not change the vault.
    #[error("the server is read only: it was started without permission to change the vault")]
    ReadOnly,
    /// The client cancelled the request.
    #[error("the request was cancelled")]
    Cancelled,
    /// The answer cannot be written as JSON.
    #[error("the answer cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The artifact cannot be found or read.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The search is not possible.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The vault cannot be read or written.
    #[error(transparent)]
    Store(#[from] StorageError),
}

impl ToolError {
    /// Returns the error that a hint can be given for.
    pub(super) fn cause(&self) -> &(dyn Error + 'static) {
        match self {
            Self::Lookup(error) => error,
            Self::Search(error) => error,
            Self::Store(error) => error,
            _ => self,
        }
    }
}

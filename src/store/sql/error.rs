use std::path::PathBuf;

use crate::digest::CoreHash;
use crate::store::StoreError;

/// Why a question in SQL got no answer, or only part of one.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// It is no SQL, or asks for something that is not there.
    #[error("{0}")]
    Query(String),
    /// It does more than to read.
    #[error("{0}; a query can only read: SELECT, VALUES, WITH … SELECT, or EXPLAIN of them")]
    Refused(String),
    /// It is several.
    #[error("this is more than one statement; run them one by one")]
    Several,
    /// It says nothing.
    #[error("there is no statement in the query")]
    Empty,
    /// A parameter has no value, or a value no parameter.
    #[error("{0}")]
    Parameter(String),
    /// A document in the vault cannot be understood by this program, though its bytes are intact.
    #[error("the document of {core} cannot be read by this runvault: {message}")]
    Unreadable {
        /// The artifact.
        core: CoreHash,
        /// The cause.
        message: String,
    },
    /// What should be written is there already.
    #[error("cannot write {}: it exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Nothing can be written there.
    #[error("cannot write {}: {reason}", path.display())]
    Place {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The caller ended it, and nothing was written.
    #[error("interrupted")]
    Interrupted,
    /// What the store says.
    #[error(transparent)]
    Store(#[from] StoreError),
}

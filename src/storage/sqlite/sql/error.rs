use std::path::PathBuf;

use crate::digest::CoreHash;
use crate::storage::sqlite::StorageError;

/// An error that prevents answering an SQL query, or answering it completely.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// It is not valid SQL, or refers to something that does not exist.
    #[error("{0}")]
    Query(String),
    /// It does more than reading.
    #[error("{0}; a query can only read: SELECT, VALUES, WITH … SELECT, or EXPLAIN of them")]
    Refused(String),
    /// It contains several statements.
    #[error("the query has more than one statement; run them one at a time")]
    Several,
    /// It contains no statement.
    #[error("the query has no statement")]
    Empty,
    /// A parameter has no value, or a value has no parameter.
    #[error("{0}")]
    Parameter(String),
    /// This program cannot interpret a document in the vault, though its bytes are intact.
    #[error("the document of {core} cannot be read by this version of runvault: {message}")]
    Unreadable {
        /// The artifact.
        core: CoreHash,
        /// The cause.
        message: String,
    },
    /// The file to be written already exists.
    #[error("cannot write {}: it already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written there.
    #[error("cannot write {}: {reason}", path.display())]
    Place {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The caller interrupted it, and nothing was written.
    #[error("interrupted")]
    Interrupted,
    /// A store error.
    #[error(transparent)]
    Store(#[from] StorageError),
}

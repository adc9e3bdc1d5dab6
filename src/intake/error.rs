//! The error for what cannot be read.

use std::io;
use std::path::{Path, PathBuf};

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

//! Items that are examined.

use std::ffi::OsString;
use std::path::PathBuf;

use super::declared_capture::DeclaredCapture;
use super::tree::FoundPath;
use crate::artifact::Kind;

/// An input to examine.
#[derive(Debug)]
pub enum Input {
    /// A file, or a directory with everything below it.
    Path(PathBuf),
    /// A document that was already read, with the name for reports.
    Document {
        /// The name.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// A file or document that [`Inputs`](super::Inputs) found.
#[derive(Debug)]
pub enum InputItem {
    /// A file that was named explicitly: it is an artifact or rejected.
    Named(PathBuf),
    /// A file in a directory: it need not be an artifact.
    Found(FoundPath),
    /// The end of a directory that was named explicitly, after all its items. Its verdict is that it is not an
    /// artifact; the caller counts whether the directory contained any.
    End {
        /// Its path.
        path: PathBuf,
        /// The number of items found in it.
        items: u64,
    },
    /// A link, device or pipe in a directory: never opened. It is rejected if it has a name defined by a format.
    NotAFile(PathBuf),
    /// A directory that is intended to be one artifact.
    Directory {
        /// Its path.
        path: FoundPath,
        /// Its kind.
        kind: Kind,
        /// Whether it was named explicitly.
        named: bool,
    },
    /// A document that was already read.
    Document {
        /// The name.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A byte form with declared hashes.
    Declared(DeclaredCapture),
}

impl InputItem {
    /// Returns the number of items in the directory whose end it is, or `None` if it is not an end.
    pub(crate) fn items(&self) -> Option<u64> {
        match self {
            Self::End { items, .. } => Some(*items),
            _ => None,
        }
    }

    /// Returns the name for reports. The name of a file need not be UTF-8.
    #[must_use]
    pub fn name(&self) -> OsString {
        match self {
            Self::Named(path) | Self::NotAFile(path) | Self::End { path, .. } => {
                path.clone().into_os_string()
            }
            Self::Found(path) | Self::Directory { path, .. } => path.as_os_str().to_owned(),
            Self::Document { name, .. } => name.into(),
            Self::Declared(DeclaredCapture { name, .. }) => name.clone(),
        }
    }
}

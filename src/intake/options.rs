//! Options of the examination of documents.

use crate::artifact::{AdmitOptions, Kind};

/// Options for examining documents, and for handling those that were removed from a vault before.
#[derive(Clone, Debug, Default)]
pub struct ExamineOptions {
    /// Requires this kind instead of recognizing it.
    pub kind: Option<Kind>,
    /// The options of admission.
    pub admit: AdmitOptions,
    /// Whether an artifact that was removed from a vault before is stored again. Otherwise it is rejected. Has no
    /// effect if nothing is stored.
    pub allow_removed: bool,
    /// Whether files in directories that are not artifacts are rejected instead of skipped.
    pub strict: bool,
    /// Whether the path of a document is not recorded with its capture. Has no effect if nothing is stored.
    pub without_source_path: bool,
}

impl ExamineOptions {
    /// Returns whether archives are opened: unless documents of one kind are requested.
    pub(super) fn may_be_archive(&self) -> bool {
        self.kind.is_none_or(Kind::is_of_directories)
    }

    /// Returns the requested kind if any bytes are an artifact of it.
    pub(super) fn kind_of_any_bytes(&self) -> Option<Kind> {
        self.kind.filter(|kind| kind.takes_any_bytes())
    }
}

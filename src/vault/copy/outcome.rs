//! The answer, the errors and the progress of a copy.

use std::path::Path;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::{ActorError, StorageError};
use crate::validation::Report;
use crate::vault::api::PathName;

/// How a vault was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyMode {
    /// Into an empty vault, with the journal.
    Verbatim,
    /// Into a vault with a journal of its own.
    Merged,
}

/// What was copied, now or before an interruption that this copy continued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CopyAnswer {
    /// The other vault.
    #[serde(flatten)]
    pub target: PathName,
    /// How it was copied.
    pub mode: CopyMode,
    /// Whether all of it was copied. If not, the copy was interrupted, and copying again continues it.
    pub is_complete: bool,
    /// Number of captures that were copied now.
    pub captures: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Number of captures that the other vault already had.
    pub present: u64,
    /// Number of captures that were not copied, because they break rules or were removed from the other vault.
    pub rejected: u64,
    /// The first 10 of them.
    pub first_rejected: Vec<RejectedCapture>,
    /// The annotations that were merged; none in a verbatim copy, which has all of them.
    pub annotations: CopiedAnnotations,
    /// Number of entries of the other vault's journal.
    pub journal_entries: u64,
    /// The digest of that journal.
    pub journal_head: Digest,
}

/// A capture that was not copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RejectedCapture {
    /// Its name: the source, and the beginning of the capture's hash.
    pub name: String,
    /// The first violation.
    pub reason: String,
}

/// The number of tags, notes, labels, pins and manual links by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CopiedAnnotations {
    /// Those that were set.
    pub set: u64,
    /// Those that the other vault already had.
    pub present: u64,
    /// Those that were not set, because the other vault has another one in their place, or not the artifact.
    pub kept: u64,
}

/// The reason that a vault was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// One of the vaults cannot be read or written.
    #[error(transparent)]
    Store(#[from] StorageError),
    /// The actor is not valid.
    #[error(transparent)]
    Actor(#[from] ActorError),
    /// The other vault is an incomplete copy of another vault than this one.
    #[error("{0} is an incomplete copy of another vault")]
    OtherSource(String),
    /// Something that is in the vault according to its journal is not there.
    #[error(
        "the vault does not match its journal: entry {entry} adds {core} (capture {capture}), which is not in it"
    )]
    Missing {
        /// The number of the entry.
        entry: u64,
        /// The artifact.
        core: CoreHash,
        /// The capture.
        capture: CaptureHash,
    },
    /// An artifact breaks rules, so that the vault cannot be copied verbatim.
    #[error("{core} (capture {capture}) is not admitted: {}", .report.first())]
    Rejected {
        /// The artifact.
        core: CoreHash,
        /// The capture.
        capture: CaptureHash,
        /// The violations.
        report: Report,
    },
    /// The catalog of the vault is not what follows from its journal and its bytes.
    #[error("the vault does not match its journal: {0}; the copy is not complete")]
    Differs(String),
}

/// The progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyProgress {
    /// Journal entries whose changes are in the other vault.
    Copied {
        /// Their number.
        entries: u64,
        /// The number of entries of the journal.
        of: u64,
    },
    /// Artifacts that were compared, or whose annotations were merged.
    Compared {
        /// Their number.
        artifacts: u64,
        /// The number of artifacts.
        of: u64,
    },
}

/// The options of a copy to a vault that is not empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyOptions {
    /// Whether artifacts that were removed from it before are added again.
    pub allow_removed: bool,
    /// Whether the paths that captures were read from are left out.
    pub without_source_paths: bool,
}

/// A watcher of a copy.
pub struct CopyWatch<'w> {
    /// Called with the progress.
    pub progress: &'w mut dyn FnMut(CopyProgress),
    /// Returns whether to stop. It is called before each entry, by any thread.
    pub is_stopped: &'w (dyn Fn() -> bool + Sync),
}

/// Returns the answer of a copy that has not copied anything yet.
pub(super) fn empty_answer(mode: CopyMode) -> CopyAnswer {
    CopyAnswer {
        target: PathName::from(Path::new("")),
        mode,
        is_complete: false,
        captures: 0,
        bytes: 0,
        present: 0,
        rejected: 0,
        first_rejected: Vec::new(),
        annotations: CopiedAnnotations::default(),
        journal_entries: 0,
        journal_head: Digest::from_bytes([0; 32]),
    }
}

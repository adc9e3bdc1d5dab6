//! Policies of storing artifacts, and the times that order them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Tombstone;
use crate::artifact::{CREATED_AT, FINISHED_AT, Signature, SignatureState};
use crate::digest::{CaptureHash, CoreHash};

/// How long a writer waits for other writers.
pub const BUSY_TIMEOUT: Duration = Duration::from_mins(1);

/// The policy if there is no vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreationPolicy {
    /// That is an error.
    Never,
    /// One is created when the first artifact is stored.
    WhenNeeded,
    /// One is created now, if there is none.
    IfMissing,
    /// One is created now; that there is one is an error.
    New,
    /// One is created now, if there is none, and it may be an incomplete copy.
    ForCopy,
}

/// The treatment of an artifact that was removed before and is added again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemovedPolicy {
    /// It is rejected.
    #[default]
    Refuse,
    /// It is rejected, and nothing that follows it in its batch is stored.
    RefuseAndStop,
    /// It is stored. The journal records that the removal was reverted, and its tombstones are deleted.
    Readmit,
}

/// The outcome of storing an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The artifact is new.
    Added,
    /// The artifact existed, this capture of it is new.
    NewCapture,
    /// This capture existed; it is recorded as seen again, and nothing else changed.
    Present,
    /// This capture existed, but what the vault had of it was damaged: it was restored from what was added. Operations
    /// report this; storing itself does not read what is stored.
    Restored,
    /// It, or an artifact embedded in it, was removed before: nothing was stored. Contains the tombstones, one per
    /// artifact.
    Refused(Vec<Tombstone>),
    /// The vault has an artifact of another kind with its core hash, or with that of an artifact embedded in it: nothing
    /// was stored.
    KindConflict(KindConflict),
}

impl PutOutcome {
    /// Returns whether nothing was stored or recorded.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::KindConflict(_))
    }
}

/// An artifact in the vault whose core hash an artifact of another kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindConflict {
    /// The core hash.
    pub core: CoreHash,
    /// The name of the kind of the artifact in the vault.
    pub kind: String,
}

/// The result of storing an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutResult {
    /// The artifact.
    pub core: CoreHash,
    /// The capture.
    pub capture: CaptureHash,
    /// The outcome.
    pub outcome: PutOutcome,
    /// Whether it relies on bytes that were stored earlier, its own or those of an artifact embedded in it, instead of
    /// storing all of them. Storing does not read such bytes, so they may be damaged.
    pub reuses_bytes: bool,
}

/// One of the times that an artifact has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeBasis {
    /// The time at which it was first added.
    FirstSeen,
    /// The time at which it was last added or seen again.
    LastSeen,
    /// The creation time that it states: the latest of those that its captures state. It may state none.
    #[default]
    Created,
    /// The time of its end that it states: the latest of those that its captures state. It may state none.
    Finished,
}

impl TimeBasis {
    /// Returns the attribute that has this time, if artifacts state it.
    #[must_use]
    pub fn attribute(self) -> Option<&'static str> {
        match self {
            Self::FirstSeen | Self::LastSeen => None,
            Self::Created => Some(CREATED_AT),
            Self::Finished => Some(FINISHED_AT),
        }
    }

    /// Returns the time in words, such as `creation time`.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::FirstSeen => "time of its first addition",
            Self::LastSeen => "time of its last addition",
            Self::Created => "creation time",
            Self::Finished => "end time",
        }
    }
}

/// Returns the rank of a capture with this signature among the captures of one artifact: captures with a verified
/// signature come first, then unsigned ones, then those with an unchecked signature, and those with a wrong signature
/// last. Among equals, the one that was added first is preferred.
#[must_use]
pub fn preference(signature: Option<&Signature>) -> u8 {
    match signature.map(|signature| signature.state) {
        Some(SignatureState::Verified) => 0,
        None => 1,
        Some(SignatureState::Unchecked) => 2,
        Some(SignatureState::Wrong) => 3,
    }
}

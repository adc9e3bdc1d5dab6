//! Pins of all artifacts.

use crate::storage::{ArtifactRecord, Condition, Pin, Snapshot, StorageError};

/// A pinned artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedArtifact {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// Its pin.
    pub pin: Pin,
}

/// Returns all pinned artifacts of a snapshot in the order in which they were pinned.
pub(super) fn pins(snapshot: &dyn Snapshot) -> Result<Vec<PinnedArtifact>, StorageError> {
    let mut pins = Vec::new();
    for (artifact, annotations) in snapshot.annotated(Condition::Pinned)? {
        pins.extend(annotations.pin.map(|pin| PinnedArtifact { artifact, pin }));
    }
    pins.sort_unstable_by_key(|pinned| (pinned.pin.at, pinned.artifact.core));
    Ok(pins)
}

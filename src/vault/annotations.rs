//! Tags and pins of all artifacts.

use chrono::{DateTime, Utc};

use crate::digest::CoreHash;
use crate::storage::{
    Annotations, ArtifactRecord, Condition, Filter, Order, Page, Pin, Snapshot, StorageError,
};

/// A tag and its artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaggedArtifact {
    /// The tag.
    pub(super) name: String,
    /// The artifact.
    pub(super) artifact: ArtifactRecord,
    /// The time at which the tag was set.
    pub(super) at: DateTime<Utc>,
}

/// A pinned artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedArtifact {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// Its pin.
    pub pin: Pin,
}

/// Returns all pinned artifacts of a snapshot in the order in which they were pinned.
///
/// # Errors
/// Returns an error if the vault cannot be read.
pub(super) fn pins(snapshot: &dyn Snapshot) -> Result<Vec<PinnedArtifact>, StorageError> {
    let mut pins = Vec::new();
    for (artifact, annotations) in annotated(snapshot, Condition::Pinned)? {
        pins.extend(annotations.pin.map(|pin| PinnedArtifact { artifact, pin }));
    }
    pins.sort_by_key(|pinned| (pinned.pin.at, pinned.artifact.core));
    Ok(pins)
}

/// Returns all tags of a snapshot, sorted by name.
///
/// # Errors
/// Returns an error if the vault cannot be read.
pub(super) fn tags(snapshot: &dyn Snapshot) -> Result<Vec<TaggedArtifact>, StorageError> {
    let mut tags = Vec::new();
    for (artifact, annotations) in annotated(snapshot, Condition::Tagged { name: None })? {
        let tagged = annotations.tags.into_iter();
        tags.extend(tagged.map(|tag| TaggedArtifact {
            name: tag.name,
            artifact: artifact.clone(),
            at: tag.at,
        }));
    }
    tags.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tags)
}

fn annotated(
    snapshot: &dyn Snapshot,
    condition: Condition,
) -> Result<Vec<(ArtifactRecord, Annotations)>, StorageError> {
    let filter = Filter { conditions: vec![condition], ..Filter::default() };
    let hits = snapshot.find(&filter, Order::Core, &Page::all())?.items.into_iter();
    let artifacts: Vec<ArtifactRecord> = hits.map(|hit| hit.artifact).collect();
    let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
    Ok(artifacts.into_iter().zip(snapshot.annotations(&cores)?).collect())
}

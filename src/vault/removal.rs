//! Checks before every removal of artifacts, and the reasons to refuse it.

use std::collections::BTreeSet;

use super::annotations::PinnedArtifact;
use super::handle::Vault;
use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, Erasure, Snapshot, StorageError};
use crate::vault::query::{self, ContainedArtifact, DependentFinder, Link};

/// The reason that no artifact was removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// They are pinned.
    #[error("{} pinned", are(pins.len(), "artifact"))]
    Pinned {
        /// The pins.
        pins: Vec<PinnedArtifact>,
    },
    /// Other artifacts contain their bytes, which would stay in the vault.
    #[error("{} contained in other artifacts, which would keep the bytes", are(contained.len(), "artifact"))]
    Contained {
        /// The artifacts, each with those that contain its bytes.
        contained: Vec<ContainedArtifact>,
    },
    /// Other artifacts link to them.
    #[error("{} still referenced by remaining artifacts", are(held.len(), "artifact"))]
    Linked {
        /// The artifacts with the links to them.
        held: Vec<ReferencedArtifact>,
    },
    /// The retention policy has no rule that keeps anything.
    #[error("the retention policy keeps nothing: no rule is given, or only rules for 0 periods")]
    KeepsNothing,
    /// A store error: the vault cannot be read or written.
    #[error(transparent)]
    Store(#[from] StorageError),
}

/// An artifact that remaining artifacts link to.
#[derive(Clone, Debug)]
pub struct ReferencedArtifact {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// Links from remaining artifacts to it, at most [`ReferencedArtifact::LISTED`].
    pub links: Vec<Link>,
    /// Number of artifacts with such links that are not listed.
    pub more: u64,
}

impl ReferencedArtifact {
    /// Maximum number of links that are listed; the others are only counted.
    pub const LISTED: usize = 20;
}

fn are(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing} is") } else { format!("{count} {thing}s are") }
}

impl Vault {
    /// Erases the remains of removed artifacts, as far as this takes little time, and returns what is left.
    pub(super) fn erase(&self) -> Erasure {
        self.storage.maintenance().erase()
    }
}

/// Returns an error if an artifact that is not removed contains the bytes of `artifacts`.
pub(super) fn expect_uncontained(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
    removing: &BTreeSet<CoreHash>,
) -> Result<(), RemoveError> {
    let contained = query::contained(snapshot, artifacts, removing)?;
    if contained.is_empty() { Ok(()) } else { Err(RemoveError::Contained { contained }) }
}

/// Returns an error if one of `artifacts` is pinned.
pub(super) fn expect_unpinned(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
) -> Result<(), RemoveError> {
    let mut pins = Vec::new();
    let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
    for (artifact, annotations) in artifacts.iter().zip(snapshot.annotations(&cores)?) {
        pins.extend(annotations.pin.map(|pin| PinnedArtifact { artifact: artifact.clone(), pin }));
    }
    if pins.is_empty() { Ok(()) } else { Err(RemoveError::Pinned { pins }) }
}

/// Returns an error if an artifact that is not removed links to `artifacts`.
pub(super) fn expect_unlinked(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
    removing: &BTreeSet<CoreHash>,
) -> Result<(), RemoveError> {
    let mut finder = DependentFinder::without(removing.clone());
    let mut held = Vec::new();
    for artifacts in artifacts.chunks(query::DEPENDENTS_BATCH) {
        let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
        for (artifact, holds) in artifacts.iter().zip(finder.linking(snapshot, &cores)?) {
            let listed = ReferencedArtifact::LISTED;
            let (links, more) = finder.links_to(snapshot, artifact.core, &holds, listed)?;
            if !links.is_empty() {
                held.push(ReferencedArtifact { artifact: artifact.clone(), links, more });
            }
        }
    }
    if held.is_empty() { Ok(()) } else { Err(RemoveError::Linked { held }) }
}

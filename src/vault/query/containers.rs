//! Artifacts whose bytes contain those of another artifact.

use std::collections::BTreeSet;

use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, Containment, Result, Snapshot};

/// An artifact whose bytes other artifacts also contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainedArtifact {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// Those that contain its bytes, by core hash: packs that it is a member of, and artifacts of another kind with the
    /// same bytes.
    pub containers: Vec<ArtifactRecord>,
}

/// Returns those of `artifacts` whose bytes would remain in other artifacts after those in `leaving` are removed.
pub(crate) fn contained(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
    leaving: &BTreeSet<CoreHash>,
) -> Result<Vec<ContainedArtifact>> {
    let mut contained = Vec::new();
    let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
    for (artifact, mut containers) in artifacts.iter().zip(snapshot.containers(&cores, Containment::Bytes)?) {
        containers.retain(|container| !leaving.contains(container));
        if !containers.is_empty() {
            let containers = snapshot.stored_artifacts(&containers)?;
            contained.push(ContainedArtifact { artifact: artifact.clone(), containers });
        }
    }
    Ok(contained)
}

/// Returns every artifact that must also be removed so that no bytes of `artifacts` remain: their containers,
/// recursively, each once, by core hash.
pub(crate) fn all_containers(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
) -> Result<Vec<ArtifactRecord>> {
    let mut known: BTreeSet<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
    let mut waiting: Vec<ArtifactRecord> = artifacts.to_vec();
    let mut found = Vec::new();
    while let Some(artifact) = waiting.pop() {
        for container in artifacts_with_bytes_of(snapshot, &artifact)? {
            if known.insert(container.core) {
                waiting.push(container.clone());
                found.push(container);
            }
        }
    }
    found.sort_by_key(|container| container.core);
    Ok(found)
}

/// Returns the other artifacts that have the bytes of an artifact, by core hash.
pub(super) fn artifacts_with_bytes_of(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
) -> Result<Vec<ArtifactRecord>> {
    let containers = snapshot.containers_of(artifact.core, Containment::Bytes)?;
    if containers.is_empty() { Ok(Vec::new()) } else { snapshot.stored_artifacts(&containers) }
}

//! Artifacts whose bytes contain those of another artifact.

use std::collections::BTreeSet;

use crate::digest::CoreHash;
use crate::storage::{ArtifactId, ArtifactRow, Result, Snapshot};

/// An artifact whose bytes other artifacts also contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contained {
    /// The artifact.
    pub artifact: ArtifactRow,
    /// Those that contain its bytes, by core hash: packs that it is a member of, and artifacts of another kind with the
    /// same bytes.
    pub containers: Vec<ArtifactRow>,
}

/// Returns those of `artifacts` whose bytes would remain in other artifacts after those in `leaving` are removed.
///
/// # Errors
/// Returns an error if the database cannot be read or the index is damaged.
pub fn contained(
    snapshot: &Snapshot<'_>,
    artifacts: &[ArtifactRow],
    leaving: &BTreeSet<CoreHash>,
) -> Result<Vec<Contained>> {
    let mut contained = Vec::new();
    for artifact in artifacts {
        let mut containers = snapshot.holders_of_bytes(artifact.id)?;
        containers.retain(|container| !leaving.contains(&container.core));
        if !containers.is_empty() {
            contained.push(Contained { artifact: artifact.clone(), containers });
        }
    }
    Ok(contained)
}

/// Returns every artifact that must also be removed so that no bytes of `artifacts` remain: their containers,
/// recursively, each once, by core hash.
///
/// # Errors
/// Same as [`contained`].
pub fn all_containers(snapshot: &Snapshot<'_>, artifacts: &[ArtifactRow]) -> Result<Vec<ArtifactRow>> {
    let mut known: BTreeSet<ArtifactId> = artifacts.iter().map(|artifact| artifact.id).collect();
    let mut waiting: Vec<ArtifactRow> = artifacts.to_vec();
    let mut found = Vec::new();
    while let Some(artifact) = waiting.pop() {
        for container in snapshot.holders_of_bytes(artifact.id)? {
            if known.insert(container.id) {
                waiting.push(container.clone());
                found.push(container);
            }
        }
    }
    found.sort_by_key(|container| container.core);
    Ok(found)
}

//! In which other artifacts the bytes of an artifact stand.

use std::collections::BTreeSet;

use crate::digest::CoreHash;
use crate::store::{ArtifactId, ArtifactRow, Result, Snapshot};

/// An artifact whose bytes other artifacts have as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contained {
    /// The artifact.
    pub artifact: ArtifactRow,
    /// Those that have its bytes, by core hash: packs that it is a file of, and artifacts of another kind with the same
    /// bytes.
    pub containers: Vec<ArtifactRow>,
}

/// Returns those of `artifacts` whose bytes would stay in others when those in `leaving` are gone.
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

/// Returns every artifact that must go as well if nothing of the bytes of `artifacts` may stay: their containers, and the
/// containers of these, each once, by core hash.
///
/// # Errors
/// As [`contained`].
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

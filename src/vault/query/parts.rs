//! The parts of runs that are stored as several artifacts.

use std::collections::BTreeSet;

use crate::artifact::{group, relation};
use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, Direction, ReferenceEdge, Result, Snapshot};

fn is_continuation(reference: &ReferenceEdge) -> bool {
    reference.relation == relation::CONTINUES
}

/// Returns the artifacts that continue another one of their group: all parts of a run but the first.
pub(crate) fn continuing(snapshot: &dyn Snapshot, groups: &[Vec<CoreHash>]) -> Result<BTreeSet<CoreHash>> {
    let several: Vec<&Vec<CoreHash>> = groups.iter().filter(|group| group.len() > 1).collect();
    let artifacts: Vec<CoreHash> = several.iter().flat_map(|group| group.iter().copied()).collect();
    let mut references = snapshot.references(&artifacts, Direction::Out)?.into_iter();
    let mut continuing = BTreeSet::new();
    for group in several {
        let among = |reference: &ReferenceEdge| group.contains(&CoreHash(reference.mention.digest));
        for (core, references) in group.iter().zip(&mut references) {
            if references.iter().any(|reference| is_continuation(reference) && among(reference)) {
                continuing.insert(*core);
            }
        }
    }
    Ok(continuing)
}

/// Returns the parts of the run of which `first` is the first part, in their order: `first` alone if the run has no others,
/// or if `first` is not its first part.
pub(crate) fn from_first(snapshot: &dyn Snapshot, first: CoreHash) -> Result<Vec<CoreHash>> {
    let mut parts = vec![first];
    let earlier = snapshot.references(&parts, Direction::Out)?;
    if earlier.iter().flatten().any(is_continuation) {
        return Ok(parts);
    }
    while let Some(last) = parts.last().copied() {
        let references = snapshot.references(&[last], Direction::In)?;
        let continuations: BTreeSet<CoreHash> = references
            .iter()
            .flatten()
            .filter(|reference| is_continuation(reference))
            .map(|reference| reference.mention.artifact)
            .filter(|core| !parts.contains(core))
            .collect();
        let candidates: Vec<CoreHash> = [first].into_iter().chain(continuations).collect();
        let names = snapshot.names(&candidates)?;
        // Any run pack can state that it continues another one.
        let own = names.first().map(|names| &names.own);
        let same_run = candidates.iter().zip(&names).skip(1).filter(|(_, names)| Some(&names.own) == own);
        match same_run.collect::<Vec<_>>().as_slice() {
            [(only, _)] => parts.push(**only),
            _ => break,
        }
    }
    Ok(parts)
}

/// Returns those of `artifacts` that are a part of a run with several.
pub(crate) fn parts<'a>(
    snapshot: &dyn Snapshot,
    artifacts: impl Iterator<Item = &'a ArtifactRecord>,
) -> Result<BTreeSet<CoreHash>> {
    // Traces have no parts, but may have very many references to each other.
    let kinds = snapshot.kinds_with_group(group::PART)?;
    let of_kind = artifacts.filter(|artifact| kinds.contains(&artifact.kind));
    let artifacts: Vec<CoreHash> = of_kind.map(|artifact| artifact.core).collect();
    let mut parts = BTreeSet::new();
    if artifacts.is_empty() {
        return Ok(parts);
    }
    for direction in [Direction::Out, Direction::In] {
        let references = snapshot.references(&artifacts, direction)?;
        let continued = artifacts.iter().zip(references).filter(|(_, all)| all.iter().any(is_continuation));
        parts.extend(continued.map(|(core, _)| *core));
    }
    Ok(parts)
}

//! Detection of the longest version of a recording.

use std::collections::BTreeSet;

use super::links::{Direction, Link, LinkOrigin, LinkTarget};
use crate::artifact::{SuccessorCriteria, group, relation};
use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, AttributeRecord, Filter, ReferenceEdge, Result, Snapshot};

/// An artifact that extends another one.
#[derive(Clone, Debug)]
pub(crate) struct Extension {
    /// The longer artifact.
    pub(crate) artifact: ArtifactRecord,
    /// Its attributes, sorted by name and value.
    pub(crate) attributes: Vec<AttributeRecord>,
}

/// Returns those of `artifacts` that another one of them extends, by the kinds whose artifacts can.
pub(crate) fn extended<'a>(
    snapshot: &dyn Snapshot,
    artifacts: &(impl Iterator<Item = &'a ArtifactRecord> + Clone),
    versions: &[(&str, SuccessorCriteria)],
) -> Result<BTreeSet<CoreHash>> {
    let mut all = BTreeSet::new();
    for (kind, SuccessorCriteria { relation, attribute, .. }) in versions {
        let of_kind = artifacts.clone().filter(|artifact| artifact.kind == *kind);
        let of_kind: Vec<CoreHash> = of_kind.map(|artifact| artifact.core).collect();
        if of_kind.len() > 1 {
            all.extend(snapshot.related_among(&of_kind, relation, attribute)?);
        }
    }
    Ok(all)
}

/// Returns those of `artifacts` that another artifact which matches `filter` extends, by the kinds whose artifacts can.
pub(crate) fn extended_by_matching<'a>(
    snapshot: &dyn Snapshot,
    artifacts: &(impl Iterator<Item = &'a ArtifactRecord> + Clone),
    filter: &Filter,
    versions: &[(&str, SuccessorCriteria)],
) -> Result<BTreeSet<CoreHash>> {
    let mut all = BTreeSet::new();
    for (kind, SuccessorCriteria { relation, attribute, .. }) in versions {
        let of_kind = artifacts.clone().filter(|artifact| artifact.kind == *kind);
        let of_kind: Vec<CoreHash> = of_kind.map(|artifact| artifact.core).collect();
        all.extend(snapshot.related_to_matching(&of_kind, filter, relation, attribute)?);
    }
    Ok(all)
}

/// Returns the longest artifacts that extend `artifact` according to its `links`: those that no other one of them
/// extends.
pub(crate) fn longest_extensions(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
    links: &[Link],
    versions: SuccessorCriteria,
) -> Result<Vec<Extension>> {
    let longer = links.iter().filter_map(|link| match &link.target {
        LinkTarget::Artifact(other) => {
            let extends = link.direction == Direction::In && link.relation == versions.relation;
            (extends && matches!(link.origin, LinkOrigin::Derived(_))).then_some(other)
        }
        LinkTarget::MissingDigest(_) | LinkTarget::MissingName(_) => None,
    });
    let extended = extended(snapshot, &longer, &[(&artifact.kind, versions)])?;
    let longest = longer.filter(|other| !extended.contains(&other.core));
    let extension = |artifact: &ArtifactRecord| {
        Ok(Extension { artifact: artifact.clone(), attributes: snapshot.attributes_of(artifact.core)? })
    };
    longest.map(extension).collect()
}

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

//! Detection of the longest version of a recording.

use std::collections::BTreeSet;

use super::links::{Direction, Link, LinkOrigin, LinkTarget};
use crate::artifact::SuccessorCriteria;
use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, AttributeRecord, Filter, Result, Snapshot};

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

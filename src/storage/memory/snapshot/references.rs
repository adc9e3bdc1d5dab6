//! References between artifacts by digest.

use std::collections::BTreeSet;

use super::super::state::{MemoryArtifact, MemoryState};
use super::mentions::record;
use super::{MemorySnapshot, each};
use crate::artifact::Mention;
use crate::digest::{CoreHash, Digest};
use crate::storage::Result;
use crate::storage::interface::{
    Direction, Filter, ReferenceEdge, ReferenceQueries, UnresolvedReference, UnresolvedTarget,
    page_of_unresolved, sort_references, sort_unresolved,
};

impl ReferenceQueries for MemorySnapshot {
    fn references(&self, of: &[CoreHash], direction: Direction) -> Result<Vec<Vec<ReferenceEdge>>> {
        Ok(each(of, |core| match direction {
            Direction::Out => self.0.references_from(core),
            Direction::In => self.0.references_to(core),
        }))
    }

    fn related_to_matching(
        &self,
        of: &[CoreHash],
        filter: &Filter,
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>> {
        let artifacts: Vec<&MemoryArtifact> = of.iter().filter_map(|core| self.0.artifact(*core)).collect();
        let others: Vec<&MemoryArtifact> =
            self.0.matching(filter).into_iter().map(|(artifact, _)| artifact).collect();
        Ok(related(&artifacts, &others, relation, attribute))
    }

    fn stated_containers(&self, of: &[CoreHash]) -> Result<Vec<BTreeSet<CoreHash>>> {
        Ok(each(of, |core| {
            let is_stored = self.0.artifact(core).is_some();
            let containers = self.0.all().filter(|other| is_stored && other.contains(core));
            containers.map(|container| container.core).collect()
        }))
    }

    fn missing_digests(&self, after: Option<Digest>, limit: usize) -> Result<Vec<UnresolvedReference>> {
        let mut unresolved = Vec::new();
        for artifact in self.0.all() {
            let missing = self.0.references_from(artifact.core).into_iter().filter(|edge| !edge.is_resolved);
            unresolved.extend(missing.map(|edge| UnresolvedReference {
                missing: UnresolvedTarget::Digest(edge.mention.digest),
                artifact: artifact.core,
                relation: edge.relation,
                role: Some(edge.mention.role),
                place: Some(edge.mention.place),
            }));
        }
        sort_unresolved(&mut unresolved);
        Ok(page_of_unresolved(unresolved, after.map(UnresolvedTarget::Digest).as_ref(), limit))
    }
}

impl MemoryState {
    /// Returns the references of an artifact to others.
    fn references_from(&self, core: CoreHash) -> Vec<ReferenceEdge> {
        let Some(artifact) = self.artifact(core) else { return Vec::new() };
        let edges = artifact.mentions().into_iter().filter(|mention| mention.digest != core.0);
        let mut edges: Vec<_> = edges.filter_map(|mention| self.edge(artifact, mention)).collect();
        sort_references(&mut edges, Direction::Out);
        edges
    }

    /// Returns the references of other artifacts to one.
    fn references_to(&self, core: CoreHash) -> Vec<ReferenceEdge> {
        if self.artifact(core).is_none() {
            return Vec::new();
        }
        let mut edges = Vec::new();
        for artifact in self.all().filter(|artifact| artifact.core != core) {
            let mentions = artifact.mentions().into_iter().filter(|mention| mention.digest == core.0);
            edges.extend(mentions.filter_map(|mention| self.edge(artifact, mention)));
        }
        sort_references(&mut edges, Direction::In);
        edges
    }

    /// Returns the reference that a mention makes, if it makes one: its role has a relation, and the artifact that the
    /// digest identifies is stored or has to be.
    fn edge(&self, from: &MemoryArtifact, mention: &Mention) -> Option<ReferenceEdge> {
        let relation = mention.role.relation?;
        let target = self.artifact(CoreHash(mention.digest));
        if target.is_none() && !relation.dangles {
            return None;
        }
        Some(ReferenceEdge {
            mention: record(from.core, mention),
            relation: relation.name.to_owned(),
            inverse: target.and_then(|target| target.kind.inverse_relation()).map(str::to_owned),
            is_resolved: target.is_some(),
        })
    }
}

/// Returns those of `artifacts` that another one of `others` refers to by `relation`, with the same value of `attribute`.
fn related(
    artifacts: &[&MemoryArtifact],
    others: &[&MemoryArtifact],
    relation: &str,
    attribute: &str,
) -> BTreeSet<CoreHash> {
    let values = |artifact: &MemoryArtifact| -> BTreeSet<String> {
        let attributes = artifact.attributes().into_iter().filter(|known| known.name == attribute);
        attributes.map(|attribute| attribute.value.clone()).collect()
    };
    let is_related = |to: &MemoryArtifact, from: &MemoryArtifact| {
        let refers = |mention: &&Mention| {
            mention.digest == to.core.0 && mention.role.relation.is_some_and(|known| known.name == relation)
        };
        from.core != to.core && !values(from).is_disjoint(&values(to)) && from.mentions().iter().any(refers)
    };
    let related = artifacts.iter().filter(|to| others.iter().any(|from| is_related(to, from)));
    related.map(|artifact| artifact.core).collect()
}

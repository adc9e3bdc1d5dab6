//! References between artifacts by digest, manual links and containment.

use std::collections::BTreeSet;

use super::super::state::{MemoryArtifact, MemoryState};
use super::mentions::record;
use crate::artifact::Mention;
use crate::digest::CoreHash;
use crate::storage::interface::{
    Containment, Direction, Filter, ManualLink, ReferenceEdge, UnresolvedReference, UnresolvedTarget,
    sort_references, sort_unresolved,
};

impl MemoryState {
    /// Returns the references of an artifact to others.
    pub(super) fn references_from(&self, core: CoreHash) -> Vec<ReferenceEdge> {
        let Some(artifact) = self.artifact(core) else { return Vec::new() };
        let edges = artifact.mentions().into_iter().filter(|mention| mention.digest != core.0);
        let mut edges: Vec<_> = edges.filter_map(|mention| self.edge(artifact, mention)).collect();
        sort_references(&mut edges, Direction::Out);
        edges
    }

    /// Returns the references of other artifacts to one.
    pub(super) fn references_to(&self, core: CoreHash) -> Vec<ReferenceEdge> {
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

    pub(super) fn manual_links_of(&self, core: CoreHash) -> Vec<ManualLink> {
        let link = |key: super::super::state::MemoryLinkKey| {
            let note = self.links.get(&key).cloned().flatten();
            ManualLink { source: key.source, relation: key.relation, target: key.target, note }
        };
        self.links_of(core).into_iter().map(link).collect()
    }

    pub(super) fn containers(&self, core: CoreHash, by: Containment) -> Vec<CoreHash> {
        let Some(contained) = self.artifact(core) else { return Vec::new() };
        let has_document = |other: &MemoryArtifact| {
            let is_document = contained.kind.document_member().is_some();
            let mut documents = contained.captures.iter().flat_map(|capture| &capture.members);
            let is_in = |blob| other.captures.iter().any(|capture| capture.has_blob(blob));
            is_document && documents.any(|document| is_in(document.blob))
        };
        let others = self.all().filter(|other| other.core != core);
        let containers = others.filter(|other| match by {
            Containment::Declared => other.contains(core),
            Containment::Bytes => other.contains(core) || has_document(other),
        });
        containers.map(|container| container.core).collect()
    }

    pub(super) fn related_among(
        &self,
        among: &[CoreHash],
        relation: &str,
        attribute: &str,
    ) -> BTreeSet<CoreHash> {
        let artifacts: Vec<&MemoryArtifact> = among.iter().filter_map(|core| self.artifact(*core)).collect();
        related(&artifacts, &artifacts, relation, attribute)
    }

    pub(super) fn related_to_matching(
        &self,
        of: &[CoreHash],
        filter: &Filter,
        relation: &str,
        attribute: &str,
    ) -> BTreeSet<CoreHash> {
        let artifacts: Vec<&MemoryArtifact> = of.iter().filter_map(|core| self.artifact(*core)).collect();
        let others: Vec<&MemoryArtifact> =
            self.matching(filter).into_iter().map(|(artifact, _)| artifact).collect();
        related(&artifacts, &others, relation, attribute)
    }

    pub(super) fn unresolved(&self) -> Vec<UnresolvedReference> {
        let mut unresolved = Vec::new();
        for artifact in self.all() {
            let missing = self.references_from(artifact.core).into_iter().filter(|edge| !edge.is_resolved);
            unresolved.extend(missing.map(|edge| UnresolvedReference {
                missing: UnresolvedTarget::Digest(edge.mention.digest),
                artifact: artifact.core,
                relation: edge.relation,
                role: Some(edge.mention.role),
                place: Some(edge.mention.place),
            }));
            let is_named =
                |name: &str| self.all().any(|other| other.core != artifact.core && other.has_name(name));
            let names = artifact.refers_to().into_iter();
            let missing = names.filter(|name| name.dangles && !is_named(&name.handle));
            unresolved.extend(
                missing.map(|name| UnresolvedReference::to_name(name.handle, artifact.core, name.relation)),
            );
        }
        sort_unresolved(&mut unresolved);
        unresolved
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

//! References between artifacts by digest, and by name, and mentions of digests.

use std::collections::{BTreeMap, BTreeSet};

use super::super::state::{MemoryArtifact, MemoryState};
use super::{MemorySnapshot, each};
use crate::artifact::{self, ArtifactLocation, Mention};
use crate::digest::{CaptureHash, CoreHash, Digest, DigestPrefix};
use crate::storage::Result;
use crate::storage::interface::{
    Direction, Filter, MentionQueries, MentionRecord, NameQueries, NameUse, Names, ReferenceEdge,
    ReferenceQueries, UnresolvedReference, UnresolvedTarget, page_of_unresolved, sort_mentions,
    sort_mentions_by_artifact, sort_references, sort_unresolved,
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
            let missing =
                self.0.references_from(artifact.core).into_iter().filter(|edge| edge.target.is_none());
            unresolved.extend(missing.map(|edge| UnresolvedReference {
                missing: UnresolvedTarget::Digest(edge.mention.digest),
                artifact: artifact.core,
                relation: edge.relation,
                role: Some(edge.mention.role.to_string()),
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
        let mentions = artifact.mentions().into_iter();
        let mut edges: Vec<_> = mentions.filter_map(|mention| self.edge(artifact, mention)).collect();
        sort_references(&mut edges, Direction::Out);
        edges
    }

    /// Returns the references of other artifacts to one.
    fn references_to(&self, core: CoreHash) -> Vec<ReferenceEdge> {
        let Some(target) = self.artifact(core) else { return Vec::new() };
        let captures = target.captures.iter().map(|capture| capture.capture.0);
        let digests: BTreeSet<Digest> = captures.chain([core.0]).collect();
        let mut edges = Vec::new();
        for artifact in self.all() {
            let mentions =
                artifact.mentions().into_iter().filter(|mention| digests.contains(&mention.digest));
            let references = mentions.filter_map(|mention| self.edge(artifact, mention));
            edges.extend(references.filter(|edge| edge.target == Some(core)));
        }
        sort_references(&mut edges, Direction::In);
        edges
    }

    /// Returns the reference that a mention makes, if it makes one: its role has a relation, and the artifact that the
    /// digest identifies is another one, and is stored or has to be.
    fn edge(&self, from: &MemoryArtifact, mention: &Mention) -> Option<ReferenceEdge> {
        let relation = mention.role.relation?;
        let target = match self.artifact(CoreHash(mention.digest)) {
            None if relation.dangles => self.captured_as(CaptureHash(mention.digest)),
            None => return None,
            with_core => with_core,
        };
        if target.is_some_and(|target| target.core == from.core) {
            return None;
        }
        Some(ReferenceEdge {
            mention: record(from.core, mention),
            relation: relation.name.to_owned(),
            inverse: target.and_then(|target| target.kind.inverse_relation()).map(str::to_owned),
            target: target.map(|target| target.core),
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

impl NameQueries for MemorySnapshot {
    fn names(&self, of: &[CoreHash]) -> Result<Vec<Names>> {
        Ok(each(of, |core| self.0.names_of(core)))
    }

    fn named(&self, names: &[String]) -> Result<Vec<NameUse>> {
        Ok(names.iter().map(|name| self.0.named(name)).collect())
    }

    fn shared_names(&self, group: &str) -> Result<Vec<String>> {
        let kinds = self.0.kinds_with_group(group);
        let mut originals: BTreeMap<String, u64> = BTreeMap::new();
        for artifact in self.0.all().filter(|artifact| kinds.contains(artifact.kind.name())) {
            for name in self.0.names_of(artifact.core).original {
                *originals.entry(name).or_default() += 1;
            }
        }
        Ok(originals.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name).collect())
    }

    fn has_namesake(&self, of: &[CoreHash]) -> Result<Vec<bool>> {
        Ok(each(of, |core| {
            let Some(artifact) = self.0.artifact(core) else { return false };
            let others = self.0.all().filter(|other| other.core != core);
            let mut others = others.filter(|other| other.kind.name() == artifact.kind.name());
            others.any(|other| {
                artifact.identified_by().into_iter().any(|name| other.has_name(name))
                    || artifact.refers_to().iter().any(|mention| other.refers_to_name(&mention.handle))
            })
        }))
    }

    fn missing_names(&self, after: Option<&str>, limit: usize) -> Result<Vec<UnresolvedReference>> {
        let mut missing = Vec::new();
        for artifact in self.0.all() {
            let is_named =
                |name: &str| self.0.all().any(|other| other.core != artifact.core && other.has_name(name));
            let names = artifact.refers_to().into_iter();
            let names = names.filter(|name| name.dangles && !is_named(&name.handle));
            missing.extend(
                names.map(|name| UnresolvedReference::to_name(name.handle, artifact.core, name.relation)),
            );
        }
        sort_unresolved(&mut missing);
        let after = after.map(|name| UnresolvedTarget::Name(name.to_owned()));
        Ok(page_of_unresolved(missing, after.as_ref(), limit))
    }
}

impl MemoryState {
    fn names_of(&self, core: CoreHash) -> Names {
        let Some(artifact) = self.artifact(core) else { return Names::default() };
        let own: Vec<String> = artifact.identified_by().into_iter().map(str::to_owned).collect();
        let original = own.iter().filter(|name| artifact.is_original(name)).cloned().collect();
        Names { own, original, mentioned: artifact.refers_to() }
    }

    fn named(&self, name: &str) -> NameUse {
        let mut named = NameUse::default();
        for artifact in self.by_addition() {
            if artifact.has_name(name) {
                named.identified.push(artifact.core);
            }
            if artifact.is_original(name) {
                named.originals.push(artifact.core);
            }
            let mentions = artifact.refers_to().into_iter().filter(|mention| mention.handle == name);
            named.referring.extend(mentions.map(|mention| (mention.relation, artifact.core)));
        }
        // Sorting is stable: equal relations stay in the order of addition.
        named.referring.sort_by(|(one, _), (other, _)| one.cmp(other));
        named
    }
}

/// Returns the mention of an artifact in the form of the interface.
pub(super) fn record(artifact: CoreHash, mention: &artifact::Mention) -> MentionRecord {
    MentionRecord {
        artifact,
        role: mention.role.name.into(),
        unit: mention.role.unit.into(),
        place: mention.place.clone(),
        digest: mention.digest,
    }
}

/// Returns the mentions of an artifact, in any role or in those of one group.
fn in_group<'a>(
    artifact: &'a MemoryArtifact,
    group: Option<&str>,
) -> impl Iterator<Item = &'a artifact::Mention> {
    artifact
        .mentions()
        .into_iter()
        .filter(move |mention| group.is_none_or(|group| mention.role.group == group))
}

impl MentionQueries for MemorySnapshot {
    fn mentions(&self, of: &[CoreHash], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>> {
        Ok(each(of, |core| {
            let Some(artifact) = self.0.artifact(core) else { return Vec::new() };
            let mut mentions: Vec<_> =
                in_group(artifact, group).map(|mention| record(core, mention)).collect();
            sort_mentions(&mut mentions);
            mentions
        }))
    }

    fn mentioning(&self, digests: &[Digest], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>> {
        Ok(each(digests, |digest| {
            let mut found = Vec::new();
            for artifact in self.0.all() {
                let mentions = in_group(artifact, group).filter(|mention| mention.digest == digest);
                found.extend(mentions.map(|mention| record(artifact.core, mention)));
            }
            sort_mentions_by_artifact(&mut found);
            found
        }))
    }

    fn candidates(&self, digests: &[Digest], kinds: &[String]) -> Result<Vec<Vec<CoreHash>>> {
        Ok(each(digests, |digest| {
            let artifacts = self.0.all().filter(|artifact| {
                kinds.iter().any(|kind| kind == artifact.kind.name())
                    && artifact.mentions().iter().any(|mention| mention.digest == digest)
            });
            artifacts.map(|artifact| artifact.core).collect()
        }))
    }

    fn mentioned_with_prefix(
        &self,
        prefix: &DigestPrefix,
        group: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Digest>> {
        let all = self.0.all();
        let digests = all.flat_map(|artifact| in_group(artifact, group).map(|mention| mention.digest));
        let digests: BTreeSet<Digest> = digests.filter(|digest| prefix.matches(digest)).collect();
        Ok(digests.into_iter().take(limit).collect())
    }

    fn shared_first_mentions(&self, group: &str) -> Result<Vec<Digest>> {
        let mut artifacts: BTreeMap<Digest, BTreeSet<CoreHash>> = BTreeMap::new();
        for artifact in self.0.all() {
            let first =
                in_group(artifact, Some(group)).filter(|mention| mention.place == ArtifactLocation::Index(0));
            for mention in first {
                artifacts.entry(mention.digest).or_default().insert(artifact.core);
            }
        }
        let shared = artifacts.into_iter().filter(|(_, artifacts)| artifacts.len() > 1);
        Ok(shared.map(|(digest, _)| digest).collect())
    }
}

impl MemoryState {
    pub(super) fn kinds_with_group(&self, group: &str) -> BTreeSet<&'static str> {
        let artifacts = self.all().filter(|artifact| in_group(artifact, Some(group)).next().is_some());
        artifacts.map(|artifact| artifact.kind.name()).collect()
    }
}

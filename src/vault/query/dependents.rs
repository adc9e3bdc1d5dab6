//! Dependents of artifacts: those that contain their bytes or link to them, and would lack them after a removal.
//!
//! Several artifacts may have the same dependents: all packs of a run have all traces that name it. Such dependents are
//! looked up once, as a group. A recording with the same exchange is not a dependent: that may be a coincidence.

use std::collections::{BTreeSet, HashMap};

use super::exchanges::identified_by;
use super::links::{Direction, Link, LinkOrigin, LinkTarget, stated_by_other};
use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, Containment, ReferenceEdge, Result, Snapshot};

/// Artifacts that depend on others for one reason. An artifact may depend on itself.
#[derive(Clone, Debug)]
pub(crate) struct DependentGroup {
    /// The dependents. Those with several relations are listed several times.
    pub(crate) dependents: Vec<CoreHash>,
    why: Vec<DependencyReason>,
}

/// The reason that a member of a group depends on an artifact.
#[derive(Clone, Debug)]
enum DependencyReason {
    /// It contains the bytes.
    Bytes,
    /// It links to the artifact, with this relation and origin.
    Link { relation: String, origin: LinkOrigin },
}

/// The reason that an artifact is needed.
#[derive(Clone, Debug)]
pub(crate) enum Dependency {
    /// The dependent contains its bytes.
    Contained(ArtifactRecord),
    /// The dependent links to it.
    Linked(Link),
}

/// Number of artifacts whose dependents should be looked up together: each dependent is read once for all of them, and
/// all their links are in memory.
pub(crate) const BATCH: usize = 128;

/// Which dependents a finder remembers.
#[derive(Default)]
enum Remembered {
    /// All.
    #[default]
    All,
    /// All but these, which are to be removed.
    Without(BTreeSet<CoreHash>),
    /// The first one that is not among these, which suffices to keep an artifact; all if there is none.
    FirstWithout(BTreeSet<CoreHash>),
}

/// Finds the dependents of many artifacts of one snapshot.
#[derive(Default)]
pub(crate) struct DependentFinder {
    remembered: Remembered,
    groups: Vec<DependentGroup>,
    by_name: HashMap<String, usize>,
}

impl DependentFinder {
    /// Creates a finder that does not count `leaving` as dependents.
    #[must_use]
    pub(crate) fn without(leaving: BTreeSet<CoreHash>) -> Self {
        Self { remembered: Remembered::Without(leaving), ..Self::default() }
    }

    /// Creates a finder to decide which of `leaving` are kept because of dependents. Of the dependents of an artifact, it
    /// remembers only the first one that is not among them, if there is one.
    #[must_use]
    pub(crate) fn deciding_on(leaving: BTreeSet<CoreHash>) -> Self {
        Self { remembered: Remembered::FirstWithout(leaving), ..Self::default() }
    }

    /// Returns whether the finder was created for the removal of this artifact.
    pub(crate) fn is_leaving(&self, artifact: &CoreHash) -> bool {
        match &self.remembered {
            Remembered::All => false,
            Remembered::Without(leaving) | Remembered::FirstWithout(leaving) => leaving.contains(artifact),
        }
    }

    /// Returns the group with this number.
    #[must_use]
    pub(crate) fn group(&self, number: usize) -> Option<&DependentGroup> {
        self.groups.get(number)
    }

    /// Returns the number of the group of dependents that contain the bytes of each artifact; `None` if there are none.
    pub(crate) fn containers(
        &mut self,
        snapshot: &dyn Snapshot,
        of: &[CoreHash],
    ) -> Result<Vec<Option<usize>>> {
        let hold = |containers: Vec<CoreHash>| {
            let dependents: Vec<_> =
                containers.into_iter().map(|container| (container, DependencyReason::Bytes)).collect();
            if dependents.is_empty() { None } else { Some(self.add(dependents)) }
        };
        Ok(snapshot.containers(of, Containment::Bytes)?.into_iter().map(hold).collect())
    }

    /// Returns the numbers of the groups of dependents of each artifact that link to it. Links that follow from what the artifact itself states,
    /// such as the contract that governs it, are excluded.
    pub(crate) fn linking(&mut self, snapshot: &dyn Snapshot, of: &[CoreHash]) -> Result<Vec<Vec<usize>>> {
        let by_edges = self.by_edges(snapshot, of)?.into_iter();
        let names = snapshot.names(of)?.into_iter().map(|names| names.own);
        by_edges
            .zip(names)
            .map(|(group, names)| {
                let mut holds = Vec::from_iter(group);
                holds.append(&mut self.by_names(snapshot, names)?);
                Ok(holds)
            })
            .collect()
    }

    /// Returns the numbers of the groups of dependents that refer to an artifact by one of its names.
    fn by_names(&mut self, snapshot: &dyn Snapshot, names: Vec<String>) -> Result<Vec<usize>> {
        let mut holds = Vec::new();
        for handle in names {
            let group = if let Some(known) = self.by_name.get(&handle) {
                *known
            } else {
                let referring = snapshot.uses_of(&handle)?.referring.into_iter();
                let origin = || LinkOrigin::Derived(identified_by(&handle));
                let why = |relation| DependencyReason::Link { relation, origin: origin() };
                let dependents = referring.map(|(relation, dependent)| (dependent, why(relation))).collect();
                let group = self.add(dependents);
                self.by_name.insert(handle, group);
                group
            };
            holds.push(group);
        }
        Ok(holds)
    }

    /// Returns, for each artifact, the group of dependents that have a manual link to it, or refer to it by a hash.
    fn by_edges(&mut self, snapshot: &dyn Snapshot, of: &[CoreHash]) -> Result<Vec<Option<usize>>> {
        let manual = snapshot.manual_links(of)?;
        let incoming = snapshot.references(of, Direction::In)?;
        // What an artifact itself states is of interest only beside what others state.
        let referred = of.iter().zip(&incoming).filter(|(_, incoming)| !incoming.is_empty());
        let referred: Vec<CoreHash> = referred.map(|(core, _)| *core).collect();
        let mut outgoing: HashMap<CoreHash, Vec<ReferenceEdge>> =
            referred.iter().copied().zip(snapshot.references(&referred, Direction::Out)?).collect();
        let mut groups = Vec::new();
        for ((core, manual), incoming) in of.iter().zip(manual).zip(incoming) {
            let outgoing = outgoing.remove(core).unwrap_or_default();
            let mut dependents = Vec::new();
            for edge in manual.into_iter().filter(|edge| edge.target == *core) {
                let origin = LinkOrigin::Manual(edge.note);
                dependents.push((edge.source, DependencyReason::Link { relation: edge.relation, origin }));
            }
            let own: BTreeSet<(String, CoreHash)> =
                outgoing.into_iter().filter_map(|edge| Some((edge.inverse?, edge.target?))).collect();
            for edge in incoming {
                let origin = LinkOrigin::Derived(stated_by_other(&edge));
                let key = (edge.relation, edge.mention.artifact);
                if !own.contains(&key) {
                    dependents.push((key.1, DependencyReason::Link { relation: key.0, origin }));
                }
            }
            groups.push(if dependents.is_empty() { None } else { Some(self.add(dependents)) });
        }
        Ok(groups)
    }

    /// Adds a group of the dependents that are to be remembered, and returns its number.
    fn add(&mut self, mut dependents: Vec<(CoreHash, DependencyReason)>) -> usize {
        match &self.remembered {
            Remembered::All => {}
            Remembered::Without(leaving) => dependents.retain(|(dependent, _)| !leaving.contains(dependent)),
            Remembered::FirstWithout(leaving) => {
                if let Some(first) = dependents.iter().position(|(dependent, _)| !leaving.contains(dependent))
                {
                    dependents.swap(0, first);
                    dependents.truncate(1);
                }
            }
        }
        let mut group = DependentGroup { dependents: Vec::new(), why: Vec::new() };
        let mut seen = BTreeSet::new();
        for (dependent, why) in dependents {
            if seen.insert((why.relation().to_owned(), dependent)) {
                group.dependents.push(dependent);
                group.why.push(why);
            }
        }
        self.groups.push(group);
        self.groups.len() - 1
    }

    /// Returns why `dependent`, a member of a group, depends on an artifact; `None` if it is not a member.
    pub(crate) fn holding(
        &self,
        snapshot: &dyn Snapshot,
        group: usize,
        dependent: CoreHash,
    ) -> Result<Option<Dependency>> {
        let Some(group) = self.group(group) else { return Ok(None) };
        let at = group.dependents.iter().position(|other| *other == dependent);
        let Some(why) = at.and_then(|at| group.why.get(at)) else { return Ok(None) };
        let row = snapshot.expect_artifact(dependent)?;
        Ok(Some(match why.link(&row) {
            Some(link) => Dependency::Linked(link),
            None => Dependency::Contained(row),
        }))
    }

    /// Returns the links of other artifacts to `artifact`, of which `holds` are the numbers of the groups that link to it: up to `limit`
    /// of them, and the number of further ones.
    pub(crate) fn links_to(
        &self,
        snapshot: &dyn Snapshot,
        artifact: CoreHash,
        holds: &[usize],
        limit: usize,
    ) -> Result<(Vec<Link>, u64)> {
        let mut links = Vec::new();
        let mut seen = BTreeSet::new();
        for group in holds.iter().filter_map(|number| self.groups.get(*number)) {
            for (dependent, why) in group.dependents.iter().zip(&group.why) {
                let is_new = *dependent != artifact && seen.insert((why.relation(), *dependent));
                if is_new && links.len() < limit {
                    links.extend(why.link(&snapshot.expect_artifact(*dependent)?));
                }
            }
        }
        let more = (seen.len() - links.len()) as u64;
        Ok((links, more))
    }
}

impl DependencyReason {
    /// Returns the relation of the dependent to the artifact; empty if it is not a link.
    fn relation(&self) -> &str {
        match self {
            Self::Bytes => "",
            Self::Link { relation, .. } => relation,
        }
    }

    /// Returns the link of `dependent`, if it depends on the artifact by one.
    fn link(&self, dependent: &ArtifactRecord) -> Option<Link> {
        let origin = match self {
            Self::Bytes => return None,
            Self::Link { origin, .. } => origin.clone(),
        };
        let (relation, target) = (self.relation().to_owned(), LinkTarget::Artifact(dependent.clone()));
        Some(Link { direction: Direction::In, relation, target, origin })
    }
}

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
fn artifacts_with_bytes_of(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
) -> Result<Vec<ArtifactRecord>> {
    let containers = snapshot.containers_of(artifact.core, Containment::Bytes)?;
    if containers.is_empty() { Ok(Vec::new()) } else { snapshot.stored_artifacts(&containers) }
}

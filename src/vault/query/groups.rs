//! The groups of artifacts that belong to one run.
//!
//! Artifacts belong together if they have the same name, or refer to others only by it, as traces do, or if one
//! contains the other and nothing else contains it. A name that several recordings have does not say which of them
//! belong together: then each of them is a group of its own.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::links::{Link, LinkOrigin, LinkTarget};
use crate::artifact::{Kind, SuccessorCriteria, group, relation};
use crate::digest::CoreHash;
use crate::formats;
use crate::storage::{
    ArtifactRecord, AttributeRecord, Containment, Direction, Filter, NameUse, Names, ReferenceEdge, Result,
    Snapshot, StorageError,
};

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
        if !of_kind.is_empty() {
            all.extend(snapshot.related_to_matching(&of_kind, filter, relation, attribute)?);
        }
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

/// Returns the names by which an artifact refers to others in this relation.
fn mentioned<'n>(names: &'n Names, relation: &str) -> impl Iterator<Item = &'n str> {
    names.mentioned.iter().filter(move |mention| mention.relation == relation).map(|it| it.handle.as_str())
}

/// Returns the name of the run that an artifact with these names is: that of which it states to be a part, or else the only
/// one that it has.
fn run_name(names: &Names) -> Option<&str> {
    let own = || <&[String; 1]>::try_from(names.own.as_slice()).ok().map(|[only]| only.as_str());
    mentioned(names, relation::PART_OF).next().or_else(own)
}

/// Returns the artifacts that continue another one of their group: all parts of a run but the first.
pub(crate) fn continuing(snapshot: &dyn Snapshot, groups: &[Vec<CoreHash>]) -> Result<BTreeSet<CoreHash>> {
    let several: Vec<&Vec<CoreHash>> = groups.iter().filter(|group| group.len() > 1).collect();
    let artifacts: Vec<CoreHash> = several.iter().flat_map(|group| group.iter().copied()).collect();
    let mut continuing = BTreeSet::new();
    if artifacts.is_empty() {
        return Ok(continuing);
    }
    let (references, names) = (snapshot.references(&artifacts, Direction::Out)?, snapshot.names(&artifacts)?);
    let mut edges = references.iter().zip(&names);
    for group in several {
        let edges: Vec<_> = edges.by_ref().take(group.len()).collect();
        let own: HashSet<&str> = edges.iter().flat_map(|(_, names)| &names.own).map(String::as_str).collect();
        let members: HashSet<&CoreHash> = group.iter().collect();
        let among =
            |reference: &ReferenceEdge| reference.target.is_some_and(|target| members.contains(&target));
        for (core, (references, names)) in group.iter().zip(edges) {
            let by_hash = references.iter().any(|reference| is_continuation(reference) && among(reference));
            let mut by_name = mentioned(names, relation::CONTINUES);
            if by_hash || by_name.any(|name| own.contains(name)) {
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
    let names = snapshot.names_of(first)?;
    let Some(run) = run_name(&names).map(str::to_owned) else { return Ok(parts) };
    let earlier = snapshot.references(&parts, Direction::Out)?;
    if earlier.iter().flatten().any(is_continuation)
        || mentioned(&names, relation::CONTINUES).next().is_some()
    {
        return Ok(parts);
    }
    let mut own = names.own;
    while let Some(last) = parts.last().copied() {
        let by_hash = snapshot.references(&[last], Direction::In)?.into_iter().flatten();
        let by_hash = by_hash.filter(is_continuation).map(|reference| reference.mention.artifact);
        let by_name = snapshot.named(&own)?.into_iter().flat_map(|uses| uses.referring);
        let by_name = by_name.filter(|(relation, _)| relation == relation::CONTINUES).map(|(_, core)| core);
        let candidates: BTreeSet<CoreHash> =
            by_hash.chain(by_name).filter(|core| !parts.contains(core)).collect();
        let candidates: Vec<CoreHash> = candidates.into_iter().collect();
        let mut same_run = candidates.iter().copied().zip(snapshot.names(&candidates)?);
        // Any run pack can state that it continues another one.
        let mut same_run = same_run.by_ref().filter(|(_, names)| run_name(names) == Some(&run));
        let (Some((next, names)), None) = (same_run.next(), same_run.next()) else { break };
        parts.push(next);
        own = names.own;
    }
    Ok(parts)
}

/// Returns those of `artifacts` that are a part of a run with several of one name.
fn parts<'a>(
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

/// Maximum number of artifacts of one name that are grouped, unless they state that they are parts of the run of this name.
const MAX_NAMED: usize = 64;

/// Maximum number of parts of a run that are grouped.
const MAX_PARTS: usize = 10_000;

/// The groups of some artifacts. Every artifact is in one group only.
#[derive(Default)]
pub(crate) struct RunGroups {
    groups: Vec<Vec<CoreHash>>,
    of: HashMap<CoreHash, usize>,
    continuing: BTreeSet<CoreHash>,
}

impl RunGroups {
    /// Returns the groups that consist of one artifact each.
    pub(crate) fn single(artifacts: &[CoreHash]) -> Self {
        let mut groups = Self::default();
        for core in artifacts {
            groups.add(vec![*core]);
        }
        groups
    }

    /// Finds the groups of these artifacts, with a constant number of reads.
    pub(crate) fn find(snapshot: &dyn Snapshot, artifacts: &[CoreHash]) -> Result<Self> {
        let mut catalog = GroupArtifactCache { snapshot, known: HashMap::new(), continuing: BTreeSet::new() };
        catalog.read(artifacts)?;
        let anchors = catalog.anchors(artifacts)?;
        let units = catalog.units(&anchors)?;
        let contained = catalog.contained(&units.concat())?;
        let mut groups = Self { continuing: catalog.continuing.clone(), ..Self::default() };
        for mut unit in units {
            let parts = unit.iter().flat_map(|core| contained.get(core).into_iter().flatten().copied());
            let parts: Vec<CoreHash> = parts.collect();
            catalog.sort(&mut unit);
            unit.extend(parts);
            groups.add(unit);
        }
        for core in artifacts.iter().filter(|core| !groups.of.contains_key(core)).copied().collect::<Vec<_>>()
        {
            groups.add(vec![core]);
        }
        Ok(groups)
    }

    fn add(&mut self, members: Vec<CoreHash>) {
        let number = self.groups.len();
        let mut group = Vec::new();
        for core in members {
            if let Entry::Vacant(new) = self.of.entry(core) {
                new.insert(number);
                group.push(core);
            }
        }
        self.groups.push(group);
    }

    /// Returns the number of the group of an artifact.
    pub(crate) fn number_of(&self, core: CoreHash) -> Option<usize> {
        self.of.get(&core).copied()
    }

    /// Returns the artifacts of a group: recordings of a run first, those that they contain last.
    pub(crate) fn members(&self, number: usize) -> &[CoreHash] {
        self.groups.get(number).map_or(&[], Vec::as_slice)
    }

    /// Returns whether an artifact is a part of the run that its group is, other than the first one.
    pub(crate) fn is_continuing(&self, core: CoreHash) -> bool {
        self.continuing.contains(&core)
    }

    /// Returns the artifacts of all groups of several artifacts.
    pub(crate) fn grouped(&self) -> Vec<CoreHash> {
        self.groups.iter().filter(|group| group.len() > 1).flatten().copied().collect()
    }
}

/// An artifact with its names.
struct NamedArtifactRecord {
    record: ArtifactRecord,
    names: Names,
}

impl NamedArtifactRecord {
    /// Returns the name of the run that the artifact is, or, if it has no name, the first one that it refers to: a session
    /// is that of each run with its answers.
    fn name(&self) -> Option<&str> {
        let Names { own, mentioned, .. } = &self.names;
        let first = || mentioned.iter().map(|mention| mention.handle.as_str()).min();
        run_name(&self.names).or_else(|| first().filter(|_| own.is_empty()))
    }

    fn is_named_part(&self) -> bool {
        mentioned(&self.names, relation::PART_OF).next().is_some()
    }

    fn kind(&self) -> Option<Kind> {
        formats::named(&self.record.kind)
    }
}

/// The artifacts that were read.
struct GroupArtifactCache<'s> {
    snapshot: &'s dyn Snapshot,
    known: HashMap<CoreHash, NamedArtifactRecord>,
    /// Those that continue another one of their unit.
    continuing: BTreeSet<CoreHash>,
}

impl GroupArtifactCache<'_> {
    fn read(&mut self, artifacts: &[CoreHash]) -> Result<()> {
        let mut new: Vec<CoreHash> =
            artifacts.iter().copied().filter(|core| !self.known.contains_key(core)).collect();
        new.sort_unstable();
        new.dedup();
        let records = self.snapshot.artifacts(&new)?;
        let names = self.snapshot.names(&new)?;
        for (core, (record, names)) in new.into_iter().zip(records.into_iter().zip(names)) {
            self.known.extend(record.map(|record| (core, NamedArtifactRecord { record, names })));
        }
        Ok(())
    }

    fn entry(&self, core: CoreHash) -> Result<&NamedArtifactRecord> {
        self.known.get(&core).ok_or_else(|| StorageError::gone(core))
    }

    /// Returns the artifacts whose names decide on the groups: those with a name, and the only containers of the others.
    fn anchors(&mut self, artifacts: &[CoreHash]) -> Result<Vec<CoreHash>> {
        let is_named = |core: &CoreHash| self.known.get(core).is_some_and(|entry| entry.name().is_some());
        let (mut anchors, unnamed): (Vec<CoreHash>, Vec<CoreHash>) =
            artifacts.iter().copied().partition(is_named);
        let containers = self.snapshot.containers(&unnamed, Containment::Declared)?;
        for (core, containers) in unnamed.into_iter().zip(containers) {
            match containers.as_slice() {
                [only] => anchors.push(*only),
                _ => anchors.push(core),
            }
        }
        anchors.sort_unstable();
        anchors.dedup();
        self.read(&anchors)?;
        Ok(anchors)
    }

    /// Returns the artifacts that belong together by their names, for each name of the anchors, and the anchors that
    /// belong to no others.
    fn units(&mut self, anchors: &[CoreHash]) -> Result<Vec<Vec<CoreHash>>> {
        let are_shared = self.snapshot.has_namesake(anchors)?;
        let shared = anchors.iter().zip(&are_shared).filter(|(_, is_shared)| **is_shared);
        let shared = shared.filter_map(|(core, _)| self.known.get(core)).map(|entry| &entry.record);
        let parts = parts(self.snapshot, shared)?;
        let mut names = BTreeSet::new();
        for (core, is_shared) in anchors.iter().zip(are_shared) {
            let entry = self.entry(*core)?;
            let has_versions = entry.kind().is_some_and(|kind| kind.info().versions.is_some());
            // If other artifacts of its kind have the name too, they need not be read, unless they may be its versions or
            // other parts of its run.
            if !is_shared || has_versions || parts.contains(core) || entry.is_named_part() {
                names.extend(entry.name().map(str::to_owned));
            }
        }
        let names: Vec<String> = names.into_iter().collect();
        let uses = self.snapshot.named(&names)?;
        let candidates: Vec<Vec<CoreHash>> = uses.iter().map(candidates).collect();
        self.read(&candidates.concat())?;
        let all = candidates.iter().flatten().filter_map(|core| self.known.get(core));
        let mut extended = extended(self.snapshot, &all.map(|entry| &entry.record), &formats::versions())?;
        let of_name = |(name, candidates): (&String, &Vec<CoreHash>)| {
            let has_name = |core: &&CoreHash| {
                self.known.get(core).is_some_and(|entry| entry.name() == Some(name.as_str()))
            };
            candidates.iter().filter(has_name).copied().collect::<Vec<_>>()
        };
        let candidates: Vec<Vec<CoreHash>> = names.iter().zip(&candidates).map(of_name).collect();
        self.continuing = continuing(self.snapshot, &candidates)?;
        extended.extend(&self.continuing);
        let mut units = Vec::new();
        for candidates in &candidates {
            units.append(&mut self.together(candidates, &extended)?);
        }
        let united: BTreeSet<CoreHash> = units.iter().flatten().copied().collect();
        units.extend(anchors.iter().filter(|core| !united.contains(core)).map(|core| vec![*core]));
        Ok(units)
    }

    /// Returns artifacts of one name in one group if there is one of each kind, and in a group for each otherwise.
    /// Shorter versions of the only artifact of a kind, and further parts of it, are with it.
    fn together(&self, candidates: &[CoreHash], extended: &BTreeSet<CoreHash>) -> Result<Vec<Vec<CoreHash>>> {
        let mut kinds: BTreeMap<&str, (Vec<CoreHash>, Vec<CoreHash>)> = BTreeMap::new();
        for core in candidates {
            let (longest, shorter) = kinds.entry(self.entry(*core)?.record.kind.as_str()).or_default();
            if extended.contains(core) { shorter.push(*core) } else { longest.push(*core) }
        }
        let is_one = kinds.values().all(|(longest, _)| longest.len() == 1);
        let mut units = Vec::new();
        for (mut longest, shorter) in kinds.into_values() {
            if longest.len() == 1 {
                longest.extend(shorter);
                units.push(longest);
            } else {
                units.extend(longest.into_iter().chain(shorter).map(|core| vec![core]));
            }
        }
        Ok(if is_one { vec![units.concat()] } else { units })
    }

    /// Returns the artifacts that these contain and no other artifact contains, by the container.
    fn contained(&mut self, artifacts: &[CoreHash]) -> Result<HashMap<CoreHash, Vec<CoreHash>>> {
        let is_directory = |core: &CoreHash| {
            self.known.get(core).and_then(NamedArtifactRecord::kind).is_some_and(Kind::is_of_directories)
        };
        let directories: Vec<CoreHash> = artifacts.iter().copied().filter(is_directory).collect();
        let references = self.snapshot.references(&directories, Direction::Out)?;
        let mut parts = Vec::new();
        for (directory, references) in directories.into_iter().zip(references) {
            let contains = references.into_iter().filter(|edge| edge.relation == relation::CONTAINS);
            parts.extend(contains.filter_map(|edge| Some((directory, edge.target?))));
        }
        let cores: Vec<CoreHash> = parts.iter().map(|(_, part)| *part).collect();
        let containers = self.snapshot.containers(&cores, Containment::Declared)?;
        self.read(&cores)?;
        let mut contained: HashMap<CoreHash, Vec<CoreHash>> = HashMap::new();
        for ((directory, part), containers) in parts.into_iter().zip(containers) {
            let has_name = self.entry(part)?.name().is_some();
            if !has_name && containers == [directory] {
                contained.entry(directory).or_default().push(part);
            }
        }
        Ok(contained)
    }

    /// Sorts the artifacts of a group: those that have a name first, in the order of the kinds, and the parts of a run as they
    /// were added after the first part.
    fn sort(&self, unit: &mut [CoreHash]) {
        unit.sort_by_cached_key(|core| {
            let entry = self.known.get(core);
            let has_name = entry.is_some_and(|entry| !entry.names.own.is_empty());
            let kind = entry.and_then(NamedArtifactRecord::kind).map(Kind::name);
            let position = formats::ALL.into_iter().position(|known| Some(known.name()) == kind);
            let arrival = entry.map(|entry| entry.record.arrival);
            let continues = arrival.filter(|_| self.continuing.contains(core));
            // The longest version has arrived last, and is first in the group.
            (!has_name, position, continues, std::cmp::Reverse(arrival))
        });
    }
}

/// Returns the artifacts that have a name or refer to it; none if there are too many.
fn candidates(name: &NameUse) -> Vec<CoreHash> {
    let NameUse { identified, referring, .. } = name;
    let parts = referring.iter().filter(|(relation, _)| relation == relation::PART_OF).count();
    if identified.len() + referring.len() - parts > MAX_NAMED || parts > MAX_PARTS {
        return Vec::new();
    }
    let referring = referring.iter().map(|(_, core)| core);
    let all: BTreeSet<CoreHash> = identified.iter().chain(referring).copied().collect();
    all.into_iter().collect()
}

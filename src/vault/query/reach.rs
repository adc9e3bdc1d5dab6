//! Searches along links: reachable artifacts, and shortest paths.
//!
//! Links to artifacts that were already reached are skipped. So artifacts that are linked because they share a name, an
//! exchange or a header are examined once for it, and the work is linear in their mentions.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};

use super::facts::LinkReader;
use super::links::{Link, LinkSearchState, LinkSelection, LinkStrength, LinkTarget, links_knowing};
use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, Result, Snapshot};

/// A step of a chain of links: the link, and the artifact that it is seen from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkPathStep {
    /// Where the step begins.
    pub(crate) from: ArtifactRecord,
    /// Where it leads, and why.
    pub(crate) link: Link,
}

/// Maximum number of artifacts whose links a search reads.
pub const MAX_SEARCHED: usize = 10_000;

/// The result of a search for a path.
#[derive(Debug, Default)]
pub(crate) struct PathSearchResult {
    /// The steps of the path; `None` if none was found.
    pub(crate) steps: Option<Vec<LinkPathStep>>,
    /// The number of artifacts that were reached, with the one that the search starts from.
    pub(crate) reached: usize,
    /// Whether the links of all reached artifacts were read, or a path was found.
    pub(crate) is_complete: bool,
}

/// Finds the shortest path of links from `one` to `other`, in any direction, coincident ones only if `coincident` is set.
/// Reads the links of at most [`MAX_SEARCHED`] artifacts, those nearest to `one`. Of equally short paths, returns the first
/// by relation and hash.
pub(crate) fn shortest_path(
    snapshot: &dyn Snapshot,
    one: &ArtifactRecord,
    other: &ArtifactRecord,
    coincident: bool,
) -> Result<PathSearchResult> {
    let mut reached_by: HashMap<CoreHash, Option<LinkPathStep>> = HashMap::from([(one.core, None)]);
    let mut waiting = VecDeque::from([one.clone()]);
    let mut search = PathSearch::new(coincident);
    let mut searched = 0;
    while let Some(from) = waiting.pop_front().filter(|_| searched < MAX_SEARCHED) {
        if reached_by.contains_key(&other.core) {
            break;
        }
        searched += 1;
        let near = waiting.iter().map(|artifact| artifact.core);
        for (target, link) in search.new_links(snapshot, &from, near)? {
            if let Entry::Vacant(unknown) = reached_by.entry(target.core) {
                unknown.insert(Some(LinkPathStep { from: from.clone(), link }));
                waiting.push_back(target);
            }
        }
    }
    let reached = reached_by.len();
    let mut path = Vec::new();
    let mut at = other.core;
    while let Some(step) = reached_by.remove(&at) {
        let Some(step) = step else {
            path.reverse();
            return Ok(PathSearchResult { steps: Some(path), reached, is_complete: true });
        };
        at = step.from.core;
        path.push(step);
    }
    Ok(PathSearchResult { steps: None, reached, is_complete: searched == reached })
}

/// Returns `artifacts` and everything reachable from them along links, derived or manual, in either direction; each
/// once, by core hash. Coincident links are followed only if `coincident` is set.
pub(crate) fn reachable(
    snapshot: &dyn Snapshot,
    artifacts: Vec<ArtifactRecord>,
    coincident: bool,
) -> Result<Vec<ArtifactRecord>> {
    let mut reached: BTreeMap<CoreHash, ArtifactRecord> = BTreeMap::new();
    let mut search = PathSearch::new(coincident);
    let mut waiting = VecDeque::from(artifacts);
    while let Some(artifact) = waiting.pop_front() {
        if reached.contains_key(&artifact.core) {
            continue;
        }
        let unread = waiting.iter().map(|artifact| artifact.core).filter(|core| !reached.contains_key(core));
        let links = search.new_links(snapshot, &artifact, unread)?;
        waiting.extend(links.into_iter().map(|(target, _)| target));
        reached.insert(artifact.core, artifact);
    }
    Ok(reached.into_values().collect())
}

/// A search along links.
struct PathSearch {
    reader: LinkReader,
    selection: LinkSelection<'static>,
}

impl PathSearch {
    fn new(coincident: bool) -> Self {
        let reached = Some(LinkSearchState::default());
        let strength = (!coincident).then_some(LinkStrength::Stated);
        let selection = LinkSelection { strength, reached, ..LinkSelection::default() };
        Self { reader: LinkReader::default(), selection }
    }

    /// Returns the links of `artifact` to artifacts that have not been reached before. If it has not been read, it is read
    /// together with `others`, whose links are needed next.
    fn new_links(
        &mut self,
        snapshot: &dyn Snapshot,
        artifact: &ArtifactRecord,
        others: impl Iterator<Item = CoreHash>,
    ) -> Result<Vec<(ArtifactRecord, Link)>> {
        if !self.reader.has(artifact.core) {
            let mut of = vec![artifact.core];
            of.extend(others.filter(|other| *other != artifact.core).take(self.reader.batch() - 1));
            self.reader.read(snapshot, &of, self.selection.fact_selection())?;
        }
        let links = links_knowing(&self.reader, artifact, &mut self.selection)?.into_iter();
        let target = |link: Link| match &link.target {
            LinkTarget::Artifact(target) => Some((target.clone(), link)),
            LinkTarget::MissingDigest(_) | LinkTarget::MissingName(_) => None,
        };
        Ok(links.filter_map(target).collect())
    }
}

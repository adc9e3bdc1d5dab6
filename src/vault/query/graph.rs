//! Graph traversal along links.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::facts::LinkReader;
use super::links::{
    Direction, Link, LinkOrigin, LinkSearchState, LinkSelection, LinkStrength, LinkTarget, REPLAYS,
    links_knowing,
};
use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, Result, Snapshot};

/// Number of artifacts that are read together, however few links are wanted.
const FEW: usize = 16;

/// The limits of a traversal.
#[derive(Clone, Debug)]
pub(crate) struct TraversalOptions {
    /// Maximum distance from the start, in links.
    pub(crate) depth: usize,
    /// Only links of this relation.
    pub(crate) relation: Option<String>,
    /// Only links in this direction.
    pub(crate) direction: Option<Direction>,
    /// Whether coincident links are followed as well. Those of the requested relation always are.
    pub(crate) coincident: bool,
    /// The maximum number of links.
    pub(crate) limit: usize,
}

impl TraversalOptions {
    fn follows(&self, link: &Link) -> bool {
        LinkStrength::new(&link.relation, &link.origin) == LinkStrength::Stated
            || self.coincident
            || self.relation.as_deref() == Some(REPLAYS)
    }
}

/// The result of a traversal: each node once, the start first, then by distance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    /// The nodes.
    pub(crate) nodes: Vec<GraphNode>,
    /// The links between them.
    pub(crate) edges: Vec<Edge>,
    /// The number of links of examined artifacts that were omitted because of the limit.
    pub(crate) left_out: u64,
    /// The number of artifacts within range whose links were not examined because of the limit.
    pub(crate) not_followed: u64,
    /// The number of artifacts within range whose links were not examined because only coincident links lead to them.
    pub(crate) only_coincident: u64,
}

/// A node of the graph.
#[derive(Clone, Debug)]
pub(crate) struct GraphNode {
    /// The artifact or missing reference.
    pub(crate) target: LinkTarget,
    /// Its distance from the start, in links that were followed.
    pub(crate) depth: usize,
}

/// A link between two nodes, from the first to the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The number of the source node.
    pub(crate) from: usize,
    /// The relation.
    pub(crate) relation: String,
    /// The number of the target node.
    pub(crate) to: usize,
    /// The origin of the link.
    pub(crate) origin: LinkOrigin,
}

/// Finds what is linked to `artifact` within the range of `traversal`. The work is linear in the links of the examined
/// artifacts, which are few more than needed for `limit` links. The artifacts of a distance are read together, so that the
/// number of queries does not grow with them.
///
/// # Errors
/// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the artifact is not stored, and another one if
/// the vault cannot be read.
pub(crate) fn traverse(
    snapshot: &dyn Snapshot,
    artifact: CoreHash,
    traversal: &TraversalOptions,
) -> Result<Graph> {
    let mut selection = LinkSelection {
        relation: traversal.relation.as_deref(),
        direction: traversal.direction,
        ..LinkSelection::default()
    };
    let mut reader = LinkReader::default();
    reader.read(snapshot, &[artifact], selection.fact_selection())?;
    let beginning = LinkTarget::Artifact(reader.artifact(artifact)?.clone());
    let mut walker = GraphBuilder {
        traversal,
        numbers: BTreeMap::from([(beginning.key(), 0)]),
        nodes: vec![GraphNode { target: beginning, depth: 0 }],
        followed: HashSet::from([0]),
        waiting: VecDeque::from([(0, 0)]),
        edges: BTreeMap::new(),
        left_out: 0,
    };
    while let Some((number, depth)) = walker.next() {
        let Some(LinkTarget::Artifact(artifact)) = walker.nodes.get(number).map(|node| node.target.clone())
        else {
            continue;
        };
        if !reader.has(artifact.core) {
            let most = traversal.limit.saturating_sub(walker.edges.len()).max(FEW).min(reader.batch());
            let near = std::iter::once(artifact.core).chain(walker.waiting_at(depth)).take(most);
            reader.read(snapshot, &near.collect::<Vec<_>>(), selection.fact_selection())?;
        }
        for link in links_knowing(&reader, &artifact, &mut selection)? {
            walker.take(number, depth, link);
        }
    }
    Ok(walker.into_graph())
}

/// The key of a link. The last field is whether it is manual: a manual link is separate from a derived one.
type EdgeKey = (usize, String, usize, bool);

struct GraphBuilder<'t> {
    traversal: &'t TraversalOptions,
    numbers: BTreeMap<(u8, String), usize>,
    nodes: Vec<GraphNode>,
    /// The numbers of the nodes that a link leads to that is followed.
    followed: HashSet<usize>,
    /// Those of them whose links have not been examined, with their distances.
    waiting: VecDeque<(usize, usize)>,
    edges: BTreeMap<EdgeKey, Edge>,
    left_out: u64,
}

impl GraphBuilder<'_> {
    fn is_full(&self) -> bool {
        self.edges.len() >= self.traversal.limit
    }

    /// Removes the next node whose links are to be examined, and returns it with its distance.
    fn next(&mut self) -> Option<(usize, usize)> {
        let (is_full, range) = (self.is_full(), self.traversal.depth);
        self.waiting.pop_front_if(|(_, depth)| *depth < range && !is_full)
    }

    fn artifact(&self, number: usize) -> Option<CoreHash> {
        match &self.nodes.get(number)?.target {
            LinkTarget::Artifact(artifact) => Some(artifact.core),
            LinkTarget::MissingDigest(_) | LinkTarget::MissingName(_) => None,
        }
    }

    /// Returns the artifacts at this distance whose links are to be examined.
    fn waiting_at(&self, depth: usize) -> impl Iterator<Item = CoreHash> {
        let near = self.waiting.iter().take_while(move |(_, at)| *at == depth);
        near.filter_map(|(number, _)| self.artifact(*number))
    }

    /// Adds a link of the node with this number and distance, unless the limit is reached.
    fn take(&mut self, here: usize, depth: usize, link: Link) {
        let is_full = self.is_full();
        let key = link.target.key();
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None if is_full => {
                self.left_out += 1;
                return;
            }
            None => {
                self.nodes.push(GraphNode { target: link.target.clone(), depth: depth + 1 });
                self.numbers.insert(key, self.nodes.len() - 1);
                self.nodes.len() - 1
            }
        };
        let (from, to) = match link.direction {
            Direction::Out => (here, number),
            Direction::In => (number, here),
        };
        let key = (from, link.relation.clone(), to, matches!(link.origin, LinkOrigin::Manual(_)));
        if is_full && !self.edges.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        if self.traversal.follows(&link) && self.followed.insert(number) {
            self.waiting.push_back((number, depth + 1));
        }
        self.edges.entry(key).or_insert(Edge { from, relation: link.relation, to, origin: link.origin });
    }

    fn into_graph(self) -> Graph {
        let range = self.traversal.depth;
        let waiting = self.waiting.iter().filter(|(_, depth)| *depth < range);
        let not_followed = waiting.filter(|(number, _)| self.artifact(*number).is_some()).count() as u64;
        let passed_over = self.nodes.iter().enumerate().filter(|(number, node)| {
            node.depth < range && !self.followed.contains(number) && self.artifact(*number).is_some()
        });
        let only_coincident = passed_over.count() as u64;
        let Self { nodes, edges, left_out, .. } = self;
        Graph { nodes, edges: edges.into_values().collect(), left_out, not_followed, only_coincident }
    }
}

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

//! Graph traversal along links.

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::facts::LinkReader;
use super::links::{
    Direction, Link, LinkOrigin, LinkSelection, LinkStrength, LinkTarget, REPLAYS, links_knowing,
};
use crate::digest::CoreHash;
use crate::storage::{Result, Snapshot};

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
            walker.take((number, depth), link);
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
    fn take(&mut self, (here, depth): (usize, usize), link: Link) {
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

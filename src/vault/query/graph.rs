//! Graph traversal along links.

use std::collections::BTreeMap;

use super::facts::LinkReader;
use super::links::{Direction, Link, LinkOrigin, LinkSelection, LinkTarget, links_knowing};
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
    /// The maximum number of links.
    pub(crate) limit: usize,
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
}

/// A node of the graph.
#[derive(Clone, Debug)]
pub(crate) struct GraphNode {
    /// The artifact or missing reference.
    pub(crate) target: LinkTarget,
    /// Its distance from the start, in links.
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
        reached: None,
    };
    let mut reader = LinkReader::default();
    reader.read(snapshot, &[artifact], selection.fact_selection())?;
    let beginning = LinkTarget::Artifact(reader.artifact(artifact)?.clone());
    let mut walker = GraphBuilder {
        numbers: BTreeMap::from([(beginning.key(), 0)]),
        nodes: vec![GraphNode { target: beginning, depth: 0 }],
        edges: BTreeMap::new(),
        left_out: 0,
    };
    let mut next = 0;
    while let Some(GraphNode { target, depth }) = walker.nodes.get(next).cloned() {
        if depth == traversal.depth || walker.edges.len() >= traversal.limit {
            break;
        }
        if let LinkTarget::Artifact(artifact) = target {
            if !reader.has(artifact.core) {
                let most = traversal.limit.saturating_sub(walker.edges.len()).max(FEW).min(reader.batch());
                reader.read(snapshot, &walker.artifacts_from(next, most), selection.fact_selection())?;
            }
            for link in links_knowing(&reader, &artifact, &mut selection)? {
                walker.take((next, depth), link, traversal.limit);
            }
        }
        next += 1;
    }
    let GraphBuilder { nodes, edges, left_out, .. } = walker;
    let is_within =
        |node: &&GraphNode| node.depth < traversal.depth && matches!(node.target, LinkTarget::Artifact(_));
    let not_followed = nodes.iter().skip(next).filter(is_within).count() as u64;
    let edges = edges.into_values().collect();
    Ok(Graph { nodes, edges, left_out, not_followed })
}

/// The key of a link. The last field is whether it is manual: a manual link is separate from a derived one.
type EdgeKey = (usize, String, usize, bool);

struct GraphBuilder {
    numbers: BTreeMap<(u8, String), usize>,
    nodes: Vec<GraphNode>,
    edges: BTreeMap<EdgeKey, Edge>,
    left_out: u64,
}

impl GraphBuilder {
    /// Returns up to `most` artifacts, from the node with this number on, with its distance.
    fn artifacts_from(&self, number: usize, most: usize) -> Vec<CoreHash> {
        let nodes = self.nodes.get(number..).unwrap_or_default();
        let depth = nodes.first().map(|node| node.depth);
        let near = nodes.iter().take_while(|node| Some(node.depth) == depth);
        let artifacts = near.filter_map(|node| match &node.target {
            LinkTarget::Artifact(artifact) => Some(artifact.core),
            LinkTarget::MissingDigest(_) | LinkTarget::MissingName(_) => None,
        });
        artifacts.take(most).collect()
    }

    /// Adds a link of the node with this number and depth, unless the limit is reached.
    fn take(&mut self, (here, depth): (usize, usize), link: Link, limit: usize) {
        let is_full = self.edges.len() >= limit;
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
        self.edges.entry(key).or_insert(Edge { from, relation: link.relation, to, origin: link.origin });
    }
}

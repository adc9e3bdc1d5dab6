//! Walking along links.

use std::collections::{BTreeMap, VecDeque};

use super::exchanges::Known;
use super::links::{Direction, Link, LinkTarget, Origin, links_knowing};
use crate::store::{ArtifactRow, Result, Snapshot};

/// How far to walk, and along which links.
#[derive(Clone, Debug)]
pub struct Walk {
    /// So many links away from the beginning.
    pub depth: usize,
    /// Only along this relation.
    pub relation: Option<String>,
    /// Only in this direction.
    pub direction: Option<Direction>,
}

impl Walk {
    fn takes(&self, link: &Link) -> bool {
        self.relation.as_ref().is_none_or(|relation| *relation == link.relation)
            && self.direction.is_none_or(|direction| direction == link.direction)
    }
}

/// What a walk has seen: everything once, the beginning first, then by distance.
#[derive(Clone, Debug)]
pub struct Graph {
    /// What was reached.
    pub nodes: Vec<Node>,
    /// The links between them.
    pub edges: Vec<Edge>,
}

impl Graph {
    /// The links that are seen from the node `number`: those to nodes that come after it. Every link is seen from one of
    /// its ends. Outgoing ones first, by relation and number of the other end.
    #[must_use]
    pub fn seen_from(&self, number: usize) -> Vec<(Direction, usize, &Edge)> {
        let seen = self.edges.iter().filter_map(|edge| {
            let (direction, other) =
                if edge.from == number { (Direction::Out, edge.to) } else { (Direction::In, edge.from) };
            let is_end = edge.from == number || edge.to == number;
            (is_end && other > number).then_some((direction, other, edge))
        });
        let mut seen: Vec<_> = seen.collect();
        seen.sort_by_key(|(direction, other, edge)| (*direction, &edge.relation, *other));
        seen
    }
}

/// Something that was reached.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub target: LinkTarget,
    /// How many links it is away from the beginning.
    pub depth: usize,
}

/// A link between two nodes: the first relates to the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The number of the node that relates.
    pub from: usize,
    /// How.
    pub relation: String,
    /// The number of the node that it relates to.
    pub to: usize,
    /// Why.
    pub origin: Origin,
}

/// Everything that is linked to `artifact` within the reach of `walk`.
///
/// # Errors
/// What the database says.
pub fn walk(snapshot: &Snapshot<'_>, artifact: &ArtifactRow, walk: &Walk) -> Result<Graph> {
    let beginning = LinkTarget::Artifact(artifact.clone());
    let mut numbers = BTreeMap::from([(beginning.key(), 0)]);
    let mut nodes = vec![Node { target: beginning, depth: 0 }];
    let mut edges: BTreeMap<(usize, String, usize, bool), Edge> = BTreeMap::new();
    let mut known = Known::default();
    let mut next = 0;
    while let Some(Node { target, depth }) = nodes.get(next).cloned() {
        let here = next;
        next += 1;
        let LinkTarget::Artifact(artifact) = target else { continue };
        if depth == walk.depth {
            break;
        }
        for link in
            links_knowing(snapshot, &artifact, &mut known)?.into_iter().filter(|link| walk.takes(link))
        {
            let number = *numbers.entry(link.target.key()).or_insert_with(|| {
                nodes.push(Node { target: link.target.clone(), depth: depth + 1 });
                nodes.len() - 1
            });
            let (from, to) = match link.direction {
                Direction::Out => (here, number),
                Direction::In => (number, here),
            };
            let key = (from, link.relation.clone(), to, matches!(link.origin, Origin::Stated(_)));
            edges.entry(key).or_insert(Edge { from, relation: link.relation, to, origin: link.origin });
        }
    }
    Ok(Graph { nodes, edges: edges.into_values().collect() })
}

/// A step of a chain of links: the link, and the artifact that it is seen from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainStep {
    /// Where the step begins.
    pub from: ArtifactRow,
    /// Where it leads, and why.
    pub link: Link,
}

/// A search gives up after looking at the links of so many artifacts.
pub const MAX_SEARCHED: usize = 10_000;

/// The shortest chain of links from `one` to `other`, in any direction; nothing if there is none among the 10,000
/// artifacts nearest to `one`. Of equally short chains, the first by relation and hash.
///
/// # Errors
/// What the database says.
pub fn chain(
    snapshot: &Snapshot<'_>,
    one: &ArtifactRow,
    other: &ArtifactRow,
) -> Result<Option<Vec<ChainStep>>> {
    let mut reached_by: BTreeMap<_, Option<ChainStep>> = BTreeMap::from([(one.core, None)]);
    let mut waiting = VecDeque::from([one.clone()]);
    let mut known = Known::default();
    let mut searched = 0;
    while let Some(from) = waiting.pop_front().filter(|_| searched < MAX_SEARCHED) {
        if from.core == other.core {
            break;
        }
        searched += 1;
        for link in links_knowing(snapshot, &from, &mut known)? {
            let LinkTarget::Artifact(target) = &link.target else { continue };
            if !reached_by.contains_key(&target.core) {
                waiting.push_back(target.clone());
                let core = target.core;
                reached_by.insert(core, Some(ChainStep { from: from.clone(), link }));
            }
        }
    }
    let mut chain = Vec::new();
    let mut at = other.core;
    while let Some(step) = reached_by.remove(&at) {
        let Some(step) = step else {
            chain.reverse();
            return Ok(Some(chain));
        };
        at = step.from.core;
        chain.push(step);
    }
    Ok(None)
}

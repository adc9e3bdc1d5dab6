//! Lists the links of an artifact.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Operation;
use super::handle::{Vault, limit_of};
use super::query::{self, Graph, Link, LinkOrigin, LinkTarget, TraversalOptions};
use crate::digest::{CoreHash, Digest};
use crate::storage::{StorageError, UnresolvedTarget};

pub use super::query::LinkStrength;
pub use crate::storage::Direction;

/// A request for the links of an artifact, followed to a given depth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinksRequest {
    /// The artifact.
    pub artifact: CoreHash,
    /// Maximum distance from the artifact, in links.
    #[serde(default = "default_depth")]
    pub depth: u8,
    /// Only links of this relation.
    #[serde(default)]
    pub relation: Option<String>,
    /// Only links in this direction.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// Whether coincident links are followed as well. They are always shown, and those of `relation` are followed.
    #[serde(default)]
    pub coincident: bool,
    /// Maximum number of links; unlimited if there is none.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Returns the default depth.
fn default_depth() -> u8 {
    1
}

impl LinksRequest {
    /// Requests the links of `artifact` itself, in both directions, without a limit.
    #[must_use]
    pub fn new(artifact: CoreHash) -> Self {
        Self {
            artifact,
            depth: default_depth(),
            relation: None,
            direction: None,
            coincident: false,
            limit: None,
        }
    }
}

/// Links as a graph: each artifact once, the requested one first, then by distance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinksAnswer {
    /// The artifacts, and the missing ones that they refer to.
    pub nodes: Vec<LinkNode>,
    /// The links between them.
    pub edges: Vec<LinkEdge>,
    /// Number of links of examined artifacts that were omitted because of the limit.
    pub left_out: u64,
    /// Number of artifacts within the depth whose links were not examined because of the limit.
    pub not_followed: u64,
    /// Number of artifacts within the depth whose links were not examined because only coincident links lead to them.
    pub only_coincident: u64,
}

/// A node of a graph of links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkNode {
    /// The artifact, or what is missing.
    #[serde(flatten)]
    pub target: LinkEnd,
    /// Its distance from the requested artifact, in links that were followed.
    pub depth: usize,
}

/// A link between two nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkEdge {
    /// The number of the node of the source, from 0.
    pub from: usize,
    /// The relation of the source to the target.
    pub relation: String,
    /// The number of the node of the target.
    pub to: usize,
    /// Whether the link was added manually. Otherwise it is derived from the artifacts.
    pub manual: bool,
    /// How surely the artifacts belong together.
    pub strength: LinkStrength,
    /// The location that it is derived from, or the note on a manual link.
    pub because: Option<String>,
}

/// A link of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkSummary {
    /// The direction, seen from the artifact.
    pub direction: Direction,
    /// The relation of the source to the target.
    pub relation: String,
    /// The other end.
    #[serde(flatten)]
    pub target: LinkEnd,
    /// Whether the link was added manually. Otherwise it is derived from the artifacts.
    pub manual: bool,
    /// How surely the artifacts belong together.
    pub strength: LinkStrength,
    /// The location that it is derived from, or the note on a manual link.
    pub because: Option<String>,
}

/// A link that was found at a distance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FoundLink {
    /// The artifact from which the link is seen.
    pub from: CoreHash,
    /// The distance of the other end from the requested artifact, in links.
    pub depth: usize,
    /// The link.
    #[serde(flatten)]
    pub link: LinkSummary,
}

/// An end of a link: an artifact, or the hash or name of one that is not in the vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkEnd {
    /// Whether it is not in the vault.
    pub dangling: bool,
    /// The id of the kind of the artifact.
    pub kind: Option<String>,
    /// The core hash of the artifact.
    pub core_hash: Option<CoreHash>,
    /// The core hash that is not in the vault.
    pub digest: Option<Digest>,
    /// The name that is not in the vault.
    pub name: Option<String>,
}

impl Operation for LinksRequest {
    type Answer = LinksAnswer;
    type Error = StorageError;

    const NAME: &'static str = "links";
    const SUMMARY: &'static str = "List the links of an artifact";

    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the artifact is not in the vault, and
    /// another one if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<LinksAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let traversal = TraversalOptions {
            depth: self.depth.into(),
            relation: self.relation.clone(),
            direction: self.direction,
            coincident: self.coincident,
            limit: limit_of(self.limit),
        };
        query::traverse(&*snapshot, self.artifact, &traversal).map(LinksAnswer::from)
    }
}

impl LinksAnswer {
    /// Returns, for each node, the links between it and the nodes after it with the number of the other end, so that
    /// every link belongs to one of its ends. Outgoing links first, by relation and number of the other end.
    #[must_use]
    pub fn by_node(&self) -> Vec<Vec<(Direction, usize, &LinkEdge)>> {
        let mut seen: Vec<Vec<(Direction, usize, &LinkEdge)>> = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            let LinkEdge { from, to, .. } = edge;
            let direction = if from < to { Direction::Out } else { Direction::In };
            if let Some(seen) = seen.get_mut(*from.min(to)).filter(|_| from != to) {
                seen.push((direction, *from.max(to), edge));
            }
        }
        for seen in &mut seen {
            seen.sort_by_key(|(direction, other, edge)| (*direction, edge.relation.as_str(), *other));
        }
        seen
    }

    /// Returns the links that are seen from an artifact, in the order of the nodes.
    #[must_use]
    pub fn links(&self) -> Vec<FoundLink> {
        let mut links = Vec::new();
        for (node, seen) in self.nodes.iter().zip(self.by_node()) {
            let Some(from) = node.target.core_hash else { continue };
            for (direction, other, edge) in seen {
                let Some(LinkNode { target, depth }) = self.nodes.get(other) else { continue };
                let depth = (*depth).max(node.depth + 1);
                links.push(FoundLink { from, depth, link: edge.seen_as(direction, target) });
            }
        }
        links
    }
}

impl LinkEdge {
    /// Returns the link as seen from one of its ends, with the other end.
    #[must_use]
    pub fn seen_as(&self, direction: Direction, target: &LinkEnd) -> LinkSummary {
        let Self { relation, manual, strength, because, .. } = self.clone();
        LinkSummary { direction, relation, target: target.clone(), manual, strength, because }
    }
}

impl From<Graph> for LinksAnswer {
    fn from(graph: Graph) -> Self {
        let Graph { nodes, edges, left_out, not_followed, only_coincident } = graph;
        let nodes = nodes.iter().map(|node| LinkNode { target: (&node.target).into(), depth: node.depth });
        let edges = edges.into_iter().map(|edge| {
            let strength = LinkStrength::new(&edge.relation, &edge.origin);
            let (manual, because) = manual_reason(edge.origin);
            LinkEdge { from: edge.from, relation: edge.relation, to: edge.to, manual, strength, because }
        });
        let (nodes, edges) = (nodes.collect(), edges.collect());
        Self { nodes, edges, left_out, not_followed, only_coincident }
    }
}

/// Returns whether a link was added manually, and its reason.
fn manual_reason(origin: LinkOrigin) -> (bool, Option<String>) {
    match origin {
        LinkOrigin::Derived(because) => (false, Some(because)),
        LinkOrigin::Manual(note) => (true, note),
    }
}

impl From<Link> for LinkSummary {
    fn from(link: Link) -> Self {
        let Link { direction, relation, target, origin } = link;
        let strength = LinkStrength::new(&relation, &origin);
        let (manual, because) = manual_reason(origin);
        Self { direction, relation, target: (&target).into(), manual, strength, because }
    }
}

impl LinkEnd {
    /// Returns the end that is not in the vault.
    pub(super) fn missing(target: &UnresolvedTarget) -> Self {
        let (digest, name) = match target {
            UnresolvedTarget::Digest(digest) => (Some(*digest), None),
            UnresolvedTarget::Name(name) => (None, Some(name.clone())),
        };
        Self { dangling: true, kind: None, core_hash: None, digest, name }
    }
}

impl From<&LinkTarget> for LinkEnd {
    fn from(target: &LinkTarget) -> Self {
        let mut end = Self { dangling: true, kind: None, core_hash: None, digest: None, name: None };
        match target {
            LinkTarget::Artifact(artifact) => {
                (end.dangling, end.kind) = (false, Some(artifact.kind.clone()));
                end.core_hash = Some(artifact.core);
            }
            LinkTarget::MissingDigest(digest) => end.digest = Some(*digest),
            LinkTarget::MissingName(name) => end.name = Some(name.clone()),
        }
        end
    }
}

/// A request for the shortest path of links between two artifacts, in any direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PathRequest {
    /// Where the path starts.
    pub from: CoreHash,
    /// Where it ends.
    pub to: CoreHash,
    /// Whether coincident links are followed as well.
    #[serde(default)]
    pub coincident: bool,
}

/// The shortest path. Of equally short ones, it is the first by relation and hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PathAnswer {
    /// The steps; `None` if no path was found.
    pub steps: Option<Vec<PathStep>>,
    /// Number of artifacts that were reached from the start, which is one of them.
    pub reached: u64,
    /// Whether the search is complete: a path was found, or the links of all reached artifacts were read. It ends before
    /// that after those of 10,000 artifacts.
    pub is_complete: bool,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PathStep {
    /// The artifact from which the link is seen.
    pub from: CoreHash,
    /// The link to the next artifact.
    #[serde(flatten)]
    pub link: LinkSummary,
}

impl Operation for PathRequest {
    type Answer = PathAnswer;
    type Error = StorageError;

    const NAME: &'static str = "path";
    const SUMMARY: &'static str = "Find the shortest path of links between two artifacts";

    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if one of the artifacts is not in the
    /// vault, and another one if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<PathAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let (from, to) = (snapshot.expect_artifact(self.from)?, snapshot.expect_artifact(self.to)?);
        let found = query::shortest_path(&*snapshot, &from, &to, self.coincident)?;
        let step = |step: query::LinkPathStep| PathStep { from: step.from.core, link: step.link.into() };
        Ok(PathAnswer {
            steps: found.steps.map(|steps| steps.into_iter().map(step).collect()),
            reached: found.reached as u64,
            is_complete: found.is_complete,
        })
    }
}

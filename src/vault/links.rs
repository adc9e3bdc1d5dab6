//! Lists the links of an artifact.

use std::collections::{BTreeMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::query::{Link, LinkOrigin, LinkTarget, Linker};
use super::{Vault, limit_of};
use crate::digest::{CoreHash, Digest};
use crate::storage::{ArtifactRecord, Snapshot, StorageError, UnresolvedTarget};

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

impl Vault {
    /// Returns the other artifacts with a link of this relation to `artifact`.
    ///
    /// # Errors
    /// Returns an error if the artifact is not in the vault or the vault cannot be read.
    pub fn linked_by(&self, artifact: CoreHash, relation: &str) -> Result<Vec<CoreHash>, StorageError> {
        let (relation, direction) = (Some(relation.to_owned()), Some(Direction::In));
        let request = LinksRequest { relation, direction, ..LinksRequest::new(artifact) };
        let nodes = request.run(self)?.nodes.into_iter();
        Ok(nodes.filter_map(|node| node.target.core_hash).filter(|other| *other != artifact).collect())
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

impl LinksRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the artifact is not in the vault, and
    /// another one if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<LinksAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        self.traverse(&*snapshot)
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

/// Number of artifacts that are read together, however few links are wanted.
const FEW: usize = 16;

impl LinksRequest {
    fn range(&self) -> usize {
        self.depth.into()
    }

    /// Returns whether links of this relation and strength are followed.
    fn follows(&self, relation: &str, strength: LinkStrength) -> bool {
        let is_requested = self.relation.as_deref() == Some(relation);
        strength == LinkStrength::Stated || self.coincident || is_requested
    }

    /// Finds what is linked to the artifact within the range. The work is linear in the links of the examined artifacts,
    /// which are few more than needed for the limit. The artifacts of a distance are read together, so that the number of
    /// queries does not grow with them.
    fn traverse(&self, snapshot: &dyn Snapshot) -> Result<LinksAnswer, StorageError> {
        let mut linker = Linker::selecting(self.relation.as_deref(), self.direction);
        let beginning = LinkTarget::Artifact(snapshot.expect_artifact(self.artifact)?);
        let mut walker = GraphBuilder {
            request: self,
            numbers: BTreeMap::from([(beginning.key(), 0)]),
            nodes: vec![(beginning, 0)],
            followed: HashSet::from([0]),
            waiting: VecDeque::from([(0, 0)]),
            edges: BTreeMap::new(),
            left_out: 0,
        };
        while let Some((number, depth)) = walker.next() {
            let Some(artifact) = walker.artifact(number).cloned() else { continue };
            let most = limit_of(self.limit).saturating_sub(walker.edges.len()).max(FEW);
            let near = walker.waiting_at(depth).take(most - 1);
            for link in linker.links(snapshot, &artifact, near)? {
                walker.take(number, depth, link);
            }
        }
        Ok(walker.into_answer())
    }
}

/// The key of a link. The last field is whether it is manual: a manual link is separate from a derived one.
type EdgeKey = (usize, String, usize, bool);

struct GraphBuilder<'t> {
    request: &'t LinksRequest,
    numbers: BTreeMap<(u8, String), usize>,
    /// What the nodes are, and their distances.
    nodes: Vec<(LinkTarget, usize)>,
    /// The numbers of the nodes that a link leads to that is followed.
    followed: HashSet<usize>,
    /// Those of them whose links have not been examined, with their distances.
    waiting: VecDeque<(usize, usize)>,
    edges: BTreeMap<EdgeKey, LinkEdge>,
    left_out: u64,
}

impl GraphBuilder<'_> {
    fn is_full(&self) -> bool {
        self.edges.len() >= limit_of(self.request.limit)
    }

    /// Removes the next node whose links are to be examined, and returns it with its distance.
    fn next(&mut self) -> Option<(usize, usize)> {
        let (is_full, range) = (self.is_full(), self.request.range());
        self.waiting.pop_front_if(|(_, depth)| *depth < range && !is_full)
    }

    fn artifact(&self, number: usize) -> Option<&ArtifactRecord> {
        match self.nodes.get(number)? {
            (LinkTarget::Artifact(artifact), _) => Some(artifact),
            _ => None,
        }
    }

    /// Returns the artifacts at this distance whose links are to be examined.
    fn waiting_at(&self, depth: usize) -> impl Iterator<Item = CoreHash> {
        let near = self.waiting.iter().take_while(move |(_, at)| *at == depth);
        near.filter_map(|(number, _)| self.artifact(*number)).map(|artifact| artifact.core)
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
                self.nodes.push((link.target.clone(), depth + 1));
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
        let strength = LinkStrength::new(&link.relation, &link.origin);
        if self.request.follows(&link.relation, strength) && self.followed.insert(number) {
            self.waiting.push_back((number, depth + 1));
        }
        self.edges.entry(key).or_insert_with(|| {
            let (manual, because) = manual_reason(link.origin);
            LinkEdge { from, relation: link.relation, to, manual, strength, because }
        });
    }

    fn into_answer(self) -> LinksAnswer {
        let range = self.request.range();
        let waiting = self.waiting.iter().filter(|(_, depth)| *depth < range);
        let not_followed = waiting.filter(|(number, _)| self.artifact(*number).is_some()).count() as u64;
        let passed_over = self.nodes.iter().enumerate().filter(|(number, (_, depth))| {
            *depth < range && !self.followed.contains(number) && self.artifact(*number).is_some()
        });
        let only_coincident = passed_over.count() as u64;
        let Self { nodes, edges, left_out, .. } = self;
        let nodes = nodes.iter().map(|(target, depth)| LinkNode { target: target.into(), depth: *depth });
        let (nodes, edges) = (nodes.collect(), edges.into_values().collect());
        LinksAnswer { nodes, edges, left_out, not_followed, only_coincident }
    }
}

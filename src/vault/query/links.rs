//! Links derived from what artifacts identify and mention, and manual links.
//!
//! Nearly all derived links are one join: A links to B when A mentions a handle that B identifies. Kinds declare both
//! sides, so this module has no knowledge of kinds, and the order of arrival does not matter. Two relations need more
//! than one handle and are defined here:
//!
//! - `replays`: a run and a session share a prompt *and* its response. A shared prompt or response alone is not a
//!   replay: the same prompt often occurs again with a different response.
//! - `forks`: two traces share their header and have different records at one index, or two run packs share the id of
//!   their run and have different steps at one index. A history that only ends earlier is not a fork.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::exchanges::{ExchangeDigests, identified_by, location_text};
use super::facts::{LinkFactSelection, LinkFacts, LinkReader};
use super::histories::{Fork, HistoryIdentity};
use crate::artifact::relation;
use crate::digest::{CoreHash, Digest};
use crate::formats;
use crate::storage::interface::{NameMention, Names, Neighbors, ReferenceEdge};
use crate::storage::{ArtifactRecord, Result, Snapshot};

pub(crate) use crate::storage::Direction;

/// The other end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// An artifact in the vault.
    Artifact(ArtifactRecord),
    /// A core hash that is not in the vault.
    MissingDigest(Digest),
    /// A name that is not in the vault.
    MissingName(String),
}

impl LinkTarget {
    /// Returns the sort key that identifies the target: artifacts first, then digests, then names, each in order.
    #[must_use]
    pub fn key(&self) -> (u8, String) {
        match self {
            Self::Artifact(artifact) => (0, artifact.core.to_string()),
            Self::MissingDigest(digest) => (1, digest.to_string()),
            Self::MissingName(name) => (2, name.clone()),
        }
    }
}

/// Formats the noun of the kind and the short hash of an artifact, or the missing hash or name.
impl fmt::Display for LinkTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Artifact(artifact) => {
                write!(f, "{} {:.12}", formats::bare_noun(&artifact.kind), artifact.core)
            }
            Self::MissingDigest(digest) => write!(f, "unresolved {digest:.12}"),
            Self::MissingName(name) => write!(f, "unresolved {name}"),
        }
    }
}

/// The origin of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkOrigin {
    /// Derived from the artifacts; contains the first location that it is derived from, as text.
    Derived(String),
    /// Added manually, with this note.
    Manual(Option<String>),
}

/// How surely linked artifacts belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkStrength {
    /// One of the artifacts names the other by a hash or an id, both state that they are histories of one run, or the link
    /// was added manually.
    Stated,
    /// They have contents in common, which may be a coincidence.
    Coincident,
}

/// A typed edge between an artifact and another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The direction.
    pub direction: Direction,
    /// The relation of the source to the target.
    pub relation: String,
    /// The other end.
    pub target: LinkTarget,
    /// The origin of the link.
    pub origin: LinkOrigin,
}

impl LinkStrength {
    /// Returns the strength of links with this relation and origin.
    pub(crate) fn new(relation: &str, origin: &LinkOrigin) -> Self {
        match origin {
            LinkOrigin::Derived(_) if relation == REPLAYS => Self::Coincident,
            LinkOrigin::Derived(_) | LinkOrigin::Manual(_) => Self::Stated,
        }
    }
}

/// Finds all links of `artifact`, outgoing ones first, by relation and target.
pub(crate) fn links(snapshot: &dyn Snapshot, artifact: &ArtifactRecord) -> Result<Vec<Link>> {
    Linker::default().links(snapshot, artifact, None)
}

/// Finds the links of many artifacts of one snapshot. Data that they share is looked up once.
#[derive(Default)]
pub(crate) struct Linker<'w> {
    reader: LinkReader,
    selection: LinkSelection<'w>,
}

impl<'w> Linker<'w> {
    /// Selects links of this relation and in this direction.
    pub(crate) fn selecting(relation: Option<&'w str>, direction: Option<Direction>) -> Self {
        Self {
            selection: LinkSelection { relation, direction, ..LinkSelection::default() },
            ..Self::default()
        }
    }

    /// Selects links to artifacts that none of those found before lead to, coincident ones only if `coincident` is set.
    pub(crate) fn searching(coincident: bool) -> Self {
        let reached = Some(LinkSearchState::default());
        let strength = (!coincident).then_some(LinkStrength::Stated);
        Self { selection: LinkSelection { strength, reached, ..LinkSelection::default() }, ..Self::default() }
    }

    /// Returns the selected links of `artifact`, outgoing ones first, by relation and target. If it has not been read, it
    /// is read together with the first of `others`, whose links are needed next.
    pub(crate) fn links(
        &mut self,
        snapshot: &dyn Snapshot,
        artifact: &ArtifactRecord,
        others: impl IntoIterator<Item = CoreHash>,
    ) -> Result<Vec<Link>> {
        if !self.reader.has(artifact.core) {
            let others = others.into_iter().filter(|other| *other != artifact.core);
            let of = std::iter::once(artifact.core).chain(others).take(self.reader.batch());
            self.reader.read(snapshot, &of.collect::<Vec<_>>(), self.selection.fact_selection())?;
        }
        links_knowing(&self.reader, artifact, &mut self.selection)
    }
}

/// Returns `artifacts` and everything reachable from them along links, derived or manual, in either direction; each
/// once, by core hash. Coincident links are followed only if `coincident` is set.
pub(crate) fn reachable(
    snapshot: &dyn Snapshot,
    artifacts: Vec<ArtifactRecord>,
    coincident: bool,
) -> Result<Vec<ArtifactRecord>> {
    let mut reached: BTreeMap<CoreHash, ArtifactRecord> = BTreeMap::new();
    let mut linker = Linker::searching(coincident);
    let mut waiting = VecDeque::from(artifacts);
    while let Some(artifact) = waiting.pop_front() {
        if reached.contains_key(&artifact.core) {
            continue;
        }
        let unread = waiting.iter().map(|artifact| artifact.core).filter(|core| !reached.contains_key(core));
        for link in linker.links(snapshot, &artifact, unread)? {
            if let LinkTarget::Artifact(target) = link.target {
                waiting.push_back(target);
            }
        }
        reached.insert(artifact.core, artifact);
    }
    Ok(reached.into_values().collect())
}

/// The links to find.
#[derive(Default)]
struct LinkSelection<'w> {
    /// Only links of this relation.
    relation: Option<&'w str>,
    /// Only links in this direction.
    direction: Option<Direction>,
    /// Only links of this strength.
    strength: Option<LinkStrength>,
    /// Only links to artifacts that have not been reached.
    reached: Option<LinkSearchState>,
}

impl LinkSelection<'_> {
    fn takes(&self, direction: Direction, relation: &str) -> bool {
        self.relation.is_none_or(|selected| selected == relation)
            && self.direction.is_none_or(|selected| selected == direction)
    }

    /// Returns what links that match are derived from. Neither of two histories came first, so a fork looks the same from both
    /// sides.
    fn fact_selection(&self) -> LinkFactSelection {
        LinkFactSelection {
            exchanges: self.relation.is_none_or(|relation| relation == REPLAYS)
                && self.strength != Some(LinkStrength::Stated),
            histories: self.takes(Direction::Out, FORKS),
        }
    }

    /// Returns whether links to the artifact are wanted.
    fn is_new(&self, artifact: CoreHash) -> bool {
        self.reached.as_ref().is_none_or(|reached| !reached.artifacts.contains(&artifact))
    }
}

/// The state of a search. Artifacts that are linked because they share something are examined once for each shared
/// value, not once for each pair.
#[derive(Default)]
struct LinkSearchState {
    /// The artifacts reached so far.
    artifacts: HashSet<CoreHash>,
    /// Names of which all bearers have been reached, and below of which all referrers have.
    having: HashSet<String>,
    referring: HashSet<String>,
    /// Exchanges of which all runs, or all recordings, have been reached.
    exchanges: HashSet<(bool, ExchangeDigests)>,
    /// The histories of each run that have not been reached.
    histories: HashMap<HistoryIdentity, Vec<CoreHash>>,
}

/// Finds the links of `artifact`, which `reader` has read, that match `selection`. In a search, their targets are then counted
/// as reached.
fn links_knowing(
    reader: &LinkReader,
    artifact: &ArtifactRecord,
    selection: &mut LinkSelection<'_>,
) -> Result<Vec<Link>> {
    let mut found = LinkCollector { reader, selection, links: BTreeMap::new() };
    let facts = reader.facts(artifact.core)?;
    found.manual_links(artifact, &facts.neighbors)?;
    found.by_digest(&facts.neighbors)?;
    found.by_name(artifact, &facts.neighbors.names)?;
    found.replays(artifact, facts)?;
    found.forks(artifact, facts);
    let links = found.links;
    if let Some(reached) = &mut selection.reached {
        reached.artifacts.insert(artifact.core);
        for link in links.values() {
            if let LinkTarget::Artifact(target) = &link.target {
                reached.artifacts.insert(target.core);
            }
        }
    }
    Ok(links.into_values().collect())
}

/// The key of a link. The last field is whether it is manual: a manual link is separate from a derived one.
type DirectedLinkKey = (Direction, String, (u8, String), bool);

struct LinkCollector<'s, 'w> {
    reader: &'s LinkReader,
    selection: &'s mut LinkSelection<'w>,
    /// One link for each relation and target, however many locations it is derived from.
    links: BTreeMap<DirectedLinkKey, Link>,
}

impl LinkCollector<'_, '_> {
    fn add(&mut self, direction: Direction, relation: &str, target: LinkTarget, origin: LinkOrigin) {
        if !self.selection.takes(direction, relation) {
            return;
        }
        let key = (direction, relation.to_owned(), target.key(), matches!(origin, LinkOrigin::Manual(_)));
        let link = Link { direction, relation: relation.to_owned(), target, origin };
        self.links.entry(key).or_insert(link);
    }

    fn derive(&mut self, direction: Direction, relation: &str, target: LinkTarget, because: String) {
        self.add(direction, relation, target, LinkOrigin::Derived(because));
    }

    fn artifact(&self, core: CoreHash) -> Result<LinkTarget> {
        self.reader.artifact(core).cloned().map(LinkTarget::Artifact)
    }

    fn manual_links(&mut self, artifact: &ArtifactRecord, neighbors: &Neighbors) -> Result<()> {
        for edge in &neighbors.manual_links {
            let origin = LinkOrigin::Manual(edge.note.clone());
            if edge.source == artifact.core {
                self.add(Direction::Out, &edge.relation, self.artifact(edge.target)?, origin.clone());
            }
            if edge.target == artifact.core {
                self.add(Direction::In, &edge.relation, self.artifact(edge.source)?, origin);
            }
        }
        Ok(())
    }

    fn by_digest(&mut self, neighbors: &Neighbors) -> Result<()> {
        for edge in &neighbors.outgoing {
            let Some(target) = edge.target else {
                let target = LinkTarget::MissingDigest(edge.mention.digest);
                self.derive(Direction::Out, &edge.relation, target, location_text(&edge.mention));
                continue;
            };
            let because = format!("{} states its {}", location_text(&edge.mention), stated_hash(edge));
            if !self.selection.is_new(target) {
                continue;
            }
            let target = self.artifact(target)?;
            if let Some(inverse) = &edge.inverse {
                self.derive(Direction::In, inverse, target.clone(), because.clone());
            }
            self.derive(Direction::Out, &edge.relation, target, because);
        }
        for edge in &neighbors.incoming {
            let because = stated_by_other(edge);
            if !self.selection.is_new(edge.mention.artifact) {
                continue;
            }
            let target = self.artifact(edge.mention.artifact)?;
            if let Some(inverse) = &edge.inverse {
                self.derive(Direction::Out, inverse, target.clone(), because.clone());
            }
            self.derive(Direction::In, &edge.relation, target, because);
        }
        Ok(())
    }

    fn by_name(&mut self, artifact: &ArtifactRecord, names: &Names) -> Result<()> {
        let reader = self.reader;
        for NameMention { relation, handle, dangles } in &names.mentioned {
            let is_selected = self.selection.takes(Direction::Out, relation);
            let reached = self.selection.reached.as_mut();
            if !is_selected || reached.is_some_and(|reached| !reached.having.insert(handle.clone())) {
                continue;
            }
            let identified = reader.uses(handle).map(|uses| uses.identified.as_slice()).unwrap_or_default();
            let mut others = identified.iter().filter(|other| **other != artifact.core).peekable();
            if others.peek().is_none() && *dangles {
                let because = "nothing in the vault has this name".to_owned();
                self.derive(Direction::Out, relation, LinkTarget::MissingName(handle.clone()), because);
                continue;
            }
            for other in others.filter(|other| self.selection.is_new(**other)).collect::<Vec<_>>() {
                let target = self.artifact(*other)?;
                self.derive(Direction::Out, relation, target, identified_by(handle));
            }
        }
        for handle in &names.own {
            let reached = self.selection.reached.as_mut();
            if reached.is_some_and(|reached| !reached.referring.insert(handle.clone())) {
                continue;
            }
            for (relation, other) in reader.uses(handle).into_iter().flat_map(|uses| &uses.referring) {
                let is_selected = self.selection.takes(Direction::In, relation);
                if *other != artifact.core && is_selected && self.selection.is_new(*other) {
                    let target = self.artifact(*other)?;
                    self.derive(Direction::In, relation, target, identified_by(handle));
                }
            }
        }
        Ok(())
    }

    fn replays(&mut self, artifact: &ArtifactRecord, facts: &LinkFacts) -> Result<()> {
        if !self.selection.fact_selection().exchanges {
            return Ok(());
        }
        let exchanges = &facts.exchanges;
        let passed = self.selection.reached.as_mut().map(|reached| &mut reached.exchanges);
        let shared = exchanges.shared_with_others(artifact, self.reader.exchanges(), passed);
        for (other, (ours, theirs)) in shared {
            if !self.selection.is_new(other) {
                continue;
            }
            let target = self.artifact(other)?;
            if exchanges.is_recording() {
                self.derive(Direction::In, REPLAYS, target, replayed_by(&ours, &theirs));
            } else {
                let because = format!("{ours} has the prompt and the response of {theirs}");
                self.derive(Direction::Out, REPLAYS, target, because);
            }
        }
        Ok(())
    }

    fn forks(&mut self, artifact: &ArtifactRecord, facts: &LinkFacts) {
        if !self.selection.fact_selection().histories {
            return;
        }
        for shared in &facts.shared {
            let Some(histories) = self.reader.histories(shared) else { continue };
            let forks: Vec<Fork> = match &mut self.selection.reached {
                None => histories.forks_of(artifact.core).collect(),
                Some(LinkSearchState { artifacts, histories: waiting, .. }) => {
                    let all = || histories.members().iter().map(|member| member.core).collect();
                    let waiting = waiting.entry(shared.clone()).or_insert_with(all);
                    waiting.retain(|other| *other != artifact.core && !artifacts.contains(other));
                    let parting = waiting.extract_if(.., |other| histories.do_part(artifact.core, *other));
                    parting.filter_map(|other| histories.fork_between(artifact.core, other)).collect()
                }
            };
            for Fork { shared, index, sides: [_, (other, _)] } in forks {
                let because = match shared {
                    HistoryIdentity::Header(_) => format!("same header, different record {index}"),
                    HistoryIdentity::RunId(id) => format!("same run id {id}, different step {index}"),
                };
                self.derive(Direction::Out, FORKS, LinkTarget::Artifact(other), because);
            }
        }
    }
}

/// Names the hash of its target that a reference states.
fn stated_hash(edge: &ReferenceEdge) -> &'static str {
    let is_core = edge.target.is_some_and(|target| target.0 == edge.mention.digest);
    if is_core { "core hash" } else { "capture hash" }
}

/// Describes why another artifact refers to one.
pub(super) fn stated_by_other(edge: &ReferenceEdge) -> String {
    format!("{} of the other artifact states this {}", location_text(&edge.mention), stated_hash(edge))
}

/// Describes why a session is replayed by a run, with the locations of the exchange in both.
pub(super) fn replayed_by(ours: &str, theirs: &str) -> String {
    format!("{theirs} has the prompt and the response of {ours}")
}

/// The relations that are not derived from single mentions.
pub(super) const REPLAYS: &str = relation::REPLAYS;
const FORKS: &str = relation::FORKS;

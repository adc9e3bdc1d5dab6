//! Dependents of artifacts: those that contain their bytes or link to them, and would lack them after a removal.
//!
//! Several artifacts may have the same dependents: all packs of a run have all traces that name it. Such dependents are
//! looked up once, as a group. A recording with the same exchange is not a dependent: that may be a coincidence.

use std::collections::{BTreeSet, HashMap};

use super::exchanges::ExchangeCache;
use super::links::{Direction, Link, LinkTarget, Origin, place};
use crate::digest::CoreHash;
use crate::storage::{ArtifactId, ArtifactRow, Result, Snapshot};

/// Artifacts that depend on others for one reason. An artifact may depend on itself.
#[derive(Clone, Debug)]
pub struct Group {
    /// The dependents. Those with several relations are listed several times.
    pub holders: Vec<ArtifactId>,
    why: Vec<Why>,
}

/// The reason that a member of a group depends on an artifact.
#[derive(Clone, Debug)]
enum Why {
    /// It contains the bytes.
    Bytes,
    /// It links to the artifact, with this relation and origin.
    Link { relation: String, origin: Origin },
}

/// A group of dependents of an artifact.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The number of the group.
    pub group: usize,
}

/// The reason that an artifact is needed.
#[derive(Clone, Debug)]
pub enum Holding {
    /// The dependent contains its bytes.
    Contained(ArtifactRow),
    /// The dependent links to it.
    Linked(Link),
}

/// Finds the dependents of many artifacts of one snapshot.
#[derive(Default)]
pub struct DependentFinder {
    known: ExchangeCache,
    groups: Vec<Group>,
    by_name: HashMap<String, usize>,
}

impl DependentFinder {
    /// Creates a finder that does not count `leaving` as dependents.
    #[must_use]
    pub fn without(leaving: BTreeSet<CoreHash>) -> Self {
        Self { known: ExchangeCache::without(leaving), ..Self::default() }
    }

    /// Returns the group with this number.
    #[must_use]
    pub fn group(&self, number: usize) -> Option<&Group> {
        self.groups.get(number)
    }

    /// Returns the dependents that contain the bytes of `artifact`; `None` if there are none.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read or the index is damaged.
    pub fn containers(&mut self, snapshot: &Snapshot<'_>, artifact: &ArtifactRow) -> Result<Option<Hold>> {
        let containers = snapshot.holders_of_bytes(artifact.id)?.into_iter();
        let holders: Vec<_> = containers.map(|container| (container.id, Why::Bytes)).collect();
        if holders.is_empty() {
            Ok(None)
        } else {
            self.add(snapshot, holders).map(|group| Some(Hold::new(group)))
        }
    }

    /// Returns the dependents of `artifact` that link to it. Links that follow from what the artifact itself states,
    /// such as the contract that governs it, are excluded.
    ///
    /// # Errors
    /// Same as [`DependentFinder::containers`].
    pub fn linking(&mut self, snapshot: &Snapshot<'_>, artifact: &ArtifactRow) -> Result<Vec<Hold>> {
        let mut holds = Vec::from_iter(self.by_edges(snapshot, artifact)?.map(Hold::new));
        for handle in snapshot.names_of(artifact.id)? {
            let group = if let Some(known) = self.by_name.get(&handle) {
                *known
            } else {
                let referring = snapshot.referring_to(&handle)?.into_iter();
                let origin = || Origin::Derived(format!("this is {handle}"));
                let why = |relation| Why::Link { relation, origin: origin() };
                let holders = referring.map(|(relation, holder)| (holder, why(relation))).collect();
                let group = self.add(snapshot, holders)?;
                self.by_name.insert(handle, group);
                group
            };
            holds.push(Hold::new(group));
        }
        Ok(holds)
    }

    /// Returns the group of dependents that have a manual link to the artifact, or refer to it by core hash.
    fn by_edges(&mut self, snapshot: &Snapshot<'_>, artifact: &ArtifactRow) -> Result<Option<usize>> {
        let mut holders = Vec::new();
        for edge in snapshot.stated_edges(artifact.id)? {
            if edge.target == artifact.id {
                let origin = Origin::Stated(edge.note);
                holders.push((edge.source, Why::Link { relation: edge.relation, origin }));
            }
        }
        let own: BTreeSet<(String, ArtifactId)> = snapshot
            .digest_edges_from(artifact.id)?
            .into_iter()
            .filter_map(|edge| Some((edge.inverse?, edge.target?)))
            .collect();
        for edge in snapshot.digest_edges_to(artifact)? {
            let key = (edge.relation, edge.mention.artifact);
            if !own.contains(&key) {
                let because = format!("{} of the other artifact states this core hash", place(&edge.mention));
                holders.push((key.1, Why::Link { relation: key.0, origin: Origin::Derived(because) }));
            }
        }
        if holders.is_empty() { Ok(None) } else { self.add(snapshot, holders).map(Some) }
    }

    /// Adds a group of the dependents that are not to be removed, and returns its number.
    fn add(&mut self, snapshot: &Snapshot<'_>, holders: Vec<(ArtifactId, Why)>) -> Result<usize> {
        let mut group = Group { holders: Vec::new(), why: Vec::new() };
        let mut seen = BTreeSet::new();
        for (holder, why) in holders {
            if seen.insert((why.relation().to_owned(), holder)) && !self.known.is_leaving(snapshot, holder)? {
                group.holders.push(holder);
                group.why.push(why);
            }
        }
        self.groups.push(group);
        Ok(self.groups.len() - 1)
    }

    /// Returns why `holder`, a member of the group of `hold`, depends on an artifact; `None` if it is not a member.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn holding(
        &self,
        snapshot: &Snapshot<'_>,
        hold: &Hold,
        holder: ArtifactId,
    ) -> Result<Option<Holding>> {
        let Some(group) = self.group(hold.group) else { return Ok(None) };
        let at = group.holders.iter().position(|other| *other == holder);
        let Some(why) = at.and_then(|at| group.why.get(at)) else { return Ok(None) };
        let row = snapshot.artifact_by_id(holder)?;
        Ok(Some(match why.link(&row) {
            Some(link) => Holding::Linked(link),
            None => Holding::Contained(row),
        }))
    }

    /// Returns the links of other artifacts to `artifact`: up to `limit` of them, and the number of further ones.
    ///
    /// # Errors
    /// Same as [`DependentFinder::containers`].
    pub fn links_to(
        &mut self,
        snapshot: &Snapshot<'_>,
        artifact: &ArtifactRow,
        limit: usize,
    ) -> Result<(Vec<Link>, u64)> {
        let mut links = Vec::new();
        let mut seen = BTreeSet::new();
        for hold in self.linking(snapshot, artifact)? {
            let Some(group) = self.groups.get(hold.group) else { continue };
            for (holder, why) in group.holders.iter().zip(&group.why) {
                let is_new = *holder != artifact.id && seen.insert((why.relation(), *holder));
                if is_new && links.len() < limit {
                    links.extend(why.link(&snapshot.artifact_by_id(*holder)?));
                }
            }
        }
        let more = (seen.len() - links.len()) as u64;
        Ok((links, more))
    }
}

impl Why {
    /// Returns the relation of the dependent to the artifact; empty if it is not a link.
    fn relation(&self) -> &str {
        match self {
            Self::Bytes => "",
            Self::Link { relation, .. } => relation,
        }
    }

    /// Returns the link of `holder`, if it depends on the artifact by one.
    fn link(&self, holder: &ArtifactRow) -> Option<Link> {
        let origin = match self {
            Self::Bytes => return None,
            Self::Link { origin, .. } => origin.clone(),
        };
        let (relation, target) = (self.relation().to_owned(), LinkTarget::Artifact(holder.clone()));
        Some(Link { direction: Direction::In, relation, target, origin })
    }
}

impl Hold {
    fn new(group: usize) -> Self {
        Self { group }
    }
}

//! What would miss artifacts if they were gone.
//!
//! Several artifacts may be held by the same ones: all packs of a run by all traces that name it. Such holders are looked up
//! once, as a group, whoever asks. A recording with the same exchange holds nothing: that may be a coincidence.

use std::collections::{BTreeSet, HashMap};

use super::exchanges::ExchangeCache;
use super::links::{Direction, Link, LinkTarget, Origin, place};
use crate::digest::CoreHash;
use crate::store::{ArtifactId, ArtifactRow, Result, Snapshot};

/// Artifacts that hold others for one reason. An artifact may hold itself.
#[derive(Clone, Debug)]
pub struct Group {
    /// The holders. Those that hold by several relations are here several times.
    pub holders: Vec<ArtifactId>,
    why: Vec<Why>,
}

/// Why one of a group holds an artifact.
#[derive(Clone, Debug)]
enum Why {
    /// It has the bytes.
    Bytes,
    /// It links to it, as the link says.
    Link { relation: String, origin: Origin },
}

/// What a group holds an artifact by.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The number of the group.
    pub group: usize,
}

/// Why an artifact is held.
#[derive(Clone, Debug)]
pub enum Holding {
    /// The holder has its bytes.
    Contained(ArtifactRow),
    /// The holder links to it.
    Linked(Link),
}

/// Finds the holders of many artifacts of one snapshot.
#[derive(Default)]
pub struct DependentFinder {
    known: ExchangeCache,
    groups: Vec<Group>,
    by_name: HashMap<String, usize>,
}

impl DependentFinder {
    /// One that does not count `leaving` as holders.
    #[must_use]
    pub fn without(leaving: BTreeSet<CoreHash>) -> Self {
        Self { known: ExchangeCache::without(leaving), ..Self::default() }
    }

    /// The group with this number.
    #[must_use]
    pub fn group(&self, number: usize) -> Option<&Group> {
        self.groups.get(number)
    }

    /// The holders of the bytes of `artifact`; nothing if there are none.
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

    /// The holders of `artifact` that link to it. Those links that follow from what the artifact itself states, as that a
    /// contract governs it, are not among them.
    ///
    /// # Errors
    /// As [`DependentFinder::containers`].
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

    /// Those that relate to the artifact because a person says so, or by its core hash.
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

    /// Makes a group of holders that do not leave.
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

    /// Why a holder of the group of `hold` holds an artifact; nothing if it is not of the group.
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

    /// The links of others to `artifact`: up to `limit` of them, and the number of the others.
    ///
    /// # Errors
    /// As [`DependentFinder::containers`].
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
    /// The relation of the holder to what it holds; empty if that is no link.
    fn relation(&self) -> &str {
        match self {
            Self::Bytes => "",
            Self::Link { relation, .. } => relation,
        }
    }

    /// The link of `holder`, if it is held by one.
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

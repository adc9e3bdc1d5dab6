//! The facts that links are derived from, for many artifacts at a time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{ArtifactRecord, ManualLink, MentionRecord, NameMention, NameUse, Names, ReferenceEdge};
use crate::digest::{CoreHash, Digest};

/// A query for the facts that the links of artifacts are derived from.
#[derive(Clone, Copy, Debug)]
pub struct NeighborsQuery<'q> {
    /// The artifacts.
    pub of: &'q [CoreHash],
    /// The groups of roles whose mentions are wanted.
    pub groups: &'q [&'q str],
    /// Whether [`Neighbors::has_namesake`] is wanted.
    pub namesakes: bool,
    /// The names whose uses are not wanted.
    pub known: &'q BTreeSet<String>,
}

/// The facts that the links of artifacts are derived from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighborhood {
    /// The artifacts that were asked for and are stored, and all others that are stated below.
    pub artifacts: HashMap<CoreHash, ArtifactRecord>,
    /// The facts of each stored artifact that was asked for.
    pub neighbors: HashMap<CoreHash, Neighbors>,
    /// The artifacts that use the names that these artifacts have or refer to.
    pub uses: HashMap<String, NameUse>,
}

/// The facts that the links of one artifact are derived from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbors {
    /// As in [`ArtifactQueries::manual_links`](super::ArtifactQueries::manual_links).
    pub manual_links: Vec<ManualLink>,
    /// References to digests, as in [`ReferenceQueries::references`](super::ReferenceQueries::references).
    pub outgoing: Vec<ReferenceEdge>,
    /// References to the artifact, as in [`ReferenceQueries::references`](super::ReferenceQueries::references).
    pub incoming: Vec<ReferenceEdge>,
    /// As in [`NameQueries::names`](super::NameQueries::names).
    pub names: Names,
    /// As in [`NameQueries::has_namesake`](super::NameQueries::has_namesake); false if it was not asked for.
    pub has_namesake: bool,
    /// The mentions in the roles of each group that was asked for, as in [`MentionQueries::mentions`](super::MentionQueries::mentions).
    pub mentions: Vec<Vec<MentionRecord>>,
}

/// Two digests that artifacts of other kinds may mention both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestPair {
    /// The digests. Where one of them is expected to be rarer, it is the second.
    pub digests: [Digest; 2],
    /// The kind whose artifacts are not wanted.
    pub other_than: Arc<str>,
}

/// A query for the artifacts that mention both digests of a pair.
#[derive(Clone, Copy, Debug)]
pub struct SharersQuery<'q> {
    /// The pairs.
    pub pairs: &'q [DigestPair],
    /// The groups of roles in which the digests are mentioned. Only artifacts of the kinds that
    /// [`ArtifactQueries::kinds_with_group`](super::ArtifactQueries::kinds_with_group) returns for the first one are wanted.
    pub groups: [&'q str; 2],
    /// Number of artifacts whose mentions are wanted.
    pub limit: usize,
}

/// The artifacts that mention both digests of a pair.
#[derive(Clone, Debug, Default)]
pub struct Sharers {
    /// For each pair, all such artifacts and few others, by core hash.
    pub candidates: Vec<Vec<CoreHash>>,
    /// These artifacts, once each.
    pub artifacts: Vec<ArtifactRecord>,
    /// The mentions of the first artifacts, by core hash, in the roles of each of the groups.
    pub mentions: BTreeMap<CoreHash, [Vec<MentionRecord>; 2]>,
}

impl Neighbors {
    /// Iterates over the names that the artifact has and those that it refers to.
    pub(super) fn handles(&self) -> impl Iterator<Item = &String> {
        self.names.own.iter().chain(self.names.mentioned.iter().map(|NameMention { handle, .. }| handle))
    }
}

impl Neighborhood {
    /// Returns the artifacts at the other ends.
    pub(super) fn others(&self) -> Vec<CoreHash> {
        let mut others = Vec::new();
        for one in self.neighbors.values() {
            others.extend(one.manual_links.iter().flat_map(|link| [link.source, link.target]));
            others.extend(one.outgoing.iter().filter_map(|edge| edge.target));
            others.extend(one.incoming.iter().map(|edge| edge.mention.artifact));
        }
        for uses in self.uses.values() {
            others.extend(&uses.identified);
            others.extend(uses.referring.iter().map(|(_, artifact)| *artifact));
        }
        others
    }
}

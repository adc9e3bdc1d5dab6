//! The reads of a vault, by subject, among them the facts that links are derived from, for many artifacts at a time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};

use super::{
    Annotations, ArtifactRecord, AttributeRecord, Capability, CaptureRecord, CaptureTarget, Direction,
    EngineStatistics, FileRecord, Filter, FullTextSnapshot, Hit, HitPage, JournalRecord, LabelKey,
    LabelValue, ManualLink, MemberRecord, MentionRecord, NameMention, NameUse, Names, Order, Page,
    ReferenceEdge, Resolution, SharedFile, Statistics, UnresolvedReference, ValueCounts,
};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest, DigestPrefix};
use crate::storage::{Head, JournalCheck, JournalQuery, Result, StorageError, TimeBasis, Tombstone};

/// A consistent view of a vault at one point in time.
///
/// Every method returns an error if the vault cannot be read or what is read is damaged. Methods that take core hashes
/// return an empty value for those that are not stored.
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait Snapshot:
    ArtifactQueries
    + FindQueries
    + CaptureQueries
    + MentionQueries
    + ReferenceQueries
    + NameQueries
    + JournalQueries
    + Send
{
    /// Returns what the links of artifacts are derived from, except what needs the mentions of other artifacts. It is what
    /// the methods for each part return; a remote engine answers them together.
    fn neighborhood(&self, query: &NeighborsQuery<'_>) -> Result<Neighborhood> {
        composed(self, query)
    }

    /// Returns the size of what the engine stores, and of its indexes; `None` if it stores nothing outside of memory.
    fn engine_statistics(&self) -> Result<Option<EngineStatistics>> {
        Ok(None)
    }

    /// Returns the queries of the full-text index, or an error of the kind `Unsupported` if the engine does not have
    /// [`Capability::FullText`].
    fn full_text(&self) -> Result<&dyn FullTextSnapshot> {
        Err(StorageError::unsupported(Capability::FullText))
    }
}

/// The artifacts of a vault, and what is recorded about them.
///
/// The errors of all methods are those of a [`Snapshot`].
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait ArtifactQueries {
    /// Returns the artifacts with these core hashes.
    fn artifacts(&self, of: &[CoreHash]) -> Result<Vec<Option<ArtifactRecord>>>;

    /// Returns the kinds whose artifacts mention digests in the roles of a group, sorted. There may be further kinds of
    /// which no artifact does now, so this decides only where to look.
    fn kinds_with_group(&self, group: &str) -> Result<Vec<String>>;

    /// Returns the attributes of each artifact, sorted by name and value.
    fn attributes(&self, of: &[CoreHash]) -> Result<Vec<Vec<AttributeRecord>>>;

    /// Returns the tags, the note, the pin and the labels of each artifact.
    fn annotations(&self, of: &[CoreHash]) -> Result<Vec<Annotations>>;

    /// Returns the manual links from and to each artifact, ordered by relation, source and target.
    fn manual_links(&self, of: &[CoreHash]) -> Result<Vec<Vec<ManualLink>>>;

    /// Returns the artifact with each of these tags.
    fn tagged(&self, names: &[String]) -> Result<Vec<Option<CoreHash>>>;

    /// Returns the artifacts, captures and tombstones whose hash begins with `prefix`, up to `limit` of each.
    fn resolve(&self, prefix: &DigestPrefix, limit: usize) -> Result<Resolution>;

    /// Returns the names of the attributes that artifacts have, sorted.
    fn attribute_names(&self) -> Result<Vec<String>>;

    /// Returns up to `limit` values of an attribute that begin with `text`, sorted.
    fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Result<Vec<String>>;

    /// Returns the keys of the labels that artifacts have, sorted.
    fn label_keys(&self) -> Result<Vec<LabelKey>>;

    /// Returns up to `limit` values of the labels with this key that begin with `text`, sorted.
    fn label_values(&self, key: &str, text: &str, limit: usize) -> Result<Vec<LabelValue>>;

    /// Returns the statistics. `by` determines which artifacts are oldest and newest, and the day of each.
    fn statistics(&self, by: TimeBasis) -> Result<Statistics>;
}

/// The ways to find artifacts.
///
/// The errors of all methods are those of a [`Snapshot`].
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait FindQueries {
    /// Returns a page of the artifacts that match `filter`, in `order`, with their matches.
    fn find(&self, filter: &Filter, order: Order, page: &Page) -> Result<HitPage<Hit>>;

    /// Returns the number of artifacts that match `filter`.
    fn count(&self, filter: &Filter) -> Result<u64>;

    /// Returns the number of artifacts that match `filter` on each day of one of their times, in UTC, oldest first. Days
    /// without any are left out, and so are artifacts without this time.
    fn count_by_day(&self, filter: &Filter, by: TimeBasis) -> Result<Vec<(NaiveDate, u64)>>;

    /// Returns the number of artifacts that match `filter` with each value of these attributes, and with each label.
    fn count_by_value(&self, filter: &Filter, attributes: &[String]) -> Result<ValueCounts>;

    /// Returns, by core hash, the artifacts that match `filter` and that can belong together with others: another artifact has a
    /// name that they have or refer to, or refers to it; they are of one of the kinds `containers`; or there are artifacts of
    /// these kinds, and they do not have exactly one name.
    fn not_alone(&self, filter: &Filter, containers: &[String]) -> Result<Vec<CoreHash>>;
}

/// The captures of artifacts, their files and their bytes.
///
/// The errors of all methods are those of a [`Snapshot`].
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait CaptureQueries {
    /// Returns the captures of each artifact in the order in which they were added.
    fn captures(&self, of: &[CoreHash]) -> Result<Vec<Vec<CaptureRecord>>>;

    /// Returns the captures with these hashes of these artifacts.
    fn captures_with(&self, targets: &[CaptureTarget]) -> Result<Vec<Option<CaptureRecord>>>;

    /// Returns the members of a capture, sorted by name. Their bindings to the capture and to its artifact are hashed
    /// again; the bytes are not read.
    fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<MemberRecord>>;

    /// Returns the bytes of a member of a capture, hashed again.
    fn read(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>>;

    /// Returns, for each blob, the file with these bytes that was added first in a capture of several files.
    fn files(&self, blobs: &[BlobHash]) -> Result<Vec<Option<FileRecord>>>;

    /// Returns the files of each artifact, in any of its captures, whose bytes artifacts other than `of` also have, by
    /// name.
    fn shared_files(&self, of: &[CoreHash]) -> Result<Vec<Vec<SharedFile>>>;

    /// Returns the other artifacts that have one of the documents of each artifact as a document or as a file. Files that
    /// directories share, such as a policy, do not make one directory part of another.
    fn artifacts_with_bytes(&self, of: &[CoreHash]) -> Result<Vec<BTreeSet<CoreHash>>>;
}

/// The digests that artifacts mention.
///
/// The errors of all methods are those of a [`Snapshot`].
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait MentionQueries {
    /// Returns the mentions of each artifact, in any role or in those of one group, ordered by place, role and digest.
    fn mentions(&self, of: &[CoreHash], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>>;

    /// Returns the mentions of each digest, in any role or in those of one group, ordered by artifact, role and place.
    fn mentioning(&self, digests: &[Digest], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>>;

    /// Returns, for each digest, the artifacts of these kinds that may mention it, by core hash: all that do, and few
    /// others.
    fn candidates(&self, digests: &[Digest], kinds: &[String]) -> Result<Vec<Vec<CoreHash>>>;

    /// Returns up to `limit` mentioned digests that begin with `prefix`, in any role or in those of one group, sorted.
    fn mentioned_with_prefix(
        &self,
        prefix: &DigestPrefix,
        group: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Digest>>;

    /// Returns the digests that several artifacts mention at place 0 in the roles of one group, sorted.
    fn shared_first_mentions(&self, group: &str) -> Result<Vec<Digest>>;

    /// Returns how the engine finds artifacts by pairs of digests; `None` if that is by asking
    /// [`MentionQueries::candidates`] for each digest, so that a caller can remember the answers.
    fn pairs(&self) -> Option<&dyn PairQueries> {
        None
    }
}

/// The artifacts that mention both digests of pairs.
///
/// The errors of all methods are those of a [`Snapshot`].
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait PairQueries {
    /// Returns the artifacts that mention both digests of pairs.
    fn sharers(&self, query: &SharersQuery<'_>) -> Result<Sharers>;
}

/// The references between artifacts by digests.
///
/// The errors of all methods are those of a [`Snapshot`].
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait ReferenceQueries {
    /// Returns the references of each artifact to digests, or those of other artifacts to it. A digest identifies the
    /// artifact with this core hash. If there is none and the relation requires one, it identifies the artifact with a
    /// capture of this hash, the one with the smallest core hash if several kinds have these bytes. Outgoing references are
    /// ordered by relation, digest and place, incoming ones by relation, artifact and place. Outgoing references to what is
    /// not stored are included if the relation requires it to be. References of an artifact to itself are not.
    fn references(&self, of: &[CoreHash], direction: Direction) -> Result<Vec<Vec<ReferenceEdge>>>;

    /// Returns those of `of` that another artifact which matches `filter` refers to by `relation`, which holds only between
    /// artifacts with the same value of `attribute`.
    fn related_to_matching(
        &self,
        of: &[CoreHash],
        filter: &Filter,
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>>;

    /// Returns the other artifacts that state of each artifact that they contain it.
    fn stated_containers(&self, of: &[CoreHash]) -> Result<Vec<BTreeSet<CoreHash>>>;

    /// Returns the references to the first `limit` digests after `after` that have to identify an artifact and do not,
    /// sorted by digest, artifact and place.
    fn missing_digests(&self, after: Option<Digest>, limit: usize) -> Result<Vec<UnresolvedReference>>;
}

/// The names of artifacts, and the references by names.
///
/// The errors of all methods are those of a [`Snapshot`].
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait NameQueries {
    /// Returns the names that each artifact has, and those by which it refers to others.
    fn names(&self, of: &[CoreHash]) -> Result<Vec<Names>>;

    /// Returns, for each name, the artifacts that have it and those that refer to others by it.
    fn named(&self, names: &[String]) -> Result<Vec<NameUse>>;

    /// Returns the names that several originals of the kinds that [`ArtifactQueries::kinds_with_group`] returns have, sorted.
    fn shared_names(&self, group: &str) -> Result<Vec<String>>;

    /// Returns whether another artifact of the same kind has a name of each artifact, or refers to a name that it
    /// refers to.
    fn has_namesake(&self, of: &[CoreHash]) -> Result<Vec<bool>>;

    /// Returns the references to the first `limit` names after `after` that have to be those of other artifacts and are not,
    /// sorted by name and artifact.
    fn missing_names(&self, after: Option<&str>, limit: usize) -> Result<Vec<UnresolvedReference>>;
}

/// The journal, and the removals that it records.
///
/// The errors of all methods are those of a [`Snapshot`].
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait JournalQueries {
    /// Returns up to `limit` of the journal entries that match `query`, from the entry `from` on.
    fn journal(&self, query: &JournalQuery, from: u64, limit: usize) -> Result<Vec<JournalRecord>>;

    /// Recomputes the chain of the journal from the first entry to the last, and looks for the entry whose chain value is
    /// `since`.
    fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck>;

    /// Returns the last journal entry.
    fn journal_head(&self) -> Result<Head>;

    /// Returns the time of the last journal entry, or `None` if the journal is empty.
    fn last_entry_at(&self) -> Result<Option<DateTime<Utc>>>;

    /// Returns up to `limit` removed artifacts, or those of one kind, that journal entries after `after` removed, in the order
    /// of their removal. Artifacts that were added again are left out.
    fn tombstones(&self, kind: Option<&str>, after: u64, limit: usize) -> Result<Vec<Tombstone>>;

    /// Returns, for each list of sorted digests, their tombstones, one for each artifact that is not stored, by core hash: that
    /// of its core hash if it is among the digests.
    fn tombstones_with(&self, digests: &[&[Digest]]) -> Result<Vec<Vec<Tombstone>>>;
}

/// Returns a neighborhood, of answers for each part of it.
pub(in crate::storage) fn composed<S: Snapshot + ?Sized>(
    snapshot: &S,
    query: &NeighborsQuery<'_>,
) -> Result<Neighborhood> {
    let artifacts = snapshot.artifacts(query.of)?.into_iter().flatten();
    let mut found = Neighborhood {
        artifacts: artifacts.map(|artifact| (artifact.core, artifact)).collect(),
        ..Neighborhood::default()
    };
    let of: Vec<CoreHash> =
        query.of.iter().filter(|core| found.artifacts.contains_key(core)).copied().collect();
    let mut all: Vec<Neighbors> = snapshot
        .manual_links(&of)?
        .into_iter()
        .map(|manual_links| Neighbors { manual_links, ..Neighbors::default() })
        .collect();
    set(&mut all, snapshot.references(&of, Direction::Out)?, |one, edges| one.outgoing = edges);
    set(&mut all, snapshot.references(&of, Direction::In)?, |one, edges| one.incoming = edges);
    set(&mut all, snapshot.names(&of)?, |one, names| one.names = names);
    if query.namesakes {
        set(&mut all, snapshot.has_namesake(&of)?, |one, has_namesake| one.has_namesake = has_namesake);
    }
    for group in query.groups {
        set(&mut all, snapshot.mentions(&of, Some(group))?, |one, mentions| one.mentions.push(mentions));
    }
    found.neighbors = of.into_iter().zip(all).collect();
    let mut handles: Vec<String> = found.neighbors.values().flat_map(|one| one.handles().cloned()).collect();
    handles.sort_unstable();
    handles.dedup();
    handles.retain(|handle| !query.known.contains(handle));
    let uses = snapshot.named(&handles)?;
    found.uses = handles.into_iter().zip(uses).collect();
    let mut others = found.others();
    others.retain(|core| !found.artifacts.contains_key(core));
    others.sort_unstable();
    others.dedup();
    let others = snapshot.artifacts(&others)?.into_iter().flatten();
    found.artifacts.extend(others.map(|artifact| (artifact.core, artifact)));
    Ok(found)
}

/// Sets a part of each of `all`.
fn set<T>(all: &mut [Neighbors], parts: Vec<T>, set: impl Fn(&mut Neighbors, T)) {
    all.iter_mut().zip(parts).for_each(|(one, part)| set(one, part));
}

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

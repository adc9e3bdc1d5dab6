//! The traits that an engine implements, and their types.

mod adoption;
mod backup;
mod capabilities;
mod log_damage;
mod maintenance;
mod neighbors;
mod query;
mod records;
mod search;
mod single;
mod sorting;
mod space;
mod sql;
mod statistics;

pub use adoption::{AdoptedEntry, Adoption};
pub use backup::{Backup, BackupError, BackupOptions, BackupProgress};
pub use capabilities::{Capabilities, Capability};
pub use log_damage::{LogDamage, LogDefect};
pub use maintenance::Maintenance;
pub(in crate::storage) use neighbors::composed;
pub use neighbors::{DigestPair, Neighborhood, Neighbors, NeighborsQuery, Sharers, SharersQuery};
pub use query::{Condition, Cursor, Direction, Filter, Hit, HitPage, Match, Order, Page, TimePeriod};
pub use records::{
    Annotations, ArtifactRecord, AttributeRecord, CaptureRecord, CaptureTarget, Containment, FileRecord,
    JournalRecord, Label, LabelKey, LabelValue, ManualLink, MemberRecord, MentionRecord, NameMention,
    NameUse, Names, Note, Pin, ReferenceEdge, Resolution, RoleCount, SharedFile, StoredMember, Tag,
    UnresolvedReference, UnresolvedTarget,
};

pub use search::{
    CapturePassages, FoundPassage, FullText, FullTextSnapshot, IndexComparison, PassageGrouping,
    PassageMatcher, SearchDifferences, SearchIndex, SearchableCapture, Term, Terms,
};
pub use single::{created_at, declared_time};
pub(in crate::storage) use sorting::{
    count_targets, digests_then_names, page_of_unresolved, sort_manual_links, sort_mentions,
    sort_mentions_by_artifact, sort_references, sort_unresolved,
};
pub use space::{Erasure, ReclaimResult, ReclaimableSpace, Remnant};
pub use sql::{
    ComputedView, KindView, RowGenerator, RowProgress, SaveSummary, SavedTable, SqlError, SqlQueries,
    SqlReader, SqlRows, SqlStatement, SqlView,
};
pub use statistics::{
    ArtifactSize, ArtifactTime, BlobCounts, Day, EngineStatistics, Extremes, KindTotals, Statistics,
};

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};

use super::{
    Actor, Head, JournalCheck, JournalQuery, Prepared, PutResult, RemovedPolicy, Result, StorageError,
    TimeBasis, Tombstone,
};
use crate::artifact::Admitted;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest, DigestPrefix};

/// An engine that is open for one vault. Threads share it.
pub trait Storage: Send + Sync {
    /// Returns a snapshot of the current state. It does not change while it is held, whatever others write.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>>;

    /// Begins a change that the journal records at the time `at`, after waiting for other writers to finish.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    fn transaction(&self, at: DateTime<Utc>) -> Result<Box<dyn Transaction + '_>>;

    /// Returns a preparer of artifacts: it does what storing needs no transaction for, such as compression, in the
    /// thread that calls it.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn preparer(&self) -> Result<Box<dyn Preparer>>;

    /// Stores `batch` in one transaction. All of it is durable when this returns; if it fails, none of it is stored.
    /// The outcomes are in the order of the batch; with [`RemovedPolicy::RefuseAndStop`] they end with the first
    /// refusal.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be written: the disk is full, other writers do not finish within
    /// [`PutOptions::busy_timeout`], or the vault is damaged.
    fn put(&self, batch: &[&Prepared], options: &PutOptions) -> Result<Vec<PutResult>>;

    /// Sets the actor that the journal records for all further changes.
    fn set_actor(&mut self, actor: Actor);

    /// Returns whether the vault exists. If it does not, storing something creates it.
    fn is_created(&self) -> bool {
        true
    }

    /// Returns the bytes of the preferred capture of a document if the engine has a faster way to them than a snapshot;
    /// `None` otherwise, and if there are none or they are damaged: a snapshot returns the reason.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn document(&self, core: CoreHash) -> Result<Option<Vec<u8>>> {
        let _ = core;
        Ok(None)
    }

    /// Returns the adoption of the journal of another vault.
    fn adoption(&self) -> &dyn Adoption;

    /// Returns the maintenance of the vault.
    fn maintenance(&self) -> &dyn Maintenance;

    /// Returns the full-text index.
    ///
    /// # Errors
    /// Returns an error of the kind [`Unsupported`](super::ErrorKind::Unsupported) if the engine does not have
    /// [`Capability::FullText`].
    fn full_text(&self) -> Result<&dyn FullText> {
        Err(StorageError::unsupported(Capability::FullText))
    }

    /// Returns SQL queries.
    ///
    /// # Errors
    /// Returns an error of the kind [`Unsupported`](super::ErrorKind::Unsupported) if the engine does not have
    /// [`Capability::Sql`].
    fn sql(&self) -> Result<&dyn SqlQueries> {
        Err(StorageError::unsupported(Capability::Sql))
    }

    /// Returns what the engine can do beyond reading and changing a vault.
    fn capabilities(&self) -> Capabilities;
}

impl dyn Storage + '_ {
    /// Checks that the engine has `capability`.
    ///
    /// # Errors
    /// Returns an error of the kind [`Unsupported`](super::ErrorKind::Unsupported) if the engine does not have
    /// `capability`.
    pub fn expect(&self, capability: Capability) -> Result<()> {
        if self.capabilities().has(capability) {
            return Ok(());
        }
        Err(StorageError::unsupported(capability))
    }
}

/// How artifacts are stored.
#[derive(Clone, Copy, Debug)]
pub struct PutOptions {
    /// The policy for artifacts that were removed before.
    pub policy: RemovedPolicy,
    /// The time that the journal records. If its last entry is later, that entry's time is recorded.
    pub at: DateTime<Utc>,
    /// Maximum time to wait for other writers.
    pub busy_timeout: Duration,
}

/// A preparer of artifacts for storage in one vault.
pub trait Preparer: Send + Sync {
    /// Prepares `admitted`.
    fn prepare(&self, admitted: Admitted) -> Prepared;
}

/// A consistent view of a vault at one point in time.
///
/// Every method returns an error if the vault cannot be read or what is read is damaged. Methods that take core hashes
/// return an empty value for those that are not stored.
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait Snapshot: Send {
    /// Returns the artifacts with these core hashes.
    fn artifacts(&self, of: &[CoreHash]) -> Result<Vec<Option<ArtifactRecord>>>;

    /// Returns the captures of each artifact in the order in which they were added.
    fn captures(&self, of: &[CoreHash]) -> Result<Vec<Vec<CaptureRecord>>>;

    /// Returns the attributes of each artifact, sorted by name and value.
    fn attributes(&self, of: &[CoreHash]) -> Result<Vec<Vec<AttributeRecord>>>;

    /// Returns the tags, the note, the pin and the labels of each artifact.
    fn annotations(&self, of: &[CoreHash]) -> Result<Vec<Annotations>>;

    /// Returns the artifacts, captures and tombstones whose hash begins with `prefix`, up to `limit` of each.
    fn resolve(&self, prefix: &DigestPrefix, limit: usize) -> Result<Resolution>;

    /// Returns a page of the artifacts that match `filter`, in `order`, with their matches.
    fn find(&self, filter: &Filter, order: Order, page: &Page) -> Result<HitPage<Hit>>;

    /// Returns the number of artifacts that match `filter`.
    fn count(&self, filter: &Filter) -> Result<u64>;

    /// Returns the number of artifacts that match `filter` on each day of one of their times, in UTC, oldest first. Days
    /// without any are left out, and so are artifacts without this time.
    fn count_by_day(&self, filter: &Filter, by: TimeBasis) -> Result<Vec<(NaiveDate, u64)>>;

    /// Returns the mentions of each artifact, in any role or in those of one group, ordered by place, role and digest.
    fn mentions(&self, of: &[CoreHash], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>>;

    /// Returns the number of mentions of each artifact by role, sorted by role.
    fn mention_counts(&self, of: &[CoreHash]) -> Result<Vec<Vec<RoleCount>>>;

    /// Returns the mentions of each digest, in any role or in those of one group, ordered by artifact, role and place.
    fn mentioning(&self, digests: &[Digest], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>>;

    /// Returns, for each digest, the artifacts of these kinds that may mention it, by core hash: all that do, and few
    /// others.
    fn candidates(&self, digests: &[Digest], kinds: &[String]) -> Result<Vec<Vec<CoreHash>>>;

    /// Returns the kinds whose artifacts mention digests in the roles of a group, sorted. There may be further kinds of
    /// which no artifact does now, so this decides only where to look.
    fn kinds_with_group(&self, group: &str) -> Result<Vec<String>>;

    /// Returns up to `limit` mentioned digests that begin with `prefix`, in any role or in those of one group, sorted.
    fn mentioned_with_prefix(
        &self,
        prefix: &DigestPrefix,
        group: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Digest>>;

    /// Returns the digests that several artifacts mention at place 0 in the roles of one group, sorted.
    fn shared_first_mentions(&self, group: &str) -> Result<Vec<Digest>>;

    /// Returns the references of each artifact to digests, or those of other artifacts to its core hash. Outgoing ones
    /// are ordered by relation, digest and place, incoming ones by relation, artifact and place. Outgoing references to
    /// a digest that is not stored are included if the relation requires it to be. References of an artifact to itself
    /// are not.
    fn references(&self, of: &[CoreHash], direction: Direction) -> Result<Vec<Vec<ReferenceEdge>>>;

    /// Returns the names that each artifact has, and those by which it refers to others.
    fn names(&self, of: &[CoreHash]) -> Result<Vec<Names>>;

    /// Returns, for each name, the artifacts that have it and those that refer to others by it.
    fn named(&self, names: &[String]) -> Result<Vec<NameUse>>;

    /// Returns the names that several originals of the kinds that [`Snapshot::kinds_with_group`] returns have, sorted.
    fn shared_names(&self, group: &str) -> Result<Vec<String>>;

    /// Returns whether another artifact of the same kind has a name of each artifact, or refers to a name that it
    /// refers to.
    fn has_namesake(&self, of: &[CoreHash]) -> Result<Vec<bool>>;

    /// Returns those of `among` that another one of them refers to by `relation`, which holds only between artifacts
    /// with the same value of `attribute`.
    fn related_among(
        &self,
        among: &[CoreHash],
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>>;

    /// Returns those of `of` that another artifact which matches `filter` refers to by `relation`, which holds only between
    /// artifacts with the same value of `attribute`.
    fn related_to_matching(
        &self,
        of: &[CoreHash],
        filter: &Filter,
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>>;

    /// Returns the manual links from and to each artifact, ordered by relation, source and target.
    fn manual_links(&self, of: &[CoreHash]) -> Result<Vec<Vec<ManualLink>>>;

    /// Returns the other artifacts that contain each artifact, by core hash.
    fn containers(&self, of: &[CoreHash], by: Containment) -> Result<Vec<Vec<CoreHash>>>;

    /// Returns what the links of artifacts are derived from, except what needs the mentions of other artifacts. It is what
    /// the methods for each part return; a remote engine answers them together.
    fn neighborhood(&self, query: &NeighborsQuery<'_>) -> Result<Neighborhood> {
        composed(self, query)
    }

    /// Returns the artifacts that mention both digests of pairs, or `None` if the engine finds them by asking
    /// [`Snapshot::candidates`] for each digest, so that a caller can remember the answers.
    fn sharers(&self, query: &SharersQuery<'_>) -> Result<Option<Sharers>> {
        let _ = query;
        Ok(None)
    }

    /// Returns all references to the first `limit` digests and names after `after` that the vault does not have: digests
    /// before names, each sorted by target, artifact and place.
    fn unresolved(&self, after: Option<&UnresolvedTarget>, limit: usize) -> Result<Vec<UnresolvedReference>>;

    /// Returns the captures with these hashes of these artifacts.
    fn captures_with(&self, targets: &[CaptureTarget]) -> Result<Vec<Option<CaptureRecord>>>;

    /// Returns the preferred capture of each artifact: the one of the lowest [`preference`](super::preference), and of
    /// those the one that was added first.
    fn preferred_captures(&self, of: &[CoreHash]) -> Result<Vec<Option<CaptureRecord>>>;

    /// Returns the files of each artifact, in any of its captures, whose bytes artifacts other than `of` also have, by
    /// name.
    fn shared_files(&self, of: &[CoreHash]) -> Result<Vec<Vec<SharedFile>>>;

    /// Returns the members of a capture, sorted by name. Their bindings to the capture and to its artifact are hashed
    /// again; the bytes are not read.
    fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<MemberRecord>>;

    /// Returns the bytes of a member of a capture, hashed again.
    fn read(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>>;

    /// Returns, for each blob, the file with these bytes that was added first in a capture of several files.
    fn files(&self, blobs: &[BlobHash]) -> Result<Vec<Option<FileRecord>>>;

    /// Returns up to `limit` of the journal entries that match `query`, from the entry `from` on.
    fn journal(&self, query: &JournalQuery, from: u64, limit: usize) -> Result<Vec<JournalRecord>>;

    /// Recomputes the chain of the journal from the first entry to the last, and looks for the entry whose chain value is
    /// `since`.
    fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck>;

    /// Returns the last journal entry.
    fn journal_head(&self) -> Result<Head>;

    /// Returns the time of the last journal entry, or `None` if the journal is empty.
    fn last_entry_at(&self) -> Result<Option<DateTime<Utc>>> {
        let head = self.journal_head()?;
        let last = self.journal(&JournalQuery::default(), head.seq, 1)?.pop();
        Ok(last.map(|entry| entry.at))
    }

    /// Returns up to `limit` removed artifacts, or those of one kind, that journal entries after `after` removed, in the order
    /// of their removal. Artifacts that were added again are left out.
    fn tombstones(&self, kind: Option<&str>, after: u64, limit: usize) -> Result<Vec<Tombstone>>;

    /// Returns the tombstones of an admitted artifact and of everything in it, one for each artifact, by core hash.
    fn tombstones_of(&self, admitted: &Admitted) -> Result<Vec<Tombstone>>;

    /// Returns the artifact with each of these tags.
    fn tagged(&self, names: &[String]) -> Result<Vec<Option<CoreHash>>>;

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

/// A change of a vault. There is no other writer while it exists; readers see the previous state. Nothing is changed
/// before [`Transaction::commit`], and nothing at all if that is not called.
///
/// Every method returns an error if the vault cannot be read or written. Those that name an artifact return an error
/// of the kind `Gone` if it is not stored, and those that store text one of the kind `Invalid` if the text is not
/// valid.
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait Transaction {
    /// Returns a snapshot that includes the changes so far.
    fn snapshot(&self) -> &dyn Snapshot;

    /// Prepares the removal of artifacts, such as re-encoding what depends on their bytes, in steps of bounded
    /// duration. Returns false if there is more to prepare: commit this transaction and continue in another.
    fn prepare_removal(&mut self, of: &[CoreHash]) -> Result<bool>;

    /// Removes an artifact with all its captures, its annotations and its manual links. Tombstones remain.
    fn remove(&mut self, core: CoreHash, reason: Option<&str>) -> Result<()>;

    /// Changes the annotations of artifacts. Returns false if it was so already.
    fn annotate(&mut self, change: &Annotation<'_>) -> Result<bool>;

    /// Commits the changes: they are durable when this returns, and if it fails, nothing was changed. Returns the last
    /// journal entry.
    fn commit(self: Box<Self>) -> Result<Head>;
}

/// A change of annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotation<'a> {
    /// Sets a tag on an artifact, and removes it from any other.
    SetTag {
        /// The artifact.
        core: CoreHash,
        /// The tag.
        name: &'a str,
    },
    /// Removes a tag.
    RemoveTag {
        /// The tag.
        name: &'a str,
    },
    /// Sets the note of an artifact, or removes it if `text` is `None`.
    SetNote {
        /// The artifact.
        core: CoreHash,
        /// The text.
        text: Option<&'a str>,
    },
    /// Protects an artifact from removal.
    Pin {
        /// The artifact.
        core: CoreHash,
        /// The reason.
        note: Option<&'a str>,
    },
    /// Removes the protection.
    Unpin {
        /// The artifact.
        core: CoreHash,
    },
    /// Sets labels on artifacts, replacing the values of these keys. Labels that an artifact has already keep their time.
    SetLabels {
        /// The artifacts.
        cores: &'a [CoreHash],
        /// The labels, by key.
        labels: &'a BTreeMap<String, String>,
    },
    /// Removes the labels with these keys from artifacts.
    RemoveLabels {
        /// The artifacts.
        cores: &'a [CoreHash],
        /// The keys.
        keys: &'a BTreeSet<String>,
    },
    /// Adds a manual link, or replaces its note.
    AddLink {
        /// The source.
        source: CoreHash,
        /// The relation.
        relation: &'a str,
        /// The target.
        target: CoreHash,
        /// The note.
        note: Option<&'a str>,
    },
    /// Removes a manual link.
    RemoveLink {
        /// The source.
        source: CoreHash,
        /// The relation.
        relation: &'a str,
        /// The target.
        target: CoreHash,
    },
}

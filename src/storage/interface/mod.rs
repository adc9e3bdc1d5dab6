//! The traits that an engine implements, and their types.

mod maintenance;
mod query;
mod records;
mod search;
mod single;
mod snapshot;
mod sql;

pub use maintenance::{
    ArtifactSize, ArtifactTime, Backup, BackupError, BackupOptions, BackupProgress, BlobCounts, Day,
    EngineStatistics, Erasure, Extremes, KindTotals, LogDamage, LogDefect, Maintenance, ReclaimResult,
    ReclaimableSpace, Remnant, Statistics,
};
pub use query::{
    Condition, Cursor, Direction, Filter, Hit, HitPage, Match, Order, Page, TimePeriod, ValueCount,
    ValueCounts, matches_pattern,
};
pub(in crate::storage) use query::{
    count_targets, page_of_unresolved, sort_mentions, sort_mentions_by_artifact, sort_references,
    sort_unresolved,
};
pub use records::{
    Annotations, ArtifactRecord, AttributeRecord, CaptureRecord, CaptureTarget, Containment, FileRecord,
    JournalRecord, Label, LabelKey, LabelValue, ManualLink, MemberRecord, MentionRecord, NameMention,
    NameUse, Names, Note, Pin, ReferenceEdge, Resolution, RoleCount, SharedFile, StoredMember, Tag,
    UnresolvedReference, UnresolvedTarget,
};
pub use search::{
    CapturePassages, FoundPassage, FullText, FullTextSnapshot, IndexComparison, PassageGrouping,
    SearchDifferences, SearchIndex, SearchableCapture, Term, Terms,
};
pub use single::{created_at, declared_time};
#[cfg(test)]
pub(in crate::storage) use snapshot::composed;
pub use snapshot::{
    ArtifactQueries, CaptureQueries, DigestPair, FindQueries, JournalQueries, MentionQueries, NameQueries,
    Neighborhood, Neighbors, NeighborsQuery, PairQueries, ReferenceQueries, Sharers, SharersQuery, Snapshot,
};
pub use sql::{
    ComputedView, KindView, RowGenerator, RowProgress, SaveSummary, SavedTable, SqlError, SqlQueries,
    SqlReader, SqlRows, SqlStatement, SqlView,
};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::journal::JournalWriter;
use super::{Actor, Head, Prepared, PutResult, RecordedEntry, RemovedPolicy, Result, StorageError, change};
use crate::artifact::Admitted;
use crate::digest::CoreHash;

/// An engine that is open for one vault. Threads share it.
pub trait Storage: Adoption + Maintenance {
    /// Returns a snapshot of the current state. It does not change while it is held, whatever others write.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>>;

    /// Begins a change that the journal records at the time `at`, after waiting for other writers to finish, no longer than
    /// `busy_timeout`.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    fn transaction(&self, at: DateTime<Utc>, busy_timeout: Duration) -> Result<Box<dyn Transaction + '_>>;

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
    fn put(&self, batch: &[&Prepared], options: &PutOptions) -> Result<Vec<PutResult>> {
        change::put(self, batch, options)
    }

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

    /// Returns whether the engine can do something beyond reading and changing a vault.
    fn has(&self, capability: Capability) -> bool;
}

impl dyn Storage + '_ {
    /// Checks that the engine has `capability`.
    ///
    /// # Errors
    /// Returns an error of the kind [`Unsupported`](super::ErrorKind::Unsupported) if the engine does not have
    /// `capability`.
    pub fn expect(&self, capability: Capability) -> Result<()> {
        if self.has(capability) {
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

    /// Returns the end of the journal, after which entries are recorded.
    fn journal(&mut self) -> &mut JournalWriter;

    /// Appends entries to the journal, which continue it, and executes the changes of rows that follow from them. Returns,
    /// for each entry, whether it adds a capture with bytes that the vault had before.
    fn append(&mut self, entries: &[AppendedEntry<'_>]) -> Result<Vec<bool>>;

    /// Removes an artifact with all its captures, its annotations and its manual links. Tombstones remain.
    fn remove(&mut self, core: CoreHash, reason: Option<&str>) -> Result<()> {
        change::remove(self, core, reason)
    }

    /// Changes the annotations of artifacts. Returns false if it was so already.
    fn annotate(&mut self, change: &Annotation<'_>) -> Result<bool> {
        change::annotate(self, change)
    }

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

/// Adoption of the journal of another vault by an empty one: the same entries with the same times and the same chain, and
/// everything that follows from them.
///
/// From [`Adoption::begin_adoption`] to [`Adoption::finish_adoption`], the vault is marked as an incomplete copy: it cannot be
/// opened but to continue the copy, and everything else that writes to it fails with the kind
/// [`Incomplete`](crate::storage::ErrorKind::Incomplete).
///
/// Every method returns an error if the vault cannot be read or written.
pub trait Adoption: Send + Sync {
    /// Returns whether the vault is an incomplete copy.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn is_incomplete(&self) -> Result<bool>;

    /// Marks the vault as an incomplete copy, unless it is one, and returns the last adopted entry.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if the vault is not an incomplete copy
    /// and not empty.
    fn begin_adoption(&self) -> Result<Head>;

    /// Adopts entries in one transaction, with their artifacts. All of it is durable when this returns; if it fails, a
    /// beginning of the entries may have been adopted. Returns the last adopted entry.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if the vault is not an incomplete copy,
    /// the entries do not continue its journal, or an artifact is not the one that its entry records.
    fn adopt(&self, entries: &[AppendedEntry<'_>]) -> Result<Head>;

    /// Removes the mark: the copy is complete.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if the vault is not an incomplete copy
    /// whose last entry is `head`.
    fn finish_adoption(&self, head: Head) -> Result<()>;
}

/// An entry to be adopted.
#[derive(Clone, Copy, Debug)]
pub struct AppendedEntry<'e> {
    /// The entry.
    pub entry: &'e RecordedEntry,
    /// The artifact whose capture it adds, unless that was removed later. What is embedded in it has entries of its own.
    pub content: Option<&'e Prepared>,
}

/// Something that not every engine can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// SQL queries of the documented views.
    Sql,
    /// Copying the vault to a file.
    FileBackup,
    /// A full-text index.
    FullText,
    /// A check that does not trust the content.
    Check,
    /// Repairs of what a check finds, and rebuilding the indexes.
    Repair,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Sql, Self::FileBackup, Self::FullText, Self::Check, Self::Repair];
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sql => "SQL queries",
            Self::FileBackup => "backups of files",
            Self::FullText => "full-text search",
            Self::Check => "checks of stored data",
            Self::Repair => "repairs",
        })
    }
}

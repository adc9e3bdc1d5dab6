//! The storage interface: what an engine stores, and how the rest of the program reads and changes it.
//!
//! Everything is keyed by [`CoreHash`](crate::digest::CoreHash) and [`CaptureHash`](crate::digest::CaptureHash). No row
//! ids, paths, SQL or other vocabulary of one engine cross the interface. Methods are batched: they take all keys of a
//! step and return one value for each key, in the order of the keys, so that a remote engine needs one round trip for a
//! step. Filters, orders, limits and pages are the engine's work. Answers are complete and sorted as documented, so that
//! every engine gives the same answer for the same content.

mod actor;
mod annotations;
#[cfg(test)]
mod conformance;
pub(crate) mod error;
pub mod interface;
pub(crate) mod journal;
pub mod memory;
mod policy;
mod prepared;
pub mod sqlite;
mod tombstone;

pub use actor::{Actor, ActorError};
pub use annotations::{
    MAX_LINK_NOTE_BYTES, MAX_NOTE_BYTES, MAX_RELATION_BYTES, MAX_TAG_BYTES, StatedLink, is_note, is_relation,
    is_tag,
};
pub use error::{ErrorKind, PayloadDefect, Result, StorageError};
pub use interface::{
    Annotation, Annotations, ArtifactRecord, Attribute, Capabilities, CaptureRecord, CaptureTarget,
    Condition, Containment, Cursor, Direction, FileRecord, Filter, Hit, JournalRecord, ManualLink, Match,
    MemberRecord, Mention, NameMention, NameUse, Names, Note, Order, Page, Paged, Period, Pin, Preparer,
    PutOptions, ReferenceEdge, Resolution, RoleCount, SharedFile, Snapshot, Storage, StoredMember, Tag,
    Transaction, UnresolvedReference, UnresolvedTarget, created_at,
};
pub use journal::{Head, JournalCheck, JournalDefect, JournalQuery};
pub use policy::{KindConflict, PATIENCE, Put, PutOutcome, RemovedPolicy, TimeBasis, preference};
pub use prepared::Prepared;
pub use sqlite::{
    Backup, BackupError, BackupOptions, BackupProgress, CapturePassages, Computed, Dated, Day, DiskUsage,
    Erasure, Extremes, FoundPassage, Grouping, KindStats, LogDamage, LogDefect, Matcher, Reader, Readmitted,
    Reclaimable, Reclaimed, Reindexed, Remnant, Repair, Restored, Rows, RowsOf, SCHEMA_VERSION, SalvagedLog,
    Salvager, Saved, SearchComparison, SearchDifferences, SearchIndex, SearchableCapture, Sized, SqlError,
    Statement, Stats, Store, Term, Terms, Upgrade, View, check,
};
pub(crate) use sqlite::{Snapshot as FileSnapshot, TIMES};
pub use tombstone::Tombstone;

/// Returns the vault file of a storage, for operations that only this engine has.
///
/// # Errors
/// Returns an error of the kind [`ErrorKind::Unsupported`] if the storage is of another engine; the message names the
/// `operation`.
pub fn file_of<'s>(storage: &'s dyn Storage, operation: &str) -> Result<&'s Store> {
    storage.as_any().downcast_ref().ok_or_else(|| StorageError::unsupported(operation))
}

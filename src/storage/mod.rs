//! The storage interface: what an engine stores, and how the rest of the program reads and changes it.
//!
//! Everything is keyed by [`CoreHash`](crate::digest::CoreHash) and [`CaptureHash`](crate::digest::CaptureHash). No row
//! ids, paths, SQL or other vocabulary of one engine cross the interface. Methods are batched: they take all keys of a
//! step and return one value for each key, in the order of the keys, so that a remote engine needs one round trip for a
//! step. Filters, orders, limits and pages are the engine's work. Answers are complete and sorted as documented, so that
//! every engine gives the same answer for the same content.
//!
//! Front ends use operations of a [`Vault`](crate::Vault). Of this module, they name only data that requests, answers and
//! reports contain: records, counts, reports of maintenance, errors and limits. Engines and the traits of [`interface`]
//! are for the library, and for those who write another engine.

mod annotations;
mod catalog;
mod change;
pub mod check;
mod compression;
#[cfg(test)]
mod conformance;
mod entry;
pub(crate) mod error;
mod full_text;
pub mod interface;
pub(crate) mod journal;
mod location;
pub mod memory;
#[cfg(feature = "objects")]
mod objects;
mod policy;
#[cfg(feature = "postgres")]
pub mod postgres;
mod prepared;
mod recorded;
mod sql;
pub mod sqlite;
mod varint;
mod versions;
mod views;
mod waiting;

pub use annotations::{
    MAX_LABEL_KEY_BYTES, MAX_LABEL_VALUE_BYTES, MAX_LABELS, MAX_LINK_NOTE_BYTES, MAX_NOTE_BYTES,
    MAX_RELATION_BYTES, MAX_TAG_BYTES, check_labels, is_label_key, is_label_value, is_note, is_relation,
    is_tag,
};
pub use error::{ErrorKind, PayloadDefect, Result, StorageError};
pub use interface::{
    Adoption, Annotation, Annotations, AppendedEntry, ArtifactRecord, ArtifactSize, ArtifactTime,
    AttributeRecord, Backup, BackupError, BackupOptions, BackupProgress, BlobCounts, Capability,
    CapturePassages, CaptureRecord, CaptureTarget, ComputedView, Condition, Containment, Cursor, Day,
    Direction, EngineStatistics, Erasure, Extremes, FileRecord, Filter, FoundPassage, FullText,
    FullTextSnapshot, Hit, HitPage, IndexComparison, JournalRecord, KindTotals, KindView, Label, LabelKey,
    LabelValue, LogDamage, LogDefect, Maintenance, ManualLink, Match, MemberRecord, MentionRecord,
    NameMention, NameUse, Names, Note, Order, Page, PassageGrouping, Pin, Preparer, PutOptions,
    ReclaimResult, ReclaimableSpace, ReferenceEdge, Remnant, Resolution, RoleCount, RowGenerator,
    RowProgress, SaveSummary, SavedTable, SearchDifferences, SearchIndex, SearchableCapture, SharedFile,
    Snapshot, SqlError, SqlQueries, SqlReader, SqlRows, SqlStatement, SqlView, Statistics, Storage,
    StoredMember, Tag, Term, Terms, TimePeriod, Transaction, UnresolvedReference, UnresolvedTarget,
    ValueCount, ValueCounts, created_at, declared_time,
};
pub use journal::{Actor, ActorError, Head, JournalCheck, JournalDefect, JournalQuery, Tombstone};
pub(crate) use location::{OpenedStorage, file_of, open, shown_address};
pub use policy::{
    BUSY_TIMEOUT, CreationPolicy, KindConflict, PutOutcome, PutResult, RemovedPolicy, TimeBasis, preference,
};
pub use prepared::{Prepared, SourcePath};
pub use recorded::{RecordedAddition, RecordedEntry};
pub use sqlite::Store;
pub(crate) use sqlite::{ForeignDatabase, ForeignRows, ForeignValue};
pub(crate) use waiting::set_wait_observer;

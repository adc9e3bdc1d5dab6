//! The storage interface: what an engine stores, and how the rest of the program reads and changes it.
//!
//! Everything is keyed by [`CoreHash`](crate::digest::CoreHash) and [`CaptureHash`](crate::digest::CaptureHash). No row
//! ids, paths, SQL or other vocabulary of one engine cross the interface. Methods are batched: they take all keys of a
//! step and return one value for each key, in the order of the keys, so that a remote engine needs one round trip for a
//! step. Filters, orders, limits and pages are the engine's work. Answers are complete and sorted as documented, so that
//! every engine gives the same answer for the same content.

mod actor;
mod annotations;
pub(crate) mod error;
pub mod interface;
pub(crate) mod journal;
mod policy;
mod prepared;
pub mod sqlite;
mod tombstone;

pub use actor::{Actor, ActorError};
pub use annotations::{
    MAX_LINK_NOTE_BYTES, MAX_NOTE_BYTES, MAX_RELATION_BYTES, MAX_TAG_BYTES, is_note, is_relation, is_tag,
};
pub use error::{ErrorKind, PayloadDefect, Result, StorageError};
pub use interface::{
    CaptureTarget, JournalRecord, MemberRecord, NameMention, RoleCount, SharedFile, StoredMember,
};
pub use journal::{Head, JournalCheck, JournalDefect, JournalQuery};
pub use policy::{Put, PutOutcome, RemovedPolicy, TimeBasis, preference};
pub use prepared::Prepared;
pub use sqlite::*;
pub use tombstone::Tombstone;

//! Storage of a vault in one SQLite file: blobs, artifacts, their indexes, and the journal.
//!
//! The store accepts only [`Admitted`](crate::artifact::Admitted) artifacts and knows no formats. It is the only user of the database crates. One
//! call of [`Storage::put`](crate::storage::Storage::put) stores all of its artifacts or none, and they are on disk when it returns; everything that is
//! read is hashed again.

mod backup;
mod check;
mod compress;
mod connection;
mod delta;
mod delta_bases;
mod dictionaries;
mod dictionary_training;
mod digest_stripping;
#[doc(hidden)]
pub mod encodings;
mod engine;
mod error;
mod foreign;
mod identity;
mod journal;
mod mention_index;
mod mentions;
mod payload;
mod pool;
mod read;
mod reclaim;
mod recode;
mod release;
mod remove;
mod repair;
mod rows;
mod schema;
mod search;
mod shared_statements;
mod sql;
mod staging;
mod store;
mod unresolved;
mod wal;
mod write;
mod write_lock;

pub(crate) use foreign::{ForeignDatabase, ForeignRows, ForeignValue};
pub(crate) use read::SqliteSnapshot;
pub use store::Store;

use crate::storage::{Result, StorageError};

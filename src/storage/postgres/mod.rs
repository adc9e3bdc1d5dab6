//! An engine that keeps a vault in a PostgreSQL database: plain tables and indexes, in one schema, which distributed
//! engines that speak the same protocol have too.
//!
//! Writers share one journal. They prepare everything, take the lock of its last entry late, check what concerns them once
//! more, and commit; a batch that others interfered with is stored again from the beginning. A snapshot is a transaction
//! that reads one state. Each answer takes a fixed number of round trips, whatever the number of keys and of hits.

mod address;
mod attach;
mod blob_store;
mod bytes;
mod check;
mod connecting;
mod encoding;
mod engine;
mod error;
mod full_text;
mod journal;
mod lists;
mod maintenance;
mod names;
#[cfg(feature = "objects")]
mod object_blob_store;
mod parameters;
pub(super) mod password_file;
mod pool;
mod repair;
mod schema;
mod session;
mod snapshot;
mod sql;
mod statements;
mod transaction;
mod vault;
mod write;

pub use vault::PostgresStorage;

/// Returns an address without a password, or `None` if it is not valid.
pub(in crate::storage) fn shown_address(text: &str) -> Option<String> {
    address::PostgresAddress::parse(text).ok().map(|address| address.to_string())
}

//! Bytes in object storage: S3, Google Cloud Storage, Azure, or a directory.
//!
//! Objects are written once, under names that nothing else has, and never changed. Nothing relies on overwriting, and only
//! the collection of orphans relies on listing. This module knows keys and bytes; what an object contains is in the
//! catalog of the engine that uses it.

mod cache;
mod client;
mod marker;
mod name;
mod probe;
mod store;
mod unfinished;
mod uploads;

pub(in crate::storage) use cache::Cache;
pub(in crate::storage) use client::ObjectAddress;
pub(in crate::storage) use marker::{claim, claimed};
pub(in crate::storage) use name::ObjectName;
pub(in crate::storage) use probe::expect_exclusive;
pub(in crate::storage) use store::{ObjectListingEntry, ObjectStore};
pub(in crate::storage) use unfinished::delete_unfinished;

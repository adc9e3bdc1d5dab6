//! The place of the bytes of blobs: in the database, or beside it.

use std::fmt;

use chrono::{DateTime, Utc};

use super::encoding::EncodedMember;
use super::error::PostgresResult;
use crate::digest::BlobHash;
use crate::storage::PayloadDefect;

/// A part of an object in object storage, with the encoded bytes of one blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectRange {
    pub(super) object: [u8; 16],
    pub(super) start: u64,
    pub(super) length: u64,
}

/// The catalog entry of a blob.
pub(super) struct BlobCatalogEntry {
    /// The size of the bytes before they were encoded.
    pub(super) size: u64,
    pub(super) encoding: i64,
    /// The encoded bytes, if they are in the database.
    pub(super) bytes: Option<Vec<u8>>,
    /// Where they are if they are not.
    pub(super) part: Option<ObjectRange>,
}

/// An object that a listing of object storage has.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListedObject {
    pub(super) name: [u8; 16],
    pub(super) size: u64,
    /// When it was written, by the clock of the storage.
    pub(super) modified: DateTime<Utc>,
}

/// Bytes, or what is wrong with them.
pub(super) type BlobReadResult = Result<Vec<u8>, PayloadDefect>;

/// A storage of the bytes of blobs beside the database. They are stored before a transaction begins, and deleted long after
/// the catalog does not need them any more.
pub(super) trait BlobStore: fmt::Debug + Send + Sync {
    /// Stores the bytes of blobs, and returns where they are, in their order. They are durable when this returns, and nothing
    /// refers to them yet.
    fn store(&self, blobs: &[(BlobHash, &EncodedMember)]) -> PostgresResult<Vec<ObjectRange>>;

    /// Returns the bytes of a blob, hashed again: those of a copy on this machine only if that `may_be_copy`.
    fn read(
        &self,
        blob: BlobHash,
        stored: &BlobCatalogEntry,
        part: ObjectRange,
        may_be_copy: bool,
    ) -> PostgresResult<BlobReadResult>;

    /// Deletes an object, if there is one, for which the catalog has no blob.
    fn delete(&self, object: [u8; 16]) -> PostgresResult<()>;

    /// Returns the time by the clock of the storage, which is that of its listings.
    fn now(&self) -> PostgresResult<DateTime<Utc>>;

    /// Calls `take` with all objects, in parts.
    fn list(&self, take: &mut dyn FnMut(Vec<ListedObject>) -> PostgresResult<()>) -> PostgresResult<()>;

    /// Deletes what was begun and not completed, and was last written before `latest`: what killed programs left that is
    /// in no list. Returns its number and its size in bytes.
    fn delete_unfinished(&self, latest: DateTime<Utc>) -> PostgresResult<(u64, u64)>;
}

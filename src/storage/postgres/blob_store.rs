//! The place of the bytes of blobs: in the database, or beside it.

use std::fmt;

use chrono::{DateTime, Utc};

use super::encoding::{EncodedMember, decoded};
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

/// Where the bytes of blobs are.
pub(super) trait BlobStore: fmt::Debug + Send + Sync {
    /// Returns whether bytes are beside the database: they are stored before a transaction begins, and deleted long after
    /// the catalog does not need them any more.
    fn is_external(&self) -> bool;

    /// Stores the bytes of blobs, and returns where they are, in their order: `None` is in the row of the blob. They are
    /// durable when this returns, and nothing refers to them yet.
    fn store(&self, blobs: &[(BlobHash, &EncodedMember)]) -> PostgresResult<Vec<Option<ObjectRange>>>;

    /// Returns the bytes of a blob, hashed again.
    fn read(&self, blob: BlobHash, stored: BlobCatalogEntry) -> PostgresResult<BlobReadResult>;

    /// Returns the bytes of a blob from where they are, never from a copy on this machine, hashed again.
    fn examine(&self, blob: BlobHash, stored: BlobCatalogEntry) -> PostgresResult<BlobReadResult>;

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

/// All bytes are in the rows of their blobs.
#[derive(Debug)]
pub(super) struct DatabaseBlobStore;

impl BlobStore for DatabaseBlobStore {
    fn is_external(&self) -> bool {
        false
    }

    fn store(&self, blobs: &[(BlobHash, &EncodedMember)]) -> PostgresResult<Vec<Option<ObjectRange>>> {
        Ok(vec![None; blobs.len()])
    }

    fn read(&self, blob: BlobHash, stored: BlobCatalogEntry) -> PostgresResult<BlobReadResult> {
        Ok(match (stored.bytes, stored.part) {
            (Some(bytes), None) => decoded(blob, stored.size, stored.encoding, bytes),
            _ => Err(PayloadDefect::Missing { blob }),
        })
    }

    fn examine(&self, blob: BlobHash, stored: BlobCatalogEntry) -> PostgresResult<BlobReadResult> {
        self.read(blob, stored)
    }

    fn delete(&self, _: [u8; 16]) -> PostgresResult<()> {
        Ok(())
    }

    fn now(&self) -> PostgresResult<DateTime<Utc>> {
        Ok(crate::clock::now())
    }

    fn list(&self, _: &mut dyn FnMut(Vec<ListedObject>) -> PostgresResult<()>) -> PostgresResult<()> {
        Ok(())
    }

    fn delete_unfinished(&self, _: DateTime<Utc>) -> PostgresResult<(u64, u64)> {
        Ok((0, 0))
    }
}

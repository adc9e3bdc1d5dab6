//! Reclaims disk space.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Operation;
use super::handle::Vault;
use crate::clock;
use crate::storage::{ReclaimResult, ReclaimableSpace, StorageError};

/// A request for what reclaiming disk space would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReclaimableRequest {}

/// What reclaiming disk space would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReclaimableAnswer {
    /// Number of unreferenced blobs.
    pub blobs: u64,
    /// Number of dictionaries that are unused, or that may contain pieces of removed documents.
    pub dictionaries: u64,
    /// The minimum number of bytes that can be reclaimed: the sum of `blob_bytes` and `free_bytes`.
    pub bytes: u64,
    /// The stored size of the unreferenced blobs in bytes.
    pub blob_bytes: u64,
    /// Number of free bytes in the file.
    pub free_bytes: u64,
    /// Whether artifacts were removed since space was last reclaimed.
    pub has_removals: bool,
}

/// A request to remove unreferenced data and to shrink the vault's files to their minimum size. Afterwards, no removed
/// data remains in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReclaimRequest {}

/// The result of reclaiming disk space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReclaimAnswer {
    /// Number of unreferenced blobs that were removed.
    pub blobs: u64,
    /// Number of objects in object storage that were deleted because no artifact was stored with them: interrupted uploads.
    pub orphans: u64,
    /// Number of dictionaries that were removed.
    pub dictionaries: u64,
    /// Number of payloads that were recompressed.
    pub recompressed: u64,
    /// The size of the vault's files in bytes before; 0 if nothing was to be done.
    pub bytes_before: u64,
    /// Their size afterwards; 0 if nothing was to be done.
    pub bytes_after: u64,
    /// Whether there was something to do. Otherwise, nothing was changed.
    pub changed: bool,
    /// Whether removed data remains in the write-ahead log, because others were reading from it.
    pub log_remains: bool,
}

impl Operation for ReclaimableRequest {
    type Answer = ReclaimableAnswer;
    type Error = StorageError;

    const NAME: &'static str = "reclaimable";
    const SUMMARY: &'static str = "Show what reclaiming disk space would remove";

    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<ReclaimableAnswer, StorageError> {
        let found = vault.storage.maintenance().reclaimable()?;
        let ReclaimableSpace { blobs, blob_bytes, dictionaries, free_bytes, has_removals } = found;
        let bytes = blob_bytes + free_bytes;
        Ok(ReclaimableAnswer { blobs, dictionaries, bytes, blob_bytes, free_bytes, has_removals })
    }
}

impl Operation for ReclaimRequest {
    type Answer = ReclaimAnswer;
    type Error = StorageError;

    const NAME: &'static str = "reclaim";
    const SUMMARY: &'static str = "Reclaim disk space";
    const CHANGES: bool = true;

    /// # Errors
    /// Returns an error if the vault cannot be read or written. Steps already completed are kept.
    fn run(&self, vault: &Vault) -> Result<ReclaimAnswer, StorageError> {
        let reclaimed = vault.storage.maintenance().reclaim(clock::now())?;
        Ok(reclaimed.map_or_else(ReclaimAnswer::default, ReclaimAnswer::from))
    }
}

impl From<ReclaimResult> for ReclaimAnswer {
    fn from(done: ReclaimResult) -> Self {
        let ReclaimResult {
            blobs,
            orphans,
            dictionaries,
            recompressed,
            bytes_before,
            bytes_after,
            is_complete,
        } = done;
        Self {
            blobs,
            orphans,
            dictionaries,
            recompressed,
            bytes_before,
            bytes_after,
            changed: true,
            log_remains: !is_complete,
        }
    }
}

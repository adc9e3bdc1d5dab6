//! Checks, repairs, and the reclaiming of disk space.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Vault, fsck};
use crate::artifact::KeyRing;
use crate::clock;
use crate::storage::{Capability, StorageError};

pub use crate::storage::{ReclaimResult, ReclaimableSpace};

impl Vault {
    /// Checks the vault: the file, every stored byte, every artifact against the rules and the index, and the journal.
    ///
    /// # Errors
    /// Returns an error if the check could not run. Damage is a finding, not an error.
    pub fn fsck(
        &self,
        options: &fsck::FsckOptions,
        monitor: &mut dyn fsck::FsckMonitor,
    ) -> Result<fsck::FsckReport, StorageError> {
        self.storage.expect(Capability::Check)?;
        fsck::check(&*self.storage, options, monitor)
    }

    /// Checks that the vault's engine has repairs, before a check that takes long.
    ///
    /// # Errors
    /// Returns an error of the kind [`Unsupported`](crate::storage::ErrorKind::Unsupported) if it has none.
    pub fn expect_repairs(&self) -> Result<(), StorageError> {
        self.storage.expect(Capability::Repair)
    }

    /// Repairs the findings of a check as far as that is unambiguous, with bytes from `from`: other vaults, and
    /// directories of files and archives. Signatures of artifacts that are added or indexed again are checked with
    /// `keys`. Returns the repairs made, and the errors because of which steps were not completed; run another check for
    /// what remains.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn repair(
        &self,
        report: &fsck::FsckReport,
        from: &[PathBuf],
        keys: &KeyRing,
        monitor: &mut dyn fsck::FsckMonitor,
    ) -> Result<fsck::RepairReport, StorageError> {
        self.storage.expect(Capability::Repair)?;
        fsck::repair(&*self.storage, report, from, keys, monitor)
    }

    /// Rebuilds all indexes from the artifacts' bytes, and checks signatures with `keys`; earlier results of signatures
    /// for which there is no key are kept. An interrupted rebuild leaves a vault that answers correctly. The report
    /// lists the artifacts that would no longer be admitted; they are not changed.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn reindex(
        &self,
        keys: &KeyRing,
        monitor: &mut dyn fsck::FsckMonitor,
    ) -> Result<fsck::FsckReport, StorageError> {
        self.storage.expect(Capability::Repair)?;
        fsck::reindex(&*self.storage, keys, monitor)
    }
}

/// A request for what reclaiming disk space would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReclaimableRequest {}

/// What reclaiming disk space would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReclaimableAnswer {
    /// The space by its use.
    #[serde(flatten)]
    pub space: ReclaimableSpace,
    /// The minimum number of bytes that can be reclaimed: the sum of `blob_bytes` and `free_bytes`.
    pub bytes: u64,
}

/// A request to remove unreferenced data and to shrink the vault's files to their minimum size. Afterwards, no removed
/// data remains in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReclaimRequest {}

impl ReclaimableRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<ReclaimableAnswer, StorageError> {
        let space = vault.storage.reclaimable()?;
        Ok(ReclaimableAnswer { space, bytes: space.blob_bytes + space.free_bytes })
    }
}

impl ReclaimRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written. Steps already completed are kept.
    pub fn run(&self, vault: &Vault) -> Result<ReclaimResult, StorageError> {
        vault.storage.reclaim(clock::now())
    }
}

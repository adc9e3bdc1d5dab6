//! Checks and repairs of a vault.

use std::path::PathBuf;

use super::fsck;
use super::handle::Vault;
use crate::artifact::KeyRing;
use crate::storage::{Capability, StorageError};

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
    /// `keys`. Returns the repairs made; run another check for what remains.
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
        self.storage.expect(Capability::Reindex)?;
        fsck::reindex(&*self.storage, keys, monitor)
    }
}

//! Checks, repairs and upgrades of a vault.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::PathName;
use super::fsck;
use super::handle::Vault;
use crate::artifact::KeyRing;
use crate::storage::{self, Capability, StorageError, Upgrade};

/// The result of upgrading a vault.
#[derive(Debug)]
pub struct VaultUpgrade {
    /// The change of its schema.
    pub upgrade: Upgrade,
    /// The report of rebuilding the derived data, if that was necessary.
    pub report: Option<fsck::FsckReport>,
}

/// The change of the schema of a vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UpgradeAnswer {
    /// The former schema version.
    pub from: i64,
    /// The current schema version.
    pub to: i64,
    /// The copy of the former vault, if one was made.
    pub copy: Option<PathName>,
}

impl From<&Upgrade> for UpgradeAnswer {
    fn from(upgrade: &Upgrade) -> Self {
        let Upgrade { from, to, copy, .. } = upgrade;
        Self { from: *from, to: *to, copy: copy.as_deref().map(PathName::from) }
    }
}

impl Vault {
    /// Upgrades the vault at `address` to the current schema: keeps a copy of a file, migrates the vault, and rebuilds
    /// everything that is derived from the artifacts' bytes. A current vault is not changed. The upgrade can be interrupted
    /// at any time; the next call continues it. A database is not copied.
    ///
    /// # Errors
    /// Same as [`Store::upgrade`](crate::storage::Store::upgrade); in a database, also the same as [`Vault::open`], and
    /// [`Busy`](crate::storage::ErrorKind::Busy) if others do not finish in time.
    pub fn upgrade(
        address: &Path,
        monitor: &mut dyn fsck::FsckMonitor,
    ) -> Result<VaultUpgrade, StorageError> {
        let (storage, upgrade) = storage::upgrade(address)?;
        let report = if upgrade.is_outdated {
            Some(fsck::reindex(&*storage, &KeyRing::default(), monitor)?)
        } else {
            None
        };
        Ok(VaultUpgrade { upgrade, report })
    }

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

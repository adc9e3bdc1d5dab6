//! Capabilities and maintenance.

use super::kinds::TestDocument;
use super::{TestVault, second};
use crate::storage::interface::{BackupOptions, Capability, Storage};
use crate::storage::{BackupError, ErrorKind, ReclaimResult, Result, StorageError};

/// The seconds of a day.
const DAY: i64 = 86_400;

/// Uses a capability, as far as that returns something without changing the vault.
fn attempt(storage: &dyn Storage, capability: Capability, directory: &std::path::Path) -> Result<()> {
    let maintenance = storage.maintenance();
    match capability {
        Capability::Sql => storage.sql().map(drop),
        Capability::FullText => {
            storage.full_text()?;
            storage.snapshot()?.full_text()?.search_index().map(drop)
        }
        Capability::FileBackup => {
            let backup = maintenance.backup(&directory.join("copy"), &BackupOptions::default(), &mut |_| {});
            backup.map(drop).map_err(|error| match error {
                BackupError::Store(error) => error,
                other => StorageError::invalid(other.to_string()),
            })
        }
        Capability::Check => maintenance.inspect().map(drop),
        Capability::Repair => maintenance.repairs().map(drop),
    }
}

pub(super) fn what_an_engine_cannot_do_is_unsupported(vault: &TestVault) {
    vault.add_note(&TestDocument::new("a"));
    let directory = tempfile::tempdir().unwrap();
    for capability in Capability::ALL {
        let expected = vault.storage.expect(capability).map_err(|error| error.to_string());
        assert_eq!(expected.is_ok(), vault.storage.has(capability), "{capability}");
        let outcome = attempt(&*vault.storage, capability, directory.path());
        if let Err(error) = &outcome {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{capability}: {error}");
        }
        assert_eq!(outcome.map_err(|error| error.to_string()), expected, "{capability}");
    }
}

pub(super) fn nothing_is_left_to_reclaim_after_reclaiming(vault: &TestVault) {
    let maintenance = vault.storage.maintenance();
    let left = vault.add_note(&TestDocument::new("left"));
    let removed = vault.add_note(&TestDocument::new("removed"));
    vault.remove(removed);
    // Object storage keeps what is removed for a day.
    maintenance.reclaim(second(2 * DAY)).unwrap();
    let reclaimable = maintenance.reclaimable().unwrap();
    assert_eq!((reclaimable.blobs, reclaimable.dictionaries), (0, 0));
    assert!(!reclaimable.has_removals);
    assert_eq!(maintenance.reclaim(second(2 * DAY + 1)).unwrap(), ReclaimResult::default());
    assert!(maintenance.erase().remnants.iter().all(|remnant| !remnant.is_reclaimable()));
    assert!(vault.record(left).is_some());
}

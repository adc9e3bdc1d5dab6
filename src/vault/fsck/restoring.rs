//! Restoring the stored bytes of blobs, and what is derived from them.

use std::collections::BTreeSet;

use super::reindex;
use super::report::{FsckMonitor, FsckReporter};
use crate::artifact::KeyRing;
use crate::digest::{BlobHash, CoreHash, Digest};
use crate::storage::check::finding::Finding;
use crate::storage::check::{Inspection, Repair};
use crate::storage::{Result, Storage};

/// Passes bytes of blobs on.
type Give<'g> = dyn FnMut(BlobHash, &[u8]) -> Result<()> + 'g;

/// Restores those of `blobs` that cannot be read from the bytes that `source` passes on for the blobs that it gets. Returns
/// what was repaired.
///
/// # Errors
/// Returns an error if the vault cannot be read or written.
pub(in crate::vault) fn restore_bytes(
    storage: &dyn Storage,
    blobs: &BTreeSet<BlobHash>,
    source: &mut dyn FnMut(&mut BTreeSet<BlobHash>, &mut Give<'_>) -> Result<()>,
) -> Result<Vec<Repair>> {
    let steps = storage.maintenance().repairs()?;
    let mut repaired = Vec::new();
    let mut restore = |select: &dyn Fn(&dyn Inspection, BlobHash) -> Result<bool>| {
        let inspection = storage.maintenance().inspect()?;
        let mut missing = BTreeSet::new();
        for blob in blobs {
            if select(&*inspection, *blob)? && inspection.bytes_of(*blob)?.is_none() {
                missing.insert(*blob);
            }
        }
        drop(inspection);
        if missing.is_empty() {
            return Ok(());
        }
        source(&mut missing, &mut |blob, bytes| {
            // Nothing else may take the place of lost bytes.
            if BlobHash(Digest::from_content(bytes)) == blob {
                repaired.append(&mut steps.restore_blob(blob, bytes)?);
            }
            Ok(())
        })
    };
    // Delta bases come first: once they are restored, their dependents may be readable again.
    restore(&|inspection, blob| inspection.is_difference(blob).map(|is_difference| !is_difference))?;
    restore(&|_, _| Ok(true))?;
    Ok(repaired)
}

/// Rebuilds what is derived from some artifacts, such as their mentions. Signatures that were checked keep their state.
///
/// # Errors
/// Returns an error if the vault cannot be read or written.
pub(in crate::vault) fn reindex_artifacts(storage: &dyn Storage, of: &BTreeSet<CoreHash>) -> Result<()> {
    let mut artifacts = storage.maintenance().inspect()?.artifacts(None, &mut Vec::new())?;
    artifacts.retain(|artifact| of.contains(&artifact.core));
    let mut silent = Silent;
    let mut reporter = FsckReporter::new(&mut silent);
    reindex::artifacts(storage, artifacts, &KeyRing::default(), &mut reporter).map(drop)
}

/// A monitor for rebuilding a few artifacts.
struct Silent;

impl FsckMonitor for Silent {
    fn found(&mut self, _: &Finding) {}

    fn checked(&mut self, _: CoreHash, _: u64) {}
}

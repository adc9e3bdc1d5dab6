//! Artifacts that were added, as the vault returns them: compared with what was added, and restored from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::{BlobHash, CoreHash};
use crate::formats;
use crate::storage::{ErrorKind, PayloadDefect, Prepared, Result, Snapshot, Storage, StorageError};
use crate::vault::fsck;

/// What was found when an artifact was read back.
pub(super) enum ReadBack {
    /// The vault returns exactly the bytes that were added.
    Intact,
    /// It did not, and does now.
    Restored,
    /// It does not, for this reason, and what was added could not restore it.
    Damaged(StorageError),
}

/// Reads artifacts back that were added, with those embedded in them, and compares every byte. Those that differ are
/// restored.
///
/// # Errors
/// Returns an error if the vault cannot be read or written for a reason other than damage.
pub(super) fn read_back(storage: &dyn Storage, artifacts: &[&Prepared]) -> Result<Vec<ReadBack>> {
    // A vault that is created when something is stored need not exist yet.
    if artifacts.is_empty() {
        return Ok(Vec::new());
    }
    let snapshot = storage.snapshot()?;
    let found: Vec<_> =
        artifacts.iter().map(|artifact| defect(&*snapshot, artifact)).collect::<Result<_>>()?;
    drop(snapshot);
    let damaged: Vec<&Prepared> =
        artifacts.iter().zip(&found).filter(|(_, defect)| defect.is_some()).map(|(one, _)| *one).collect();
    if damaged.is_empty() {
        return Ok(found.iter().map(|_| ReadBack::Intact).collect());
    }
    match restore(storage, &damaged) {
        // What could be restored is found below.
        Err(error) if error.is_of_damage() || error.kind() == ErrorKind::Unsupported => {}
        restored => restored?,
    }
    let snapshot = storage.snapshot()?;
    let state = |(artifact, before): (&&Prepared, Option<StorageError>)| match before {
        None => Ok(ReadBack::Intact),
        Some(_) => Ok(defect(&*snapshot, artifact)?.map_or(ReadBack::Restored, ReadBack::Damaged)),
    };
    artifacts.iter().zip(found).map(state).collect()
}

/// Returns why the vault does not return an artifact, or one embedded in it, as it was added; `None` if it does.
fn defect(snapshot: &dyn Snapshot, artifact: &Prepared) -> Result<Option<StorageError>> {
    for part in artifact.parts() {
        if let Some(defect) = own_defect(snapshot, part)? {
            return Ok(Some(defect));
        }
    }
    Ok(None)
}

fn own_defect(snapshot: &dyn Snapshot, artifact: &Prepared) -> Result<Option<StorageError>> {
    let admitted = artifact.admitted();
    let (core, capture) = (admitted.core(), admitted.capture());
    let stored = match snapshot.read_members(core, capture) {
        Err(error) if error.is_of_damage() => return Ok(Some(error)),
        stored => stored?,
    };
    // The hash of the capture binds the names.
    let mut stored: Vec<&[u8]> = stored.iter().map(|member| &member.bytes[..]).collect();
    let mut added: Vec<&[u8]> = admitted.members().iter().map(crate::artifact::Member::bytes).collect();
    stored.sort_unstable();
    added.sort_unstable();
    Ok((stored != added).then(|| StorageError::damaged(core, capture, PayloadDefect::NotItsOwn)))
}

/// Restores what the vault has of artifacts: first the bytes, then the captures that still cannot be read.
fn restore(storage: &dyn Storage, artifacts: &[&Prepared]) -> Result<()> {
    let maintenance = storage.maintenance();
    if maintenance.check_pages()?.is_some() {
        return Ok(());
    }
    let steps = maintenance.repairs()?;
    let parts: Vec<&Prepared> = artifacts.iter().flat_map(|artifact| artifact.parts()).collect();
    let members = parts.iter().flat_map(|part| part.admitted().stored());
    let files: BTreeMap<BlobHash, &[u8]> = members.map(|member| (member.blob(), member.bytes())).collect();
    fsck::restore_bytes(storage, &files.keys().copied().collect(), &mut |missing, restore| {
        missing
            .iter()
            .filter_map(|blob| Some((blob, files.get(blob)?)))
            .try_for_each(|(blob, bytes)| restore(*blob, bytes))
    })?;
    let snapshot = storage.snapshot()?;
    let defects = parts.iter().map(|part| own_defect(&*snapshot, part)).collect::<Result<Vec<_>>>()?;
    drop(snapshot);
    if defects.iter().any(Option::is_some) {
        steps.rebuild(&formats::ALL)?;
    }
    let cores: BTreeSet<CoreHash> = parts.iter().map(|part| part.admitted().core()).collect();
    fsck::reindex_artifacts(storage, &cores)
}

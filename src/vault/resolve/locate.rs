//! Lookups of artifacts and captures by hash.

use super::error::{LookupError, is_one_hash};
use crate::digest::{DigestPrefix, PrefixResolution};
use crate::storage::{ArtifactRecord, CaptureRecord, Snapshot, StorageError};
use crate::vault::handle::Vault;
use crate::vault::query::{self, HashTarget};

/// The result of a lookup: an artifact and one of its captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedCapture {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// The capture that the hash identifies, or the artifact's preferred one: the one of the lowest [`preference`](crate::storage::preference).
    pub capture: CaptureRecord,
}

impl Vault {
    /// Resolves `prefix` to an artifact by its core hash, or to a capture by its own hash.
    ///
    /// # Errors
    /// Returns [`LookupError::NotFound`], [`LookupError::Ambiguous`], [`LookupError::Removed`] if the artifact was
    /// removed, and [`LookupError::Store`] if the vault cannot be read.
    pub fn locate(&self, prefix: &DigestPrefix) -> Result<LocatedCapture, LookupError> {
        locate(&*self.snapshot()?, prefix)
    }

    /// Like [`Vault::locate`], in an existing snapshot of this vault.
    ///
    /// # Errors
    /// Same as [`Vault::locate`].
    pub fn locate_in(
        &self,
        snapshot: &dyn Snapshot,
        prefix: &DigestPrefix,
    ) -> Result<LocatedCapture, LookupError> {
        locate(snapshot, prefix)
    }

    /// Returns another capture of a located artifact.
    ///
    /// # Errors
    /// Returns [`LookupError::CaptureNotFound`] if no capture of the artifact has the prefix, [`LookupError::Ambiguous`]
    /// if several have it, and [`LookupError::Store`] if the vault cannot be read.
    pub fn capture_of(
        &self,
        located: &LocatedCapture,
        prefix: &DigestPrefix,
    ) -> Result<LocatedCapture, LookupError> {
        let snapshot = self.snapshot()?;
        snapshot.expect_artifact(located.artifact.core)?;
        let captures = snapshot.captures_of(located.artifact.core)?.into_iter();
        match captures.filter(|capture| prefix.matches(&capture.capture.0)).collect() {
            PrefixResolution::None => {
                Err(LookupError::CaptureNotFound { core: located.artifact.core, capture: *prefix })
            }
            PrefixResolution::One(capture) => {
                Ok(LocatedCapture { artifact: located.artifact.clone(), capture })
            }
            PrefixResolution::Ambiguous(captures) => {
                let target = |row: &CaptureRecord| HashTarget::Capture(located.artifact.core, row.capture);
                let candidates = captures.iter().map(target).collect();
                Err(LookupError::Ambiguous { prefix: *prefix, candidates })
            }
        }
    }

    /// Like [`Vault::locate`], but resolves a hash shared by captures of several artifacts, which have the same bytes,
    /// to the capture with the smallest core hash.
    ///
    /// # Errors
    /// Same as [`Vault::locate`].
    pub fn locate_bytes(&self, prefix: &DigestPrefix) -> Result<LocatedCapture, LookupError> {
        locate_bytes(&*self.snapshot()?, prefix)
    }
}

pub(in crate::vault) fn locate(
    snapshot: &dyn Snapshot,
    prefix: &DigestPrefix,
) -> Result<LocatedCapture, LookupError> {
    let target = match query::resolve(snapshot, prefix)? {
        PrefixResolution::None => {
            let tombstone = snapshot.resolve(prefix, 1)?.tombstones.into_iter().next();
            let removed = tombstone.map(|tombstone| LookupError::Removed(Box::new(tombstone)));
            return Err(removed.unwrap_or(LookupError::NotFound(*prefix)));
        }
        PrefixResolution::Ambiguous(candidates) => {
            return Err(LookupError::Ambiguous { prefix: *prefix, candidates });
        }
        PrefixResolution::One(target) => target,
    };
    located(snapshot, target)?.ok_or(LookupError::NotFound(*prefix))
}

/// Like [`locate`], but resolves a hash shared by captures of several artifacts, which have the same bytes, to the capture
/// with the smallest core hash.
pub(super) fn locate_bytes(
    snapshot: &dyn Snapshot,
    prefix: &DigestPrefix,
) -> Result<LocatedCapture, LookupError> {
    match locate(snapshot, prefix) {
        Err(LookupError::Ambiguous { candidates, .. }) if is_one_hash(&candidates) => {
            let first = candidates.first().copied().ok_or(LookupError::NotFound(*prefix))?;
            located(snapshot, first)?.ok_or(LookupError::NotFound(*prefix))
        }
        outcome => outcome,
    }
}

/// Returns an artifact with its preferred capture.
pub(in crate::vault) fn with_preferred_capture(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
) -> Result<LocatedCapture, StorageError> {
    let capture = snapshot.preferred_capture(artifact.core)?;
    let capture = capture.ok_or_else(|| StorageError::gone(artifact.core))?;
    Ok(LocatedCapture { artifact: artifact.clone(), capture })
}

fn located(snapshot: &dyn Snapshot, target: HashTarget) -> Result<Option<LocatedCapture>, LookupError> {
    let found = match target {
        HashTarget::Artifact(core) => match snapshot.artifact(core)? {
            Some(artifact) => snapshot.preferred_capture(core)?.zip(Some(artifact)),
            None => None,
        },
        HashTarget::Capture(core, capture) => match snapshot.capture(core, capture)? {
            Some(capture) => Some((capture, snapshot.expect_artifact(core)?)),
            None => None,
        },
    };
    Ok(found.map(|(capture, artifact)| LocatedCapture { artifact, capture }))
}

//! Removes artifacts.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{ArtifactName, Operation};
use super::erasure::ErasureSummary;
use super::handle::Vault;
use super::query;
use super::removal::{RemoveError, expect_uncontained, expect_unlinked, expect_unpinned};
use crate::clock;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::{ArtifactRecord, BUSY_TIMEOUT, CaptureRecord, SharedFile, Snapshot, StorageError};

/// A request to remove artifacts with all their captures: all of them or none. Tombstones remain. Files that artifacts
/// share are kept as long as one of the artifacts is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RemoveRequest {
    /// The artifacts.
    pub artifacts: Vec<CoreHash>,
    /// The reason, which the tombstones record.
    pub reason: Option<String>,
    /// Whether to remove them even if other artifacts link to them.
    pub ignore_links: bool,
    /// Whether to also remove the artifacts that contain their bytes, such as the packs of a session.
    pub with_containers: bool,
    /// Whether to only answer what would be removed now. The removal itself checks everything again in its own
    /// transaction.
    pub dry_run: bool,
}

/// The removed artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveAnswer {
    /// The artifacts as they were before: the requested ones, then their containers.
    pub removed: Vec<Removed>,
    /// What remains of them; `None` in a dry run.
    pub erasure: Option<ErasureSummary>,
}

/// A removed artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Removed {
    /// Its core hash.
    pub core_hash: CoreHash,
    /// The id of its kind.
    pub kind: String,
    /// Its captures in the order in which they were added.
    pub captures: Vec<CaptureHash>,
    /// The total size of its captures in bytes.
    pub size: u64,
    /// Its files that are kept because other artifacts contain them, by name.
    pub shared: Vec<KeptFile>,
    /// Whether no byte of it is left in the vault's files, except those of `shared`; missing in a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<bool>,
}

/// A file of a removed artifact that is kept because other artifacts contain it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeptFile {
    /// Its name in the removed artifact.
    pub file: String,
    /// The core hashes of the artifacts that contain it, in order; at most 5.
    pub artifacts: Vec<CoreHash>,
    /// The same artifacts with their kinds.
    pub dependents: Vec<ArtifactName>,
    /// The number of artifacts that contain it.
    pub count: u64,
}

impl Operation for RemoveRequest {
    type Answer = RemoveAnswer;
    type Error = RemoveError;

    const NAME: &'static str = "remove";
    const SUMMARY: &'static str = "Remove artifacts";
    const CHANGES: bool = true;

    /// # Errors
    /// Returns [`RemoveError::Contained`] if other artifacts contain the bytes and are not also removed,
    /// [`RemoveError::Pinned`] if one of the artifacts is pinned, [`RemoveError::Linked`] if other artifacts link to
    /// them, and [`RemoveError::Store`] if one of them is not in the vault, or the vault cannot be read or written.
    fn run(&self, vault: &Vault) -> Result<RemoveAnswer, RemoveError> {
        if self.dry_run {
            // A dry run does not wait for writers.
            let snapshot = vault.snapshot()?;
            let leaving = self.leaving(&*snapshot)?;
            return Ok(RemoveAnswer { removed: described(&*snapshot, leaving)?, erasure: None });
        }
        loop {
            let mut change = vault.storage.transaction(clock::now(), BUSY_TIMEOUT)?;
            let leaving = self.leaving(change.snapshot())?;
            let cores: Vec<CoreHash> = leaving.iter().map(|artifact| artifact.core).collect();
            if change.prepare_removal(&cores)? {
                let mut removed = described(change.snapshot(), leaving)?;
                for core in cores {
                    change.remove(core, self.reason.as_deref())?;
                }
                change.commit()?;
                let erasure = ErasureSummary::new(vault, vault.erase());
                for removed in &mut removed {
                    removed.erased = Some(erasure.complete);
                }
                return Ok(RemoveAnswer { removed, erasure: Some(erasure) });
            }
            change.commit()?;
        }
    }
}

impl RemoveRequest {
    /// Returns the artifacts to remove, as they are now and once each. Returns an error if any of them is protected.
    fn leaving(&self, snapshot: &dyn Snapshot) -> Result<Vec<ArtifactRecord>, RemoveError> {
        let mut seen = BTreeSet::new();
        // An artifact that was named twice is removed only once.
        let named: Vec<CoreHash> = self.artifacts.iter().copied().filter(|core| seen.insert(*core)).collect();
        let mut leaving = snapshot.expect_artifacts(&named)?;
        if self.with_containers {
            leaving.extend(query::all_containers(snapshot, &leaving)?);
        }
        let cores: BTreeSet<CoreHash> = leaving.iter().map(|artifact| artifact.core).collect();
        expect_uncontained(snapshot, &leaving, &cores)?;
        expect_unpinned(snapshot, &leaving)?;
        if !self.ignore_links {
            expect_unlinked(snapshot, &leaving, &cores)?;
        }
        Ok(leaving)
    }
}

/// Returns what the removal of these artifacts removes.
fn described(snapshot: &dyn Snapshot, artifacts: Vec<ArtifactRecord>) -> Result<Vec<Removed>, StorageError> {
    let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
    let shared = snapshot.shared_files(&cores)?;
    let captures = snapshot.captures(&cores)?;
    let mut removed = Vec::new();
    for ((artifact, captures), files) in artifacts.into_iter().zip(captures).zip(shared) {
        let kept = files.into_iter().map(|file| to_kept_file(snapshot, file));
        removed.push(Removed {
            core_hash: artifact.core,
            kind: artifact.kind,
            captures: captures.iter().map(|capture| capture.capture).collect(),
            size: size(&captures),
            shared: kept.collect::<Result<_, _>>()?,
            erased: None,
        });
    }
    Ok(removed)
}

fn to_kept_file(snapshot: &dyn Snapshot, file: SharedFile) -> Result<KeptFile, StorageError> {
    let SharedFile { name, dependents, count } = file;
    let named = snapshot.stored_artifacts(&dependents)?;
    let named = named.into_iter().map(ArtifactName::from).collect();
    Ok(KeptFile { file: name, artifacts: dependents, dependents: named, count })
}

/// Returns the total size of captures in bytes.
pub(super) fn size(captures: &[CaptureRecord]) -> u64 {
    captures.iter().map(|capture| capture.size).sum()
}

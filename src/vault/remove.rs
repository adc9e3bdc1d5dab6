//! Removes artifacts.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::annotations::PinnedArtifact;
use super::api::{ArtifactName, PathName};
use super::query::{self, ContainedArtifact, DependentFinder, Link};
use crate::clock;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::{
    ArtifactRecord, BUSY_TIMEOUT, CaptureRecord, Erasure, Maintenance, SharedFile, Snapshot, StorageError,
};

pub use crate::storage::Remnant;

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

impl RemoveRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`RemoveError::Contained`] if other artifacts contain the bytes and are not also removed,
    /// [`RemoveError::Pinned`] if one of the artifacts is pinned, [`RemoveError::Linked`] if other artifacts link to
    /// them, and [`RemoveError::Store`] if one of them is not in the vault, or the vault cannot be read or written.
    pub fn run(&self, vault: &Vault) -> Result<RemoveAnswer, RemoveError> {
        if self.dry_run {
            // A dry run does not wait for writers.
            let snapshot = vault.snapshot()?;
            let leaving = self.leaving(&*snapshot)?;
            return Ok(RemoveAnswer { removed: describe_removals(&*snapshot, leaving)?, erasure: None });
        }
        loop {
            let mut change = vault.storage.transaction(clock::now(), BUSY_TIMEOUT)?;
            let leaving = self.leaving(change.snapshot())?;
            let cores: Vec<CoreHash> = leaving.iter().map(|artifact| artifact.core).collect();
            if change.prepare_removal(&cores)? {
                let mut removed = describe_removals(change.snapshot(), leaving)?;
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
fn describe_removals(
    snapshot: &dyn Snapshot,
    artifacts: Vec<ArtifactRecord>,
) -> Result<Vec<Removed>, StorageError> {
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
            size: size_of_captures(&captures),
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
pub(super) fn size_of_captures(captures: &[CaptureRecord]) -> u64 {
    captures.iter().map(|capture| capture.size).sum()
}

/// The reason that no artifact was removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// They are pinned.
    #[error("{} pinned", are(pins.len(), "artifact"))]
    Pinned {
        /// The pins.
        pins: Vec<PinnedArtifact>,
    },
    /// Other artifacts contain their bytes, which would stay in the vault.
    #[error("{} contained in other artifacts, which would keep the bytes", are(contained.len(), "artifact"))]
    Contained {
        /// The artifacts, each with those that contain its bytes.
        contained: Vec<ContainedArtifact>,
    },
    /// Other artifacts link to them.
    #[error("{} still referenced by remaining artifacts", are(held.len(), "artifact"))]
    Linked {
        /// The artifacts with the links to them.
        held: Vec<ReferencedArtifact>,
    },
    /// The retention policy has no rule that keeps anything.
    #[error("the retention policy keeps nothing: no rule is given, or only rules for 0 periods")]
    KeepsNothing,
    /// A store error: the vault cannot be read or written.
    #[error(transparent)]
    Store(#[from] StorageError),
}

/// An artifact that remaining artifacts link to.
#[derive(Clone, Debug)]
pub struct ReferencedArtifact {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// Links from remaining artifacts to it, at most [`ReferencedArtifact::LISTED`].
    pub links: Vec<Link>,
    /// Number of artifacts with such links that are not listed.
    pub more: u64,
}

impl ReferencedArtifact {
    /// Maximum number of links that are listed; the others are only counted.
    pub const LISTED: usize = 20;
}

fn are(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing} is") } else { format!("{count} {thing}s are") }
}

impl Vault {
    /// Erases the remains of removed artifacts, as far as this takes little time, and returns what is left.
    pub(super) fn erase(&self) -> Erasure {
        self.storage.erase()
    }
}

/// Returns an error if an artifact that is not removed contains the bytes of `artifacts`.
pub(super) fn expect_uncontained(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
    removing: &BTreeSet<CoreHash>,
) -> Result<(), RemoveError> {
    let contained = query::contained(snapshot, artifacts, removing)?;
    if contained.is_empty() { Ok(()) } else { Err(RemoveError::Contained { contained }) }
}

/// Returns an error if one of `artifacts` is pinned.
pub(super) fn expect_unpinned(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
) -> Result<(), RemoveError> {
    let mut pins = Vec::new();
    let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
    for (artifact, annotations) in artifacts.iter().zip(snapshot.annotations(&cores)?) {
        pins.extend(annotations.pin.map(|pin| PinnedArtifact { artifact: artifact.clone(), pin }));
    }
    if pins.is_empty() { Ok(()) } else { Err(RemoveError::Pinned { pins }) }
}

/// Returns an error if an artifact that is not removed links to `artifacts`.
pub(super) fn expect_unlinked(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
    removing: &BTreeSet<CoreHash>,
) -> Result<(), RemoveError> {
    let mut finder = DependentFinder::without(removing.clone());
    let mut held = Vec::new();
    for artifacts in artifacts.chunks(query::DEPENDENTS_BATCH) {
        let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
        for (artifact, holds) in artifacts.iter().zip(finder.linking(snapshot, &cores)?) {
            let listed = ReferencedArtifact::LISTED;
            let (links, more) = finder.links_to(snapshot, artifact.core, &holds, listed)?;
            if !links.is_empty() {
                held.push(ReferencedArtifact { artifact: artifact.clone(), links, more });
            }
        }
    }
    if held.is_empty() { Ok(()) } else { Err(RemoveError::Linked { held }) }
}

/// What remains of removed artifacts in the vault's files and beside them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErasureSummary {
    /// Whether no byte of them is left in the vault's files, except bytes that other artifacts contain too.
    pub complete: bool,
    /// The parts of the vault's files that contain, or may contain, their bytes until space is reclaimed; empty if the
    /// erasure is complete.
    pub remnants: Vec<Remnant>,
    /// Copies beside the vault that contain, or may contain, their bytes.
    pub copies: Vec<VaultCopy>,
}

/// A copy beside the vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VaultCopy {
    /// Its file.
    #[serde(flatten)]
    pub file: PathName,
    /// What it is a copy of.
    pub of: CopyOrigin,
}

/// The original of a copy beside the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyOrigin {
    /// A damaged write-ahead log.
    Log,
}

impl ErasureSummary {
    /// Describes an erasure in a vault.
    pub(super) fn new(vault: &Vault, erasure: Erasure) -> Self {
        let copies = remaining_copies(&*vault.storage);
        Self { complete: erasure.is_complete(), remnants: erasure.remnants, copies }
    }
}

fn remaining_copies(maintenance: &dyn Maintenance) -> Vec<VaultCopy> {
    // The removal is done: it does not fail if the directory cannot be listed.
    let logs = maintenance.log_copies().unwrap_or_default();
    let copy = |path: &PathBuf| VaultCopy { file: path.as_path().into(), of: CopyOrigin::Log };
    logs.iter().map(copy).collect()
}

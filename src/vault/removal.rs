//! Removal of artifacts.

use std::collections::BTreeSet;

use super::Vault;
use super::annotations::PinnedArtifact;
use crate::artifact::Kind;
use crate::clock;
use crate::digest::CoreHash;
use crate::formats;
use crate::storage::{
    ArtifactRecord, CaptureRecord, Erasure, Reclaimable, Reclaimed, SharedFile, Snapshot, StorageError,
};
use crate::vault::query::{self, Contained, DependentFinder, Link};
use crate::vault::retention::{Decision, Plan, Policy};

/// Options of a removal.
#[derive(Clone, Debug, Default)]
pub struct RemoveOptions {
    /// The reason, which the tombstone records.
    pub reason: Option<String>,
    /// Whether to remove them even if other artifacts link to them.
    pub ignores_links: bool,
    /// Whether to also remove the artifacts that contain their bytes, such as the packs of a session.
    pub with_containers: bool,
    /// Whether to only report what would be removed.
    pub is_dry_run: bool,
}

/// A removed artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The artifact before its removal.
    pub artifact: ArtifactRecord,
    /// Its captures before their removal.
    pub captures: Vec<CaptureRecord>,
    /// Its files that remain in the vault because other artifacts have the same bytes, by name.
    pub shared: Vec<KeptFile>,
}

/// A file of a removed artifact that remains because other artifacts have the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// Its name in the removed artifact.
    pub name: String,
    /// The artifacts that have the bytes, by core hash; at most [`SharedFile::LISTED`].
    pub holders: Vec<ArtifactRecord>,
    /// The number of artifacts that have the bytes.
    pub count: u64,
}

impl Removed {
    /// Returns the total size of its captures in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.captures.iter().map(|capture| capture.size).sum()
    }
}

/// The result of a removal.
#[derive(Clone, Debug)]
pub struct Removal {
    /// The artifacts as they were before: the given ones, then their containers.
    pub removed: Vec<Removed>,
    /// Traces of them that remain in the vault's files; `None` if nothing was removed.
    pub erasure: Option<Erasure>,
}

/// The result of applying a retention plan.
#[derive(Clone, Debug)]
pub struct Forgetting {
    /// Artifacts that were planned for removal and were kept, because they were since added again, tagged or otherwise
    /// protected by the policy.
    pub spared: Vec<ArtifactRecord>,
    /// The result of a removal.
    pub removal: Removal,
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
        contained: Vec<Contained>,
    },
    /// Other artifacts link to them.
    #[error("{} still referenced by remaining artifacts", are(held.len(), "artifact"))]
    Linked {
        /// The artifacts with the links to them.
        held: Vec<Referenced>,
    },
    /// A store error: the vault cannot be read or written.
    #[error(transparent)]
    Store(#[from] StorageError),
}

/// An artifact that remaining artifacts link to.
#[derive(Clone, Debug)]
pub struct Referenced {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// Links from remaining artifacts to it, at most [`Referenced::LISTED`].
    pub links: Vec<Link>,
    /// Number of artifacts with such links that are not listed.
    pub more: u64,
}

impl Referenced {
    /// Maximum number of links that are listed; the others are only counted.
    pub const LISTED: usize = 20;
}

fn are(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing} is") } else { format!("{count} {thing}s are") }
}

/// The number of artifacts that a policy removes per transaction: others wait no longer than for an addition.
const BATCH: usize = 100;

impl Vault {
    /// Removes artifacts with all their captures, all of them or none. Tombstones remain. Blobs that several artifacts
    /// share are kept as long as one of the artifacts is: [`Removed::shared`] lists them.
    ///
    /// # Errors
    /// Returns [`RemoveError::Contained`] if other artifacts contain the bytes and are not also removed,
    /// [`RemoveError::Pinned`], [`RemoveError::Linked`], and [`RemoveError::Store`] if the vault cannot be read or
    /// written.
    pub fn remove(
        &self,
        artifacts: &[ArtifactRecord],
        options: &RemoveOptions,
    ) -> Result<Removal, RemoveError> {
        if options.is_dry_run {
            // A dry run does not wait for writers.
            let snapshot = self.snapshot()?;
            let leaving = leaving(&*snapshot, artifacts, options)?;
            return Ok(Removal { removed: described(&*snapshot, leaving, true)?, erasure: None });
        }
        loop {
            let mut change = self.storage.transaction(clock::now())?;
            let leaving = leaving(change.snapshot(), artifacts, options)?;
            let cores: Vec<CoreHash> = leaving.iter().map(|artifact| artifact.core).collect();
            if change.prepare_removal(&cores)? {
                let removed = described(change.snapshot(), leaving, true)?;
                for core in cores {
                    change.remove(core, options.reason.as_deref())?;
                }
                change.commit()?;
                return Ok(Removal { removed, erasure: Some(self.erase()) });
            }
            change.commit()?;
        }
    }

    /// Erases the remains of removed artifacts, if the engine may have left any.
    fn erase(&self) -> Erasure {
        self.storage.maintenance().erase()
    }

    /// Decides by `policy` which artifacts to keep, without changing anything.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn plan_retention(&self, policy: Policy) -> Result<Plan, StorageError> {
        Plan::new(&*self.snapshot()?, policy, clock::now())
    }

    /// Removes the artifacts that `plan` does not keep, except those that the policy keeps now because of changes
    /// since. [`Removed::shared`] is empty: blobs shared with kept artifacts are not looked up.
    ///
    /// # Errors
    /// Same as [`Vault::remove`]; artifacts already removed stay removed.
    pub fn forget(&self, plan: &Plan, reason: Option<&str>) -> Result<Forgetting, RemoveError> {
        let (mut leaving, mut spared) = self.still_leaving(plan)?;
        // An interruption must not leave packs that contain the bytes of removed artifacts.
        leaving.sort_by_key(|artifact| !formats::named(&artifact.kind).is_some_and(Kind::is_of_directories));
        let mut all: BTreeSet<CoreHash> = leaving.iter().map(|artifact| artifact.core).collect();
        let mut removed = Vec::new();
        for batch in leaving.chunks(BATCH) {
            let cores: Vec<CoreHash> = batch.iter().map(|artifact| artifact.core).collect();
            let mut change = self.storage.transaction(clock::now())?;
            while !change.prepare_removal(&cores)? {
                change.commit()?;
                change = self.storage.transaction(clock::now())?;
            }
            // Artifacts pinned or linked to since the decision are kept. Other processes may have removed some of them.
            let batch = unchanged(change.snapshot(), batch, &plan.policy)?;
            for artifact in &batch.spared {
                all.remove(&artifact.core);
            }
            expect_uncontained(change.snapshot(), &batch.leaving, &all)?;
            expect_unpinned(change.snapshot(), &batch.leaving)?;
            if !plan.policy.ignores_links {
                expect_unlinked(change.snapshot(), &batch.leaving, &all)?;
            }
            spared.extend(batch.spared);
            let described = described(change.snapshot(), batch.leaving, false)?;
            for Removed { artifact, .. } in &described {
                change.remove(artifact.core, reason)?;
            }
            change.commit()?;
            removed.extend(described);
        }
        let erasure = if removed.is_empty() { None } else { Some(self.erase()) };
        Ok(Forgetting { spared, removal: Removal { removed, erasure } })
    }

    /// Returns the artifacts that `plan` removes and its policy would still remove, and those that it would now keep.
    fn still_leaving(&self, plan: &Plan) -> Result<(Vec<ArtifactRecord>, Vec<ArtifactRecord>), StorageError> {
        let snapshot = self.snapshot()?;
        if snapshot.journal_head()? == plan.head {
            return Ok((plan.removed().map(|decision| decision.artifact.clone()).collect(), Vec::new()));
        }
        // Artifacts that neither plan keeps are not held by anything that either plan keeps.
        let planned: BTreeSet<CoreHash> = plan.removed().map(|decision| decision.artifact.core).collect();
        let now = Plan::new(&*snapshot, plan.policy.clone(), plan.now)?.decisions.into_iter();
        let (leaving, spared): (Vec<Decision>, Vec<Decision>) = now
            .filter(|decision| planned.contains(&decision.artifact.core))
            .partition(|decision| !decision.is_kept());
        let rows =
            |decisions: Vec<Decision>| decisions.into_iter().map(|decision| decision.artifact).collect();
        Ok((rows(leaving), rows(spared)))
    }

    /// Returns what [`Vault::reclaim`] would remove.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn reclaimable(&self) -> Result<Reclaimable, StorageError> {
        self.storage.maintenance().reclaimable()
    }

    /// Removes unreferenced data and shrinks the file to its minimum size. No removed data remains in it.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written. Steps already completed are kept.
    pub fn reclaim(&self) -> Result<Option<Reclaimed>, StorageError> {
        self.storage.maintenance().reclaim(clock::now())
    }
}

/// Returns what the removal of these artifacts removes, with the files that remain if `with_shared`.
fn described(
    snapshot: &dyn Snapshot,
    artifacts: Vec<ArtifactRecord>,
    with_shared: bool,
) -> Result<Vec<Removed>, StorageError> {
    let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
    let shared = if with_shared { snapshot.shared_files(&cores)? } else { vec![Vec::new(); cores.len()] };
    let captures = snapshot.captures(&cores)?;
    let mut removed = Vec::new();
    for ((artifact, captures), files) in artifacts.into_iter().zip(captures).zip(shared) {
        let kept = files.into_iter().map(|SharedFile { name, holders, count }| {
            Ok(KeptFile { name, holders: snapshot.stored_artifacts(&holders)?, count })
        });
        let shared = kept.collect::<Result<_, StorageError>>()?;
        removed.push(Removed { artifact, captures, shared });
    }
    Ok(removed)
}

/// Returns the artifacts that are removed with `artifacts`, as they are now and once each. Returns an error if any of
/// them is protected.
fn leaving(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
    options: &RemoveOptions,
) -> Result<Vec<ArtifactRecord>, RemoveError> {
    let mut present = present(snapshot, artifacts)?;
    let mut known: BTreeSet<CoreHash> = present.iter().map(|artifact| artifact.core).collect();
    if let Some(gone) = artifacts.iter().find(|artifact| !known.contains(&artifact.core)) {
        return Err(StorageError::gone(gone.core).into());
    }
    // An artifact that was named twice is removed only once.
    present.retain(|artifact| known.remove(&artifact.core));
    if options.with_containers {
        present.extend(query::all_containers(snapshot, &present)?);
    }
    let cores: BTreeSet<CoreHash> = present.iter().map(|artifact| artifact.core).collect();
    expect_uncontained(snapshot, &present, &cores)?;
    expect_unpinned(snapshot, &present)?;
    if !options.ignores_links {
        expect_unlinked(snapshot, &present, &cores)?;
    }
    Ok(present)
}

/// Returns the current state of the artifacts that still exist.
fn present(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
) -> Result<Vec<ArtifactRecord>, StorageError> {
    let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
    snapshot.stored_artifacts(&cores)
}

/// A part of the artifacts that a plan removes.
struct Batch {
    /// The artifacts to remove, as they are now.
    leaving: Vec<ArtifactRecord>,
    /// The artifacts that were seen again or tagged since.
    spared: Vec<ArtifactRecord>,
}

/// Returns the current state of the artifacts that still exist.
fn unchanged(
    snapshot: &dyn Snapshot,
    planned: &[ArtifactRecord],
    policy: &Policy,
) -> Result<Batch, StorageError> {
    let mut batch = Batch { leaving: Vec::new(), spared: Vec::new() };
    for planned in planned {
        let Some(now) = snapshot.artifact(planned.core)? else { continue };
        if now.arrival == planned.arrival && policy.by_tag(snapshot, &now)?.is_empty() {
            batch.leaving.push(now);
        } else {
            batch.spared.push(now);
        }
    }
    Ok(batch)
}

/// Returns an error if an artifact that is not removed contains the bytes of `artifacts`.
fn expect_uncontained(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
    removing: &BTreeSet<CoreHash>,
) -> Result<(), RemoveError> {
    let contained = query::contained(snapshot, artifacts, removing)?;
    if contained.is_empty() { Ok(()) } else { Err(RemoveError::Contained { contained }) }
}

fn expect_unpinned(snapshot: &dyn Snapshot, artifacts: &[ArtifactRecord]) -> Result<(), RemoveError> {
    let mut pins = Vec::new();
    let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
    for (artifact, annotations) in artifacts.iter().zip(snapshot.annotations(&cores)?) {
        pins.extend(annotations.pin.map(|pin| PinnedArtifact { artifact: artifact.clone(), pin }));
    }
    if pins.is_empty() { Ok(()) } else { Err(RemoveError::Pinned { pins }) }
}

/// Returns an error if an artifact that is not removed links to `artifacts`.
fn expect_unlinked(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
    removing: &BTreeSet<CoreHash>,
) -> Result<(), RemoveError> {
    let mut finder = DependentFinder::without(removing.clone());
    let mut held = Vec::new();
    for artifact in artifacts {
        let (links, more) = finder.links_to(snapshot, artifact, Referenced::LISTED)?;
        if !links.is_empty() {
            held.push(Referenced { artifact: artifact.clone(), links, more });
        }
    }
    if held.is_empty() { Ok(()) } else { Err(RemoveError::Linked { held }) }
}

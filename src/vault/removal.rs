//! Removal of artifacts, and protection from it.

use std::collections::BTreeSet;

use super::Vault;
use crate::artifact::Kind;
use crate::clock;
use crate::digest::CoreHash;
use crate::formats;
use crate::storage::{
    ArtifactRow, Edit, Erasure, Heirs, PinRow, Reclaimable, Reclaimed, Removed, Snapshot, StatedLink,
    StorageError,
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
    pub spared: Vec<ArtifactRow>,
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
        pins: Vec<PinRow>,
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
    pub artifact: ArtifactRow,
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
    pub fn remove(&self, artifacts: &[ArtifactRow], options: &RemoveOptions) -> Result<Removal, RemoveError> {
        if options.is_dry_run {
            // A dry run does not wait for writers.
            let snapshot = self.snapshot()?;
            let leaving = leaving(&snapshot, artifacts, options)?;
            return Ok(Removal { removed: snapshot.planned_removal(&leaving)?, erasure: None });
        }
        let mut heirs = Heirs::default();
        loop {
            let edit = self.store.edit(clock::now())?;
            let leaving = leaving(edit.snapshot(), artifacts, options)?;
            if edit.release(&leaving, &mut heirs)? {
                return self.remove_now(edit, &leaving, options);
            }
            edit.commit()?;
        }
    }

    /// Removes artifacts that have passed the checks.
    fn remove_now(
        &self,
        mut edit: Edit<'_>,
        artifacts: &[ArtifactRow],
        options: &RemoveOptions,
    ) -> Result<Removal, RemoveError> {
        let mut removed = Vec::new();
        for artifact in artifacts {
            removed.push(edit.remove(artifact, options.reason.as_deref())?);
        }
        edit.note_shared(&mut removed)?;
        edit.commit()?;
        Ok(Removal { removed, erasure: Some(self.store.erase()) })
    }

    /// Decides by `policy` which artifacts to keep, without changing anything.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn plan_retention(&self, policy: Policy) -> Result<Plan, StorageError> {
        Plan::new(&self.snapshot()?, policy, clock::now())
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
            let mut heirs = Heirs::default();
            let mut edit = self.store.edit(clock::now())?;
            while !edit.release(batch, &mut heirs)? {
                edit.commit()?;
                edit = self.store.edit(clock::now())?;
            }
            // Artifacts pinned or linked to since the decision are kept. Other processes may have removed some of them.
            let batch = unchanged(&edit, batch, &plan.policy)?;
            for artifact in &batch.spared {
                all.remove(&artifact.core);
            }
            expect_uncontained(edit.snapshot(), &batch.leaving, &all)?;
            expect_unpinned(edit.snapshot(), &batch.leaving)?;
            if !plan.policy.ignores_links {
                expect_unlinked(edit.snapshot(), &batch.leaving, &all)?;
            }
            spared.extend(batch.spared);
            for artifact in &batch.leaving {
                removed.push(edit.remove(artifact, reason)?);
            }
            edit.commit()?;
        }
        let erasure = if removed.is_empty() { None } else { Some(self.store.erase()) };
        Ok(Forgetting { spared, removal: Removal { removed, erasure } })
    }

    /// Returns the artifacts that `plan` removes and its policy would still remove, and those that it would now keep.
    fn still_leaving(&self, plan: &Plan) -> Result<(Vec<ArtifactRow>, Vec<ArtifactRow>), StorageError> {
        let snapshot = self.snapshot()?;
        if snapshot.journal_head()? == plan.head {
            return Ok((plan.removed().map(|decision| decision.artifact.clone()).collect(), Vec::new()));
        }
        // Artifacts that neither plan keeps are not held by anything that either plan keeps.
        let planned: BTreeSet<CoreHash> = plan.removed().map(|decision| decision.artifact.core).collect();
        let now = Plan::new(&snapshot, plan.policy.clone(), plan.now)?.decisions.into_iter();
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
        self.store.reclaimable()
    }

    /// Removes unreferenced data and shrinks the file to its minimum size. No removed data remains in it.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written. Steps already completed are kept.
    pub fn reclaim(&self) -> Result<Option<Reclaimed>, StorageError> {
        self.store.reclaim(clock::now())
    }

    /// Protects an artifact from removal. Returns false if it was already pinned with this note.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn pin(&self, artifact: &ArtifactRow, note: Option<&str>) -> Result<bool, StorageError> {
        self.change(|edit| edit.pin(artifact, note))
    }

    /// Removes the pin of an artifact. Returns false if it was not pinned.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn unpin(&self, artifact: &ArtifactRow) -> Result<bool, StorageError> {
        self.change(|edit| edit.unpin(artifact))
    }

    /// Sets a tag on an artifact, and removes it from any other artifact. Returns false if the artifact already has it.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn tag(&self, artifact: &ArtifactRow, name: &str) -> Result<bool, StorageError> {
        self.change(|edit| edit.tag(artifact, name))
    }

    /// Removes a tag. Returns false if no artifact has it.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn untag(&self, name: &str) -> Result<bool, StorageError> {
        self.change(|edit| edit.untag(name))
    }

    /// Sets the note of an artifact, replacing any other. Returns false if it already has this one.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn note(&self, artifact: &ArtifactRow, text: &str) -> Result<bool, StorageError> {
        self.change(|edit| edit.set_note(artifact, text))
    }

    /// Removes the note of an artifact. Returns false if it had none.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn remove_note(&self, artifact: &ArtifactRow) -> Result<bool, StorageError> {
        self.change(|edit| edit.remove_note(artifact))
    }

    /// Adds a manual link from `source` to `target`. Returns false if it already exists with this note.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn state_link(&self, link: StatedLink<'_>, note: Option<&str>) -> Result<bool, StorageError> {
        self.change(|edit| edit.state_link(link, note))
    }

    /// Removes a manual link. Returns false if it does not exist; derived links cannot be removed.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn take_back_link(&self, link: StatedLink<'_>) -> Result<bool, StorageError> {
        self.change(|edit| edit.take_back_link(link))
    }

    fn change(
        &self,
        work: impl FnOnce(&mut Edit<'_>) -> Result<bool, StorageError>,
    ) -> Result<bool, StorageError> {
        let mut edit = self.store.edit(clock::now())?;
        let did = work(&mut edit)?;
        if did {
            edit.commit()?;
        }
        Ok(did)
    }
}

/// Returns the artifacts that are removed with `artifacts`, as they are now and once each. Returns an error if any of
/// them is protected.
fn leaving(
    snapshot: &Snapshot<'_>,
    artifacts: &[ArtifactRow],
    options: &RemoveOptions,
) -> Result<Vec<ArtifactRow>, RemoveError> {
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

/// Returns the current rows of the artifacts that still exist.
fn present(snapshot: &Snapshot<'_>, artifacts: &[ArtifactRow]) -> Result<Vec<ArtifactRow>, StorageError> {
    let now = artifacts.iter().map(|artifact| snapshot.artifact(artifact.core));
    now.filter_map(Result::transpose).collect()
}

/// A part of the artifacts that a plan removes.
struct Batch {
    /// The artifacts to remove, as they are now.
    leaving: Vec<ArtifactRow>,
    /// The artifacts that were seen again or tagged since.
    spared: Vec<ArtifactRow>,
}

/// Returns the current rows of the artifacts that still exist.
fn unchanged(edit: &Edit<'_>, planned: &[ArtifactRow], policy: &Policy) -> Result<Batch, StorageError> {
    let mut batch = Batch { leaving: Vec::new(), spared: Vec::new() };
    for planned in planned {
        let Some(now) = edit.snapshot().artifact(planned.core)? else { continue };
        if now.arrival == planned.arrival && policy.by_tag(edit.snapshot(), &now)?.is_empty() {
            batch.leaving.push(now);
        } else {
            batch.spared.push(now);
        }
    }
    Ok(batch)
}

/// Returns an error if an artifact that is not removed contains the bytes of `artifacts`.
fn expect_uncontained(
    snapshot: &Snapshot<'_>,
    artifacts: &[ArtifactRow],
    removing: &BTreeSet<CoreHash>,
) -> Result<(), RemoveError> {
    let contained = query::contained(snapshot, artifacts, removing)?;
    if contained.is_empty() { Ok(()) } else { Err(RemoveError::Contained { contained }) }
}

fn expect_unpinned(snapshot: &Snapshot<'_>, artifacts: &[ArtifactRow]) -> Result<(), RemoveError> {
    let mut pins = Vec::new();
    for artifact in artifacts {
        pins.extend(snapshot.pin_of(artifact.id)?);
    }
    if pins.is_empty() { Ok(()) } else { Err(RemoveError::Pinned { pins }) }
}

/// Returns an error if an artifact that is not removed links to `artifacts`.
fn expect_unlinked(
    snapshot: &Snapshot<'_>,
    artifacts: &[ArtifactRow],
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

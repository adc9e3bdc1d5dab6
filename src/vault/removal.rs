//! Removing artifacts, and what protects them from it.

use std::collections::BTreeSet;

use super::Vault;
use crate::artifact::Kind;
use crate::clock;
use crate::digest::CoreHash;
use crate::kinds;
use crate::query::{self, Contained, HolderFinder, Link};
use crate::retention::{Decision, Plan, Policy};
use crate::store::{
    ArtifactRow, Edit, Erasure, Heirs, PinRow, Reclaimable, Reclaimed, Removed, Snapshot, StatedLink,
    StoreError,
};

/// How to remove artifacts.
#[derive(Clone, Debug, Default)]
pub struct RemoveOptions {
    /// Why. The tombstone says so.
    pub reason: Option<String>,
    /// Even if something else links to them.
    pub ignores_links: bool,
    /// Removes the artifacts as well that have their bytes, such as the packs of a session.
    pub with_containers: bool,
    /// Only tell what would be removed.
    pub is_rehearsal: bool,
}

/// What was removed.
#[derive(Clone, Debug)]
pub struct Removal {
    /// The artifacts, as they were: those that were named, then their containers.
    pub removed: Vec<Removed>,
    /// What is left of them in the vault's files; nothing was looked for if nothing was removed.
    pub erasure: Option<Erasure>,
}

/// What was removed by a plan.
#[derive(Clone, Debug)]
pub struct Forgetting {
    /// What was to be removed and was not, because it was added again, tagged or otherwise kept by the policy meanwhile.
    pub spared: Vec<ArtifactRow>,
    /// What was removed.
    pub removal: Removal,
}

/// Why artifacts were not removed. None of them was.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// They are pinned.
    #[error("{} pinned", are(pins.len(), "artifact"))]
    Pinned {
        /// The pins.
        pins: Vec<PinRow>,
    },
    /// Their bytes would stay in the vault, because other artifacts have them.
    #[error("{} part of other artifacts, which would still have the bytes", are(contained.len(), "artifact"))]
    Contained {
        /// The artifacts, each with those that have its bytes.
        contained: Vec<Contained>,
    },
    /// Others link to them.
    #[error("{} still referenced by remaining artifacts", are(held.len(), "artifact"))]
    Linked {
        /// The artifacts with the links to them.
        held: Vec<Referenced>,
    },
    /// What the store says.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An artifact that others link to.
#[derive(Clone, Debug)]
pub struct Referenced {
    /// The artifact.
    pub artifact: ArtifactRow,
    /// Links of others to it; no more than [`Referenced::LISTED`].
    pub links: Vec<Link>,
    /// The number of artifacts with such links that are not listed.
    pub more: u64,
}

impl Referenced {
    /// The maximum number of links that are listed; the others are counted.
    pub const LISTED: usize = 20;
}

fn are(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing} is") } else { format!("{count} {thing}s are") }
}

/// So many artifacts are removed by a policy in one transaction: others wait no longer than for an addition.
const BATCH: usize = 100;

impl Vault {
    /// Removes artifacts with all their captures, all of them or none. Tombstones in the journal remain. What several artifacts
    /// have in common stays as long as one of them does: [`Removed::shared`] names it.
    ///
    /// # Errors
    /// [`RemoveError::Contained`] if other artifacts have the bytes, unless those are removed as well;
    /// [`RemoveError::Pinned`]; [`RemoveError::Linked`]; or what the store says.
    pub fn remove(&self, artifacts: &[ArtifactRow], options: &RemoveOptions) -> Result<Removal, RemoveError> {
        if options.is_rehearsal {
            // Who only asks does not wait for those who write.
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

    /// Removes artifacts that may be removed.
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

    /// Decides by `policy` what to keep, and changes nothing.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn plan_retention(&self, policy: Policy) -> Result<Plan, StoreError> {
        Plan::new(&self.snapshot()?, policy, clock::now())
    }

    /// Removes what `plan` does not keep. What changed since so that the policy keeps it now is spared. [`Removed::shared`] is
    /// empty: what is shared with kept artifacts is not looked up.
    ///
    /// # Errors
    /// As [`Vault::remove`]; what was removed before stays removed.
    pub fn forget(&self, plan: &Plan, reason: Option<&str>) -> Result<Forgetting, RemoveError> {
        let (mut leaving, mut spared) = self.still_leaving(plan)?;
        // An interruption must not leave packs with the bytes of what is gone.
        leaving.sort_by_key(|artifact| !kinds::named(&artifact.kind).is_some_and(Kind::is_of_directories));
        let mut all: BTreeSet<CoreHash> = leaving.iter().map(|artifact| artifact.core).collect();
        let mut removed = Vec::new();
        for batch in leaving.chunks(BATCH) {
            let mut heirs = Heirs::default();
            let mut edit = self.store.edit(clock::now())?;
            while !edit.release(batch, &mut heirs)? {
                edit.commit()?;
                edit = self.store.edit(clock::now())?;
            }
            // What was pinned or linked to since the decision is not removed. Others may have removed some of it.
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

    /// The artifacts that `plan` removes and that its policy would remove now as well, and those that it would keep now.
    fn still_leaving(&self, plan: &Plan) -> Result<(Vec<ArtifactRow>, Vec<ArtifactRow>), StoreError> {
        let snapshot = self.snapshot()?;
        if snapshot.journal_head()? == plan.head {
            return Ok((plan.removed().map(|decision| decision.artifact.clone()).collect(), Vec::new()));
        }
        // What neither plan keeps is held by nothing that either of them keeps.
        let planned: BTreeSet<CoreHash> = plan.removed().map(|decision| decision.artifact.core).collect();
        let now = Plan::new(&snapshot, plan.policy.clone(), plan.now)?.decisions.into_iter();
        let (leaving, spared): (Vec<Decision>, Vec<Decision>) = now
            .filter(|decision| planned.contains(&decision.artifact.core))
            .partition(|decision| !decision.is_kept());
        let rows =
            |decisions: Vec<Decision>| decisions.into_iter().map(|decision| decision.artifact).collect();
        Ok((rows(leaving), rows(spared)))
    }

    /// What [`Vault::reclaim`] would find.
    ///
    /// # Errors
    /// What the store says.
    pub fn reclaimable(&self) -> Result<Reclaimable, StoreError> {
        self.store.reclaimable()
    }

    /// Removes what nothing uses and makes the file as small as it can be. Nothing is left in it of what was removed.
    ///
    /// # Errors
    /// What the store says. What was done before stays done.
    pub fn reclaim(&self) -> Result<Option<Reclaimed>, StoreError> {
        self.store.reclaim(clock::now())
    }

    /// Protects an artifact from removal. Gives false if it was protected with this note before.
    ///
    /// # Errors
    /// What the store says.
    pub fn pin(&self, artifact: &ArtifactRow, note: Option<&str>) -> Result<bool, StoreError> {
        self.change(|edit| edit.pin(artifact, note))
    }

    /// Takes that back. Gives false if it was not protected.
    ///
    /// # Errors
    /// What the store says.
    pub fn unpin(&self, artifact: &ArtifactRow) -> Result<bool, StoreError> {
        self.change(|edit| edit.unpin(artifact))
    }

    /// Gives an artifact a name; another one that had it loses it. Gives false if it has the name.
    ///
    /// # Errors
    /// What the store says.
    pub fn tag(&self, artifact: &ArtifactRow, name: &str) -> Result<bool, StoreError> {
        self.change(|edit| edit.tag(artifact, name))
    }

    /// Takes a name away. Gives false if nothing has it.
    ///
    /// # Errors
    /// What the store says.
    pub fn untag(&self, name: &str) -> Result<bool, StoreError> {
        self.change(|edit| edit.untag(name))
    }

    /// Sets the note of an artifact, in the place of another that it had. Gives false if it had this one.
    ///
    /// # Errors
    /// What the store says.
    pub fn note(&self, artifact: &ArtifactRow, text: &str) -> Result<bool, StoreError> {
        self.change(|edit| edit.set_note(artifact, text))
    }

    /// Takes the note of an artifact away. Gives false if it had none.
    ///
    /// # Errors
    /// What the store says.
    pub fn remove_note(&self, artifact: &ArtifactRow) -> Result<bool, StoreError> {
        self.change(|edit| edit.remove_note(artifact))
    }

    /// States that `source` relates to `target`. Gives false if that was stated with this note before.
    ///
    /// # Errors
    /// What the store says.
    pub fn state_link(&self, link: StatedLink<'_>, note: Option<&str>) -> Result<bool, StoreError> {
        self.change(|edit| edit.state_link(link, note))
    }

    /// Takes a stated link back. Gives false if it was not stated; derived links cannot be taken back.
    ///
    /// # Errors
    /// What the store says.
    pub fn take_back_link(&self, link: StatedLink<'_>) -> Result<bool, StoreError> {
        self.change(|edit| edit.take_back_link(link))
    }

    fn change(
        &self,
        work: impl FnOnce(&mut Edit<'_>) -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        let mut edit = self.store.edit(clock::now())?;
        let did = work(&mut edit)?;
        if did {
            edit.commit()?;
        }
        Ok(did)
    }
}

/// What is removed with `artifacts`, as it is now and each once, if nothing protects any of it.
fn leaving(
    snapshot: &Snapshot<'_>,
    artifacts: &[ArtifactRow],
    options: &RemoveOptions,
) -> Result<Vec<ArtifactRow>, RemoveError> {
    let mut present = present(snapshot, artifacts)?;
    let mut known: BTreeSet<CoreHash> = present.iter().map(|artifact| artifact.core).collect();
    if let Some(gone) = artifacts.iter().find(|artifact| !known.contains(&artifact.core)) {
        return Err(StoreError::Gone { core: gone.core }.into());
    }
    // An artifact that was named twice is removed once.
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

/// The artifacts as they are now, without those that are gone.
fn present(snapshot: &Snapshot<'_>, artifacts: &[ArtifactRow]) -> Result<Vec<ArtifactRow>, StoreError> {
    let now = artifacts.iter().map(|artifact| snapshot.artifact(artifact.core));
    now.filter_map(Result::transpose).collect()
}

/// Some of the artifacts that a plan removes.
struct Batch {
    /// Those that are to be removed, as they are now.
    leaving: Vec<ArtifactRow>,
    /// Those that were seen again or tagged meanwhile.
    spared: Vec<ArtifactRow>,
}

/// The artifacts as they are now, without those that are gone.
fn unchanged(edit: &Edit<'_>, planned: &[ArtifactRow], policy: &Policy) -> Result<Batch, StoreError> {
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

/// Makes sure that only what is removed as well has the bytes of `artifacts`.
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

/// Makes sure that only what is removed as well links to `artifacts`.
fn expect_unlinked(
    snapshot: &Snapshot<'_>,
    artifacts: &[ArtifactRow],
    removing: &BTreeSet<CoreHash>,
) -> Result<(), RemoveError> {
    let mut finder = HolderFinder::without(removing.clone());
    let mut held = Vec::new();
    for artifact in artifacts {
        let (links, more) = finder.links_to(snapshot, artifact, Referenced::LISTED)?;
        if !links.is_empty() {
            held.push(Referenced { artifact: artifact.clone(), links, more });
        }
    }
    if held.is_empty() { Ok(()) } else { Err(RemoveError::Linked { held }) }
}

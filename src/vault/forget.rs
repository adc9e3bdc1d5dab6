//! Applies a retention policy.

use std::collections::BTreeSet;

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::api::{ArtifactSummary, TimeBasis, Timestamp};
use super::remove::{
    self, ErasureSummary, RemoveError, expect_uncontained, expect_unlinked, expect_unpinned,
};
use super::retention::{ArtifactDecision, Plan, Policy, Share};
use crate::artifact::Kind;
use crate::clock;
use crate::digest::CoreHash;
use crate::formats;
use crate::storage::{ArtifactRecord, BUSY_TIMEOUT, Snapshot, StorageError, Transaction};

/// A request to remove the artifacts that a retention policy does not keep, in transactions of a hundred artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ForgetRequest {
    /// The policy. It must have a rule.
    pub policy: Policy,
    /// The plan of an earlier dry run with the same policy. Only artifacts that it removes are removed, and of these the
    /// ones that the policy keeps by now are spared, because they were added again, tagged, labeled, pinned or linked to.
    pub plan: Option<ForgetPlan>,
    /// The reason, which the tombstones record.
    pub reason: Option<String>,
    /// Whether to only decide.
    pub dry_run: bool,
}

/// What a retention policy removes, decided at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetPlan {
    /// The time from which ages are measured.
    pub at: Timestamp,
    /// The artifacts to be removed.
    pub artifacts: Vec<CoreHash>,
}

/// The decisions of a retention policy, and what was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForgetAnswer {
    /// The time from which ages are measured.
    pub at: Timestamp,
    /// The decision on each artifact of the kinds of the policy, by group, newest first.
    pub decisions: Vec<RetentionDecision>,
    /// Number of artifacts of each kind that the policy does not keep, by kind.
    pub shares: Vec<Share>,
    /// What was removed; `None` in a dry run.
    pub removal: Option<ForgetRemoval>,
}

/// The decision of a retention policy on an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetentionDecision {
    /// The artifact.
    #[serde(flatten)]
    pub artifact: ArtifactSummary,
    /// Which of its times is used.
    pub by: TimeBasis,
    /// That time; `None` if the artifact does not have it.
    pub at: Option<Timestamp>,
    /// The values that define its group.
    pub group: Vec<GroupValues>,
    /// The total size of its captures in bytes.
    pub size: u64,
    /// Whether it is kept.
    pub keep: bool,
    /// Descriptions of why it is kept, or why no rule keeps it.
    pub reasons: Vec<String>,
}

/// The values of a key by which artifacts are grouped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupValues {
    /// `kind`, `label:` and the key of a label, or the name of an attribute.
    pub name: String,
    /// The kind, or the values of the label or the attribute; there may be none.
    pub values: Vec<String>,
}

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForgetRemoval {
    /// The removed artifacts, in the order of their removal.
    pub removed: Vec<CoreHash>,
    /// The total size of their captures in bytes.
    pub size: u64,
    /// The artifacts that were planned for removal and are kept because of changes since then.
    pub spared: Vec<CoreHash>,
    /// What remains of the removed artifacts; `None` if there are none.
    pub erasure: Option<ErasureSummary>,
}

/// The number of artifacts that a policy removes per transaction: others wait no longer than for an addition.
const BATCH: usize = 100;

impl ForgetRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`RemoveError::KeepsNothing`] if the policy has no rule, [`RemoveError::Pinned`],
    /// [`RemoveError::Contained`] and [`RemoveError::Linked`] if an artifact was protected during the removal, and
    /// [`RemoveError::Store`] if the vault cannot be read or written. Artifacts already removed stay removed.
    pub fn run(&self, vault: &Vault) -> Result<ForgetAnswer, RemoveError> {
        let plan = self.decide(vault)?;
        let removal = if self.dry_run { None } else { Some(self.remove(vault, &plan)?) };
        let decisions = plan.decisions.iter().map(|decision| RetentionDecision::new(decision, &plan.policy));
        Ok(ForgetAnswer {
            at: plan.at.into(),
            decisions: decisions.collect(),
            shares: plan.shares(),
            removal,
        })
    }
}

/// Returns the current time in the precision in which plans state it.
fn now() -> DateTime<Utc> {
    clock::now().trunc_subsecs(3)
}

impl ForgetAnswer {
    /// Returns the plan, for a request that removes what this answer would.
    #[must_use]
    pub fn plan(&self) -> ForgetPlan {
        let removed = self.decisions.iter().filter(|decision| !decision.keep);
        ForgetPlan { at: self.at, artifacts: removed.map(|decision| decision.artifact.core_hash).collect() }
    }
}

impl From<&Plan> for ForgetPlan {
    fn from(plan: &Plan) -> Self {
        let artifacts = plan.removed().map(|decision| decision.artifact.core);
        Self { at: plan.at.into(), artifacts: artifacts.collect() }
    }
}

impl ForgetRequest {
    /// Applies the policy without removing anything. The plan takes less memory than an answer, which describes every
    /// decision.
    ///
    /// # Errors
    /// Returns [`RemoveError::KeepsNothing`] if the policy has no rule, and [`RemoveError::Store`] if the vault cannot be
    /// read.
    pub fn decide(&self, vault: &Vault) -> Result<Plan, RemoveError> {
        if !self.policy.keeps_something() {
            return Err(RemoveError::KeepsNothing);
        }
        let at = self.plan.as_ref().map_or_else(now, |plan| plan.at.0);
        Ok(Plan::new(&*vault.snapshot()?, self.policy.clone(), at)?)
    }

    /// Removes what `plan`, which [`ForgetRequest::decide`] returned, does not keep, and the plan of the request, if there
    /// is one, does not keep either.
    ///
    /// # Errors
    /// Same as [`ForgetRequest::run`].
    pub fn remove(&self, vault: &Vault, plan: &Plan) -> Result<ForgetRemoval, RemoveError> {
        // Artifacts that neither plan keeps are not held by anything that either plan keeps.
        let planned: Option<BTreeSet<CoreHash>> =
            self.plan.as_ref().map(|plan| plan.artifacts.iter().copied().collect());
        let is_planned = |decision: &&ArtifactDecision| {
            planned.as_ref().is_none_or(|planned| planned.contains(&decision.artifact.core))
        };
        let mut leaving: Vec<&ArtifactRecord> =
            plan.removed().filter(is_planned).map(|decision| &decision.artifact).collect();
        let mut removal = ForgetRemoval::default();
        if planned.is_some() {
            let kept = plan.decisions.iter().filter(|decision| decision.is_kept()).filter(is_planned);
            removal.spared = kept.map(|decision| decision.artifact.core).collect();
        }
        // An interruption must not leave packs that contain the bytes of removed artifacts.
        leaving.sort_by_key(|artifact| !formats::named(&artifact.kind).is_some_and(Kind::is_of_directories));
        let mut all: BTreeSet<CoreHash> = leaving.iter().map(|artifact| artifact.core).collect();
        for batch in leaving.chunks(BATCH) {
            self.remove_batch(vault, batch, &mut all, &mut removal)?;
        }
        if !removal.removed.is_empty() {
            removal.erasure = Some(ErasureSummary::new(vault, vault.erase()));
        }
        Ok(removal)
    }

    /// Removes `batch`, a part of `all` that are removed, in one transaction, except what is to be spared.
    fn remove_batch(
        &self,
        vault: &Vault,
        batch: &[&ArtifactRecord],
        all: &mut BTreeSet<CoreHash>,
        removal: &mut ForgetRemoval,
    ) -> Result<(), RemoveError> {
        let mut change = prepared(vault, batch)?;
        // Artifacts pinned or linked to since the decision are kept. Other processes may have removed some of them.
        let ForgetBatch { leaving, spared } = unchanged(change.snapshot(), batch, &self.policy)?;
        for core in &spared {
            all.remove(core);
        }
        expect_uncontained(change.snapshot(), &leaving, all)?;
        expect_unpinned(change.snapshot(), &leaving)?;
        if !self.policy.ignore_links {
            expect_unlinked(change.snapshot(), &leaving, all)?;
        }
        let cores: Vec<CoreHash> = leaving.iter().map(|artifact| artifact.core).collect();
        let captures = change.snapshot().captures(&cores)?;
        for core in &cores {
            change.remove(*core, self.reason.as_deref())?;
        }
        change.commit()?;
        removal.spared.extend(spared);
        removal.removed.extend(cores);
        removal.size += captures.iter().map(|captures| remove::size_of_captures(captures)).sum::<u64>();
        Ok(())
    }
}

/// Begins a transaction in which `batch` can be removed.
fn prepared<'v>(
    vault: &'v Vault,
    batch: &[&ArtifactRecord],
) -> Result<Box<dyn Transaction + 'v>, StorageError> {
    let cores: Vec<CoreHash> = batch.iter().map(|artifact| artifact.core).collect();
    loop {
        let mut change = vault.storage.transaction(clock::now(), BUSY_TIMEOUT)?;
        if change.prepare_removal(&cores)? {
            return Ok(change);
        }
        change.commit()?;
    }
}

/// A part of the artifacts that a plan removes.
struct ForgetBatch {
    /// The artifacts to remove, as they are now.
    leaving: Vec<ArtifactRecord>,
    /// The artifacts that were seen again, tagged or labeled since.
    spared: Vec<CoreHash>,
}

/// Returns the current state of the artifacts that still exist.
fn unchanged(
    snapshot: &dyn Snapshot,
    planned: &[&ArtifactRecord],
    policy: &Policy,
) -> Result<ForgetBatch, StorageError> {
    let mut batch = ForgetBatch { leaving: Vec::new(), spared: Vec::new() };
    for planned in planned {
        let Some(now) = snapshot.artifact(planned.core)? else { continue };
        if now.arrival == planned.arrival && policy.applies_to_annotations(snapshot, &now)? {
            batch.leaving.push(now);
        } else {
            batch.spared.push(now.core);
        }
    }
    Ok(batch)
}

impl RetentionDecision {
    /// Describes a decision of `policy`.
    #[must_use]
    pub fn new(decision: &ArtifactDecision, policy: &Policy) -> Self {
        let values = |(name, values): &(String, Vec<String>)| GroupValues {
            name: name.clone(),
            values: values.clone(),
        };
        Self {
            artifact: (&decision.artifact).into(),
            by: policy.by,
            at: decision.at.map(Timestamp),
            group: decision.group.iter().map(values).collect(),
            size: decision.size,
            keep: decision.is_kept(),
            reasons: decision.descriptions(policy),
        }
    }
}

//! Audits runs against a contract.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::verdict::{Audit, AuditedEffect, EvidenceSource, Verdict};
use super::{audit_run, governed_runs, terms};
use crate::digest::CoreHash;
use crate::formats::ContractTerms;
use crate::storage::{ArtifactRecord, Snapshot, StorageError, created_at};
use crate::validation::Violation;
use crate::vault::api::JsonValue;
use crate::vault::details::run_id;
use crate::vault::resolve::LookupError;
use crate::vault::{Vault, limit_of};

/// A request for an audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditRequest {
    /// The contract.
    pub contract: CoreHash,
    /// The run; every run that the contract governs if there is none.
    #[serde(default)]
    pub run: Option<CoreHash>,
    /// Maximum number of runs; unlimited if there is none.
    #[serde(default)]
    pub limit: Option<u64>,
    /// The last run of the previous page; the first page if there is none.
    #[serde(default)]
    pub after: Option<CoreHash>,
}

/// The audits of runs against a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditAnswer {
    /// The contract.
    pub contract: CoreHash,
    /// Number of effects that it declares.
    pub effects: u64,
    /// The audit of each run, the latest first: by the creation time that it states, or by its first addition if it states
    /// none.
    pub runs: Vec<RunAudit>,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<CoreHash>,
}

/// The audit of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunAudit {
    /// The run.
    pub run: CoreHash,
    /// The id of its kind.
    pub kind: String,
    /// The id that it states, if it states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Whether there are effects, all of them are verified, and there is no finding.
    pub clean: bool,
    /// The effects of the contract, in order.
    pub effects: Vec<EffectAudit>,
    /// Violations of the contract, and what could not be checked.
    pub findings: Vec<AuditFinding>,
    /// The number of findings that are not listed, if there are any.
    pub omitted: Option<OmittedFindings>,
}

/// The audit of an effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EffectAudit {
    /// The contract.
    pub contract: CoreHash,
    /// The run.
    pub run: CoreHash,
    /// The id that the run states, if it states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The name of the effect.
    pub effect: String,
    /// The IO reference that it targets.
    pub target: String,
    /// The mode of that reference.
    pub mode: Option<String>,
    /// The idempotency that it declares.
    pub idempotency: Option<String>,
    /// The type of the evidence that it declares.
    pub evidence: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason.
    pub because: String,
    /// The location of the deciding value, in words; `None` if the effect is pending.
    pub place: Option<String>,
    /// The deciding value, unless it is a list or an object.
    #[schema(value_type = JsonValue, required = false)]
    pub value: Option<JsonValue>,
    /// Whether it is not idempotent and states neither a nonce nor a reason.
    pub unsafe_to_retry: bool,
}

/// A violation of a contract, or something that could not be checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditFinding {
    /// The contract.
    pub contract: CoreHash,
    /// The run.
    pub run: CoreHash,
    /// The id that the run states, if it states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The violation.
    #[serde(flatten)]
    pub violation: Violation,
}

/// The number of findings that are not listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OmittedFindings {
    /// The contract.
    pub contract: CoreHash,
    /// The run.
    pub run: CoreHash,
    /// The id that the run states, if it states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The number.
    pub violations_omitted: usize,
}

impl AuditRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`LookupError::KindMismatch`] if the contract is not one, [`LookupError::NotARun`] if the run is not one,
    /// [`LookupError::Unreadable`] if this program cannot interpret a document, and [`LookupError::Store`] if the vault
    /// cannot be read: of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the contract or the run is not in it, or the
    /// contract does not govern the last run of the previous page.
    pub fn run(&self, vault: &Vault) -> Result<AuditAnswer, LookupError> {
        let mut runs = Vec::new();
        let answer = self.visit::<LookupError>(vault, &mut |run| {
            runs.push(run);
            Ok(())
        })?;
        Ok(AuditAnswer { runs, ..answer })
    }

    /// Runs the request, and passes the audits to `visit` one at a time. The answer contains everything else.
    ///
    /// # Errors
    /// Same as [`AuditRequest::run`], and any error that `visit` returns.
    pub fn visit<E: From<LookupError>>(
        &self,
        vault: &Vault,
        visit: &mut dyn FnMut(RunAudit) -> Result<(), E>,
    ) -> Result<AuditAnswer, E> {
        let snapshot = vault.snapshot().map_err(LookupError::from)?;
        let (terms, runs, next) = self.runs(&*snapshot)?;
        for governed in runs {
            let audit = audit_run(&*snapshot, &terms, &governed.run)?;
            visit(RunAudit::new(self.contract, governed, audit))?;
        }
        let effects = terms.effects.len() as u64;
        Ok(AuditAnswer { contract: self.contract, effects, runs: Vec::new(), next })
    }

    /// Returns the terms of the contract, the runs of the page, and where the next one begins.
    fn runs(
        &self,
        snapshot: &dyn Snapshot,
    ) -> Result<(ContractTerms, Vec<GovernedRun>, Option<CoreHash>), LookupError> {
        let contract = snapshot.expect_artifact(self.contract)?;
        let terms = terms(snapshot, &contract)?;
        let runs = match self.run {
            Some(run) => vec![snapshot.expect_artifact(run)?],
            None => governed_runs(snapshot, &contract)?,
        };
        let mut runs = GovernedRun::latest_first(snapshot, runs)?;
        if let Some(after) = self.after {
            let last = runs.iter().position(|governed| governed.run.core == after);
            runs.drain(..=last.ok_or_else(|| StorageError::gone(after))?);
        }
        let limit = limit_of(self.limit);
        let is_cut = runs.len() > limit;
        runs.truncate(limit);
        let next = runs.last().filter(|_| is_cut).map(|governed| governed.run.core);
        Ok((terms, runs, next))
    }
}

/// A run with the id that it states.
struct GovernedRun {
    run: ArtifactRecord,
    run_id: Option<String>,
}

impl GovernedRun {
    /// Returns the runs in the order of an answer.
    fn latest_first(snapshot: &dyn Snapshot, runs: Vec<ArtifactRecord>) -> Result<Vec<Self>, StorageError> {
        let cores: Vec<CoreHash> = runs.iter().map(|run| run.core).collect();
        let attributes = snapshot.attributes(&cores)?;
        let governed = runs.into_iter().zip(attributes).map(|(run, attributes)| {
            let time = created_at(&attributes).unwrap_or(run.added_at);
            (time, Self { run, run_id: run_id(&attributes).map(str::to_owned) })
        });
        let mut governed: Vec<_> = governed.collect();
        governed.sort_by_key(|(time, governed)| std::cmp::Reverse((*time, governed.run.addition)));
        Ok(governed.into_iter().map(|(_, governed)| governed).collect())
    }
}

/// The last audit of a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LastAudit {
    /// Number of runs in the vault that the contract governs.
    pub runs: u64,
    /// The audit of the latest of them: by the creation time that it states, or by its first addition if it states none.
    pub latest: Option<RunAudit>,
}

impl LastAudit {
    /// Audits the latest run that a contract governs.
    ///
    /// # Errors
    /// Returns [`LookupError::Unreadable`] if this program cannot interpret a document, and [`LookupError::Store`] if the
    /// vault cannot be read.
    pub(in crate::vault) fn new(
        snapshot: &dyn Snapshot,
        contract: &ArtifactRecord,
    ) -> Result<Self, LookupError> {
        let runs = GovernedRun::latest_first(snapshot, governed_runs(snapshot, contract)?)?;
        let count = runs.len() as u64;
        let latest = runs.into_iter().next().map(|governed| {
            let audit = audit_run(snapshot, &terms(snapshot, contract)?, &governed.run)?;
            Ok::<_, LookupError>(RunAudit::new(contract.core, governed, audit))
        });
        Ok(Self { runs: count, latest: latest.transpose()? })
    }
}

impl RunAudit {
    fn new(contract: CoreHash, GovernedRun { run, run_id }: GovernedRun, audit: Audit) -> Self {
        let (clean, omitted) = (audit.is_clean(), audit.report.omitted());
        let finding = |violation: &Violation| AuditFinding {
            contract,
            run: run.core,
            run_id: run_id.clone(),
            violation: violation.clone(),
        };
        let effects = audit.effects.into_iter();
        Self {
            findings: audit.report.violations().iter().map(finding).collect(),
            effects: effects
                .map(|effect| EffectAudit {
                    run_id: run_id.clone(),
                    ..EffectAudit::new(contract, run.core, effect)
                })
                .collect(),
            omitted: (omitted > 0).then(|| OmittedFindings {
                contract,
                run: run.core,
                run_id: run_id.clone(),
                violations_omitted: omitted,
            }),
            run: run.core,
            kind: run.kind,
            run_id,
            clean,
        }
    }
}

impl EffectAudit {
    fn new(contract: CoreHash, run: CoreHash, audited: AuditedEffect) -> Self {
        let AuditedEffect { effect, verdict, because, source } = audited;
        let (place, value) = match source {
            Some(EvidenceSource { place, value }) => (Some(place), value.map(JsonValue)),
            None => (None, None),
        };
        Self {
            contract,
            run,
            run_id: None,
            unsafe_to_retry: effect.is_unsafe_to_retry(),
            effect: effect.name,
            target: effect.target,
            mode: effect.mode,
            idempotency: effect.idempotency,
            evidence: effect.evidence.map(|evidence| evidence.sort),
            verdict,
            because,
            place,
            value,
        }
    }
}

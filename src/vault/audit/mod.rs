//! Audit of a run against a contract.
//!
//! The evidence of each effect of a contract is searched in the calls and results of the run. The verdict is one of
//! four: pending, resolved, verified or failed. Other violations of the contract are reported by rule. `docs/audit.md`
//! defines the verdicts; `runvault rules` prints the rules AU1 to AU13.

mod collect;
mod decimal;
mod digests;
mod judge;
mod operation;
mod payloads;
mod pools;
mod refs;
mod request;
mod rules;
mod schema;
mod schema_work;
mod sources;
mod targets;
mod verdict;

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::{Kind, MemberBytes, StatedContent};
use crate::digest::Digest;
use crate::formats::comparable;
use crate::json::Value;
use crate::json::reader::{Limits, ReadError};
use crate::validation::{Findings, Report};

pub use crate::formats::{Bound, Bounds, Effect, Evidence, IoRef, SchemaSource, Stated, Terms};
pub use judge::{FAILURE, SUCCESS};
pub use request::{
    AuditAnswer, AuditFinding, AuditRequest, EffectAudit, LastAudit, OmittedFindings, RunAudit,
};
pub use rules::RULES;

use collect::Collector;
use payloads::Payloads;
use rules::{CONTENTS, EFFECTS, MODES, REQUIRED, SCHEMAS, TARGETS, UNCHECKED};

/// The result of an audit.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The effects of the contract, in order.
    pub effects: Vec<AuditedEffect>,
    /// Violations of the contract, and what could not be checked. Errors are breaches, warnings are not.
    pub report: Report,
}

impl Audit {
    /// Returns whether there is at least one effect, all effects are verified, and the run does not violate the
    /// contract.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let is_verified = |effect: &AuditedEffect| effect.verdict == Verdict::Verified;
        self.report.is_acceptable() && !self.effects.is_empty() && self.effects.iter().all(is_verified)
    }
}

/// The audit result of one effect.
#[derive(Clone, Debug)]
pub struct AuditedEffect {
    /// The effect.
    pub effect: Effect,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason for the verdict.
    pub because: String,
    /// The value that determined the verdict, unless it is pending.
    pub source: Option<EvidenceSource>,
}

/// The verdict on an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The run has no source of evidence.
    Pending,
    /// There is a source, but no proof of success.
    Resolved,
    /// The source proves the effect.
    Verified,
    /// The source disproves the effect.
    Failed,
}

impl Verdict {
    /// Returns the machine-readable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Resolved => "resolved",
            Self::Verified => "verified",
            Self::Failed => "failed",
        }
    }
}

/// A value used as evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct EvidenceSource {
    /// Its location as text, such as `step 6`.
    pub place: String,
    /// The value, unless it is a list or an object.
    pub value: Option<Value<'static>>,
}

/// A run to be audited.
#[derive(Clone, Copy, Debug)]
pub struct AuditedRun<'r> {
    /// Its kind.
    pub kind: Kind,
    /// Its files.
    pub members: &'r [MemberBytes<'r>],
    /// The digests that identify its files, by name. A file can have several.
    pub digests: &'r [(String, Digest)],
    /// The digests that it states of contents outside it.
    pub stated: &'r [StatedDigest],
}

/// A digest that a run states of a content outside it, such as a state.
#[derive(Clone, Debug)]
pub struct StatedDigest {
    /// The digest.
    pub digest: Digest,
    /// Its location as text, such as `record 6`.
    pub place: String,
    /// The content.
    pub content: StatedContent,
}

/// Bytes from the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Their description.
    pub name: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The reason that a run could not be audited.
#[derive(Debug, thiserror::Error)]
pub enum AuditError<E> {
    /// A file of the run is intact, but this program cannot interpret it.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The bytes could not be read from the vault.
    #[error("bytes cannot be read from the vault")]
    Vault(#[source] E),
}

/// Audits a run against a contract. `held` returns the bytes in the vault with a digest.
///
/// Runs in time linear in the sizes of the contract and the run.
///
/// # Errors
/// Returns [`AuditError::Unreadable`] if the run cannot be read, and [`AuditError::Vault`] with the error of `held`.
pub fn audit<E>(
    terms: &Terms,
    run: &AuditedRun<'_>,
    held: &mut dyn FnMut(Digest) -> Result<Option<Held>, E>,
) -> Result<Audit, AuditError<E>> {
    let mut schemas = HashMap::new();
    for digest in payloads::named(terms) {
        if let Some(bytes) = held(digest).map_err(AuditError::Vault)? {
            schemas.insert(digest, bytes);
        }
    }
    let mut collector = Collector::new(terms, run.digests, Payloads::new(terms, schemas));
    run.kind.run_events(run.members, &Limits::most(), &mut |event| collector.take(&event))?;
    let known = digests::known(&verdict::digests(&collector), run, held)?;
    let effects = verdict::audited_effects(&collector, &known);
    let mut findings = Findings::default();
    if terms.effects.is_empty() {
        findings
            .for_rule(EFFECTS)
            .add("/effects", "the contract states no effects, so there is nothing to verify");
    }
    let with_evidence: HashSet<&str> = effects
        .iter()
        .filter(|effect| matches!(effect.verdict, Verdict::Resolved | Verdict::Verified))
        .map(|effect| effect.effect.target.as_str())
        .collect();
    collector.refs.report(&|name: &str| with_evidence.contains(name), &mut findings);
    collector.payloads.report(&mut findings);
    check_contents(run.stated, held, &mut findings)?;
    Ok(Audit { effects, report: findings.into_report() })
}

/// Checks the contents of a run that are in the vault. Those that are not are not checked.
fn check_contents<E>(
    stated: &[StatedDigest],
    held: &mut dyn FnMut(Digest) -> Result<Option<Held>, E>,
    findings: &mut Findings,
) -> Result<(), AuditError<E>> {
    for StatedDigest { digest, place, content } in stated {
        let Some(held) = held(*digest).map_err(AuditError::Vault)? else { continue };
        if let Some(defect) = (content.defect)(&held.bytes, &Limits::most()) {
            let message = format!("the {} {digest} is {}, which {defect}", content.noun, held.name);
            findings.for_rule(CONTENTS).add(place.as_str(), message);
        }
    }
    Ok(())
}

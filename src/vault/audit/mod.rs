//! Audit of a run against a contract.
//!
//! The evidence of each effect of a contract is searched in the calls and results of the run. The verdict is one of
//! four: pending, inconclusive, verified or failed. Other violations of the contract are reported by rule. `docs/audit.md`
//! defines the verdicts. The rules are AU1 to AU15.

mod collect;
mod decimal;
mod digests;
mod judge;
mod operation;
mod payloads;
mod pools;
mod refs;
mod request;
mod result;
mod retries;
mod rules;
mod run;
mod schema;
mod schema_work;
mod sources;
mod targets;
mod verdict;

use std::collections::{HashMap, HashSet};

use crate::digest::Digest;
use crate::json::reader::Limits;
use crate::validation::Findings;

pub use crate::formats::{
    Bounds, ContractTerms, Effect, Evidence, IoRef, KeyPath, ParsedMember, RangeBound, SchemaSource,
};
pub use judge::{FAILURE, SUCCESS};
pub use request::{
    AuditAnswer, AuditFinding, AuditRequest, EffectAudit, LastAudit, OmittedFindings, RunAudit,
};
pub use result::{Audit, AuditedEffect, EvidenceSource, Verdict};
pub use rules::RULES;
pub use run::{AuditError, AuditedRun, DeclaredDigest, ResolvedContent};

use collect::EvidenceCollector;
use payloads::PayloadValidator;
use rules::{CONTENTS, EFFECTS};

/// Audits a run against a contract. `held` returns the bytes in the vault with a digest.
///
/// Runs in time linear in the sizes of the contract and the run.
///
/// # Errors
/// Returns [`AuditError::Unreadable`] if the run cannot be read, and [`AuditError::Vault`] with the error of `held`.
pub fn audit<E>(
    terms: &ContractTerms,
    run: &AuditedRun<'_>,
    held: &mut dyn FnMut(Digest) -> Result<Option<ResolvedContent>, E>,
) -> Result<Audit, AuditError<E>> {
    let mut schemas = HashMap::new();
    for digest in payloads::named(terms) {
        if let Some(bytes) = held(digest).map_err(AuditError::Vault)? {
            schemas.insert(digest, bytes);
        }
    }
    let mut collector = EvidenceCollector::new(terms, run.digests, PayloadValidator::new(terms, schemas));
    run.kind.run_events(run.members, &Limits::most(), &mut |event| collector.take(&event))?;
    let known = digests::resolve_digests(&verdict::digests(&collector), run, held)?;
    let effects = verdict::audited_effects(&collector, &known);
    let mut findings = Findings::default();
    if terms.effects.is_empty() {
        findings
            .for_rule(EFFECTS)
            .add("/effects", "the contract states no effects, so there is nothing to verify");
    }
    let with_evidence: HashSet<&str> = effects
        .iter()
        .filter(|effect| matches!(effect.verdict, Verdict::Inconclusive | Verdict::Verified))
        .map(|effect| effect.effect.target.as_str())
        .collect();
    collector.refs.report(&|name: &str| with_evidence.contains(name), &mut findings);
    collector.payloads.report(&mut findings);
    collector.retries.report(&mut findings);
    check_contents(run.declared_digests, held, &mut findings)?;
    Ok(Audit { effects, report: findings.into_report() })
}

/// Checks the contents of a run that are in the vault. Those that are not are not checked.
fn check_contents<E>(
    declared_digests: &[DeclaredDigest],
    held: &mut dyn FnMut(Digest) -> Result<Option<ResolvedContent>, E>,
    findings: &mut Findings,
) -> Result<(), AuditError<E>> {
    for DeclaredDigest { digest, place, content } in declared_digests {
        let Some(held) = held(*digest).map_err(AuditError::Vault)? else { continue };
        if let Some(defect) = (content.defect)(&held.bytes, &Limits::most()) {
            let message = format!("the {} {digest} is {}, which {defect}", content.noun, held.name);
            findings.for_rule(CONTENTS).add(place.as_str(), message);
        }
    }
    Ok(())
}

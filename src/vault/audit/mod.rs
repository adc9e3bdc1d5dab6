//! Audit of a run against a contract.
//!
//! The evidence of each effect of a contract is searched in the calls and results of the run. The verdict is one of
//! four: pending, inconclusive, verified or failed. Other violations of the contract are reported by rule. `docs/audit.md`
//! defines the verdicts. The rules are AU1 to AU15.

mod collect;
mod decimal;
mod judge;
mod pools;
mod refs;
mod request;
mod run;
mod schema;
mod schema_check;
mod schema_rules;
mod schema_work;
mod sources;
mod targets;
mod verdict;

use std::collections::{HashMap, HashSet};

use super::query::{self, LinkTarget};
use super::resolve::{LocatedCapture, LookupError, core_of, expect_kind, locate, with_preferred_capture};
use crate::artifact::{ArtifactLocation, Kind, group};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::formats;
use crate::storage::{ArtifactRecord, CaptureTarget, Direction, Snapshot, StorageError, StoredMember};
use crate::validation::Findings;

use collect::EvidenceCollector;
use refs::{CONTENTS, EFFECTS};
use schema::PayloadValidator;

pub use crate::formats::{
    Bounds, ContractTerms, Effect, Evidence, IoRef, KeyPath, ParsedMember, RangeBound, SchemaSource,
};
pub use judge::{FAILURE, SUCCESS};
pub use refs::RULES;
pub use request::{
    AuditAnswer, AuditFinding, AuditRequest, EffectAudit, LastAudit, OmittedFindings, RunAudit,
};
pub use run::{AuditError, AuditedRun, DeclaredDigest, ResolvedContent};
pub use verdict::{Audit, AuditedEffect, EvidenceSource, Verdict};

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
    for digest in schema::schema_digests(terms) {
        if let Some(bytes) = held(digest).map_err(AuditError::Vault)? {
            schemas.insert(digest, bytes);
        }
    }
    let mut collector = EvidenceCollector::new(terms, run.digests, PayloadValidator::new(terms, schemas));
    run.kind.run_events(run.members, &mut |event| collector.take(&event))?;
    let known = run::resolve_digests(&verdict::digests_to_resolve(&collector), run, held)?;
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
        if let Some(defect) = (content.defect)(&held.bytes) {
            let message = format!("the {} {digest} is {}, which {defect}", content.noun, held.name);
            findings.for_rule(CONTENTS).add(place.as_str(), message);
        }
    }
    Ok(())
}

/// Returns the runs that a contract governs, by derived or manual links, each once. Artifacts that state the contract's
/// hash but record no run, such as sessions, cannot be audited and are omitted.
fn governed_runs(
    snapshot: &dyn Snapshot,
    contract: &ArtifactRecord,
) -> Result<Vec<ArtifactRecord>, LookupError> {
    let mut runs: Vec<ArtifactRecord> = Vec::new();
    let mut known = HashSet::new();
    for link in query::links(snapshot, contract)? {
        let governs = link.direction == Direction::Out
            && Some(link.relation.as_str()) == formats::TERMS.inverse_relation();
        let LinkTarget::Artifact(target) = link.target else { continue };
        let is_run = || formats::named(&target.kind).is_some_and(|kind| kind.info().is_run);
        if governs && is_run() && known.insert(target.core.0) {
            runs.push(target);
        }
    }
    Ok(runs)
}

/// Audits a run against a contract: which effects are proved, and which actions the contract does not cover.
fn audit_run(
    snapshot: &dyn Snapshot,
    terms: &ContractTerms,
    run: &ArtifactRecord,
) -> Result<Audit, LookupError> {
    let kind = formats::named(&run.kind).filter(|kind| kind.info().is_run);
    let kind = kind.ok_or_else(|| LookupError::NotARun { core: run.core, kind: run.kind.clone() })?;
    let members = first_members(snapshot, run)?;
    let digests = digests_of_files(snapshot, kind, run, &members)?;
    let members = StoredMember::borrowed(&members);
    let declared_digests = external_contents(snapshot, kind, run)?;
    let run_to_audit =
        AuditedRun { kind, members: &members, digests: &digests, declared_digests: &declared_digests };
    let audit = audit(terms, &run_to_audit, &mut |digest| held(snapshot, digest));
    audit.map_err(|error| match error {
        AuditError::Unreadable(error) => {
            LookupError::Unreadable { core: run.core, message: error.to_string() }
        }
        AuditError::Vault(error) => error,
    })
}

/// Returns the terms of a contract.
fn terms(snapshot: &dyn Snapshot, contract: &ArtifactRecord) -> Result<ContractTerms, LookupError> {
    expect_kind(contract, formats::TERMS)?;
    let members = first_members(snapshot, contract)?;
    let document = members.first().map(|member| member.bytes.as_slice()).unwrap_or_default();
    ContractTerms::read(document)
        .map_err(|error| LookupError::Unreadable { core: contract.core, message: error.to_string() })
}

/// Returns the files of an artifact's preferred capture.
fn first_members(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
) -> Result<Vec<StoredMember>, LookupError> {
    let LocatedCapture { artifact, capture } = with_preferred_capture(snapshot, artifact)?;
    Ok(snapshot.read_members(artifact.core, capture.capture)?)
}

/// Returns the digests that identify the files of a run that has several: those of their bytes, and those that its kind
/// assigns to them.
fn digests_of_files(
    snapshot: &dyn Snapshot,
    kind: Kind,
    run: &ArtifactRecord,
    members: &[StoredMember],
) -> Result<Vec<(String, Digest)>, StorageError> {
    if kind.document_member().is_some() {
        return Ok(Vec::new());
    }
    let of_bytes = members.iter().map(|member| (member.name.clone(), Digest::from_content(&member.bytes)));
    let mentions = snapshot.mentions_of(run.core, group::MEMBER)?.into_iter();
    let given = mentions.filter_map(|mention| match mention.place {
        ArtifactLocation::Pointer(name) => Some((name, mention.digest)),
        ArtifactLocation::Index(_) => None,
    });
    Ok(of_bytes.chain(given).collect())
}

/// Returns the contents outside the run whose digests it states, each digest once, with its first location.
fn external_contents(
    snapshot: &dyn Snapshot,
    kind: Kind,
    run: &ArtifactRecord,
) -> Result<Vec<DeclaredDigest>, StorageError> {
    let mut declared_digests = Vec::new();
    for content in kind.info().contents {
        let mut known = HashSet::new();
        for mention in snapshot.mentions_of(run.core, content.group)? {
            if known.insert(mention.digest) {
                let place = query::location_text(&mention);
                declared_digests.push(DeclaredDigest { digest: mention.digest, place, content: *content });
            }
        }
    }
    Ok(declared_digests)
}

/// Returns the bytes in the vault with a digest: the core of an artifact, a capture, or a file of a capture. They are
/// hashed again.
fn held(snapshot: &dyn Snapshot, digest: Digest) -> Result<Option<ResolvedContent>, LookupError> {
    if let Some(artifact) = snapshot.artifact(CoreHash(digest))? {
        let located = locate(snapshot, &digest.into())?;
        let bytes = core_of(snapshot, &located)?;
        return Ok(Some(ResolvedContent {
            name: format!("the core of {} {:.12}", formats::bare_noun(&artifact.kind), artifact.core),
            bytes,
        }));
    }
    let Some((artifact, capture, name)) = file_with(snapshot, digest)? else { return Ok(None) };
    let bytes = snapshot.read(artifact.core, capture, BlobHash(digest))?;
    let of_artifact = format!("{} {:.12}", formats::bare_noun(&artifact.kind), artifact.core);
    let name = match name {
        Some(name) => format!("the file {name} of {of_artifact}"),
        None => format!("a capture of {of_artifact}"),
    };
    Ok(Some(ResolvedContent { name, bytes }))
}

/// Returns the document or the member of a capture with these bytes; members have names.
fn file_with(
    snapshot: &dyn Snapshot,
    digest: Digest,
) -> Result<Option<(ArtifactRecord, CaptureHash, Option<String>)>, StorageError> {
    // Captures of different artifacts with this hash have the same bytes. The first by core hash will do.
    let captures = snapshot.resolve(&digest.into(), 1)?.captures;
    if let Some(CaptureTarget { capture, artifact }) = captures.first().copied() {
        let artifact = snapshot.expect_artifact(artifact)?;
        // The hash of a capture with several files is not the hash of any bytes.
        if formats::named(&artifact.kind).is_some_and(|kind| kind.document_member().is_some()) {
            return Ok(Some((artifact, capture, None)));
        }
    }
    let Some(file) = snapshot.files(&[BlobHash(digest)])?.pop().flatten() else { return Ok(None) };
    Ok(Some((snapshot.expect_artifact(file.artifact)?, file.capture, Some(file.name))))
}

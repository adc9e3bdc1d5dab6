//! `runvault audit`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::storage::ArtifactRecord;
use runvault::validation::{Severity, Violation};
use runvault::vault::audit::{Audit, AuditedEffect, Verdict};
use serde::Serialize;

use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::diff::Json;
use crate::cli::commands::links;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, BAD, CAUTION, FAINT, GOOD, counted};

/// Audit runs against a contract.
///
/// Each effect is verified (its evidence proves it), resolved (there is evidence, which proves nothing), pending (there
/// is none) or failed (the evidence disproves it). What a run did that the contract does not cover is reported as well:
/// required refs that it never attests, calls of what is not declared, other modes, payloads that break a schema. "runvault
/// rules AU1" and the rules after it, and docs/audit.md, say what counts as what. Exit status 0 if every effect is
/// verified and nothing else was found, 1 otherwise.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The hash of a contract
    contract: Named,

    /// The hash of a run pack, trace or pack; without it, every run that the contract governs
    run: Option<Named>,

    /// Print one line of JSON for each effect and each finding
    #[arg(long)]
    json: bool,
}

#[derive(Default)]
struct Tally {
    verified: u64,
    resolved: u64,
    pending: u64,
    failed: u64,
    findings: u64,
    is_clean: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let contract = self.contract.locate(&vault)?.artifact;
        let runs = match &self.run {
            Some(run) => vec![run.locate(&vault)?.artifact],
            None => vault.governed_runs(&contract)?,
        };
        if runs.is_empty() {
            return Err(Failure::No(no_runs(&contract, vault.terms(&contract)?.effects.is_empty())));
        }
        let mut out = io::BufWriter::new(stdout::text());
        let mut tally = Tally { is_clean: true, ..Tally::default() };
        for run in &runs {
            let audit = vault.audit(&contract, run)?;
            tally.count(&audit);
            if self.json {
                lines(&mut out, &contract, run, &audit)?;
            } else {
                links::heading(&mut out, &run.kind, run.core)?;
                print(&mut out, &audit)?;
            }
        }
        out.flush()?;
        if !self.json {
            stdout::note(&tally.summary());
        }
        Ok(if tally.is_clean { Status::Done } else { Status::No })
    }
}

fn no_runs(contract: &ArtifactRecord, is_without_effects: bool) -> String {
    if is_without_effects {
        return format!(
            "the contract {:.12} states no effects, so there is nothing to verify",
            contract.core
        );
    }
    format!(
        "the contract {:.12} governs no run in the vault; name a run, or link one with \"runvault link\"",
        contract.core
    )
}

impl Tally {
    fn count(&mut self, audit: &Audit) {
        for effect in &audit.effects {
            *match effect.verdict {
                Verdict::Verified => &mut self.verified,
                Verdict::Resolved => &mut self.resolved,
                Verdict::Pending => &mut self.pending,
                Verdict::Failed => &mut self.failed,
            } += 1;
        }
        let errors =
            audit.report.violations().iter().filter(|violation| violation.severity == Severity::Error);
        self.findings += (errors.count() + audit.report.omitted()) as u64;
        self.is_clean &= audit.is_clean();
    }

    fn summary(&self) -> String {
        let Self { verified, resolved, pending, failed, findings, .. } = self;
        let findings = counted(*findings, "finding");
        format!("{verified} verified, {resolved} resolved, {pending} pending, {failed} failed; {findings}")
    }
}

fn print(out: &mut dyn Write, audit: &Audit) -> io::Result<()> {
    for effect in &audit.effects {
        print_effect(out, effect)?;
    }
    for Violation { rule_id, path, message, severity } in audit.report.violations() {
        let (word, style) = match severity {
            Severity::Error => ("finding", BAD),
            Severity::Warning => ("not checked", CAUTION),
        };
        let (path, message) = (escaped(path), escaped(message));
        stdout::line(out, &format!("  {style}{word}{style:#} {path}: {message} (rule {rule_id})"))?;
    }
    match audit.report.omitted() {
        0 => Ok(()),
        more => stdout::line(out, &format!("  and {more} more")),
    }
}

fn print_effect(out: &mut dyn Write, audited: &AuditedEffect) -> io::Result<()> {
    let AuditedEffect { effect, verdict, because, .. } = audited;
    let style = match verdict {
        Verdict::Verified => GOOD,
        Verdict::Resolved | Verdict::Pending => CAUTION,
        Verdict::Failed => BAD,
    };
    let (word, name, why) = (verdict.name(), escaped(&effect.name), escaped(because));
    stdout::line(out, &format!("  {style}{word}{style:#} {name}: {why}"))?;
    let mode = escaped(effect.mode.as_deref().unwrap_or("undeclared"));
    let idempotency = escaped(effect.idempotency.as_deref().unwrap_or("no idempotency stated"));
    let target = escaped(&effect.target);
    stdout::line(out, &format!("    {FAINT}on {target} ({mode}), {idempotency}{FAINT:#}"))?;
    if effect.is_unsafe_to_retry() {
        let warning = "not idempotent, but without a nonce or reason (rule AU4)";
        stdout::line(out, &format!("    {CAUTION}warning{CAUTION:#} {warning}"))?;
    }
    Ok(())
}

/// The output line of an effect.
#[derive(Serialize)]
struct EffectLine<'e> {
    contract: CoreHash,
    run: CoreHash,
    effect: &'e str,
    target: &'e str,
    mode: Option<&'e str>,
    idempotency: Option<&'e str>,
    evidence: Option<&'e str>,
    verdict: &'static str,
    because: &'e str,
    place: Option<&'e str>,
    value: Option<Json<'e>>,
    unsafe_to_retry: bool,
}

/// The output line of a finding.
#[derive(Serialize)]
struct FindingLine<'f> {
    contract: CoreHash,
    run: CoreHash,
    #[serde(flatten)]
    violation: &'f Violation,
}

/// The output line with the number of findings that are not listed.
#[derive(Serialize)]
struct OmittedLine {
    contract: CoreHash,
    run: CoreHash,
    violations_omitted: usize,
}

fn lines(
    out: &mut dyn Write,
    contract: &ArtifactRecord,
    run: &ArtifactRecord,
    audit: &Audit,
) -> io::Result<()> {
    let (contract, run) = (contract.core, run.core);
    for audited in &audit.effects {
        json::line(out, &EffectLine::new(contract, run, audited))?;
    }
    for violation in audit.report.violations() {
        json::line(out, &FindingLine { contract, run, violation })?;
    }
    match audit.report.omitted() {
        0 => Ok(()),
        violations_omitted => json::line(out, &OmittedLine { contract, run, violations_omitted }),
    }
}

impl<'e> EffectLine<'e> {
    fn new(contract: CoreHash, run: CoreHash, audited: &'e AuditedEffect) -> Self {
        let AuditedEffect { effect, verdict, because, source } = audited;
        Self {
            contract,
            run,
            effect: &effect.name,
            target: &effect.target,
            mode: effect.mode.as_deref(),
            idempotency: effect.idempotency.as_deref(),
            evidence: effect.evidence.as_ref().map(|evidence| evidence.sort.as_str()),
            verdict: verdict.name(),
            because,
            place: source.as_ref().map(|source| source.place.as_str()),
            value: source.as_ref().and_then(|source| source.value.as_ref()).map(Json),
            unsafe_to_retry: effect.is_unsafe_to_retry(),
        }
    }
}

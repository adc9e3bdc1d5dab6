//! `runvault audit`

use std::io::{self, Write};

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::validation::{Severity, Violation};
use runvault::vault::audit::{AuditFinding, AuditRequest, EffectAudit, RunAudit, Verdict};

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::json;
use crate::cli::output::links;
use crate::cli::output::stdout::{self, BAD, CAUTION, FAINT, GOOD, counted};

/// Audit runs against a contract
///
/// Each effect is verified (its evidence proves it), resolved (there is evidence, which proves nothing), pending (there
/// is none) or failed (the evidence disproves it). What a run did that the contract does not cover is reported as well:
/// required refs that it never attests, calls of what is not declared, other modes, payloads that break a schema. "runvault
/// rules AU1" and the rules after it, and docs/audit.md, say what counts as what. Exit status 0 if every effect is
/// verified and nothing else was found, 1 otherwise.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The contract: a hash, a prefix of one, a tag, or latest
    contract: ArtifactArg,

    /// A run pack, trace or pack: a hash, a prefix of one, a tag, a run id, or latest; without it, every
    /// run that the contract governs
    run: Option<ArtifactArg>,

    /// Print one line of JSON for each effect and each finding
    #[arg(long)]
    json: bool,
}

#[derive(Default)]
struct Tally {
    runs: u64,
    verified: u64,
    resolved: u64,
    pending: u64,
    failed: u64,
    findings: u64,
    is_clean: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let contract = self.contract.locate(&vault)?.artifact.core;
        let run = self.run.as_ref().map(|run| run.locate(&vault)).transpose()?;
        let request =
            AuditRequest { contract, run: run.map(|run| run.artifact.core), limit: None, after: None };
        let mut out = io::BufWriter::new(stdout::text());
        let mut tally = Tally { is_clean: true, ..Tally::default() };
        let answer = request.visit::<CommandError>(&vault, &mut |audit| {
            tally.count(&audit);
            Ok(if self.json { lines(&mut out, &audit) } else { print(&mut out, &audit) }?)
        })?;
        out.flush()?;
        if tally.runs == 0 {
            return Err(CommandError::No(no_runs(contract, answer.effects == 0)));
        }
        if !self.json {
            stdout::note(&tally.summary());
        }
        Ok(if tally.is_clean { Status::Done } else { Status::No })
    }
}

fn no_runs(contract: CoreHash, is_without_effects: bool) -> String {
    if is_without_effects {
        return format!("the contract {contract:.12} states no effects, so there is nothing to verify");
    }
    format!(
        "the contract {contract:.12} governs no run in the vault; name a run, or link one with \"runvault link\""
    )
}

impl Tally {
    fn count(&mut self, audit: &RunAudit) {
        self.runs += 1;
        for effect in &audit.effects {
            *match effect.verdict {
                Verdict::Verified => &mut self.verified,
                Verdict::Resolved => &mut self.resolved,
                Verdict::Pending => &mut self.pending,
                Verdict::Failed => &mut self.failed,
            } += 1;
        }
        let errors = audit.findings.iter().filter(|found| found.violation.severity == Severity::Error);
        self.findings += (errors.count() + omitted(audit)) as u64;
        self.is_clean &= audit.clean;
    }

    fn summary(&self) -> String {
        let Self { verified, resolved, pending, failed, findings, .. } = self;
        let findings = counted(*findings, "finding");
        format!("{verified} verified, {resolved} resolved, {pending} pending, {failed} failed; {findings}")
    }
}

/// Returns the number of findings that are not listed.
fn omitted(audit: &RunAudit) -> usize {
    audit.omitted.as_ref().map_or(0, |omitted| omitted.violations_omitted)
}

fn print(out: &mut dyn Write, audit: &RunAudit) -> io::Result<()> {
    links::heading(out, &audit.kind, audit.run)?;
    if let Some(id) = &audit.run_id {
        stdout::line(out, &format!("  {FAINT}run id {}{FAINT:#}", escaped(id)))?;
    }
    for effect in &audit.effects {
        print_effect(out, effect)?;
    }
    print_findings(out, audit)
}

/// Prints what an audit found besides the verdicts.
pub(crate) fn print_findings(out: &mut dyn Write, audit: &RunAudit) -> io::Result<()> {
    for AuditFinding { violation, .. } in &audit.findings {
        let Violation { rule_id, path, message, severity } = violation;
        let (word, style) = match severity {
            Severity::Error => ("finding", BAD),
            Severity::Warning => ("not checked", CAUTION),
        };
        let (path, message) = (escaped(path), escaped(message));
        stdout::line(out, &format!("  {style}{word}{style:#} {path}: {message} (rule {rule_id})"))?;
    }
    match omitted(audit) {
        0 => Ok(()),
        more => stdout::line(out, &format!("  and {more} more")),
    }
}

/// Returns the style of a verdict.
pub(crate) fn style_of(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Verified => GOOD,
        Verdict::Resolved | Verdict::Pending => CAUTION,
        Verdict::Failed => BAD,
    }
}

fn print_effect(out: &mut dyn Write, audited: &EffectAudit) -> io::Result<()> {
    let EffectAudit { effect, target, verdict, because, .. } = audited;
    let style = style_of(*verdict);
    let (word, name, why) = (verdict.name(), escaped(effect), escaped(because));
    stdout::line(out, &format!("  {style}{word}{style:#} {name}: {why}"))?;
    let mode = escaped(audited.mode.as_deref().unwrap_or("undeclared"));
    let idempotency = escaped(audited.idempotency.as_deref().unwrap_or("no idempotency stated"));
    let target = escaped(target);
    stdout::line(out, &format!("    {FAINT}on {target} ({mode}), {idempotency}{FAINT:#}"))?;
    if audited.unsafe_to_retry {
        let warning = "not idempotent, but without a nonce or reason (rule AU4)";
        stdout::line(out, &format!("    {CAUTION}warning{CAUTION:#} {warning}"))?;
    }
    Ok(())
}

/// Writes a line of JSON for each effect and each finding.
fn lines(out: &mut dyn Write, audit: &RunAudit) -> io::Result<()> {
    audit.effects.iter().try_for_each(|effect| json::line(out, effect))?;
    audit.findings.iter().try_for_each(|finding| json::line(out, finding))?;
    audit.omitted.iter().try_for_each(|omitted| json::line(out, omitted))
}

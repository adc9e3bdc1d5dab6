//! `runvault audit`

use std::io::{self, Write};

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::display::escaped;
use runvault::validation::{Severity, Violation};
use runvault::vault::audit::{AuditFinding, AuditRequest, EffectAudit, RunAudit, Verdict};
use runvault::vault::wire::{WireAuditAnswer, WireAuditRequest};
use runvault::{Vault, formats};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{self, BAD, CAUTION, FAINT, GOOD, counted};
use crate::cli::output::{json, links};

/// Audit runs against a contract
///
/// Each effect is verified (its evidence proves it), inconclusive (its evidence proves nothing), pending (it has no
/// evidence) or failed (the evidence disproves it). What a run did that the contract does not cover is reported as well:
/// required refs that it never attests, undeclared calls, calls in other modes, payloads that violate a schema. "runvault
/// rules AU1" and the rules after it, and docs/audit.md, define the outcomes. Exit status 0 if every effect is
/// verified and nothing else was found, 1 otherwise.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The contract: a hash, a prefix of one, a tag, or latest; a run alone is audited against every contract that governs
    /// it
    #[arg(required_unless_present = "wire", conflicts_with = "wire", add = CandidateSource::CONTRACTS.completer())]
    contract: Option<ArtifactArg>,

    /// A run pack, trace or export pack: a hash, a prefix of one, a tag, a run id, or latest; without it, every
    /// run that the contract governs
    #[arg(conflicts_with = "wire", add = CandidateSource::RUNS.completer())]
    run: Option<ArtifactArg>,

    /// Compare an agent session with the calls of models that were recorded while it ran: other answers, numbers of tokens and
    /// results of tools, and what only one of both has; without RUN, with the run that has most of its answers
    #[arg(long, value_names = ["SESSION", "RUN"], num_args = 1..=2, add = CandidateSource::RUNS.completer())]
    wire: Vec<ArtifactArg>,

    /// Print one line of JSON for each effect and each finding, or for each contradiction
    #[arg(long)]
    json: bool,
}

#[derive(Default)]
struct Tally {
    runs: u64,
    verified: u64,
    inconclusive: u64,
    pending: u64,
    failed: u64,
    findings: u64,
    is_clean: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let Some(contract) = &self.contract else { return self.compare_with_wire(&vault) };
        let named = contract.locate(&vault)?.artifact;
        let run = self.run.as_ref().map(|run| run.locate(&vault)).transpose()?.map(|run| run.artifact.core);
        let is_run = formats::named(&named.kind).is_some_and(|kind| kind.info().is_run);
        let (contracts, run) = match run {
            None if is_run => (governing(&vault, named.core)?, Some(named.core)),
            run => (vec![named.core], run),
        };
        let mut out = io::BufWriter::new(stdout::text());
        let mut tally = Tally { is_clean: true, ..Tally::default() };
        for contract in contracts {
            let request = AuditRequest { contract, run, limit: None, after: None };
            let answer = request.visit::<CommandError>(&vault, &mut |audit| {
                tally.count(&audit);
                Ok(if self.json { lines(&mut out, &audit) } else { print(&mut out, &audit) }?)
            })?;
            if tally.runs == 0 {
                return Err(CommandError::No(no_runs(contract, answer.effects == 0)));
            }
        }
        out.flush()?;
        if !self.json {
            stdout::note(&tally.summary());
        }
        Ok(if tally.is_clean { Status::Done } else { Status::No })
    }

    /// Compares a session with recorded calls.
    fn compare_with_wire(&self, vault: &Vault) -> Result<Status, CommandError> {
        let mut named = self.wire.iter().map(|name| Ok::<_, CommandError>(name.locate(vault)?.artifact.core));
        let Some(session) = named.next().transpose()? else {
            return Err(CommandError::Usage("--wire needs an agent session".to_owned()));
        };
        let answer = vault.run(&WireAuditRequest { session, run: named.next().transpose()? })?;
        let Some(run) = answer.run else {
            return Err(CommandError::No(format!(
                "no run in the vault has an answer of the session {session:.12}; name the run that was recorded"
            )));
        };
        let mut out = io::BufWriter::new(stdout::text());
        for found in &answer.contradictions {
            if self.json {
                json::line(&mut out, found)?;
                continue;
            }
            let place = |step: Option<u64>, noun: &str| step.map(|step| format!("{noun} {step}"));
            let places = [place(found.session_step, "record"), place(found.run_step, "step")];
            let places: Vec<String> = places.into_iter().flatten().collect();
            write!(out, "{BAD}{}{BAD:#} {}: ", found.kind.name(), places.join(", "))?;
            writeln!(out, "{}", escaped(&found.message))?;
        }
        out.flush()?;
        if !self.json {
            let WireAuditAnswer { matched, session_calls, run_calls, auxiliary, contradictions, .. } =
                &answer;
            let others = counted(*auxiliary, "other call");
            let others = if *auxiliary > 0 { format!(", {others} without tools") } else { String::new() };
            stdout::note(&format!(
                "{matched} of {} and {run_calls} of run {run:.12} are the same{others}; {}",
                counted(*session_calls, "call"),
                counted(contradictions.len() as u64, "contradiction"),
            ));
        }
        Ok(if answer.contradictions.is_empty() { Status::Done } else { Status::No })
    }
}

/// Returns the contracts that govern a run, of which there is at least one.
fn governing(vault: &Vault, run: CoreHash) -> Result<Vec<CoreHash>, CommandError> {
    let contracts = vault.linked_by(run, GOVERNS)?;
    if contracts.is_empty() {
        return Err(CommandError::No(format!(
            "no contract in the vault governs {run:.12}; give the contract before the run, or link it with \"runvault link\""
        )));
    }
    Ok(contracts)
}

/// The relation of a contract to the runs that it governs.
const GOVERNS: &str = "governs";

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
                Verdict::Inconclusive => &mut self.inconclusive,
                Verdict::Pending => &mut self.pending,
                Verdict::Failed => &mut self.failed,
            } += 1;
        }
        let errors = audit.findings.iter().filter(|found| found.violation.severity == Severity::Error);
        self.findings += (errors.count() + omitted(audit)) as u64;
        self.is_clean &= audit.clean;
    }

    fn summary(&self) -> String {
        let Self { verified, inconclusive, pending, failed, findings, .. } = self;
        let findings = counted(*findings, "finding");
        format!(
            "{verified} verified, {inconclusive} inconclusive, {pending} pending, {failed} failed; {findings}"
        )
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
        let Violation { rule_id, path, message, severity, .. } = violation;
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
        Verdict::Inconclusive | Verdict::Pending => CAUTION,
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

//! `runvault audit`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::audit::{Finding, Verdict};
use runvault::digest::CoreHash;
use runvault::store::ArtifactRow;
use serde::Serialize;

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::hash::Named;
use super::output::{self, BAD, CAUTION, FAINT, GOOD};
use super::vault::VaultArgs;
use super::{json, links};

/// Hold a contract against the runs that it governs.
///
/// For each effect: its target and mode, its idempotency, and whether its evidence resolves in the run. "runvault rules
/// AU1" and the rules after it say what counts as resolved. Exit status 0 if everything is verified, 1 if something is
/// pending verification or failed.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The hash of a contract
    contract: Named,

    /// The hash of a run pack, trace or pack; without it, every run that the contract governs
    run: Option<Named>,

    /// Print one line of JSON for each effect and run
    #[arg(long)]
    json: bool,
}

#[derive(Default)]
struct Tally {
    verified: u64,
    pending: u64,
    failed: u64,
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
            return Err(Failure::No(format!(
                "the contract {:.12} governs no run in the vault; name one, or state it with \"runvault link\"",
                contract.core
            )));
        }
        let mut out = io::BufWriter::new(output::text());
        let mut tally = Tally::default();
        for run in &runs {
            let findings = vault.audit(&contract, run)?;
            if !self.json {
                links::heading(&mut out, run)?;
            }
            for finding in &findings {
                tally.count(&finding.verdict);
                if self.json {
                    json::line(&mut out, &Line::of(&contract, run, finding))?;
                } else {
                    print(&mut out, finding)?;
                }
            }
        }
        out.flush()?;
        if !self.json {
            let Tally { verified, pending, failed } = tally;
            output::note(&format!("{verified} verified, {pending} pending verification, {failed} failed"));
        }
        Ok(if tally.pending + tally.failed == 0 { Status::Done } else { Status::No })
    }
}

impl Tally {
    fn count(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Verified(_) => &mut self.verified,
            Verdict::Pending(_) => &mut self.pending,
            Verdict::Failed(_) => &mut self.failed,
        } += 1;
    }
}

fn print(out: &mut dyn Write, finding: &Finding) -> io::Result<()> {
    let effect = &finding.effect;
    let (word, style, why) = match &finding.verdict {
        Verdict::Verified(why) => ("verified", GOOD, why),
        Verdict::Pending(why) => ("pending verification", CAUTION, why),
        Verdict::Failed(why) => ("failed", BAD, why),
    };
    let mode = effect.mode.as_deref().unwrap_or("undeclared");
    let idempotency = effect.idempotency.as_deref().unwrap_or("no idempotency stated");
    let (name, target, why) = (escaped(&effect.name), escaped(&effect.target), escaped(why));
    output::line(out, &format!("  {style}{word}{style:#} {name}: {why}"))?;
    let (mode, idempotency) = (escaped(mode), escaped(idempotency));
    output::line(out, &format!("    {FAINT}on {target} ({mode}), {idempotency}{FAINT:#}"))?;
    if finding.is_unsafe_to_retry {
        let warning = "not idempotent, and neither nonce nor reason given (rule AU4)";
        output::line(out, &format!("    {CAUTION}warning{CAUTION:#} {warning}"))?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Line<'f> {
    contract: CoreHash,
    run: CoreHash,
    effect: &'f str,
    target: &'f str,
    mode: Option<&'f str>,
    idempotency: Option<&'f str>,
    evidence: Option<&'f str>,
    verdict: &'static str,
    because: &'f str,
    unsafe_to_retry: bool,
}

impl<'f> Line<'f> {
    fn of(contract: &ArtifactRow, run: &ArtifactRow, finding: &'f Finding) -> Self {
        let effect = &finding.effect;
        let (verdict, because) = match &finding.verdict {
            Verdict::Verified(why) => ("verified", why),
            Verdict::Pending(why) => ("pending", why),
            Verdict::Failed(why) => ("failed", why),
        };
        Self {
            contract: contract.core,
            run: run.core,
            effect: &effect.name,
            target: &effect.target,
            mode: effect.mode.as_deref(),
            idempotency: effect.idempotency.as_deref(),
            evidence: effect.evidence.as_ref().map(|evidence| evidence.sort.as_str()),
            verdict,
            because,
            unsafe_to_retry: finding.is_unsafe_to_retry,
        }
    }
}

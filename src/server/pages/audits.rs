//! Contracts and the runs that they govern: the verdicts on all effects.

use maud::{Markup, html};

use super::parts;
use crate::artifact::Kind;
use crate::digest::CoreHash;
use crate::display::escaped;
use crate::formats;
use crate::server::text::{line, long_line, number};
use crate::server::visit::PageRequest;
use crate::vault::LookupError;
use crate::vault::audit::{AuditAnswer, AuditRequest, EffectAudit, RunAudit};
use crate::vault::links::{LinkDirection, LinkSummary};
use crate::vault::show::ShowAnswer;

/// Maximum number of runs that are audited for a page, and of contracts.
const RUNS: u64 = 50;
const CONTRACTS: usize = 5;

/// Maximum number of findings that are listed of a run.
const FINDINGS: usize = 20;

/// Returns the audits of the runs that an artifact governs, or of the artifact against the contracts that govern it.
pub(super) fn section(visit: &PageRequest<'_>, answer: &ShowAnswer) -> Markup {
    let core = answer.artifact.core_hash;
    let terms = formats::TERMS;
    if answer.artifact.kind == terms.name() {
        return audits(&audited(visit, core, None), "Audits", None);
    }
    html! {
        @for contract in contracts(answer).into_iter().take(CONTRACTS) {
            (audits(&audited(visit, contract, Some(core)), "Audit", Some(contract)))
        }
    }
}

/// Returns the contracts that govern a run, by core hash; none if the artifact records no run.
pub(in crate::server) fn contracts(answer: &ShowAnswer) -> Vec<CoreHash> {
    if !formats::named(&answer.artifact.kind).is_some_and(Kind::is_run) {
        return Vec::new();
    }
    let governs = |link: &&LinkSummary| {
        link.direction == LinkDirection::In
            && Some(link.relation.as_str()) == formats::TERMS.inverse_relation()
    };
    let mut contracts: Vec<CoreHash> =
        answer.links.iter().filter(governs).filter_map(|link| link.target.core_hash).collect();
    contracts.sort_unstable();
    contracts.dedup();
    contracts
}

fn audited(
    visit: &PageRequest<'_>,
    contract: CoreHash,
    run: Option<CoreHash>,
) -> Result<AuditAnswer, LookupError> {
    visit.vault.run(&AuditRequest { contract, run, limit: Some(RUNS), after: None })
}

fn audits(audited: &Result<AuditAnswer, LookupError>, heading: &str, contract: Option<CoreHash>) -> Markup {
    html! {
        section {
            h2 {
                (heading)
                @if let Some(contract) = contract { " against " (parts::kind(formats::TERMS.name())) " " (parts::hash(contract)) }
            }
            @match audited {
                Ok(answer) => (matrix(answer, contract.is_none())),
                Err(error) => p.failure { (long_line(&error.to_string())) "." },
            }
        }
    }
}

/// Returns a row for each run and a column for each effect.
fn matrix(answer: &AuditAnswer, has_runs: bool) -> Markup {
    let Some(first) = answer.runs.first() else {
        return html! { p.faint { "It declares " (number(answer.effects)) " effects and governs no run in the vault." } };
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Verdicts" {
            table {
                thead {
                    tr {
                        @if has_runs { th { "run" } }
                        th { "result" }
                        @for effect in &first.effects { th { (line(&effect.effect)) } }
                    }
                }
                tbody { @for run in &answer.runs { (row(run, has_runs)) } }
            }
        }
        @for run in &answer.runs { (reasons(run, has_runs)) }
        @if answer.next.is_some() { p.faint { "Only the first " (RUNS) " runs were audited." } }
        p.faint { "Audited for this page, from the stored bytes." }
    }
}

fn row(run: &RunAudit, has_runs: bool) -> Markup {
    html! {
        tr {
            @if has_runs { td { (parts::kind(&run.kind)) " " (parts::hash(run.run)) } }
            @if run.clean { td.verified { "clean" } } @else { td.failed { "not clean" } }
            @for effect in &run.effects { td class=(effect.verdict.name()) title=(escaped(&effect.because)) { (effect.verdict.name()) } }
        }
    }
}

/// Returns the reasons for the verdicts on a run, and its findings.
fn reasons(run: &RunAudit, has_runs: bool) -> Markup {
    let more = run.findings.len().saturating_sub(FINDINGS);
    html! {
        details {
            summary { "Reasons" @if has_runs { " for " (format!("{:.12}", run.run)) } }
            ul {
                @for EffectAudit { effect, verdict, because, unsafe_to_retry, .. } in &run.effects {
                    li {
                        (line(effect)) " is " (verdict.name()) ": " (long_line(because))
                        @if *unsafe_to_retry { " It is not safe to retry." }
                    }
                }
                @for finding in run.findings.iter().take(FINDINGS) {
                    li.caution {
                        (line(&finding.violation.rule_id)) " " (line(&finding.violation.path)) ": "
                        (long_line(&finding.violation.message))
                    }
                }
                @if more > 0 { li { "and " (more) " more findings" } }
            }
        }
    }
}

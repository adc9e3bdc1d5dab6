//! Contracts and the runs that they govern: the verdicts on all effects.

use maud::{Markup, html};

use super::parts::{self, place_in};
use super::selection::TranscriptSelection;
use crate::digest::CoreHash;
use crate::display::{counted, escaped};
use crate::formats;
use crate::server::address;
use crate::server::text::{line, long_line};
use crate::server::visit::PageRequest;
use crate::validation::Severity;
use crate::vault::audit::{AuditAnswer, AuditRequest, EffectAudit, RunAudit, Verdict};
use crate::vault::links::{Direction, LinkSummary};
use crate::vault::show::ShowAnswer;

/// Number of runs that are audited for a page, and maximum number of contracts.
const RUNS: u64 = 50;
const CONTRACTS: usize = 5;

/// Maximum number of findings that are listed of a run.
const FINDINGS: usize = 20;

/// Returns the audits of the runs that an artifact governs, or of the artifact against the contracts that govern it.
pub(super) fn section(
    visit: &PageRequest<'_>,
    answer: &ShowAnswer,
    selection: TranscriptSelection,
) -> Markup {
    let core = answer.artifact.core_hash;
    let request = AuditRequest { contract: core, run: None, limit: Some(RUNS), after: None };
    if answer.artifact.kind == formats::TERMS.name() {
        let request = AuditRequest { after: selection.audits_after, ..request };
        return audits(visit, &request, selection.is_file);
    }
    html! {
        @for contract in contracts(answer).into_iter().take(CONTRACTS) {
            (audits(visit, &AuditRequest { contract, run: Some(core), ..request.clone() }, selection.is_file))
        }
    }
}

/// Returns the contracts that govern a run, by core hash; none if the artifact records no run.
pub(in crate::server) fn contracts(answer: &ShowAnswer) -> Vec<CoreHash> {
    if !formats::named(&answer.artifact.kind).is_some_and(|kind| kind.info().is_run) {
        return Vec::new();
    }
    let governs = |link: &&LinkSummary| {
        link.direction == Direction::In && Some(link.relation.as_str()) == formats::TERMS.inverse_relation()
    };
    let mut contracts: Vec<CoreHash> =
        answer.links.iter().filter(governs).filter_map(|link| link.target.core_hash).collect();
    contracts.sort_unstable();
    contracts.dedup();
    contracts
}

/// Makes the section of an audit: of one run, or of those that the contract governs, a page at a time.
fn audits(visit: &PageRequest<'_>, request: &AuditRequest, is_file: bool) -> Markup {
    let AuditRequest { contract, run, after, .. } = request;
    html! {
        section {
            @if run.is_some() {
                h2 { "Audit against " (parts::kind(formats::TERMS.name())) " " (parts::hash(*contract)) }
            } @else {
                h2 id="audits" { "Audits" }
            }
            @match visit.vault.run(request) {
                Ok(answer) => {
                    (matrix(&answer, run.is_none()))
                    (pages(*contract, *after, answer.next, is_file))
                },
                Err(error) => p.failure { (long_line(&error.to_string())) "." },
            }
        }
    }
}

/// Links to the first and the next runs.
fn pages(contract: CoreHash, after: Option<CoreHash>, next: Option<CoreHash>, is_file: bool) -> Markup {
    html! {
        @if is_file {
            @if next.is_some() { p.faint { "Only the latest " (RUNS) " runs were audited." } }
        } @else if after.is_some() || next.is_some() {
            nav.pages aria-label="Pages of audits" {
                @if after.is_some() { a href=(address::audits(contract, None)) { "Latest runs" } }
                @if next.is_some() { a rel="next" href=(address::audits(contract, next)) { "Earlier runs" } }
            }
        }
    }
}

/// Returns a row for each run and a column for each effect.
fn matrix(answer: &AuditAnswer, has_runs: bool) -> Markup {
    let Some(first) = answer.runs.first() else {
        return html! { p.faint { "It declares " (counted(answer.effects, "effect")) " and governs no run in the vault." } };
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Verdicts" {
            table {
                thead {
                    tr {
                        @if has_runs { th { "run" } th { "run id" } }
                        th { "result" }
                        @for effect in &first.effects { th { (line(&effect.effect)) } }
                    }
                }
                tbody { @for run in &answer.runs { (row(answer, run, has_runs)) } }
            }
        }
        p.faint {
            "Audited for this page, from the stored bytes. "
            @if has_runs { "The latest run is first. " }
            "Each verdict leads to its reason."
        }
        @for run in &answer.runs { (reasons(answer, run, has_runs)) }
    }
}

/// Returns the id of the reason for the verdict on an effect, which has this number.
fn reason_id(answer: &AuditAnswer, run: &RunAudit, effect: usize) -> String {
    format!("reason-{:.12}-{:.12}-{effect}", answer.contract, run.run)
}

fn row(answer: &AuditAnswer, run: &RunAudit, has_runs: bool) -> Markup {
    html! {
        tr {
            @if has_runs {
                td { (parts::kind(&run.kind)) " " (parts::hash(run.run)) }
                td { @if let Some(id) = &run.run_id { (line(id)) } }
            }
            @if run.clean { td.verified { "clean" } } @else { td.failed { (result(run)) } }
            @for (index, effect) in run.effects.iter().enumerate() {
                td class=(effect.verdict.name()) title=(escaped(&effect.because)) {
                    a.value href=(format!("#{}", reason_id(answer, run, index))) { (effect.verdict.name()) }
                }
            }
        }
    }
}

/// Describes why an audit is not clean: by its findings, and by the effects that are not verified.
fn result(run: &RunAudit) -> String {
    let unverified = run.effects.iter().filter(|effect| effect.verdict != Verdict::Verified).count();
    let errors = run.findings.iter().filter(|finding| finding.violation.severity == Severity::Error).count();
    let omitted = run.omitted.as_ref().map_or(0, |omitted| omitted.violations_omitted);
    let findings = counted((errors + omitted) as u64, "finding");
    match (unverified, errors + omitted) {
        (0, _) => findings,
        (_, 0) => format!("{} not verified", counted(unverified as u64, "effect")),
        (_, _) => format!("{findings}, {} not verified", counted(unverified as u64, "effect")),
    }
}

/// Returns the reasons for the verdicts on a run, and its findings.
fn reasons(answer: &AuditAnswer, run: &RunAudit, has_runs: bool) -> Markup {
    let more = run.findings.len().saturating_sub(FINDINGS);
    let name = run.run_id.clone().unwrap_or_else(|| format!("{:.12}", run.run));
    html! {
        details {
            summary { "Reasons" @if has_runs { " for " (line(&name)) } }
            ul {
                @for (index, audit) in run.effects.iter().enumerate() {
                    @let EffectAudit { effect, verdict, because, unsafe_to_retry, place, .. } = audit;
                    li id=(reason_id(answer, run, index)) {
                        (line(effect)) " is " (verdict.name()) ": " (long_line(because))
                        @if let Some(place) = place { " (" (place_in(run.run, &run.kind, place)) ")" }
                        @if *unsafe_to_retry { " It is not safe to retry." }
                    }
                }
                @for finding in run.findings.iter().take(FINDINGS) {
                    li.caution {
                        (line(&finding.violation.rule_id)) " " (place_of_finding(answer, run, &finding.violation.path)) ": "
                        (long_line(&finding.violation.message))
                    }
                }
                @if more > 0 { li { "and " (counted(more as u64, "more finding")) } }
            }
        }
    }
}

/// Returns the location of a finding as a link: a step of the run, or a term of the contract.
fn place_of_finding(answer: &AuditAnswer, run: &RunAudit, place: &str) -> Markup {
    let number = |list: &str| place.strip_prefix(list)?.parse::<u64>().ok();
    // Terms are the effects, and then the refs.
    let term = number("/effects/").or_else(|| Some(answer.effects.saturating_add(number("/io_refs/")?)));
    html! {
        @match term {
            Some(term) => a href=(address::step(answer.contract, term)) { "contract " (line(place)) },
            None => (place_in(run.run, &run.kind, place)),
        }
    }
}

//! Contracts, with their terms, and the runs that they govern: the verdicts on all effects.

use maud::{Markup, html};

use super::parts::{self, ArtifactNames, place_in};
use super::selection::TranscriptSelection;
use crate::digest::CoreHash;
use crate::display::{counted, escaped};
use crate::formats;
use crate::server::address;
use crate::server::frame::{line, long_line};
use crate::server::visit::PageRequest;
use crate::validation::Severity;
use crate::vault::audit::{
    AuditAnswer, AuditRequest, ContractTerms, Effect, EffectAudit, Evidence, FAILURE, IoRef, ParsedMember,
    RunAudit, SUCCESS, SchemaSource, Verdict,
};
use crate::vault::links::{Direction, LinkSummary};
use crate::vault::show::ShowAnswer;

/// Number of runs that are audited for a page, and maximum number of contracts.
const RUNS: u64 = 50;
const CONTRACTS: usize = 5;

/// Maximum number of findings that are listed of a run.
const FINDINGS: usize = 20;

/// An audit for a page: of one run, or of those that a contract governs, a page at a time.
pub(super) struct PageAudit {
    request: AuditRequest,
    /// The audit, or why there is none.
    answer: Result<AuditAnswer, String>,
}

impl PageAudit {
    /// Audits the runs that an artifact governs, or the artifact against the contracts that govern it.
    pub(super) fn read(
        visit: &PageRequest<'_>,
        answer: &ShowAnswer,
        selection: TranscriptSelection,
    ) -> Vec<Self> {
        let core = answer.artifact.core_hash;
        let request = AuditRequest { contract: core, run: None, limit: Some(RUNS), after: None };
        let audit = |request: AuditRequest| {
            let answer = visit.vault.run(&request).map_err(|error| error.to_string());
            Self { request, answer }
        };
        if answer.artifact.kind == formats::TERMS.name() {
            return vec![audit(AuditRequest { after: selection.audits_after, ..request })];
        }
        let contracts = contracts(answer).into_iter().take(CONTRACTS);
        contracts
            .map(|contract| audit(AuditRequest { contract, run: Some(core), ..request.clone() }))
            .collect()
    }

    /// Returns the artifacts that are named.
    pub(super) fn artifacts(&self) -> impl Iterator<Item = CoreHash> {
        let runs = self.answer.iter().flat_map(|answer| &answer.runs);
        runs.map(|run| run.run).chain([self.request.contract])
    }

    /// Makes the section of the audit.
    pub(super) fn section(&self, names: &ArtifactNames, is_file: bool) -> Markup {
        let AuditRequest { contract, run, after, .. } = self.request;
        html! {
            section {
                @if run.is_some() {
                    h2 { "Audit against " (parts::kind(formats::TERMS.name())) " " (names.short(contract)) }
                    (names.excerpt_line(contract))
                } @else {
                    h2 id="audits" { "Audits" }
                }
                @match &self.answer {
                    Ok(answer) => {
                        (matrix(answer, run.is_none(), names))
                        (pages(contract, after, answer.next, is_file))
                    },
                    Err(error) => p.failure { (long_line(error)) "." },
                }
            }
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
fn matrix(answer: &AuditAnswer, has_runs: bool, names: &ArtifactNames) -> Markup {
    let Some(first) = answer.runs.first() else {
        return html! { p.faint { "It declares " (counted(answer.effects, "effect")) " and governs no run in the vault." } };
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
                tbody { @for run in &answer.runs { (row(answer, run, has_runs.then_some(names))) } }
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

/// Returns the verdicts on a run, with its name if there are several runs.
fn row(answer: &AuditAnswer, run: &RunAudit, names: Option<&ArtifactNames>) -> Markup {
    html! {
        tr {
            @if let Some(names) = names {
                td.run { (parts::kind(&run.kind)) " " (names.short(run.run)) (names.excerpt_line(run.run)) }
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

/// Maximum number of effects and of refs that are listed.
const LISTED: usize = 200;

/// Returns the section with the terms of a contract.
pub(super) fn section(contract: CoreHash, terms: &ContractTerms) -> Markup {
    let ContractTerms { io_refs, effects } = terms;
    // Steps are the effects, and then the refs.
    let step = |index: usize| address::step(contract, index as u64);
    html! {
        section {
            h2 id="terms" { "Terms" }
            p.faint { "The contract declares " (counted(effects.len() as u64, "effect")) " and " (counted(io_refs.len() as u64, "ref")) "." }
            div.terms {
                @for (index, effect) in effects.iter().enumerate().take(LISTED) { (shown_effect(effect, &step(index))) }
                @for (index, io_ref) in io_refs.iter().enumerate().take(LISTED) {
                    (shown_ref(io_ref, &step(effects.len() + index)))
                }
            }
            @if effects.len().max(io_refs.len()) > LISTED { p.faint { "Only the first " (LISTED) " of each are listed here." } }
        }
    }
}

fn shown_effect(effect: &Effect, step: &str) -> Markup {
    let Effect { name, target, mode, idempotency, rollback, tools, evidence, .. } = effect;
    let stated = |text: &Option<String>| text.as_deref().map(|text| html! { (line(text)) });
    let tools = (!tools.is_empty()).then(|| html! { @for tool in tools { span.tag { (line(tool)) } " " } });
    let retries = effect.is_unsafe_to_retry().then(|| html! { span.caution { "not safe to retry" } });
    let rows = [
        (
            "target",
            Some(html! { (line(target)) @if let Some(mode) = mode { " " span.tag { (line(mode)) } } }),
        ),
        ("verified if", Some(proof(evidence.as_ref()))),
        ("failed if", evidence.as_ref().and_then(disproof)),
        ("tools", tools),
        ("idempotency", stated(idempotency)),
        ("retries", retries),
        ("undone by", stated(rollback)),
    ];
    html! {
        article.change {
            h3 { span.kind { "effect" } " " (line(name)) " " a href=(step) { "as stated" } }
            div.body { (parts::fields(&rows)) }
        }
    }
}

/// Describes what proves an effect.
fn proof(evidence: Option<&Evidence>) -> Markup {
    let never = |why: &str| html! { span.caution { "never: " (long_line(why)) } };
    let Some(evidence) = evidence else { return never("it declares no evidence") };
    if let Some(why) = unusable(evidence) {
        return never(why);
    }
    let proof = match (evidence.sort.as_str(), &evidence.bounds, evidence.success.value()) {
        ("range", ParsedMember::Is(bounds), _) => format!("is a number that is {bounds}"),
        ("range", ..) => return never("the contract states no bounds"),
        ("hash", _, Some(values)) => format!("is the digest {}", values.join(" or ")),
        ("hash", _, None) => "is the digest of known bytes".to_owned(),
        (_, _, Some(values)) => format!("is {}", values.join(" or ")),
        (_, _, None) => format!("is {}", SUCCESS.join(" or ")),
    };
    html! { (source(evidence)) " " (long_line(&proof)) }
}

/// Describes what disproves an effect; `None` if nothing does.
fn disproof(evidence: &Evidence) -> Option<Markup> {
    let is_usable = unusable(evidence).is_none();
    let disproof = match (evidence.sort.as_str(), evidence.success.value()) {
        ("range", _) if evidence.bounds.value().is_some() => "is outside, or is no number".to_owned(),
        ("range", _) => "is no number".to_owned(),
        ("hash", _) => "is another digest than the expected one, or is no digest".to_owned(),
        (_, _) if !is_usable => return None,
        (_, Some(_)) => "is anything else".to_owned(),
        (_, None) => {
            let stated = evidence.failure.value().into_iter().flatten().map(String::as_str);
            format!("is {}", stated.chain(FAILURE).collect::<Vec<_>>().join(" or "))
        }
    };
    Some(html! { (source(evidence)) " " (long_line(&disproof)) })
}

/// Returns why a member of evidence that proves something cannot be used, if it cannot.
fn unusable(evidence: &Evidence) -> Option<&str> {
    let Evidence { sort, success, failure, bounds, .. } = evidence;
    match sort.as_str() {
        "range" => bounds.unusable(),
        "hash" => success.unusable(),
        _ => success.unusable().or_else(|| failure.unusable()),
    }
}

/// Names the value of a result that is the evidence.
fn source(evidence: &Evidence) -> Markup {
    let Evidence { sort, path, metric, .. } = evidence;
    html! {
        "the " (line(sort))
        @if let Some(metric) = metric { " " code { (line(metric)) } }
        @if let Some(path) = path { " at " code { (line(path)) } }
    }
}

fn shown_ref(io_ref: &IoRef, step: &str) -> Markup {
    let IoRef { name, mode, is_required, schema, tools } = io_ref;
    let schema = match schema {
        SchemaSource::Named(name) => html! { (line(name)) },
        SchemaSource::Inline(_) => html! { a href=(step) { "in the contract" } },
    };
    let tools = (!tools.is_empty()).then(|| html! { @for tool in tools { span.tag { (line(tool)) } " " } });
    let required =
        if *is_required { "must be attested before effects that depend on it" } else { "optional" };
    let rows = [("required", Some(html! { (required) })), ("schema", Some(schema)), ("tools", tools)];
    html! {
        article.change {
            h3 { span.kind { "ref" } " " (line(name)) " " span.tag { (line(mode)) } " " a href=(step) { "as stated" } }
            div.body { (parts::fields(&rows)) }
        }
    }
}

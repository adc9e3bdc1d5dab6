//! The terms of a contract: its effects, what proves each of them, and its refs.

use maud::{Markup, html};

use super::parts;
use crate::digest::CoreHash;
use crate::display::counted;
use crate::server::address;
use crate::server::text::{line, long_line};
use crate::vault::audit::{
    ContractTerms, Effect, Evidence, FAILURE, IoRef, ParsedMember, SUCCESS, SchemaSource,
};

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

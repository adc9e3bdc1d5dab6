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
    let Some(evidence) = evidence else {
        return html! { span.caution { "never: it declares no evidence" } };
    };
    let proof = match (evidence.sort.as_str(), &evidence.success) {
        ("range", _) => match &evidence.bounds {
            ParsedMember::Is(bounds) => format!("is a number that is {bounds}"),
            ParsedMember::Nothing => return never("the contract states no bounds"),
            ParsedMember::Unreadable(why) => return never(why),
        },
        (_, ParsedMember::Unreadable(why)) => return never(why),
        ("hash", ParsedMember::Is(values)) => format!("is the digest {}", values.join(" or ")),
        ("hash", ParsedMember::Nothing) => "is the digest of known bytes".to_owned(),
        (_, ParsedMember::Is(values)) => format!("is {}", values.join(" or ")),
        (_, ParsedMember::Nothing) => format!("is {}", SUCCESS.join(" or ")),
    };
    html! { (source(evidence)) " " (long_line(&proof)) }
}

fn never(why: &str) -> Markup {
    html! { span.caution { "never: " (long_line(why)) } }
}

/// Describes what disproves an effect, beside values of another type.
fn disproof(evidence: &Evidence) -> Option<Markup> {
    let disproof = match (evidence.sort.as_str(), &evidence.success, &evidence.failure) {
        ("range", ..) => "is outside".to_owned(),
        ("hash", ..) => "is another digest than the expected one".to_owned(),
        (_, ParsedMember::Is(_), _) => "is anything else".to_owned(),
        (_, _, ParsedMember::Is(values)) => format!("is {}", values.join(" or ")),
        _ => format!("is {}", FAILURE.join(" or ")),
    };
    Some(html! { (source(evidence)) " " (long_line(&disproof)) })
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

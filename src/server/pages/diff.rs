//! The page of two artifacts side by side.

use maud::{Markup, html};
use serde::Deserialize;

use super::parts;
use super::search;
use crate::digest::CoreHash;
use crate::display::counted;
use crate::server::address;
use crate::server::text::{block, line, long_line, number};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::api::JsonValue;
use crate::vault::diff::{
    ChangeType, ChangedValue, ComparedArtifact, DiffAnswer, DiffExtent, DiffRequest, PartChange,
    TextDiffSpan, words,
};

/// Number of changes of a page.
const CHANGES: u64 = 200;

/// Maximum number of values that are listed of a change.
const VALUES: usize = 100;

/// Maximum number of characters of a value that are compared by words.
const WORDS: usize = 20_000;

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    /// The artifacts, by anything that names one.
    one: String,
    other: String,
    /// Whether to show values that vary between identical runs.
    all: bool,
    after: Option<u64>,
}

/// Makes the page of the differences between two artifacts.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let parameters: Parameters = visit.parameters()?;
    let title = "Differences".to_owned();
    if parameters.one.trim().is_empty() || parameters.other.trim().is_empty() {
        let body = html! { h1 { (title) } (form(&parameters)) };
        return Ok(ResponseContent::Page(HtmlPage { title, section: "/diff", body }));
    }
    let side = |text: &str| Ok::<_, PageError>(search::artifact_of_text(visit, text.trim())?.artifact.core);
    let (one, other) = (side(&parameters.one)?, side(&parameters.other)?);
    let compared = |core_hash| ComparedArtifact { core_hash, capture_hash: None };
    let answer = visit.run(&DiffRequest {
        ignore: Vec::new(),
        one: compared(one),
        other: compared(other),
        all: parameters.all,
        extent: DiffExtent::All,
        limit: Some(CHANGES),
        after: parameters.after,
    })?;
    let body = html! {
        h1 { (title) }
        (form(&parameters))
        (summary(&answer))
        (changes(&answer, parameters.after.is_none()))
        (pages(&parameters, one, other, &answer))
    };
    Ok(ResponseContent::Page(HtmlPage { title, section: "/diff", body }))
}

fn form(parameters: &Parameters) -> Markup {
    html! {
        form.filters action="/diff" {
            label { "One" input name="one" value=(parameters.one) placeholder="hash, @tag or run id"; }
            label { "Other" input name="other" value=(parameters.other) placeholder="hash, @tag or run id"; }
            label {
                "Values that vary between identical runs"
                select name="all" {
                    option value="false" selected[!parameters.all] { "leave out" }
                    option value="true" selected[parameters.all] { "show" }
                }
            }
            button { "Compare" }
        }
    }
}

fn summary(answer: &DiffAnswer) -> Markup {
    let counts = &answer.counts;
    html! {
        div.sides {
            p { "One: " (parts::kind(&answer.kind)) " " (parts::hash(answer.one.core_hash)) }
            p { "Other: " (parts::kind(&answer.kind)) " " (parts::hash(answer.other.core_hash)) }
        }
        @if answer.different {
            p {
                (number(counts.same as u64)) " the same, " (number(counts.changed as u64)) " changed, "
                (number(counts.moved as u64)) " moved, " (number(counts.removed as u64)) " only in one, "
                (number(counts.inserted as u64)) " only in the other."
            }
        } @else if answer.same_core {
            p.badge.good { "Both have the same core hash." }
        } @else {
            p.badge.good { "No part differs." }
        }
    }
}

/// Returns the changes; the first divergence stands out.
fn changes(answer: &DiffAnswer, is_first_page: bool) -> Markup {
    let first = answer.first_divergence.as_ref().filter(|_| is_first_page);
    let changes = answer.changes.as_deref().unwrap_or_default();
    html! {
        @if let Some(first) = first {
            h2 { "Where they diverge first" }
            (shown(first, "change first", true))
        }
        @if changes.len() > 1 || !is_first_page {
            h2 { "All changes" }
            p.fold {}
            @for change in changes { (shown(change, "change step", false)) }
        }
    }
}

fn shown(change: &PartChange, class: &str, is_open: bool) -> Markup {
    let place = match (&change.one, &change.other) {
        (Some(one), Some(other)) if one != other => format!("{one} → {other}"),
        _ => change.place().to_owned(),
    };
    html! {
        details class=(class) open[is_open] {
            summary {
                strong { (line(&place)) }
                span.tag { (type_name(change.change)) }
                span { (long_line(&change.says)) }
            }
            div.body {
                @for value in change.values.iter().take(VALUES) { (shown_value(value)) }
                @if let more @ 1.. = change.values.len().saturating_sub(VALUES) as u64 {
                    p.faint { "and " (counted(more, "more value")) }
                }
            }
        }
    }
}

fn type_name(change: ChangeType) -> &'static str {
    match change {
        ChangeType::Changed => "changed",
        ChangeType::Moved => "moved",
        ChangeType::Removed => "only in one",
        ChangeType::Inserted => "only in the other",
        ChangeType::Ephemeral => "varies between identical runs",
        ChangeType::Spelling => "same canonical form",
    }
}

fn shown_value(value: &ChangedValue) -> Markup {
    let pointer = if value.pointer.is_empty() { "the whole part" } else { &value.pointer };
    let (old, new) = (value.old.as_ref().map(text), value.new.as_ref().map(text));
    let (one, other) = match (&old, &new) {
        (Some(old), Some(new)) if old.len() + new.len() <= WORDS => marked(old, new),
        _ => {
            let side = |text: &Option<String>, is_old| {
                let text = text.as_deref();
                html! { @if let Some(text) = text { (changed(text, is_old)) } @else { span.faint { "–" } } }
            };
            (side(&old, true), side(&new, false))
        }
    };
    html! {
        p.role { code { (long_line(pointer)) } @if value.ephemeral { span { "varies between identical runs" } } }
        div.sides {
            pre aria-label="One" { (one) }
            pre aria-label="Other" { (other) }
        }
    }
}

/// Returns both texts with the words marked that differ.
fn marked(old: &str, new: &str) -> (Markup, Markup) {
    let spans = words(old, new);
    let one = html! {
        @for span in &spans {
            @match span {
                TextDiffSpan::Same(text) => (block(text)),
                TextDiffSpan::Removed(text) => (changed(text, true)),
                TextDiffSpan::Added(_) => {},
            }
        }
    };
    let other = html! {
        @for span in &spans {
            @match span {
                TextDiffSpan::Same(text) => (block(text)),
                TextDiffSpan::Added(text) => (changed(text, false)),
                TextDiffSpan::Removed(_) => {},
            }
        }
    };
    (one, other)
}

fn changed(text: &str, is_old: bool) -> Markup {
    html! { @if is_old { del { (block(text)) } } @else { ins { (block(text)) } } }
}

/// Returns a value as it is read: a text without quotation marks, everything else as JSON.
fn text(value: &JsonValue) -> String {
    match value.0.as_str() {
        Some(text) => text.to_owned(),
        None => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

fn pages(parameters: &Parameters, one: CoreHash, other: CoreHash, answer: &DiffAnswer) -> Markup {
    let to = |after: Option<u64>| {
        let (one, other, after) = (one.to_string(), other.to_string(), after.map(|after| after.to_string()));
        let all = parameters.all.then_some("true");
        let fields =
            [("one", Some(one.as_str())), ("other", Some(&other)), ("all", all), ("after", after.as_deref())];
        address::with_query("/diff", &fields)
    };
    html! {
        nav.pages aria-label="Pages" {
            @if parameters.after.is_some() { a href=(to(None)) { "First page" } }
            @if let Some(next) = answer.next { a rel="next" href=(to(Some(next))) { "More changes" } }
        }
    }
}

//! The transcript of an artifact: its steps with what was asked, answered and called.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde::Deserialize;

use super::steps::{anchor_in_type, are_events, class, duration, file_anchor, place_in};
use super::{journal, parts, timeline};
use crate::digest::CoreHash;
use crate::display::{counted, size};
use crate::formats;
use crate::server::address::{self, STEPS};
use crate::server::failure::PageError;
use crate::server::text::{block, exact_time, line, number};
use crate::server::visit::{Medium, PageRequest};
use crate::vault::view::{
    BodyFormat, BodyRole, BodySource, ViewAnswer, ViewBody, ViewFilter, ViewRequest, ViewStep,
};

/// Maximum number of characters of each text; more if a single step is requested.
const TEXT: u64 = 4_000;
const FULL_TEXT: u64 = 200_000;

/// The parameters of the address that select steps.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Parameters {
    from: u64,
    to: Option<u64>,
    only: Option<ViewFilter>,
    /// The last run on the previous page of audits.
    pub(super) audits_after: Option<CoreHash>,
    /// Whether the page is written to a file, which has no page for a single step.
    #[serde(skip)]
    pub(super) is_file: bool,
}

impl Parameters {
    /// Returns the request for the selected steps.
    pub(super) fn request(self, artifact: CoreHash) -> ViewRequest {
        let is_complete = self.is_file || self.to == Some(self.from);
        ViewRequest {
            from: self.from,
            to: self.to,
            only: self.only,
            limit: Some(STEPS),
            max_text: Some(if is_complete { FULL_TEXT } else { TEXT }),
            ..ViewRequest::new(artifact)
        }
    }

    /// Returns the parameters of a page that the request selects.
    pub(super) fn new(visit: &PageRequest<'_>) -> Result<Self, PageError> {
        Ok(Self { is_file: visit.medium == Medium::File, ..visit.parameters()? })
    }
}

/// Returns the section with the steps.
pub(super) fn section(parameters: Parameters, answer: &ViewAnswer) -> Markup {
    let heading = match answer.total {
        1 => answer.step_noun.clone(),
        _ => format!("{}s", answer.step_noun),
    };
    let start = answer.steps.iter().find_map(|step| step.time).map(|time| time.0);
    html! {
        section {
            h2 id="content-of-artifact" { (number(answer.total)) " " (line(&heading)) }
            @if answer.total > 1 { (filters(parameters, answer)) }
            (timeline::drawing(answer))
            (journal::drawing(answer))
            @for step in &answer.steps { (shown_step(parameters, answer, step, start)) }
            @if answer.steps.is_empty() { p.faint { "None." } }
            (pages(parameters, answer))
        }
    }
}

/// Links to the selections of steps.
fn filters(parameters: Parameters, answer: &ViewAnswer) -> Markup {
    let core = answer.artifact.core_hash;
    let to = |only: Option<&str>| address::with_query(&address::artifact(core), &[("only", only)]);
    let current = |only: Option<ViewFilter>| (parameters.only == only).then_some("page");
    html! {
        nav.pages aria-label="Steps" {
            @if are_events(&answer.steps) || parameters.only.is_some() {
                a href=(to(None)) aria-current=[current(None)] { "all" }
                a href=(to(Some("tools"))) aria-current=[current(Some(ViewFilter::Tools))] { "tools" }
                a href=(to(Some("errors"))) aria-current=[current(Some(ViewFilter::Errors))] { (number(answer.failed)) " failed" }
            }
            span.fold {}
        }
    }
}

/// Links to the previous and the next steps.
fn pages(parameters: Parameters, answer: &ViewAnswer) -> Markup {
    let core = answer.artifact.core_hash;
    let only = parameters.only.map(|only| match only {
        ViewFilter::Tools => "tools",
        ViewFilter::Errors => "errors",
    });
    let to = |from: u64| {
        let from = from.to_string();
        address::with_query(&address::artifact(core), &[("from", Some(from.as_str())), ("only", only)])
    };
    html! {
        nav.pages aria-label="Pages of steps" {
            @if parameters.from > 0 {
                a rel="prev" href=(to(parameters.from.saturating_sub(STEPS))) { "Previous " (answer.step_noun) "s" }
            }
            @if let Some(next) = answer.next { a rel="next" href=(to(next)) { "Next " (answer.step_noun) "s" } }
        }
    }
}

fn shown_step(
    parameters: Parameters,
    answer: &ViewAnswer,
    step: &ViewStep,
    start: Option<DateTime<Utc>>,
) -> Markup {
    let is_open = answer.steps.len() == 1;
    let file = step.title.as_deref().and_then(|title| file_anchor(&answer.artifact.kind, title));
    let anchor = file.or_else(|| anchor_in_type(answer, step));
    let class = format!("step {}{}", class(step), if step.failed { " failed" } else { "" });
    html! {
        details class=(class) id=(format!("step-{}", step.index)) open[is_open] {
            summary id=[anchor] {
                span.number { (step.index) }
                strong { (line(&step.step_type)) }
                @if let Some(title) = &step.title { span { (line(title)) } }
                @if step.failed { span.bad { "failed" } }
                @if let Some(status) = &step.status { span.tag { (line(status)) } }
                (measures(step, start))
                span.preview { (preview(step)) }
            }
            div.body {
                (facts(answer, step))
                @for body in &step.bodies { (shown_body(parameters, answer, step, body)) }
                @if step.bodies.is_empty() { p.faint { "It records nothing else." } }
            }
        }
    }
}

/// Returns the time of a step since the first, its duration, and its tokens.
fn measures(step: &ViewStep, start: Option<DateTime<Utc>>) -> Markup {
    let since = step.time.zip(start).map(|(time, start)| time.0.signed_duration_since(start));
    let since = since.map(|since| since.num_milliseconds());
    html! {
        span.faint {
            @if let Some(since) = since { (if since < 0 { "−" } else { "+" }) (duration(since.unsigned_abs())) " " }
            @if let Some(took) = step.duration_ms { "took " (duration(took)) " " }
            @if let Some(tokens) = step.tokens_in { (number(tokens)) " tokens in " }
            @if let Some(tokens) = step.tokens_out { (number(tokens)) " out" }
        }
    }
}

/// Returns the beginning of what the step resulted in, or else of what it requested.
fn preview(step: &ViewStep) -> Markup {
    let is_result =
        |body: &&ViewBody| matches!(body.role, BodyRole::Response | BodyRole::Result | BodyRole::Error);
    let body = step.bodies.iter().find(is_result).or_else(|| step.bodies.last());
    let text = body.and_then(|body| body.text.as_deref()).unwrap_or_default();
    let text: String =
        text.split_whitespace().take(40).collect::<Vec<_>>().join(" ").chars().take(110).collect();
    html! { (line(&text)) }
}

fn facts(answer: &ViewAnswer, step: &ViewStep) -> Markup {
    let rows = [
        ("time", step.time.map(|time| exact_time(time.0))),
        (
            "answers",
            step.answers.map(|index| html! { a href=(place_of_step(answer, index)) { "step " (index) } }),
        ),
        ("hash", step.digest.map(|digest| html! { code.copy { (digest) } })),
        ("size", step.size.map(|bytes| html! { (size(bytes)) })),
    ];
    parts::fields(&rows)
}

fn shown_body(parameters: Parameters, answer: &ViewAnswer, step: &ViewStep, body: &ViewBody) -> Markup {
    html! {
        p.role {
            span { (role(body.role)) @if let Some(name) = &body.name { " " (line(name)) } }
            (source(body))
        }
        (content(body))
        @if body.omitted > 0 {
            p.faint {
                (counted(body.omitted, "more character"))
                @if parameters.is_file { " in the bytes of the artifact" } @else {
                    ": " a href=(only_step(answer.artifact.core_hash, step.index)) { "this step alone" }
                }
            }
        }
    }
}

/// Returns the content of a body.
pub(super) fn content(body: &ViewBody) -> Markup {
    match (&body.text, body.format) {
        (Some(text), _) => html! { pre { (block(text)) } },
        (None, BodyFormat::Binary) => html! { p.faint { (size(body.size)) " that are not text." } },
        (None, _) => html! {
            p.faint {
                "Only its digest is recorded"
                @if let Some(digest) = body.digest { ": " code { (digest) } }
                "."
            }
        },
    }
}

/// States where the text of a body comes from, and leads to everything with the same content.
fn source(body: &ViewBody) -> Markup {
    let is_prompt = body.role == BodyRole::Prompt;
    html! {
        @if let BodySource::Resolved { core_hash, kind, place } = &body.source {
            span {
                "the digest is recorded, the text is that of " (line(formats::bare_noun(kind))) " " (parts::hash(*core_hash))
                @if let Some(place) = place { " at " (place_in(*core_hash, kind, &place.to_string())) }
            }
        }
        @if let Some(digest) = body.digest {
            @if is_prompt { a href=(address::prompt(digest)) { "all answers to it" } }
            @else { a href=(address::mentions(digest)) { "other occurrences" } }
        }
    }
}

/// Returns the address of a step within this page, or on the page without a selection if it is not on this one.
fn place_of_step(answer: &ViewAnswer, index: u64) -> String {
    if answer.steps.iter().any(|step| step.index == index) {
        format!("#step-{index}")
    } else {
        address::step(answer.artifact.core_hash, index)
    }
}

/// Returns the address of a page with one step.
fn only_step(core: CoreHash, index: u64) -> String {
    let index = index.to_string();
    address::with_query(&address::artifact(core), &[("from", Some(&index)), ("to", Some(&index))])
}

/// Returns the name of a role for people.
fn role(role: BodyRole) -> &'static str {
    match role {
        BodyRole::Context => "Context",
        BodyRole::Prompt => "Prompt",
        BodyRole::Response => "Response",
        BodyRole::Arguments => "Arguments",
        BodyRole::Result => "Result",
        BodyRole::Error => "Error",
        BodyRole::State => "State",
        BodyRole::Details => "Details",
        BodyRole::Content => "Content",
    }
}

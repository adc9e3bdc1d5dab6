//! The transcript of an artifact: its steps with what was asked, answered and called.

use std::ops::Range;

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde::Deserialize;

use super::parts::{anchor_in_type, are_events, duration, file_anchor, place_in, step_class, step_label};
use super::{journal, parts};
use crate::digest::CoreHash;
use crate::display::{self, counted, size};
use crate::formats;
use crate::server::address::{self, STEPS};
use crate::server::text::{block, exact_time, line, number};
use crate::server::visit::{Medium, PageError, PageRequest};
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
            (drawing(answer))
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
    let class = format!("step {}{}", step_class(step), if step.failed { " failed" } else { "" });
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

/// The size of the drawing, and of the row of a class of steps, in user units.
const WIDTH: i64 = 1_000;
const ROW: i64 = 16;
const BAR: i64 = 12;

/// The narrowest bar.
const NARROWEST: i64 = 3;

/// The classes of steps, a row each.
const ROWS: [&str; 3] = ["model", "tool", "other"];

/// Draws a bar for each step on the page: by time if the steps state different times, else by number.
pub(super) fn drawing(answer: &ViewAnswer) -> Markup {
    if answer.steps.len() < 2 || !are_events(&answer.steps) {
        return html! {};
    }
    let times = times(&answer.steps);
    let rows: Vec<&str> =
        ROWS.into_iter().filter(|row| answer.steps.iter().any(|step| step_class(step) == *row)).collect();
    let height = i64::try_from(rows.len()).unwrap_or(1) * ROW + 2;
    let summary = match &times {
        Some(times) => format!("steps over {}", duration((times.end - times.start).unsigned_abs())),
        None => "steps by number".to_owned(),
    };
    let row = |step: &ViewStep| rows.iter().position(|row| *row == step_class(step)).unwrap_or_default();
    html! {
        figure.timeline {
            svg.timeline viewBox=(format!("0 0 {WIDTH} {height}")) role="group" aria-label=(summary) {
                line.axis x1="0" x2=(WIDTH) y1=(height - 1) y2=(height - 1) {}
                @for (at, step) in answer.steps.iter().enumerate() {
                    (bar(step, &span(step, at, answer.steps.len(), times.as_ref()), row(step)))
                }
            }
            figcaption.faint {
                @for row in &rows { span class=(format!("key {row}")) { (row) } " " }
                (summary)
                @if let Some(first) = answer.steps.iter().find_map(|step| step.time).filter(|_| times.is_some()) {
                    " from " (display::time(first.0))
                }
            }
        }
    }
}

/// Returns the times from the first to the last, in milliseconds, unless they are the same or missing.
fn times(steps: &[ViewStep]) -> Option<Range<i64>> {
    let start = steps.iter().filter_map(begin).min()?;
    let end = steps.iter().filter_map(|step| Some(begin(step)?.saturating_add(length(step)))).max()?;
    (start < end).then_some(start..end)
}

fn begin(step: &ViewStep) -> Option<i64> {
    Some(step.time?.0.timestamp_millis())
}

fn length(step: &ViewStep) -> i64 {
    i64::try_from(step.duration_ms.unwrap_or(0)).unwrap_or(i64::MAX)
}

/// The beginning and the width of a bar.
struct BarSpan {
    x: i64,
    width: i64,
}

/// Returns where the bar of the step `at` this position on the page is.
fn span(step: &ViewStep, at: usize, count: usize, times: Option<&Range<i64>>) -> BarSpan {
    let scaled = |value: i64, all: i64| {
        let scaled = i128::from(value.max(0)) * i128::from(WIDTH) / i128::from(all.max(1));
        i64::try_from(scaled).unwrap_or(WIDTH).min(WIDTH)
    };
    let (x, width) = match (times, begin(step)) {
        (Some(times), Some(begin)) => {
            let all = times.end.saturating_sub(times.start);
            (scaled(begin.saturating_sub(times.start), all), scaled(length(step), all))
        }
        (Some(_), None) => (0, 0),
        (None, _) => {
            let (at, count) = (i64::try_from(at).unwrap_or(0), i64::try_from(count).unwrap_or(1));
            (scaled(at, count), (WIDTH / count - 1).max(0))
        }
    };
    let width = width.max(NARROWEST);
    BarSpan { x: x.min(WIDTH - width), width }
}

fn bar(step: &ViewStep, span: &BarSpan, row: usize) -> Markup {
    let class = if step.failed { "failed" } else { step_class(step) };
    let y = i64::try_from(row).unwrap_or_default() * ROW + 1;
    let label = step_label(step);
    let drawn = html! {
        rect class=(class) x=(span.x) y=(y) width=(span.width) height=(BAR) { title { (label) } }
    };
    parts::linked_drawing(Some(&format!("#step-{}", step.index)), &label, &drawn)
}

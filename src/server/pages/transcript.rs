//! The transcript of an artifact: its steps with what was asked, answered and called.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::parts::{
    ArtifactNames, anchor_in_type, are_events, duration, file_anchor, place_in, step_class, step_label,
};
use super::selection::TranscriptSelection;
use super::timeline::{self, TimelineItem};
use super::{conversation, journal, parts};
use crate::digest::CoreHash;
use crate::display::{counted, size};
use crate::formats;
use crate::server::address;
use crate::server::frame::{block, exact_time, line, number};
use crate::vault::view::{BodyFormat, BodyRole, BodySource, ViewAnswer, ViewBody, ViewFilter, ViewStep};

/// Returns the section with the steps, or with the conversation that they record.
pub(super) fn section(selection: TranscriptSelection, answer: &ViewAnswer, names: &ArtifactNames) -> Markup {
    let start = answer.steps.iter().find_map(|step| step.time).map(|time| time.0);
    html! {
        section.steps {
            div.section-heading {
                h2 id="content-of-artifact" { (heading(answer)) }
                (forms(selection, answer))
            }
            (filters(selection, answer))
            @match &answer.conversation {
                Some(conversation) => (conversation::calls(selection, answer, conversation)),
                None => {
                    (drawing(answer))
                    (journal::drawing(selection, answer))
                    @for step in &answer.steps { (shown_step(selection, answer, step, start, names)) }
                    @if answer.steps.is_empty() { p.faint { "None." } }
                }
            }
            (pages(selection, answer))
        }
    }
}

fn heading(answer: &ViewAnswer) -> Markup {
    let noun = match answer.total {
        1 => answer.step_noun.clone(),
        _ => format!("{}s", answer.step_noun),
    };
    html! {
        @if answer.conversation.is_some() { "Conversation " span.faint { (number(answer.total)) " " (noun) } }
        @else { (number(answer.total)) " " (line(&noun)) }
    }
}

/// Links to the forms in which a conversation can be read.
fn forms(selection: TranscriptSelection, answer: &ViewAnswer) -> Markup {
    let core = answer.artifact.core_hash;
    let form = |raw: bool, text: &str| {
        let address = TranscriptSelection { raw, to: None, only: None, ..selection }.address(core);
        html! { a href=(address) aria-current=[(selection.raw == raw).then_some("page")] { (text) } }
    };
    html! {
        @if answer.conversation.is_some() || selection.raw {
            nav.pages aria-label="Forms" {
                (form(false, "Conversation"))
                (form(true, "Raw steps"))
                a href=(address::bytes(core, answer.capture_hash, None)) download="" { "Exact bytes" }
            }
        }
    }
}

/// Links to the selections of steps. The script adds buttons to them.
fn filters(selection: TranscriptSelection, answer: &ViewAnswer) -> Markup {
    let core = answer.artifact.core_hash;
    // Files have filters in one form only, so that they are not too many.
    let is_second_form = selection.is_file && selection.raw;
    let are_many = answer.total > 1 || selection.only.is_some();
    let has_filters = answer.conversation.is_some() || are_events(&answer.steps) || selection.only.is_some();
    let ends_before = answer.next.is_some() || selection.to.is_some();
    let is_counted = answer.conversation.is_none() || !ends_before || selection.only.is_some();
    let filter = |only: Option<ViewFilter>, text: Markup| {
        let address = selection.filtered(only).address(core);
        html! { a href=(address) aria-current=[(selection.only == only).then_some("page")] { (text) } }
    };
    html! {
        nav.pages.tools aria-label="Steps" {
            @if are_many && has_filters && !is_second_form {
                (filter(None, html! { "all" }))
                (filter(Some(ViewFilter::Tools), html! { "tools" }))
                (filter(Some(ViewFilter::Errors), html! { @if is_counted { (number(answer.failed)) " " } "failed" }))
            }
            span.fold {}
        }
    }
}

/// Links to the previous and the next steps. The script loads the next ones when the end of the page is reached.
fn pages(selection: TranscriptSelection, answer: &ViewAnswer) -> Markup {
    let core = answer.artifact.core_hash;
    let to = |from: u64| selection.starting_at(from).address(core);
    html! {
        nav.pages aria-label="Pages of steps" {
            @if let Some(previous) = answer.previous { a rel="prev" href=(to(previous)) { "Previous " (answer.step_noun) "s" } }
            @if let Some(next) = answer.next { a rel="next" href=(to(next)) { "Next " (answer.step_noun) "s" } }
        }
    }
}

/// Draws a bar for each step on the page.
fn drawing(answer: &ViewAnswer) -> Markup {
    if !are_events(&answer.steps) {
        return html! {};
    }
    let items: Vec<TimelineItem> = answer
        .steps
        .iter()
        .map(|step| TimelineItem {
            class: step_class(step),
            failed: step.failed,
            begin: step.time.map(|time| time.0.timestamp_millis()),
            length: step.duration_ms.unwrap_or(0),
            label: step_label(step),
            address: format!("#step-{}", step.index),
        })
        .collect();
    timeline::drawing(&parts::page_noun(answer), &items)
}

fn shown_step(
    selection: TranscriptSelection,
    answer: &ViewAnswer,
    step: &ViewStep,
    start: Option<DateTime<Utc>>,
    names: &ArtifactNames,
) -> Markup {
    let is_open = answer.steps.len() == 1;
    let file = step.title.as_deref().and_then(|title| file_anchor(&answer.artifact.kind, title));
    let anchor = file.or_else(|| anchor_in_type(answer, step));
    let class = format!("step {}{}", step_class(step), if step.failed { " failed" } else { "" });
    let address = place_on_page(selection, answer, step.index);
    html! {
        div.numbered {
            a.permalink href=(address) aria-label=(format!("Link to {} {}", answer.step_noun, step.index)) { (step.index) }
            details class=(class) id=(format!("step-{}", step.index)) open[is_open] {
                summary id=[anchor] {
                    strong { (line(&step.step_type)) }
                    @if let Some(title) = &step.title { span { (line(title)) } }
                    @if step.failed { span.bad { "failed" } }
                    @if let Some(status) = &step.status { span.tag { (line(status)) } }
                    (measures(step, start))
                    span.preview { (preview(step)) }
                }
                div.body {
                    (facts(selection, answer, step))
                    @for body in &step.bodies {
                        (shown_body(body, names))
                        @if body.omitted > 0 { (omitted(selection, answer, step, body)) }
                    }
                    @if step.bodies.is_empty() { p.faint { "It records nothing else." } }
                }
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

fn facts(selection: TranscriptSelection, answer: &ViewAnswer, step: &ViewStep) -> Markup {
    let rows = [
        ("time", step.time.map(|time| exact_time(time.0))),
        (
            "answers",
            step.answers
                .map(|index| html! { a href=(place_of_step(selection, answer, index)) { "step " (index) } }),
        ),
        ("hash", step.digest.map(|digest| html! { code.copy { (digest) } })),
        ("size", step.size.map(|bytes| html! { (size(bytes)) })),
    ];
    parts::fields(&rows)
}

fn shown_body(body: &ViewBody, names: &ArtifactNames) -> Markup {
    html! {
        p.role {
            span { (role(body.role)) @if let Some(name) = &body.name { " " (line(name)) } }
            (source(body, names))
        }
        (content(body))
    }
}

/// Says how much of a body is not shown, and where it is.
fn omitted(selection: TranscriptSelection, answer: &ViewAnswer, step: &ViewStep, body: &ViewBody) -> Markup {
    html! {
        p.faint {
            (counted(body.omitted, "more character"))
            @if selection.is_file { " in the bytes of the artifact" } @else {
                ": " a href=(selection.alone(step.index).address(answer.artifact.core_hash)) { "this step alone" }
            }
        }
    }
}

/// Returns the artifacts that texts of steps come from.
pub(super) fn sources(answer: &ViewAnswer) -> impl Iterator<Item = CoreHash> {
    answer.steps.iter().flat_map(|step| &step.bodies).filter_map(|body| match &body.source {
        BodySource::Resolved { core_hash, .. } => Some(*core_hash),
        _ => None,
    })
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
fn source(body: &ViewBody, names: &ArtifactNames) -> Markup {
    let is_prompt = body.role == BodyRole::Prompt;
    html! {
        @if let BodySource::Resolved { core_hash, kind, place } = &body.source {
            span {
                "the digest is recorded, the text is that of " (line(formats::bare_noun(kind))) " " (names.short(*core_hash))
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
fn place_of_step(selection: TranscriptSelection, answer: &ViewAnswer, index: u64) -> String {
    if answer.steps.iter().any(|step| step.index == index) {
        format!("#step-{index}")
    } else {
        selection.step_address(answer.artifact.core_hash, index)
    }
}

/// Returns the permanent address of a step that is on this page.
fn place_on_page(selection: TranscriptSelection, answer: &ViewAnswer, index: u64) -> String {
    format!("{}#step-{index}", selection.address(answer.artifact.core_hash))
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

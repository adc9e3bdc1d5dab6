//! The page of a prompt: every answer to it, over time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};

use super::message::{FoldLimit, preview};
use super::parts::ArtifactNames;
use super::timeline::{self, TimelineItem};
use super::{filters, json_tree, parts, transcript};
use crate::artifact::group;
use crate::digest::{CoreHash, Digest};
use crate::display::{self, counted, size};
use crate::server::address;
use crate::server::frame::{exact_time, line, number};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::answers::{AnswersRequest, DistinctAnswer, GivenAnswer, PromptAnswers};
use crate::vault::api::{PlaceSummary, TimeBasis};
use crate::vault::view::ViewBody;

/// Maximum number of artifacts that are read.
const ARTIFACTS: u64 = 1_000;

/// Maximum number of characters of each text.
const TEXT: u64 = 20_000;

/// Maximum number of places, and of models, that are listed of an answer.
const PLACES: usize = 50;
const MODELS: usize = 8;

/// Maximum number of answers, and of times of each, that are drawn.
const DRAWN_ROWS: usize = 12;
const DRAWN: usize = 500;

const LONG: FoldLimit = FoldLimit { characters: 1_200, lines: 16 };

/// Makes the page of a prompt.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let digest = filters::mentioned(visit, visit.name, Some(group::PROMPT))?;
    if visit.name != digest.to_string() {
        return Ok(ResponseContent::Redirect(address::prompt(digest)));
    }
    let answer = visit.run(&AnswersRequest {
        prompt: Some(digest),
        limit: Some(ARTIFACTS),
        max_text: Some(TEXT),
        ..AnswersRequest::default()
    })?;
    let read = answer.is_more.then_some(answer.read);
    page_with(visit, digest, answer.prompts.first(), read).map(ResponseContent::Page)
}

/// Returns the request for the prompts with several answers in some artifacts, each of which [`page_with`] makes a page of.
pub(in crate::server) fn repeated(artifacts: Vec<CoreHash>) -> AnswersRequest {
    AnswersRequest { artifacts, repeated: true, max_text: Some(TEXT), ..AnswersRequest::default() }
}

/// Makes the page of a prompt with these answers, and with the number of artifacts that were read if there are more.
pub(in crate::server) fn page_with(
    visit: &PageRequest<'_>,
    digest: Digest,
    answers: Option<&PromptAnswers>,
    read: Option<u64>,
) -> Result<HtmlPage, PageError> {
    let body = html! {
        h1 { span.kind { "prompt" } " " (format!("{digest:.12}")) }
        p.identity {
            code.copy { (digest) } " "
            a href=(address::mentions(digest)) { "All artifacts that mention it" }
        }
        @match answers {
            Some(prompt) => (shown_answers(visit, prompt, read)?),
            None => p { "No run or session in the vault records an answer to it." },
        }
    };
    Ok(HtmlPage { title: format!("prompt {digest:.12}"), section: "", body })
}

fn shown_answers(
    visit: &PageRequest<'_>,
    prompt: &PromptAnswers,
    read: Option<u64>,
) -> Result<Markup, PageError> {
    let groups = most_frequent_first(&prompt.answers);
    let places = groups.iter().flat_map(|group| listed(&group.given)).map(|given| given.core_hash);
    let names = ArtifactNames::read(visit, places.collect())?;
    let distinct = groups.len() as u64;
    Ok(html! {
        @match &prompt.prompt {
            Some(text) => (folded(text)),
            None => p.faint { "No artifact in the vault records its text." },
        }
        h2 {
            (counted(prompt.count, "answer"))
            @if distinct == 1 && prompt.count > 1 { ", all the same" } @else if distinct > 1 { ", " (number(distinct)) " different" }
        }
        @if let Some(read) = read { p.caution { "Only the answers of the " (number(read)) " artifacts that were seen last." } }
        @if distinct > 1 { p.faint { "The most frequent answer is first." } }
        (drawing(&groups))
        @for (index, group) in groups.iter().enumerate() { (shown(index + 1, group, &names)) }
    })
}

/// Returns the places of an answer that are listed, the latest first.
fn listed(given: &[GivenAnswer]) -> impl Iterator<Item = &GivenAnswer> {
    given.iter().rev().take(PLACES)
}

/// Returns the answers by how often they were given, and of those given equally often, the latest first.
fn most_frequent_first(answers: &[DistinctAnswer]) -> Vec<&DistinctAnswer> {
    let mut groups: Vec<&DistinctAnswer> = answers.iter().collect();
    groups.sort_by_key(|group| Reverse((group.count, group.given.last().map(|given| given.time))));
    groups
}

/// Draws when each answer was given, with a row for each.
fn drawing(groups: &[&DistinctAnswer]) -> Markup {
    let item = |index: usize, failed: bool, given: &GivenAnswer| TimelineItem {
        class: if index.is_multiple_of(2) { "model" } else { "tool" },
        failed,
        begin: Some(given.time.0.timestamp_millis()),
        length: 0,
        label: format!("answer {}, {}", index + 1, display::time(given.time.0)),
        address: address_of(given),
    };
    let rows: Vec<Vec<TimelineItem>> = groups
        .iter()
        .take(DRAWN_ROWS)
        .enumerate()
        .map(|(index, group)| {
            group.given.iter().rev().take(DRAWN).map(|given| item(index, group.failed, given)).collect()
        })
        .collect();
    html! {
        (timeline::drawing_of_groups("answers", &rows))
        @if groups.len() > 1 { p.faint { "A row for each answer" @if groups.len() > DRAWN_ROWS { ", of the first " (DRAWN_ROWS) } "." } }
    }
}

fn shown(position: usize, group: &DistinctAnswer, names: &ArtifactNames) -> Markup {
    let DistinctAnswer { response, failed, count, given } = group;
    let more = given.len().saturating_sub(PLACES) as u64;
    html! {
        article.change id=(format!("answer-{position}")) {
            h3 { "Answer " (position) " " span.tag { (counted(*count, "time")) } @if *failed { " " span.bad { "failed" } } }
            div.body {
                p.faint { (models(given)) (times(given)) }
                (folded(response))
                details {
                    summary { "Where it was given" }
                    ul { @for one in listed(given) { li { (place(one, names)) } } }
                    @if more > 0 { p.faint { "and " (counted(more, "earlier place")) } }
                }
            }
        }
    }
}

/// Returns the models that gave an answer, each with how often.
fn models(given: &[GivenAnswer]) -> Markup {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for model in given.iter().filter_map(|given| given.model_id.as_deref()) {
        *counts.entry(model).or_default() += 1;
    }
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let more = counts.len().saturating_sub(MODELS) as u64;
    html! {
        @for (model, count) in counts.into_iter().take(MODELS) { strong { (line(model)) } " " (counted(count, "time")) " · " }
        @if more > 0 { (counted(more, "more model")) " · " }
    }
}

/// Returns the first and the last time of an answer.
fn times(given: &[GivenAnswer]) -> Markup {
    html! {
        @if let (Some(first), Some(last)) = (given.first(), given.last()) {
            (exact_time(first.time.0))
            @if first.time != last.time { " to " (exact_time(last.time.0)) }
        }
    }
}

/// Returns a text, as a tree if it is JSON; folded, with its size, if it is long.
fn folded(body: &ViewBody) -> Markup {
    let text = body.text.as_deref().unwrap_or_default();
    let tree = if body.omitted == 0 { json_tree::tree(text) } else { None };
    let content = tree.unwrap_or_else(|| transcript::content(body));
    html! {
        @if LONG.is_reached(text) {
            details.long {
                summary {
                    span.preview { (line(&preview(text))) "…" }
                    " " span.faint { (size(body.size)) }
                }
                (content)
            }
        } @else { (content) }
        @if body.omitted > 0 { p.faint { (counted(body.omitted, "more character")) " in the artifacts" } }
    }
}

fn place(given: &GivenAnswer, names: &ArtifactNames) -> Markup {
    let GivenAnswer { core_hash, kind, place, time, time_basis, model_id } = given;
    html! {
        (exact_time(time.0))
        @if *time_basis != TimeBasis::Created { " (added)" }
        " " (parts::kind(kind)) " " (names.short(*core_hash)) " at " (parts::place_in(*core_hash, kind, &place.to_string()))
        @if let Some(model) = model_id { " · " (line(model)) }
    }
}

/// Returns the address of the place of an answer.
fn address_of(given: &GivenAnswer) -> String {
    match given.place {
        PlaceSummary::Index { index, .. } => address::step(given.core_hash, index.into()),
        PlaceSummary::Pointer { .. } => address::artifact(given.core_hash),
    }
}

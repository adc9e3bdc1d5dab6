//! The page of a prompt: every answer to it, over time.

use maud::{Markup, html};

use super::{filters, parts, transcript};
use crate::artifact::group;
use crate::display::counted;
use crate::server::address;
use crate::server::text::{exact_time, line, number};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::answers::{AnswersAnswer, AnswersRequest, DistinctAnswer, GivenAnswer, PromptAnswers};
use crate::vault::api::TimeBasis;

/// Maximum number of artifacts that are read.
const ARTIFACTS: u64 = 1_000;

/// Maximum number of characters of each text.
const TEXT: u64 = 20_000;

/// Maximum number of places that are listed of an answer.
const PLACES: usize = 50;

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
    let body = html! {
        h1 { span.kind { "prompt" } " " (format!("{digest:.12}")) }
        p.identity { code.copy { (digest) } }
        p { a href=(address::mentions(digest)) { "All artifacts that mention it" } }
        @match answer.prompts.first() {
            Some(prompt) => (answers(prompt, &answer)),
            None => p { "No run or session in the vault records an answer to it." },
        }
    };
    Ok(ResponseContent::Page(HtmlPage { title: format!("prompt {digest:.12}"), section: "", body }))
}

fn answers(prompt: &PromptAnswers, answer: &AnswersAnswer) -> Markup {
    let distinct = prompt.answers.len() as u64;
    html! {
        @match &prompt.prompt {
            Some(text) => (transcript::content(text)),
            None => p.faint { "No artifact in the vault records its text." },
        }
        h2 {
            (number(prompt.count)) " answers"
            @if distinct == 1 && prompt.count > 1 { ", all the same" } @else if distinct > 1 { ", " (number(distinct)) " different" }
        }
        @if answer.is_more { p.caution { "Only the answers of the " (number(answer.read)) " artifacts that were seen last." } }
        @for distinct in &prompt.answers { (shown(distinct)) }
    }
}

fn shown(distinct: &DistinctAnswer) -> Markup {
    let DistinctAnswer { response, failed, count, given } = distinct;
    let more = given.len().saturating_sub(PLACES) as u64;
    html! {
        article.change {
            div.body {
                @if *failed { p.bad { "failed" } }
                (transcript::content(response))
                p.faint { (counted(*count, "time")) }
                ul { @for one in given.iter().take(PLACES) { li { (place(one)) } } }
                @if more > 0 { p.faint { "and " (counted(more, "more place")) } }
            }
        }
    }
}

fn place(given: &GivenAnswer) -> Markup {
    let GivenAnswer { core_hash, kind, place, time, time_basis, model_id } = given;
    html! {
        (exact_time(time.0))
        @if *time_basis != TimeBasis::Created { " (added)" }
        " " (parts::kind(kind)) " " (parts::hash(*core_hash)) " at " (line(&place.to_string()))
        @if let Some(model) = model_id { " · " (line(model)) }
    }
}

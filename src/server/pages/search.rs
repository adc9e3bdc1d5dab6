//! The search: the page of hits, and the artifact or the page that a text in the search box or in an address leads to.

use maud::{Markup, Render, html};
use serde::Deserialize;

use super::filters;
use super::parts::ArtifactNames;
use super::parts::{self, place_in};
use crate::artifact::group;
use crate::formats;
use crate::server::address;
use crate::server::frame::{line, time, whole};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::find::{ArtifactFilter, Condition};
use crate::vault::resolve::ResolveRequest;
use crate::vault::search::{FieldMatch, SearchAnswer, SearchError, SearchRequest};
use crate::vault::{LocatedCapture, LookupError};

/// Number of hits of a page.
const HITS: u64 = 50;

/// Approximate number of characters of the text of a hit.
const WIDTH: u32 = 240;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    q: String,
    kind: String,
}

/// Makes the page of a search.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let parameters: Parameters = visit.parameters()?;
    let kinds = filters::kinds(&parameters.kind)?;
    let has_query = !parameters.q.trim().is_empty();
    let request = SearchRequest {
        words: parameters.q.clone(),
        filter: ArtifactFilter { kinds, ..ArtifactFilter::default() },
        limit: HITS,
        width: WIDTH,
        ..SearchRequest::default()
    };
    let found = if has_query { Some(visit.vault.run(&request)) } else { None };
    let found = match found {
        Some(Err(SearchError::Words(error))) => Err(error.to_string()),
        Some(found) => Ok(Some(found?)),
        None => Ok(None),
    };
    let hits = found.iter().flatten().flat_map(|answer| &answer.hits);
    let names = ArtifactNames::read(visit, hits.map(|hit| hit.artifact.core_hash).collect())?;
    let body = html! {
        h1 { "Search" }
        (form(&parameters))
        @match &found {
            Err(message) => p.failure role="alert" { (line(message)) "." },
            Ok(Some(answer)) => (shown(answer, &names)),
            Ok(None) => p { "Words that must all be in one passage, \"a phrase\", " code { "begin*" } ", or " code { "one OR other" } "." },
        }
    };
    Ok(ResponseContent::Page(HtmlPage { title: "Search".to_owned(), section: "/search", body }))
}

fn form(parameters: &Parameters) -> Markup {
    html! {
        form.filters action="/search" {
            label { "Words" input name="q" type="search" value=(parameters.q); }
            label {
                "Kind"
                (filters::kind_options(&formats::ALL, &parameters.kind))
            }
            button { "Search" }
        }
    }
}

fn shown(answer: &SearchAnswer, names: &ArtifactNames) -> Markup {
    html! {
        @if answer.hits.is_empty() { p { "No passage matches." } }
        ol.hits {
            @for hit in &answer.hits {
                li {
                    p.faint {
                        (parts::kind(&hit.artifact.kind)) " " (names.short(hit.artifact.core_hash))
                        " · " (line(&hit.field)) " at " (place_in(hit.artifact.core_hash, &hit.artifact.kind, &hit.place.to_string()))
                        " · seen " (time(hit.artifact.seen_at.0))
                        @if hit.more > 0 { " · and " (hit.more) " more" }
                        (names.excerpt_line(hit.artifact.core_hash))
                    }
                    p.passage { (highlighted(hit)) }
                }
            }
        }
        @if answer.is_more { p.faint { "There are more: add words." } }
    }
}

/// Returns the text of a hit with its matches marked.
fn highlighted(hit: &FieldMatch) -> Markup {
    let characters: Vec<char> = hit.text.chars().collect();
    let text = |from: usize, to: usize| -> String {
        characters.get(from..to.max(from)).map(|part| part.iter().collect()).unwrap_or_default()
    };
    let mut marked = String::new();
    let mut at = 0;
    for [from, to] in &hit.highlights {
        whole(&text(at, *from)).render_to(&mut marked);
        html! { mark { (whole(&text(*from, *to))) } }.render_to(&mut marked);
        at = *to;
    }
    whole(&text(at, characters.len())).render_to(&mut marked);
    html! {
        @if hit.cut_before { "… " }
        (maud::PreEscaped(marked))
        @if hit.cut_after { " …" }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GoParameters {
    q: String,
}

/// Returns the artifact that the path of a request names: by a hash, a prefix of one, a tag or a run id.
pub(in crate::server) fn artifact_of_path(visit: &PageRequest<'_>) -> Result<LocatedCapture, PageError> {
    artifact_of_text(visit, visit.name)
}

/// Returns the artifact that `text` names.
pub(in crate::server) fn artifact_of_text(
    visit: &PageRequest<'_>,
    text: &str,
) -> Result<LocatedCapture, PageError> {
    Ok(ResolveRequest::new(text).locate(visit.vault)?)
}

/// Redirects to what the text names, or else to the search for the words.
pub(in crate::server) fn go(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let GoParameters { q } = visit.parameters()?;
    let text = q.trim();
    match artifact_of_text(visit, text) {
        Ok(located) => Ok(ResponseContent::Redirect(address::artifact(located.artifact.core))),
        Err(PageError::Lookup(error)) => match error {
            LookupError::Mentioned(mentioned) => {
                let digest = mentioned.digest;
                let group = Some(group::PROMPT.to_owned());
                let conditions = vec![Condition::Mention { group, digest }];
                let prompts = ArtifactFilter { conditions, ..ArtifactFilter::default() };
                let is_prompt = visit.vault.count(&prompts)? > 0;
                let address = if is_prompt { address::prompt(digest) } else { address::mentions(digest) };
                Ok(ResponseContent::Redirect(address))
            }
            LookupError::NotFound(_)
            | LookupError::NoSuchTag(_)
            | LookupError::NoSuchName { .. }
            | LookupError::LatestOutOfRange { .. } => {
                Ok(ResponseContent::Redirect(address::with_query("/search", &[("q", Some(text))])))
            }
            error => Err(error.into()),
        },
        Err(error) => Err(error),
    }
}

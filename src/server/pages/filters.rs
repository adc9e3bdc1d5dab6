//! Forms that filter lists, pages of lists, and the most frequent values of runs, each of which leads to the list of the
//! runs that have it.

use maud::{Markup, html};
use serde::de::DeserializeOwned;

use crate::artifact::{AttributeInfo, Kind};
use crate::clock;
use crate::digest::{Digest, ParseDigestError};
use crate::display::{brief, counted, similar};
use crate::formats;
use crate::server::address;
use crate::server::frame::{line, number};
use crate::server::visit::{PageError, PageRequest};
use crate::vault::LookupError;
use crate::vault::api::{TimeBasis, Timestamp};
use crate::vault::facets::{FacetsAnswer, FacetsRequest, RunCounts, RunValueCount};
use crate::vault::find::{ArtifactFilter, Condition, Cursor, FindPeriod};
use crate::vault::near::{NearRequest, NearValues};
use crate::vault::resolve::{DigestsRequest, ResolveRequest};

/// Maximum number of similar names.
const SIMILAR: usize = 5;

/// Returns the value of a field that is filled in.
pub(super) fn given(value: &str) -> Option<&str> {
    Some(value.trim()).filter(|value| !value.is_empty())
}

/// What is wrong with a field of a form.
pub(super) struct FieldProblem {
    field: &'static str,
    message: String,
}

/// Separates what is wrong with a field from other errors.
pub(super) fn checked<T>(request: Result<T, PageError>) -> Result<Result<T, FieldProblem>, PageError> {
    match request {
        Ok(request) => Ok(Ok(request)),
        Err(PageError::Field { field, message }) => Ok(Err(FieldProblem { field, message })),
        Err(error) => Err(error),
    }
}

fn invalid(field: &'static str, message: &impl ToString) -> PageError {
    PageError::Field { field, message: message.to_string() }
}

/// Returns a field for text, with what is wrong with it.
pub(super) fn input(
    title: &str,
    name: &str,
    value: &str,
    placeholder: &str,
    problem: Option<&FieldProblem>,
) -> Markup {
    let wrong = problem.filter(|problem| problem.field == name);
    let id = format!("wrong-{name}");
    html! {
        label {
            (title)
            input name=(name) value=(value) placeholder=(placeholder)
                aria-invalid=[wrong.map(|_| "true")] aria-describedby=[wrong.map(|_| id.as_str())];
            @if let Some(problem) = wrong { span.bad #(id) role="alert" { (line(&problem.message)) } }
        }
    }
}

/// Returns what is wrong with a field that is not for text.
pub(super) fn problem_elsewhere(problem: Option<&FieldProblem>, texts: &[&str]) -> Markup {
    let elsewhere = problem.filter(|problem| !texts.contains(&problem.field));
    html! { @if let Some(problem) = elsewhere { p.failure role="alert" { (line(&problem.message)) "." } } }
}

/// Parses a name as the API writes it; an empty one is the default.
pub(super) fn one_of<T: Default + DeserializeOwned>(
    field: &'static str,
    name: &str,
    what: &str,
) -> Result<T, PageError> {
    let Some(name) = given(name) else { return Ok(T::default()) };
    serde_json::from_value(name.into()).map_err(|_| invalid(field, &format!("there is no {what} {name}")))
}

/// Parses a point in time.
fn point(field: &'static str, text: &str) -> Result<Option<Timestamp>, PageError> {
    let Some(text) = given(text) else { return Ok(None) };
    let time = clock::parse_time(text, clock::now());
    time.map(|time| Some(Timestamp(time))).map_err(|error| invalid(field, &error))
}

/// Returns the only hash that artifacts mention and that begins with the digits in `text`.
pub(super) fn mentioned(
    visit: &PageRequest<'_>,
    text: &str,
    group: Option<&str>,
) -> Result<Digest, PageError> {
    let prefix = text.parse().map_err(|error: ParseDigestError| PageError::BadRequest(error.to_string()))?;
    Ok(DigestsRequest { prefix, group: group.map(str::to_owned) }.only(visit.vault)?)
}

/// Parses the name of a kind; any kind if it is empty.
pub(super) fn kinds(name: &str) -> Result<Vec<String>, PageError> {
    match given(name) {
        None => Ok(Vec::new()),
        Some(name) if formats::named(name).is_some() => Ok(vec![name.to_owned()]),
        Some(name) => Err(invalid("kind", &format!("there is no kind {name}"))),
    }
}

/// Returns the condition of an attribute and its value, such as `model_id=m`.
pub(super) fn attribute(field: &'static str, text: &str) -> Result<Condition, PageError> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| invalid(field, &"an attribute is a name and a value, such as model_id=m"))?;
    if formats::attribute(name).is_none() {
        let known: Vec<&str> = formats::attributes().iter().map(|info| info.name).collect();
        let similar = similar(name, known.iter().copied(), SIMILAR).join(", ");
        let near = if similar.is_empty() { String::new() } else { format!("; similar: {similar}") };
        return Err(invalid(field, &format!("there is no attribute {name}{near}")));
    }
    Ok(Condition::attribute(name, value))
}

/// Returns the condition that an artifact has a hash or mentions it.
pub(super) fn about(
    visit: &PageRequest<'_>,
    field: &'static str,
    text: &str,
) -> Result<Condition, PageError> {
    match ResolveRequest::new(text).digest(visit.vault) {
        Ok(digest) => Ok(Condition::About { digest }),
        Err(LookupError::Store(error)) => Err(error.into()),
        Err(error) => Err(invalid(field, &error)),
    }
}

/// Lists what is similar to conditions that nothing matches.
pub(super) fn near(visit: &PageRequest<'_>, filter: &ArtifactFilter) -> Result<Markup, PageError> {
    let answer = visit.run(&NearRequest { filter: filter.clone(), prompt: None })?;
    Ok(html! {
        @for NearValues { name, value, similar } in answer.values.iter() {
            p {
                "No artifact has " (line(name)) " " (line(value)) "."
                @if !similar.is_empty() {
                    " Similar: "
                    @for (index, one) in similar.iter().enumerate() { @if index > 0 { ", " } code { (line(one)) } }
                }
            }
        }
    })
}

/// Parses a period; any time if it has neither end.
pub(super) fn period(since: &str, until: &str, by: TimeBasis) -> Result<Option<FindPeriod>, PageError> {
    let (since, until) = (point("since", since)?, point("until", until)?);
    let is_given = since.is_some() || until.is_some();
    Ok(is_given.then_some(FindPeriod { by, since, until }))
}

/// Returns the condition of a tag, with or without `@`; `*` is any.
pub(super) fn tag(text: &str) -> Condition {
    let name = text.strip_prefix('@').unwrap_or(text);
    Condition::Tagged { name: (name != "*").then(|| name.to_owned()) }
}

/// Returns the condition of the key of a label, or of a key, `=` and a value.
pub(super) fn label(text: &str) -> Condition {
    let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
    Condition::label(key, value)
}

/// Parses the end of the previous page, if there is one.
pub(super) fn cursor(text: &str) -> Result<Option<Cursor>, PageError> {
    let cursor = given(text).map(serde_json::from_str).transpose();
    cursor.map_err(|_| invalid("after", &"the page is not valid"))
}

/// Returns a field with these values and names.
pub(super) fn options(name: &str, options: &[(&str, &str)], chosen: &str) -> Markup {
    html! {
        select name=(name) {
            @for (value, text) in options { option value=(value) selected[*value == chosen] { (text) } }
        }
    }
}

/// Returns a field with these kinds.
pub(super) fn kind_options(kinds: &[Kind], chosen: &str) -> Markup {
    let named = kinds.iter().map(|kind| (kind.name(), kind.noun()));
    let all: Vec<(&str, &str)> = std::iter::once(("", "any")).chain(named).collect();
    options("kind", &all, chosen)
}

/// Returns the address of a list with these fields of its form, except for those that are changed.
pub(super) fn list_address(
    path: &str,
    fields: &[(&'static str, &String)],
    changed: &[(&'static str, Option<&str>)],
) -> String {
    let is_changed = |name: &str| changed.iter().any(|(changed, _)| *changed == name);
    let fields = fields.iter().map(|(name, value)| (*name, given(value)));
    let fields = fields.filter(|(name, _)| !is_changed(name)).chain(changed.iter().copied());
    address::with_query(path, &fields.collect::<Vec<_>>())
}

/// Links to the first and the next page.
pub(super) fn pages(after: &str, next: Option<&Cursor>, address: &dyn Fn(Option<&str>) -> String) -> Markup {
    // A cursor is always JSON.
    let next = next.and_then(|next| serde_json::to_string(next).ok());
    html! {
        nav.pages aria-label="Pages" {
            @if !after.is_empty() { a href=(address(None)) { "First page" } }
            @if let Some(next) = next { a rel="next" href=(address(Some(&next))) { "Next page" } }
        }
    }
}

/// Maximum number of values of a property.
const VALUES: usize = 8;

/// Number of recordings up to which runs are counted with the list. More are counted by a request of their own, which the
/// script of the page makes.
const MAX_RECORDINGS: u64 = 2_000;

/// The properties: title, field of the form, and name of the attribute.
const PROPERTIES: [(&str, &str, &str); 3] = [
    ("Model", "model", AttributeInfo::MODEL_ID.name),
    ("Agent", "agent", "agent"),
    ("Tool", "tool", AttributeInfo::TOOL.name),
];

/// The list whose runs are counted.
pub(super) struct FacetedList<'l> {
    pub(super) filter: &'l ArtifactFilter,
    /// Whether runs are counted however many recordings match.
    pub(super) is_requested: bool,
    /// Returns the value of a field of its form.
    pub(super) chosen: &'l dyn Fn(&str) -> &'l str,
    /// Returns the address of the same list with another value of a field.
    pub(super) address: &'l dyn Fn(&'static str, Option<&str>) -> String,
}

impl FacetedList<'_> {
    /// Shows the number of runs and their most frequent values.
    pub(super) fn facets(&self, visit: &PageRequest<'_>) -> Result<Markup, PageError> {
        let answer = visit.run(&FacetsRequest {
            filter: self.filter.clone(),
            attributes: PROPERTIES.iter().map(|(_, _, name)| (*name).to_owned()).collect(),
            // One more shows whether there are others.
            limit: Some(VALUES as u64 + 1),
            max_recordings: (!self.is_requested).then_some(MAX_RECORDINGS),
        })?;
        let FacetsAnswer { recordings, counts } = answer;
        let Some(counts) = counts else {
            return Ok(html! {
                p.facets {
                    (counted(recordings, "recording")) ". "
                    a.load href=((self.address)("facets", Some("yes"))) {
                        "Count runs by model, agent, tool, status and label"
                    }
                }
            });
        };
        Ok(html! { section.facets aria-label="Counts" { (self.shown(&counts)) } })
    }

    fn shown(&self, counts: &RunCounts) -> Markup {
        let state = |value: &str, runs: u64| (value.to_owned(), runs);
        let states = [state("yes", counts.failures), state("no", counts.successes)];
        let state_name = |value: &str| if value == "yes" { "with errors" } else { "without errors" };
        let label = |count: &RunValueCount| (format!("{}={}", count.name, count.value), count.runs);
        let value = |count: &RunValueCount| (count.value.clone(), count.runs);
        html! {
            p { strong { (counted(counts.runs, "run")) } }
            @if counts.runs > 0 {
                dl {
                    (self.values("Status", "errors", &states, &|value| html! { (state_name(value)) }))
                    @for (title, field, name) in PROPERTIES {
                        @let values: Vec<_> =
                            counts.attributes.iter().filter(|count| count.name == name).map(value).collect();
                        (self.values(title, field, &values, &|value| html! { (line(value)) }))
                    }
                    @let labels: Vec<_> = counts.labels.iter().map(label).collect();
                    (self.values("Label", "label", &labels, &|value| html! { (line(value)) }))
                }
            }
        }
    }

    /// Shows the values of a property, each with its number of runs.
    fn values(
        &self,
        title: &str,
        field: &'static str,
        values: &[(String, u64)],
        shown: &dyn Fn(&str) -> Markup,
    ) -> Markup {
        let chosen = (self.chosen)(field);
        let values: Vec<&(String, u64)> = values.iter().filter(|(_, runs)| *runs > 0).collect();
        html! {
            @if !values.is_empty() {
                div {
                    dt { (title) }
                    dd {
                        @for (value, runs) in values.iter().take(VALUES) {
                            @let is_chosen = chosen == value;
                            a.facet href=((self.address)(field, (!is_chosen).then_some(value)))
                                aria-current=[is_chosen.then_some("true")]
                                title=[is_chosen.then(|| format!("all but {} too", brief(value)))] {
                                (shown(value)) " " span.faint { (number(*runs)) }
                            }
                            " "
                        }
                        @if values.len() > VALUES { span.faint { "and others" } }
                    }
                }
            }
        }
    }
}

//! The page of two artifacts side by side, or of the answers of several runs.

use axum::http::Uri;
use maud::{Markup, html};
use serde::Deserialize;

use super::compared_messages::{ComparedMessages, MarkedTexts};
use super::parts::{self, ArtifactNames};
use super::{compared_runs, search};
use crate::digest::CoreHash;
use crate::display::counted;
use crate::server::address;
use crate::server::frame::{line, long_line, number};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::LookupError;
use crate::vault::api::JsonValue;
use crate::vault::diff::{
    ChangeType, ChangedValue, ComparedArtifact, DiffAnswer, DiffExtent, DiffRequest, MessageComparison,
    PartChange, compare_messages,
};
use crate::vault::view::{ViewAnswer, ViewRequest};

/// The heading of the page.
const HEADING: &str = "Differences";

/// Number of changes of a page.
const CHANGES: u64 = 200;

/// Maximum number of values that are listed of a change.
const VALUES: usize = 100;

/// Maximum number of runs that are compared.
pub(in crate::server) const RUNS: usize = 8;

/// Number of fields of the form.
const FIELDS: usize = 3;

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    /// Two artifacts, by anything that names one.
    one: String,
    other: String,
    /// The artifacts, which the address states as `run`, once for each.
    #[serde(skip)]
    runs: Vec<String>,
    /// Whether to show values that vary between identical runs.
    all: bool,
    /// The last change of the previous page of values.
    after: Option<u64>,
    /// The first message, or the first prompt, of the page.
    from: usize,
}

impl Parameters {
    fn new(visit: &PageRequest<'_>) -> Result<Self, PageError> {
        let given: Vec<(String, String)> = visit.parameters()?;
        let (runs, others): (Vec<_>, Vec<_>) = given.into_iter().partition(|(name, _)| name == "run");
        let fields: Vec<(&str, Option<&str>)> =
            others.iter().map(|(name, value)| (name.as_str(), Some(value.as_str()))).collect();
        let uri: Uri = address::with_query("/diff", &fields).parse().map_err(|_| PageError::NoPage)?;
        let parameters: Self = PageRequest { uri: &uri, ..*visit }.parameters()?;
        let runs = runs.into_iter().map(|(_, run)| run);
        let runs = [&parameters.one, &parameters.other].map(ToOwned::to_owned).into_iter().chain(runs);
        let runs = runs.map(|run| run.trim().to_owned()).filter(|run| !run.is_empty()).collect();
        Ok(Self { runs, ..parameters })
    }
}

/// Makes the page of the differences between two artifacts, or of the answers of several runs.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let parameters = Parameters::new(visit)?;
    if parameters.runs.len() > RUNS {
        let message = format!("at most {RUNS} are compared");
        return Err(PageError::Field { field: "run", message });
    }
    let artifact = |text: &String| Ok(search::artifact_of_text(visit, text)?.artifact.core);
    let runs: Vec<CoreHash> = if parameters.runs.len() < 2 {
        Ok(Vec::new())
    } else {
        parameters.runs.iter().map(artifact).collect::<Result<_, PageError>>()
    }?;
    let content = match *runs.as_slice() {
        [] => html! {},
        [one, other] => PairPage { visit, parameters: &parameters, one, other }.content()?,
        _ => several(visit, &parameters, &runs)?,
    };
    let body = html! { h1 { (HEADING) } (form(&parameters)) (content) };
    let title = title(visit, &runs)?;
    Ok(ResponseContent::Page(HtmlPage { title, section: "/diff", body }))
}

/// Returns the title of the page, with what the artifacts are called: the ids of their runs, or their hashes.
fn title(visit: &PageRequest<'_>, artifacts: &[CoreHash]) -> Result<String, PageError> {
    let names = ArtifactNames::read(visit, artifacts.to_vec())?;
    let name = |core: &CoreHash| names.run_id(*core).map_or_else(|| format!("{core:.12}"), str::to_owned);
    let compared = artifacts.iter().map(name).collect::<Vec<_>>().join(", ");
    Ok(if compared.is_empty() { HEADING.to_owned() } else { format!("{HEADING}: {compared}") })
}

fn form(parameters: &Parameters) -> Markup {
    let runs = &parameters.runs;
    let fields = runs.iter().map(String::as_str).chain(std::iter::repeat("")).take(FIELDS.max(runs.len()));
    html! {
        form.filters action="/diff" {
            @for (at, run) in fields.enumerate() {
                label { "Run " (at + 1) input name="run" value=(run) placeholder="hash, @tag or run id"; }
            }
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

/// Reads an artifact as a conversation, if it is one.
fn view(visit: &PageRequest<'_>, core: CoreHash) -> Result<ViewAnswer, PageError> {
    visit.run(&ViewRequest { conversation: true, limit: None, max_text: Some(0), ..ViewRequest::new(core) })
}

/// Returns a table of several runs.
fn several(visit: &PageRequest<'_>, parameters: &Parameters, runs: &[CoreHash]) -> Result<Markup, PageError> {
    let answers = runs.iter().map(|core| view(visit, *core)).collect::<Result<Vec<_>, _>>()?;
    let (table, next) = compared_runs::table(&answers, parameters.from);
    let to = |from: usize| address::compared(runs, from);
    Ok(html! {
        (table)
        nav.pages aria-label="Pages of prompts" {
            @if parameters.from > 0 { a href=(to(0)) { "First page" } }
            @if let Some(next) = next { a rel="next" href=(to(next)) { "More prompts" } }
        }
    })
}

/// The page of two artifacts.
struct PairPage<'p> {
    visit: &'p PageRequest<'p>,
    parameters: &'p Parameters,
    one: CoreHash,
    other: CoreHash,
}

impl PairPage<'_> {
    fn content(&self) -> Result<Markup, PageError> {
        let (one, other) = (view(self.visit, self.one)?, view(self.visit, self.other)?);
        let conversations = one.conversation.as_ref().zip(other.conversation.as_ref());
        let rows = conversations.map(|(one, other)| compare_messages(one, other));
        let values = match self.values() {
            // Messages can be compared anyway.
            Err(PageError::Lookup(LookupError::KindMismatch { .. })) if rows.is_some() => None,
            values => Some(values?),
        };
        let is_later_page = self.parameters.after.is_some();
        Ok(html! {
            div.sides {
                div { p { "One: " (parts::run_of_view(&one)) } }
                div { p { "Other: " (parts::run_of_view(&other)) } }
            }
            @match (&rows, &values) {
                (Some(rows), values) => {
                    (self.messages(rows))
                    @if let Some(values) = values {
                        details.values open[is_later_page || self.parameters.all] {
                            summary { "All values that differ" }
                            (self.shown_values(values))
                        }
                    }
                },
                (None, Some(values)) => (self.shown_values(values)),
                (None, None) => {},
            }
        })
    }

    fn values(&self) -> Result<DiffAnswer, PageError> {
        let compared = |core_hash| ComparedArtifact { core_hash, capture_hash: None };
        self.visit.run(&DiffRequest {
            ignore: Vec::new(),
            one: compared(self.one),
            other: compared(self.other),
            all: self.parameters.all,
            extent: DiffExtent::All,
            limit: Some(CHANGES),
            after: self.parameters.after,
        })
    }

    /// Returns the messages, with a link to the first that differs on top.
    fn messages(&self, rows: &[MessageComparison<'_>]) -> Markup {
        let Self { one, other, parameters, .. } = *self;
        let messages = ComparedMessages { one, other, rows, from: parameters.from };
        let (shown, next) = messages.shown();
        let page = |from: usize| self.address(&[("from", (from > 0).then(|| from.to_string()))]);
        html! {
            section {
                h2 { "Messages" }
                p {
                    @match messages.first() {
                        Some(first) => {
                            strong {
                                @let page = if first < parameters.from { page(0) } else { String::new() };
                                a href=(format!("{page}#message-{first}")) { "Where they diverge first" }
                            }
                            " · "
                        },
                        None => span.good { "No message differs. " },
                    }
                    (messages.counts())
                }
                (shown)
                nav.pages aria-label="Pages of messages" {
                    @if parameters.from > 0 { a href=(page(0)) { "First messages" } }
                    @if let Some(next) = next { a rel="next" href=(page(next)) { "More messages" } }
                }
            }
        }
    }

    fn shown_values(&self, answer: &DiffAnswer) -> Markup {
        let page = |after: Option<u64>| self.address(&[("after", after.map(|after| after.to_string()))]);
        let is_later_page = self.parameters.after.is_some();
        html! {
            (summary(answer))
            (changes(answer, !is_later_page))
            nav.pages aria-label="Pages of values" {
                @if is_later_page { a href=(page(None)) { "First page" } }
                @if let Some(next) = answer.next { a rel="next" href=(page(Some(next))) { "More changes" } }
            }
        }
    }

    /// Returns the address of a page of this comparison.
    fn address(&self, place: &[(&str, Option<String>)]) -> String {
        let (one, other) = (self.one.to_string(), self.other.to_string());
        let all = self.parameters.all.then_some("true");
        let fields = [("one", Some(one.as_str())), ("other", Some(&other)), ("all", all)];
        let place = place.iter().map(|(name, value)| (*name, value.as_deref()));
        address::with_query("/diff", &fields.into_iter().chain(place).collect::<Vec<_>>())
    }
}

fn summary(answer: &DiffAnswer) -> Markup {
    let counts = &answer.counts;
    html! {
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
    let MarkedTexts { one, other } = MarkedTexts::new(old.as_deref(), new.as_deref());
    html! {
        p.role { code { (long_line(pointer)) } @if value.ephemeral { span { "varies between identical runs" } } }
        div.sides {
            pre aria-label="One" { (one) }
            pre aria-label="Other" { (other) }
        }
    }
}

/// Returns a value as it is read: a text without quotation marks, everything else as JSON.
fn text(value: &JsonValue) -> String {
    match value.0.as_str() {
        Some(text) => text.to_owned(),
        None => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

//! The list of runs.

use chrono::{DateTime, NaiveDate, Utc};
use maud::{Markup, html};
use serde::Deserialize;

use super::filters::FacetedList;
use super::filters::{self, FieldProblem, given, input, options};
use super::parts::ArtifactNames;
use super::parts::{self, Bar};
use super::recordings;
use crate::artifact::AttributeInfo;
use crate::clock;
use crate::digest::CoreHash;
use crate::display::brief;
use crate::formats;
use crate::server::address;
use crate::server::frame::{line, long_line, number};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::api::TimeBasis;
use crate::vault::columns::{ArtifactColumn, ColumnContext};
use crate::vault::find::{ArtifactFilter, Condition, FindOrder};
use crate::vault::list::{ListAnswer, ListRequest, ListRow};
use crate::vault::stats::{DayCount, DaysRequest};

/// Number of rows of a page.
const ROWS: u64 = 50;

/// Number of days of the chart.
const DAYS: u32 = 60;

/// The columns, each with its heading. The first ones can be seen on a narrow screen.
const COLUMNS: [(&str, ArtifactColumn); 11] = [
    ("created", ArtifactColumn::Age),
    ("run", ArtifactColumn::Attribute("run_id")),
    ("errors", ArtifactColumn::Short(AttributeInfo::ERRORS)),
    ("model", ArtifactColumn::Attribute(AttributeInfo::MODEL_ID.name)),
    ("agent", ArtifactColumn::Attribute("agent")),
    (formats::STEPS.name, ArtifactColumn::Short(formats::STEPS)),
    ("duration", ArtifactColumn::Short(AttributeInfo::DURATION_MS)),
    ("tokens", ArtifactColumn::Short(AttributeInfo::TOKENS)),
    ("recorded as", ArtifactColumn::Kind),
    ("tags", ArtifactColumn::Tags),
    ("labels", ArtifactColumn::Labels),
];

/// Attributes that are shown below others: what was asked first, and why a run failed.
pub(in crate::server) const EXCERPTS: [AttributeInfo; 2] =
    [AttributeInfo::FIRST_PROMPT, AttributeInfo::ERROR];

/// The parameters of the address. Fields of a form that are not filled in are empty.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    kind: String,
    model: String,
    tool: String,
    agent: String,
    tag: String,
    /// The key of a label, or a key, `=` and a value.
    label: String,
    /// `yes` for runs with errors only, `no` for those that state that there were none.
    errors: String,
    since: String,
    until: String,
    /// `seen`, or the name of an attribute; the time of creation if empty.
    order: String,
    after: String,
    /// `yes` to count runs by their values, however many match.
    facets: String,
}

/// The orders besides that of creation: names of attributes.
fn orders() -> Vec<(&'static str, &'static str)> {
    vec![
        ("", "created"),
        ("seen", "last seen"),
        (AttributeInfo::DURATION_MS.name, "duration"),
        (formats::STEPS.name, formats::STEPS.name),
        (AttributeInfo::TOKENS.name, "tokens"),
        (AttributeInfo::COST_USD.name, "cost"),
        (AttributeInfo::ERRORS.name, "errors"),
    ]
}

/// Makes a page of the list.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let parameters: Parameters = visit.parameters()?;
    let request = filters::checked(parameters.request())?;
    let problem = request.as_ref().err();
    let PageParts { chart, facets, list } = match &request {
        Ok(request) => listed(visit, &parameters, request)?,
        Err(_) => PageParts::default(),
    };
    let body = html! {
        h1 { "Runs" }
        @if parameters.after.is_empty() { (recordings::section(visit)?) }
        (chart)
        (form(&parameters, problem))
        (facets)
        (list)
    };
    let page = HtmlPage { title: "Runs".to_owned(), section: "/", body };
    Ok(if problem.is_some() { ResponseContent::Invalid(page) } else { ResponseContent::Page(page) })
}

/// The parts of a page that depend on the filter.
#[derive(Default)]
struct PageParts {
    chart: Markup,
    facets: Markup,
    list: Markup,
}

fn listed(
    visit: &PageRequest<'_>,
    parameters: &Parameters,
    request: &ListRequest,
) -> Result<PageParts, PageError> {
    let answer = visit.run(request)?;
    let mut parts = PageParts::default();
    if request.after.is_none() {
        parts.chart = days(visit, parameters, request.filter.clone(), &answer)?;
        let list = FacetedList {
            filter: &request.filter,
            is_requested: parameters.facets == "yes",
            chosen: &|field| parameters.field(field),
            address: &|field, value| parameters.address(&[(field, value)]),
        };
        parts.facets = list.facets(visit)?;
    }
    parts.list = html! {
        (selectable(&answer, parameters, visit.form_token.is_some()))
        @if answer.rows.is_empty() { (filters::near(visit, &request.filter)?) }
        (filters::pages(&parameters.after, answer.next.as_ref(), &|after| parameters.address(&[("after", after)])))
    };
    Ok(parts)
}

/// Returns the rows in a form in which several can be chosen.
fn selectable(answer: &ListAnswer, parameters: &Parameters, can_write: bool) -> Markup {
    html! {
        form method="get" action="/diff" {
            (table(answer, Some(parameters)))
            p.actions {
                @if answer.rows.len() > 1 { button { "Compare selected" } " " }
                @if can_write && !answer.rows.is_empty() {
                    button formaction=(address::ANNOTATE) { "Label selected" }
                }
            }
        }
    }
}

impl Parameters {
    fn request(&self) -> Result<ListRequest, PageError> {
        let mut kinds = filters::kinds(&self.kind)?;
        if kinds.is_empty() {
            kinds = formats::recordings().map(|kind| kind.name().to_owned()).collect();
        }
        let period = filters::period(&self.since, &self.until, TimeBasis::Created)?;
        let filter = ArtifactFilter { kinds, conditions: self.conditions()?, period, digits: None };
        let (order, after) = (self.order()?, filters::cursor(&self.after)?);
        let attributes = EXCERPTS.iter().map(|info| info.name.to_owned()).collect();
        Ok(ListRequest { filter, order, after, attributes, limit: Some(ROWS), ..ListRequest::default() })
    }

    fn order(&self) -> Result<FindOrder, PageError> {
        match given(&self.order) {
            None => Ok(FindOrder::Created),
            Some("seen") => Ok(FindOrder::LastSeen),
            Some(name) if orders().iter().any(|(known, _)| *known == name) => {
                Ok(FindOrder::Attribute { name: name.to_owned() })
            }
            Some(name) => {
                Err(PageError::Field { field: "order", message: format!("there is no order {name}") })
            }
        }
    }

    fn conditions(&self) -> Result<Vec<Condition>, PageError> {
        let mut conditions = Vec::new();
        let named =
            [(AttributeInfo::MODEL_ID.name, &self.model), ("tool", &self.tool), ("agent", &self.agent)];
        for (name, value) in named {
            conditions.extend(given(value).map(|value| Condition::attribute(name, value)));
        }
        conditions.extend(given(&self.tag).map(filters::tag));
        conditions.extend(given(&self.label).map(filters::label));
        match given(&self.errors) {
            None => {}
            Some("yes") => conditions.push(errors(Some(1), None)),
            Some("no") => conditions.push(errors(None, Some(0))),
            Some(other) => {
                let message = format!("errors cannot be {other}");
                return Err(PageError::Field { field: "errors", message });
            }
        }
        Ok(conditions)
    }

    /// Returns the address of the same list with other parameters, from its beginning.
    fn address(&self, changed: &[(&'static str, Option<&str>)]) -> String {
        filters::list_address("/", &self.fields(), changed)
    }

    /// Returns the fields of the form with their values.
    fn fields(&self) -> [(&'static str, &String); 10] {
        [
            ("kind", &self.kind),
            ("model", &self.model),
            ("tool", &self.tool),
            ("agent", &self.agent),
            ("tag", &self.tag),
            ("label", &self.label),
            ("errors", &self.errors),
            ("since", &self.since),
            ("until", &self.until),
            ("order", &self.order),
        ]
    }

    /// Returns the value of a field of the form.
    fn field(&self, name: &str) -> &str {
        let field = self.fields().into_iter().find(|(known, _)| *known == name);
        field.and_then(|(_, value)| given(value)).unwrap_or_default()
    }
}

/// Returns the condition that a number of errors is in a range.
fn errors(least: Option<i64>, most: Option<i64>) -> Condition {
    Condition::Range { name: AttributeInfo::ERRORS.name.to_owned(), least, most }
}

/// Draws the number of artifacts on each of the last days, and of those with errors, up to the newest of the page or to today.
fn days(
    visit: &PageRequest<'_>,
    parameters: &Parameters,
    filter: ArtifactFilter,
    answer: &ListAnswer,
) -> Result<Markup, PageError> {
    let newest = answer.rows.iter().filter_map(|row| row.created_at).map(|time| time.0).max();
    let last: NaiveDate = newest.unwrap_or_else(clock::now).with_timezone(&Utc).date_naive();
    let by = TimeBasis::Created;
    let filter = ArtifactFilter { period: None, ..filter };
    let mut failed = filter.clone();
    failed.conditions.push(errors(Some(1), None));
    let count = |filter| visit.run(&DaysRequest { filter, by, last, days: DAYS }).map(|answer| answer.days);
    let (counted, failed) = (count(filter)?, count(failed)?);
    let address =
        |since: &str, until: &str| parameters.address(&[("since", Some(since)), ("until", Some(until))]);
    let bar = |(day, failed): (&DayCount, &DayCount)| {
        Bar::of_day(day.date, day.artifacts, &number(day.artifacts), address).with_failures(failed.artifacts)
    };
    let bars: Vec<Bar> = counted.iter().zip(&failed).map(bar).collect();
    let first = counted.first().map_or(last, |day| day.date);
    let title = format!("recordings created by day, {first} to {last}");
    Ok(html! {
        @if bars.iter().any(|bar| bar.value > 0) {
            (parts::bar_chart(&title, &bars))
            p.faint {
                "Recordings by the day of their creation in UTC, " (first) " to " (last)
                @if bars.iter().any(|bar| bar.failures > 0) { ", " span.bad { "failures" } " in red" }
                "."
            }
        }
    })
}

fn form(parameters: &Parameters, problem: Option<&FieldProblem>) -> Markup {
    let errors = [("", "any"), ("yes", "with errors"), ("no", "without errors")];
    html! {
        form.filters action="/" {
            label { "Kind" (filters::kind_options(&formats::recordings().collect::<Vec<_>>(), &parameters.kind)) }
            (input("Model", "model", &parameters.model, "gpt-*", problem))
            (input("Agent", "agent", &parameters.agent, "", problem))
            (input("Tool", "tool", &parameters.tool, "", problem))
            (input("Tag", "tag", &parameters.tag, "* is any", problem))
            (input("Label", "label", &parameters.label, "branch=main", problem))
            label { "Errors" (options("errors", &errors, &parameters.errors)) }
            (input("Created since", "since", &parameters.since, "2026-11-20, 7d, yesterday", problem))
            (input("Created until", "until", &parameters.until, "2026-11-21", problem))
            label { "Order" (options("order", &orders(), &parameters.order)) }
            button { "Filter" }
            a href="/" { "Clear" }
        }
        (filters::problem_elsewhere(problem, &["model", "agent", "tool", "tag", "label", "since", "until"]))
    }
}

/// Returns the rows as a table, whose headings and values lead to other orders and filters of the list with these parameters.
fn table(answer: &ListAnswer, list: Option<&Parameters>) -> Markup {
    let now = clock::now();
    let headings: Vec<Markup> =
        COLUMNS.iter().map(|(heading, column)| self::heading(heading, *column, list)).collect();
    let headings: Vec<(&Markup, ArtifactColumn)> =
        headings.iter().zip(COLUMNS).map(|(heading, (_, column))| (heading, column)).collect();
    html! {
        @if answer.rows.is_empty() { p { "No run matches." } }
        (parts::table("Runs", &headings, &html! { @for row in &answer.rows { (shown(row, now, list)) } }))
    }
}

/// Returns a heading, as a link to the list in the order of the column if there is one.
fn heading(heading: &str, column: ArtifactColumn, list: Option<&Parameters>) -> Markup {
    let order = match column {
        ArtifactColumn::Age => Some(""),
        ArtifactColumn::Short(info) => Some(info.name),
        _ => None,
    };
    let known = order.filter(|order| orders().iter().any(|(known, _)| known == order));
    match list.zip(known) {
        Some((list, order)) if list.order == order => html! { (heading) " ↓" },
        Some((list, order)) => html! {
            a href=(list.address(&[("order", given(order))])) title="largest or newest first" { (heading) }
        },
        None => html! { (heading) },
    }
}

fn class(column: ArtifactColumn) -> Option<&'static str> {
    match column {
        ArtifactColumn::Attribute("run_id") => Some("run"),
        ArtifactColumn::Age => Some("whole"),
        column => parts::alignment(column),
    }
}

/// Returns values, as links to the list of the runs that have them.
fn filtering(values: &[String], field: &'static str, list: &Parameters) -> Markup {
    html! {
        @for (index, value) in values.iter().enumerate() {
            @if index > 0 { ", " }
            a.value href=(list.address(&[(field, Some(value))])) { (line(value)) }
        }
    }
}

fn shown(row: &ListRow, now: DateTime<Utc>, list: Option<&Parameters>) -> Markup {
    let Some(context) = ColumnContext::of_row(row, now) else { return html! {} };
    let [prompt, failure] = EXCERPTS.map(|info| row.values(info.name).into_iter().next());
    let name = row.run_id.clone().unwrap_or_else(|| format!("{:.12}", row.artifact.core_hash));
    let errors = row.errors.and_then(|errors| u64::try_from(errors).ok()).filter(|errors| *errors > 0);
    let value = |column: ArtifactColumn| match column {
        ArtifactColumn::Age if list.is_some() => html! {
            input type="checkbox" name="run" value=(row.artifact.core_hash) aria-label=(format!("Select {}", brief(&name)));
            " " (parts::value(&context, column))
        },
        ArtifactColumn::Attribute("run_id") => {
            html! {
                a.hash href=(address::artifact(row.artifact.core_hash)) { (line(&name)) }
                @if let Some(prompt) = &prompt { div.excerpt { (long_line(prompt)) } }
                @if let Some(failure) = &failure { div.excerpt.bad { (long_line(failure)) } }
            }
        }
        ArtifactColumn::Attribute("model_id") => match list {
            Some(list) => filtering(&row.models, "model", list),
            None => parts::value(&context, column),
        },
        ArtifactColumn::Attribute("agent") => match list {
            Some(list) => filtering(&row.agents, "agent", list),
            None => parts::value(&context, column),
        },
        ArtifactColumn::Short(AttributeInfo::ERRORS) => {
            html! { @if let Some(errors) = errors { span.bad { (number(errors)) } } }
        }
        ArtifactColumn::Kind => html! {
            @for member in &row.members {
                a href=(address::artifact(member.artifact.core_hash)) { (parts::kind(&member.artifact.kind)) } " "
            }
        },
        column => parts::value(&context, column),
    };
    html! {
        tr class=[errors.map(|_| "failed")] {
            @for (_, column) in COLUMNS {
                td class=[class(column)] { (value(column)) }
            }
        }
    }
}

/// Makes the page of these rows, and of the differences between some artifacts.
pub(in crate::server) fn index_page(answer: &ListAnswer, compared: &[CoreHash]) -> HtmlPage {
    let names = ArtifactNames::new(&answer.rows);
    let address = match *compared {
        [] => None,
        [one, other] => Some(address::diff(one, Some(other))),
        ref runs => Some(address::compared(runs, 0)),
    };
    let body = html! {
        h1 { "Exported artifacts" }
        @if let Some(address) = address {
            p { a href=(address) { "Differences" } " between these:" }
            ul { @for core in compared { li { (names.link(*core)) } } }
        }
        (table(answer, None))
    };
    HtmlPage { title: "Exported artifacts".to_owned(), section: "", body }
}

//! The list of all artifacts.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde::Deserialize;

use super::filters::{self, FieldProblem, given, input, one_of, options};
use super::parts;
use crate::clock;
use crate::display::counted;
use crate::formats;
use crate::server::frame::{line, number};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::api::TimeBasis;
use crate::vault::columns::{ArtifactColumn, ColumnContext};
use crate::vault::find::{ArtifactFilter, Condition, FindAnswer, FindRequest, FoundArtifact};

/// Number of artifacts of a page.
const ARTIFACTS: u64 = 50;

/// The columns, each with its heading.
const COLUMNS: [(&str, ArtifactColumn); 6] = [
    ("kind", ArtifactColumn::Kind),
    ("hash", ArtifactColumn::Hash),
    ("run id", ArtifactColumn::Attribute("run_id")),
    ("created", ArtifactColumn::Created),
    ("seen", ArtifactColumn::Seen),
    ("matches", ArtifactColumn::Matches),
];

/// The parameters of the address. Fields of a form that are not filled in are empty.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    kind: String,
    tag: String,
    /// A key, or a key and a value, such as `branch=main`.
    label: String,
    note: String,
    /// A name and a value, such as `model_id=m`.
    attribute: String,
    /// A hash that artifacts have or mention, or a name of an artifact.
    mention: String,
    since: String,
    until: String,
    by: String,
    order: String,
    /// The end of the previous page.
    after: String,
}

/// Makes a page of the list.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let parameters: Parameters = visit.parameters()?;
    let request = filters::checked(parameters.request(visit))?;
    let problem = request.as_ref().err();
    let list = if let Ok(request) = &request {
        let answer = visit.run(request)?;
        html! {
            (table(&answer))
            @if answer.found == 0 { (filters::near(visit, &request.filter)?) }
            (filters::pages(&parameters.after, answer.next.as_ref(), &|after| parameters.address(after)))
        }
    } else {
        html! {}
    };
    let body = html! {
        h1 { "Artifacts" }
        (form(&parameters, problem))
        (list)
    };
    let page = HtmlPage { title: "Artifacts".to_owned(), section: "/artifacts", body };
    Ok(if problem.is_some() { ResponseContent::Invalid(page) } else { ResponseContent::Page(page) })
}

impl Parameters {
    fn request(&self, visit: &PageRequest<'_>) -> Result<FindRequest, PageError> {
        let after = filters::cursor(&self.after)?;
        let kinds = filters::kinds(&self.kind)?;
        let filter = ArtifactFilter {
            kinds,
            conditions: self.conditions(visit)?,
            period: filters::period(&self.since, &self.until, one_of("by", &self.by, "time")?)?,
            digits: None,
        };
        let (order, limit) = (one_of("order", &self.order, "order")?, Some(ARTIFACTS));
        Ok(FindRequest { filter, order, limit, after, ..FindRequest::default() })
    }

    fn conditions(&self, visit: &PageRequest<'_>) -> Result<Vec<Condition>, PageError> {
        let mut conditions = Vec::new();
        conditions.extend(given(&self.tag).map(filters::tag));
        conditions.extend(given(&self.label).map(filters::label));
        conditions.extend(given(&self.note).map(|text| Condition::Note { text: text.to_owned() }));
        if let Some(text) = given(&self.attribute) {
            conditions.push(filters::attribute("attribute", text)?);
        }
        if let Some(text) = given(&self.mention) {
            conditions.push(filters::about(visit, "mention", text)?);
        }
        Ok(conditions)
    }

    /// Returns the address of the same list from a cursor on.
    fn address(&self, after: Option<&str>) -> String {
        let fields = [
            ("kind", &self.kind),
            ("tag", &self.tag),
            ("label", &self.label),
            ("note", &self.note),
            ("attribute", &self.attribute),
            ("mention", &self.mention),
            ("since", &self.since),
            ("until", &self.until),
            ("by", &self.by),
            ("order", &self.order),
        ];
        filters::list_address("/artifacts", &fields, &[("after", after)])
    }
}

fn form(parameters: &Parameters, problem: Option<&FieldProblem>) -> Markup {
    let orders = [
        ("", "created"),
        ("last-seen", "last seen"),
        ("first-seen", "first seen"),
        ("kind", "kind"),
        ("core", "hash"),
    ];
    let times =
        [("", "created"), ("last-seen", "last seen"), ("first-seen", "first seen"), ("finished", "finished")];
    html! {
        form.filters action="/artifacts" {
            label {
                "Kind"
                (filters::kind_options(&formats::ALL, &parameters.kind))
            }
            (input("Attribute", "attribute", &parameters.attribute, "model_id=gpt-*", problem))
            (input("Hash", "mention", &parameters.mention, "sha256:…, @tag or run id", problem))
            (input("Tag", "tag", &parameters.tag, "* is any", problem))
            (input("Label", "label", &parameters.label, "branch=main", problem))
            (input("Note", "note", &parameters.note, "", problem))
            (input("Since", "since", &parameters.since, "2026-11-20, 7d, yesterday", problem))
            (input("Until", "until", &parameters.until, "2026-11-21", problem))
            label { "Time" (options("by", &times, &parameters.by)) }
            label { "Order" (options("order", &orders, &parameters.order)) }
            button { "Filter" }
            a href="/artifacts" { "Clear" }
        }
        (filters::problem_elsewhere(problem, &["attribute", "mention", "tag", "label", "note", "since", "until"]))
    }
}

fn table(answer: &FindAnswer) -> Markup {
    let now = clock::now();
    html! {
        p.faint {
            @if answer.is_more { "more than " (number(answer.found)) " artifacts" } @else { (counted(answer.found, "artifact")) }
            @if answer.hidden > 0 { ", without " (counted(answer.hidden, "earlier version")) }
        }
        (parts::table("Artifacts", &COLUMNS, &html! { @for hit in &answer.hits { (row(hit, now)) } }))
    }
}

fn row(hit: &FoundArtifact, now: DateTime<Utc>) -> Markup {
    let FoundArtifact { artifact, details, matches } = hit;
    let context = ColumnContext { artifact, details, matches, by: TimeBasis::Created, now, row: None };
    let value = |column: ArtifactColumn| match column {
        // That of a trace is its id.
        ArtifactColumn::Attribute("run_id") => html! { @if let Some(id) = &details.run_id { (line(id)) } },
        column => parts::value(&context, column),
    };
    html! { tr { @for (_, column) in COLUMNS { td { (value(column)) } } } }
}

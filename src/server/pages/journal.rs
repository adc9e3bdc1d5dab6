//! The page of the journal.

use std::slice;

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::parts::{self, ArtifactNames, step_class, step_label};
use super::selection::TranscriptSelection;
use crate::digest::{CoreHash, Digest};
use crate::formats;
use crate::server::address;
use crate::server::frame::{exact_time, line, number};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::storage::Head;
use crate::vault::journal::{JournalEntry, JournalHeadRequest, JournalRequest};
use crate::vault::view::{ViewAnswer, ViewStep};

/// Number of entries of a page.
const ENTRIES: u32 = 100;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    /// The number of an entry: only those before it.
    before: Option<u64>,
}

/// Makes a page of the journal, newest entries first.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let Parameters { before } = visit.parameters()?;
    let head = visit.run(&JournalHeadRequest {})?;
    // Entries are numbered without gaps.
    let end = before.unwrap_or(u64::MAX).min(head.seq + 1).max(1);
    let after = end.saturating_sub(u64::from(ENTRIES) + 1);
    let count = u32::try_from(end - 1 - after).unwrap_or(ENTRIES);
    let request = JournalRequest { after: Some(after), limit: Some(count), ..JournalRequest::default() };
    let entries = if count == 0 { Vec::new() } else { visit.run(&request)?.entries };
    let members = entries.iter().flat_map(|entry| entry.entry.values());
    let mentioned = members.flat_map(elements).filter_map(core_hash);
    let names = ArtifactNames::read(visit, mentioned.collect())?;
    let body = html! {
        h1 { "Journal" }
        (introduction(&head))
        (table(&entries, &names))
        (pages(after, end, head.seq))
    };
    Ok(ResponseContent::Page(HtmlPage { title: "Journal".to_owned(), section: "/journal", body }))
}

fn introduction(head: &Head) -> Markup {
    html! {
        p {
            (number(head.seq)) " entries. Each contains the digest of the one before. The digest of the last, which covers "
            "all of them, is " code.copy { (head.chain) } ". The chain is not recomputed for this page."
        }
    }
}

fn table(entries: &[JournalEntry], names: &ArtifactNames) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Entries" {
            table {
                thead { tr { th.right { "entry" } th { "time" } th { "action" } th { "artifact" } th { "actor" } th { "members" } } }
                tbody { @for entry in entries.iter().rev() { (row(entry, names)) } }
            }
        }
    }
}

/// The members of an entry that have columns of their own.
const COLUMNS: [&str; 5] = ["at", "action", "actor", "core", "cores"];

/// Maximum number of elements of a list that are shown.
const ELEMENTS: usize = 20;

/// Returns the first elements of a member that is a list, or else the member itself.
fn elements(member: &Value) -> &[Value] {
    let elements = member.as_array().map_or_else(|| slice::from_ref(member), Vec::as_slice);
    elements.get(..ELEMENTS).unwrap_or(elements)
}

/// Returns the core hash that a member of an entry may be.
fn core_hash(member: &Value) -> Option<CoreHash> {
    member.as_str()?.parse().ok()
}

fn row(entry: &JournalEntry, names: &ArtifactNames) -> Markup {
    let text = |name: &str| entry.entry.get(name).and_then(Value::as_str);
    let at = text("at").and_then(|at| chrono::DateTime::parse_from_rfc3339(at).ok());
    let changed = ["core", "cores"].into_iter().filter_map(|name| entry.entry.get(name));
    let rest = entry.entry.iter().filter(|(name, _)| !COLUMNS.contains(&name.as_str()));
    html! {
        tr {
            td.right { (number(entry.seq)) }
            td.whole { @if let Some(at) = at { (exact_time(at.to_utc())) } @else { (line(text("at").unwrap_or_default())) } }
            td { (line(text("action").unwrap_or_default())) }
            td.run { @for artifacts in changed { (shown_member(artifacts, &|core| Some(names.link(core)))) } }
            td { (line(text("actor").unwrap_or_default())) }
            td { @for (name, value) in rest { span.member { (line(name)) ": " (shown_member(value, &|core| names.has(core).then(|| names.short(core)))) } " " } }
        }
    }
}

/// Returns a member of an entry, with artifacts as `artifact` shows them, if it does.
fn shown_member(member: &Value, artifact: &dyn Fn(CoreHash) -> Option<Markup>) -> Markup {
    let first = elements(member);
    let more = member.as_array().map_or(0, |all| all.len() - first.len());
    html! {
        @for (index, value) in first.iter().enumerate() {
            @if index > 0 { " " }
            @match core_hash(value).and_then(artifact) {
                Some(artifact) => (artifact),
                None => (shown(value)),
            }
        }
        @if more > 0 { " and " (more) " more" }
    }
}

/// Returns a value as text. Digests are shortened.
fn shown(value: &Value) -> Markup {
    let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    if let Ok(digest) = text.parse::<Digest>() {
        html! { code title=(digest) { (format!("{digest:.12}")) } }
    } else {
        html! { (line(&text)) }
    }
}

/// Links to newer and older entries.
fn pages(after: u64, end: u64, last: u64) -> Markup {
    let newer = end.saturating_add(u64::from(ENTRIES));
    let to = |before: u64| address::with_query("/journal", &[("before", Some(&before.to_string()))]);
    html! {
        nav.pages aria-label="Pages" {
            @if end <= last { a rel="prev" href=(to(newer)) { "Newer" } }
            @if after > 0 { a rel="next" href=(to(after + 1)) { "Older" } }
        }
    }
}

/// The number of records of a row, and the distances between them, in user units.
const CHAIN_COLUMNS: usize = 20;
const ACROSS: usize = 50;
const DOWN: usize = 52;
const RADIUS: usize = 8;

/// Maximum number of records that are drawn.
const RECORDS: usize = 200;

/// Draws the records on the page, if the artifact is a chain: one whose longer versions extend it.
pub(super) fn drawing(selection: TranscriptSelection, answer: &ViewAnswer) -> Markup {
    let kind = formats::named(&answer.artifact.kind);
    let Some((kind, versions)) = kind.and_then(|kind| Some((kind, kind.info().versions?))) else {
        return html! {};
    };
    let records: Vec<(&ViewStep, String)> = answer
        .steps
        .iter()
        .take(RECORDS)
        .filter_map(|step| Some((step, format!("{:.6}", step.digest?))))
        .collect();
    if records.len() < 2 {
        return html! {};
    }
    let is_end = answer.next.is_none() && selection.only.is_none() && selection.to.is_none();
    let columns = records.len().min(CHAIN_COLUMNS);
    let (width, height) = (columns * ACROSS, records.len().div_ceil(CHAIN_COLUMNS) * DOWN);
    html! {
        figure.timeline {
            div.scroll tabindex="0" role="region" aria-label="Chain" {
                svg.chain width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="group" aria-label="Chain of records" {
                    @for (at, pair) in records.windows(2).enumerate() {
                        // A filter leaves out records in between.
                        @if let [(one, _), (other, _)] = pair && one.index + 1 == other.index { (joint(at + 1)) }
                    }
                    @for (at, (step, hash)) in records.iter().enumerate() { (record(at, step, hash)) }
                }
            }
            figcaption.faint {
                @if versions.states_predecessors {
                    "Each record states the hash of the one before"
                    @if is_end { "; the last hash is that of the " (kind.noun()) }
                    "."
                } @else {
                    "The records state no hashes: these are computed from their bytes. That of the " (kind.noun())
                    " is computed from those of all records in their order."
                }
                @if answer.steps.len() > RECORDS { " The first " (RECORDS) " records are drawn." }
            }
        }
    }
}

/// Returns the center of a record.
fn center(at: usize) -> (usize, usize) {
    (at % CHAIN_COLUMNS * ACROSS + ACROSS / 2, at / CHAIN_COLUMNS * DOWN + RADIUS + 4)
}

/// Draws the line from the record before to this one.
fn joint(at: usize) -> Markup {
    let ((from, up), (to, down)) = (center(at - 1), center(at));
    let path = if up == down {
        format!("M{},{up} H{}", from + RADIUS, to - RADIUS)
    } else {
        let between = up + DOWN - RADIUS - 6;
        format!("M{from},{} V{between} H{to} V{}", up + RADIUS + 22, down - RADIUS)
    };
    html! { path.edge d=(path) {} }
}

fn record(at: usize, step: &ViewStep, hash: &str) -> Markup {
    let (x, y) = center(at);
    let class = if step.failed { "failed" } else { step_class(step) };
    let label = format!("{} {hash}", step_label(step));
    let drawn = html! {
        g {
            title { (label) }
            circle class=(class) cx=(x) cy=(y) r=(RADIUS) {}
            text.hash x=(x) y=(y + RADIUS + 14) text-anchor="middle" { (hash) }
        }
    };
    parts::linked_drawing(Some(&format!("#step-{}", step.index)), Some(&label), &drawn)
}

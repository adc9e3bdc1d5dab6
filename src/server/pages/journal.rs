//! The page of the journal.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use crate::digest::{CoreHash, Digest};
use crate::server::address;
use crate::server::failure::PageError;
use crate::server::text::{exact_time, line, number};
use crate::server::visit::{HtmlPage, PageRequest, ResponseContent};
use crate::vault::journal::{JournalEntry, JournalHead, JournalHeadRequest, JournalRequest};

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
    let body = html! {
        h1 { "Journal" }
        (introduction(&head))
        (table(&entries))
        (pages(after, end, head.seq))
    };
    Ok(ResponseContent::Page(HtmlPage { title: "Journal".to_owned(), section: "/journal", body }))
}

fn introduction(head: &JournalHead) -> Markup {
    html! {
        p {
            (number(head.seq)) " entries. Each contains the digest of the one before. The digest of the last, which covers "
            "all of them, is " code.copy { (head.chain) } ". The chain is not recomputed for this page."
        }
    }
}

fn table(entries: &[JournalEntry]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Entries" {
            table {
                thead { tr { th.right { "entry" } th { "time" } th { "action" } th { "artifact" } th { "actor" } th { "members" } } }
                tbody { @for entry in entries.iter().rev() { (row(entry)) } }
            }
        }
    }
}

/// The members of an entry that have columns of their own.
const COLUMNS: [&str; 4] = ["at", "action", "actor", "core"];

fn row(entry: &JournalEntry) -> Markup {
    let text = |name: &str| entry.entry.get(name).and_then(Value::as_str);
    let at = text("at").and_then(|at| chrono::DateTime::parse_from_rfc3339(at).ok());
    let core = text("core").and_then(|core| core.parse::<CoreHash>().ok());
    let rest = entry.entry.iter().filter(|(name, _)| !COLUMNS.contains(&name.as_str()));
    html! {
        tr {
            td.right { (number(entry.seq)) }
            td { @if let Some(at) = at { (exact_time(at.to_utc())) } @else { (line(text("at").unwrap_or_default())) } }
            td { (line(text("action").unwrap_or_default())) }
            td { @if let Some(core) = core { a.hash href=(address::artifact(core)) { (format!("{core:.12}")) } } }
            td { (line(text("actor").unwrap_or_default())) }
            td { @for (name, value) in rest { span.member { (line(name)) ": " (shown(value)) } " " } }
        }
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

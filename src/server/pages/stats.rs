//! The page of statistics.

use chrono::Days;
use maud::{Markup, html};

use super::parts::{self, Bar};
use crate::display::{counted, size};
use crate::server::address;
use crate::server::text::{number, time};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::api::TimeBasis;
use crate::vault::stats::{EngineStatistics, KindTotals, StatsAnswer, StatsRequest};

/// Maximum number of days in a chart.
const MAX_DAYS: usize = 120;

/// Makes the page of statistics.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let answer = visit.run(&StatsRequest { by: TimeBasis::Created, label: None })?;
    let body = html! {
        h1 { "Statistics" }
        (kinds(&answer))
        (days(&answer))
        (storage(&answer))
        (largest(&answer))
    };
    Ok(ResponseContent::Page(HtmlPage { title: "Statistics".to_owned(), section: "/stats", body }))
}

fn kinds(answer: &StatsAnswer) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Content by kind" {
            table {
                thead { tr { th { "kind" } th.right { "artifacts" } th.right { "captures" } th.right { "size" } } }
                tbody {
                    @for KindTotals { kind, artifacts, captures, bytes } in &answer.kinds {
                        tr {
                            td { a href=(address::with_query("/artifacts", &[("kind", Some(kind))])) { (parts::kind(kind)) } }
                            td.right { (number(*artifacts)) }
                            td.right { (number(*captures)) }
                            td.right { (size(*bytes)) }
                        }
                    }
                }
                tfoot {
                    tr {
                        th { "all" }
                        td.right { (number(answer.artifacts)) }
                        td.right { (number(answer.captures)) }
                        td.right { (size(answer.bytes)) }
                    }
                }
            }
        }
    }
}

/// Draws the artifacts created on each of the last days that have any, without gaps.
fn days(answer: &StatsAnswer) -> Markup {
    let StatsAnswer { days, undated, .. } = answer;
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return html! {} };
    let shown =
        last.date.checked_sub_days(Days::new(MAX_DAYS as u64 - 1)).unwrap_or(first.date).max(first.date);
    let mut counts = days.iter().skip_while(|day| day.date < shown).peekable();
    let bars: Vec<Bar> = shown
        .iter_days()
        .take_while(|date| *date <= last.date)
        .map(|date| {
            let value = counts.next_if(|day| day.date == date).map_or(0, |day| day.artifacts);
            let next = date.succ_opt().unwrap_or(date);
            let period = [("since", Some(date.to_string())), ("until", Some(next.to_string()))];
            let period: Vec<_> = period.iter().map(|(name, day)| (*name, day.as_deref())).collect();
            let address = address::with_query("/artifacts", &period);
            Bar {
                value,
                label: format!("{date}: {}", number(value)),
                address: (value > 0).then_some(address),
            }
        })
        .collect();
    let title = format!("artifacts created by day, {shown} to {}", last.date);
    html! {
        section {
            h2 { "Growth" }
            (parts::bar_chart(&title, &bars))
            p.faint {
                "Artifacts by the day of their creation in UTC, " (shown) " to " (last.date) "."
                @if *undated > 0 { " " (counted(*undated, "artifact")) " without a creation time." }
            }
        }
    }
}

fn storage(answer: &StatsAnswer) -> Markup {
    let plain = |text: String| Some(html! { (text) });
    let engine = answer.engine.as_ref();
    let packed = engine.map(|engine| engine.stored_bytes + engine.dictionary_bytes);
    let file = |engine: &EngineStatistics| {
        plain(format!("{}, {} of it free", size(engine.file_bytes), size(engine.free_bytes)))
    };
    let rows = [
        ("received", plain(format!("{} in {} captures", size(answer.bytes), number(answer.captures)))),
        ("distinct", plain(format!("{} in {} blobs", size(answer.blob_bytes), number(answer.blobs)))),
        ("stored", packed.and_then(|bytes| plain(format!("{}, compressed", size(bytes))))),
        ("file", engine.and_then(file)),
        ("search index", engine.and_then(|engine| plain(size(engine.search_bytes?)))),
        ("mentions", engine.and_then(|engine| plain(number(engine.mentions)))),
        ("manual links", plain(number(answer.manual_links))),
        ("tags", plain(number(answer.tags))),
        ("pins", plain(number(answer.pins))),
        ("notes", plain(number(answer.notes))),
        ("labels", plain(number(answer.labels))),
        ("journal", plain(format!("{} entries", number(answer.journal_entries)))),
    ];
    html! { section { h2 { "Storage" } (parts::fields(&rows)) } }
}

fn largest(answer: &StatsAnswer) -> Markup {
    let dated = [("oldest", &answer.oldest), ("newest", &answer.newest)];
    html! {
        section {
            h2 { "Oldest, newest, largest" }
            ul {
                @for (name, dated) in dated {
                    @if let Some(dated) = dated { li { (name) ": " (parts::artifact(&dated.artifact)) ", " (time(dated.at.0)) } }
                }
                @for sized in &answer.largest {
                    li { (size(sized.bytes)) ": " (parts::artifact(&sized.artifact)) }
                }
            }
        }
    }
}

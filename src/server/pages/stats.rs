//! The page of statistics.

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};
use maud::{Markup, html};

use super::parts::ArtifactNames;
use super::parts::{self, Bar};
use crate::artifact::ValueType;
use crate::display::{counted, duration, size};
use crate::server::address;
use crate::server::frame::{line, number, time};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::api::{ArtifactSummary, TimeBasis};
use crate::vault::find::{ArtifactFilter, FindPeriod};
use crate::vault::run_stats::{RunGroup, RunStatsAnswer, RunStatsRequest, RunTotals};
use crate::vault::stats::{EngineStatistics, KindTotals, StatsAnswer, StatsRequest};

/// Maximum number of days in a chart.
const MAX_DAYS: usize = 120;

/// Number of days up to the newest recording whose runs are counted by what they state.
const RECENT_DAYS: u64 = 30;

/// Makes the page of statistics.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let answer = visit.run(&StatsRequest { by: TimeBasis::Created, label: None })?;
    let (filter, prices) = (recent(&answer), visit.prices.to_vec());
    let request = RunStatsRequest { filter, prices, with_days: true, ..RunStatsRequest::default() };
    let runs = visit.run(&request)?;
    let body = html! {
        h1 { "Statistics" }
        (models(&runs))
        (activity(&runs))
        (kinds(&answer))
        (days(&answer))
        (storage(&answer))
        (largest(visit, &answer)?)
    };
    Ok(ResponseContent::Page(HtmlPage { title: "Statistics".to_owned(), section: "/stats", body }))
}

/// Returns the filter of the runs up to the newest one, of a limited number of days.
fn recent(answer: &StatsAnswer) -> ArtifactFilter {
    let newest = answer.newest.as_ref().map(|newest| newest.at.0);
    let since = newest.and_then(|newest| newest.checked_sub_days(Days::new(RECENT_DAYS)));
    let period =
        since.map(|since| FindPeriod { by: TimeBasis::Created, since: Some(since.into()), until: None });
    ArtifactFilter { period, ..ArtifactFilter::default() }
}

/// Shows the runs of each model.
fn models(runs: &RunStatsAnswer) -> Markup {
    let RunStatsAnswer { groups, total, without, .. } = runs;
    if groups.is_empty() {
        return html! {};
    }
    let count = |count: Option<u64>| count.map(number).unwrap_or_default();
    let latency = |milliseconds: Option<i64>| milliseconds.map(duration).unwrap_or_default();
    let has_cost = total.cost_usd.is_some();
    let row = |name: &Markup, totals: &RunTotals, failures: Option<String>| {
        html! {
            tr {
                td { (name) }
                td.right { (number(totals.runs)) }
                td.right {
                    @match failures {
                        Some(address) if totals.failures > 0 => a.bad href=(address) { (number(totals.failures)) },
                        _ => (number(totals.failures)),
                    }
                }
                td.right { (count(totals.tokens_input)) }
                td.right { (count(totals.tokens_output)) }
                td.right { (latency(totals.latency_p50_ms)) }
                td.right { (latency(totals.latency_p95_ms)) }
                @if has_cost { td.right { @if let Some(cost) = totals.cost_usd { (cost) } } }
            }
        }
    };
    html! {
        section {
            h2 { "Models in the last " (RECENT_DAYS) " days" }
            div.scroll tabindex="0" role="region" aria-label="Runs by model" {
                table {
                    thead { tr {
                        th { "model" } th.right { "count" } th.right { "failed" } th.right { "tokens in" }
                        th.right { "tokens out" } th.right { "latency p50" } th.right { "p95" }
                        @if has_cost { th.right { "cost in USD" } }
                    } }
                    tbody {
                        @for RunGroup { value, totals } in groups {
                            @let address = |errors| {
                                address::with_query("/", &[("model", Some(value.as_str())), ("errors", errors)])
                            };
                            (row(&html! { a href=(address(None)) { (line(value)) } }, totals, Some(address(Some("yes")))))
                        }
                    }
                    tfoot { (row(&html! { "all" }, total, None)) }
                }
            }
            @if *without > 0 { p.faint { (number(*without)) " without a model." } }
        }
    }
}

/// A chart of the last days.
struct DayChart {
    title: &'static str,
    /// The filter by errors of the list to which its days lead.
    errors: Option<&'static str>,
    value: fn(&RunTotals) -> u64,
    /// Returns a value for people.
    shown: fn(u64) -> String,
}

const CHARTS: [DayChart; 4] = [
    DayChart {
        title: "Failed runs by day",
        errors: Some("yes"),
        value: |totals| totals.failures,
        shown: number,
    },
    DayChart {
        title: "Tokens by day",
        errors: None,
        value: |totals| totals.tokens_input.unwrap_or(0).saturating_add(totals.tokens_output.unwrap_or(0)),
        shown: number,
    },
    DayChart {
        title: "Latency by day, 95th percentile of runs",
        errors: None,
        value: |totals| totals.latency_p95_ms.and_then(|time| u64::try_from(time).ok()).unwrap_or(0),
        shown: |time| i64::try_from(time).map(duration).unwrap_or_default(),
    },
    DayChart {
        title: "Costs by day",
        errors: None,
        value: |totals| {
            let cost = totals.cost_usd.and_then(|cost| ValueType::Amount.number(&cost.to_string()));
            cost.and_then(|cost| u64::try_from(cost).ok()).unwrap_or(0)
        },
        shown: |cost| {
            let amount = i64::try_from(cost).ok().and_then(|cost| ValueType::Amount.value(cost));
            format!("{} USD", amount.unwrap_or_default())
        },
    },
];

/// Draws the failures, tokens, times and costs of the last days.
fn activity(runs: &RunStatsAnswer) -> Markup {
    let by_day: BTreeMap<NaiveDate, &RunTotals> =
        runs.days.iter().filter_map(|group| Some((group.value.parse().ok()?, &group.totals))).collect();
    let (none, last) = (RunTotals::default(), by_day.keys().next_back().copied());
    let first = last.and_then(|last| last.checked_sub_days(Days::new(RECENT_DAYS - 1)));
    let days = first.into_iter().flat_map(|first| first.iter_days());
    let days = days.take_while(|date| last.is_some_and(|last| *date <= last));
    let days: Vec<(NaiveDate, &RunTotals)> =
        days.map(|date| (date, by_day.get(&date).copied().unwrap_or(&none))).collect();
    let chart = |DayChart { title, errors, value, shown }: &DayChart| {
        let address = |since: &str, until: &str| {
            address::with_query("/", &[("since", Some(since)), ("until", Some(until)), ("errors", *errors)])
        };
        let bar = |(date, totals): &(NaiveDate, &RunTotals)| {
            let value = value(totals);
            Bar::of_day(*date, value, &shown(value), address)
        };
        let bars: Vec<Bar> = days.iter().map(bar).collect();
        html! {
            @if bars.iter().any(|bar| bar.value > 0) {
                h3 { (title) }
                (parts::bar_chart(title, &bars))
            }
        }
    };
    html! {
        @if let (Some((first, _)), Some((last, _))) = (days.first(), days.last()) {
            section {
                h2 { "Days" }
                @for one in &CHARTS { (chart(one)) }
                p.faint { "Runs by the day of their creation in UTC, " (first) " to " (last) "." }
            }
        }
    }
}

fn kinds(answer: &StatsAnswer) -> Markup {
    html! {
        h2 { "Kinds" }
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
            Bar::of_day(date, value, &number(value), |since, until| {
                address::with_query("/artifacts", &[("since", Some(since)), ("until", Some(until))])
            })
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

fn largest(visit: &PageRequest<'_>, answer: &StatsAnswer) -> Result<Markup, PageError> {
    let dated = [("oldest", &answer.oldest), ("newest", &answer.newest)];
    let dated = dated.iter().filter_map(|(name, dated)| Some((name, dated.as_ref()?)));
    let sized = answer.largest.iter().map(|sized| &sized.artifact);
    let artifacts = dated.clone().map(|(_, dated)| &dated.artifact).chain(sized);
    let names = ArtifactNames::read(visit, artifacts.map(|artifact| artifact.core_hash).collect())?;
    let shown = |artifact: &ArtifactSummary| {
        html! { (parts::kind(&artifact.kind)) " " (names.link(artifact.core_hash)) }
    };
    Ok(html! {
        section {
            h2 { "Oldest, newest, largest" }
            ul.listed {
                @for (name, dated) in dated { li { (name) ", " (time(dated.at.0)) ": " (shown(&dated.artifact)) } }
                @for sized in &answer.largest { li { (size(sized.bytes)) ": " (shown(&sized.artifact)) } }
            }
        }
    })
}

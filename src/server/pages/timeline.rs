//! The drawing of what took place when.

use std::ops::Range;

use chrono::DateTime;
use maud::{Markup, html};

use super::parts;
use crate::display;

/// The size of the drawing, and of the row of a class of steps, in user units.
const WIDTH: i64 = 1_000;
const ROW: i64 = 16;
const BAR: i64 = 12;

/// The narrowest bar.
const NARROWEST: i64 = 3;

/// The classes of steps, a row each.
const ROWS: [&str; 3] = ["model", "tool", "other"];

/// What a bar stands for.
pub(super) struct TimelineItem {
    /// The name of its class in the style sheet.
    pub(super) class: &'static str,
    pub(super) failed: bool,
    /// When it began, in milliseconds.
    pub(super) begin: Option<i64>,
    /// How long it took, in milliseconds.
    pub(super) length: u64,
    /// What it is, which may be untrusted text.
    pub(super) label: String,
    /// The address that it leads to, which may be a place on the page.
    pub(super) address: String,
}

impl TimelineItem {
    fn length(&self) -> i64 {
        i64::try_from(self.length).unwrap_or(i64::MAX)
    }
}

/// Draws a bar for each item, with a row for each class: by time if they state different times, else by number. `noun` is
/// that of the items, in the plural.
pub(super) fn drawing(noun: &str, items: &[TimelineItem]) -> Markup {
    let rows: Vec<&str> =
        ROWS.into_iter().filter(|row| items.iter().any(|item| item.class == *row)).collect();
    let row = |item: &TimelineItem| rows.iter().position(|row| *row == item.class).unwrap_or_default();
    let placed: Vec<(usize, &TimelineItem)> = items.iter().map(|item| (row(item), item)).collect();
    let key = html! { @for row in &rows { span class=(format!("key {row}")) { (row) } " " } };
    figure(noun, &placed, &key)
}

/// Draws a bar for each item, with a row for each group.
pub(super) fn drawing_of_groups(noun: &str, groups: &[Vec<TimelineItem>]) -> Markup {
    let placed: Vec<(usize, &TimelineItem)> = groups
        .iter()
        .enumerate()
        .flat_map(|(row, items)| items.iter().map(move |item| (row, item)))
        .collect();
    figure(noun, &placed, &html! {})
}

/// Draws the items, each in its row.
fn figure(noun: &str, placed: &[(usize, &TimelineItem)], key: &Markup) -> Markup {
    if placed.len() < 2 {
        return html! {};
    }
    let times = times(placed.iter().map(|(_, item)| *item));
    let rows = placed.iter().map(|(row, _)| row + 1).max().unwrap_or(1);
    let height = i64::try_from(rows).unwrap_or(1) * ROW + 2;
    let summary = match &times {
        Some(times) => format!("{noun} over {}", parts::duration((times.end - times.start).unsigned_abs())),
        None => format!("{noun} by number"),
    };
    html! {
        figure.timeline {
            svg.timeline viewBox=(format!("0 0 {WIDTH} {height}")) role="group" aria-label=(summary) {
                line.axis x1="0" x2=(WIDTH) y1=(height - 1) y2=(height - 1) {}
                @for (at, (row, item)) in placed.iter().enumerate() {
                    (bar(item, &span(item, at, placed.len(), times.as_ref()), *row))
                }
            }
            figcaption.faint {
                (key)
                (summary)
                @if let Some(first) = times.and_then(|times| DateTime::from_timestamp_millis(times.start)) {
                    " from " (display::time(first))
                }
            }
        }
    }
}

/// Returns the times from the first to the last, in milliseconds, unless they are the same or missing.
fn times<'i>(items: impl Iterator<Item = &'i TimelineItem> + Clone) -> Option<Range<i64>> {
    let start = items.clone().filter_map(|item| item.begin).min()?;
    let end = items.filter_map(|item| Some(item.begin?.saturating_add(item.length()))).max()?;
    (start < end).then_some(start..end)
}

/// The beginning and the width of a bar.
struct BarSpan {
    x: i64,
    width: i64,
}

/// Returns where the bar of the item `at` this position on the page is.
fn span(item: &TimelineItem, at: usize, count: usize, times: Option<&Range<i64>>) -> BarSpan {
    let scaled = |value: i64, all: i64| {
        let scaled = i128::from(value.max(0)) * i128::from(WIDTH) / i128::from(all.max(1));
        i64::try_from(scaled).unwrap_or(WIDTH).min(WIDTH)
    };
    let (x, width) = match (times, item.begin) {
        (Some(times), Some(begin)) => {
            let all = times.end.saturating_sub(times.start);
            (scaled(begin.saturating_sub(times.start), all), scaled(item.length(), all))
        }
        (Some(_), None) => (0, 0),
        (None, _) => {
            let (at, count) = (i64::try_from(at).unwrap_or(0), i64::try_from(count).unwrap_or(1));
            (scaled(at, count), (WIDTH / count - 1).max(0))
        }
    };
    let width = width.max(NARROWEST);
    BarSpan { x: x.min(WIDTH - width), width }
}

fn bar(item: &TimelineItem, span: &BarSpan, row: usize) -> Markup {
    let class = if item.failed { "failed" } else { item.class };
    let y = i64::try_from(row).unwrap_or_default() * ROW + 1;
    let label = display::brief(&item.label).to_string();
    let drawn = html! {
        rect class=(class) x=(span.x) y=(y) width=(span.width) height=(BAR) { title { (label) } }
    };
    parts::linked_drawing(Some(&item.address), Some(&label), &drawn)
}

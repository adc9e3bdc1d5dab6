//! The drawing of the steps of a transcript, over time.

use std::ops::Range;

use maud::{Markup, html};

use super::steps::{are_events, class, duration, label};
use crate::display;
use crate::server::svg;
use crate::vault::view::{ViewAnswer, ViewStep};

/// The size of the drawing, and of the row of a class of steps, in user units.
const WIDTH: i64 = 1_000;
const ROW: i64 = 16;
const BAR: i64 = 12;

/// The narrowest bar.
const NARROWEST: i64 = 3;

/// The classes of steps, a row each.
const ROWS: [&str; 3] = ["model", "tool", "other"];

/// Draws a bar for each step on the page: by time if the steps state different times, else by number.
pub(super) fn drawing(answer: &ViewAnswer) -> Markup {
    if answer.steps.len() < 2 || !are_events(&answer.steps) {
        return html! {};
    }
    let times = times(&answer.steps);
    let rows: Vec<&str> =
        ROWS.into_iter().filter(|row| answer.steps.iter().any(|step| class(step) == *row)).collect();
    let height = i64::try_from(rows.len()).unwrap_or(1) * ROW + 2;
    let summary = match &times {
        Some(times) => format!("steps over {}", duration((times.end - times.start).unsigned_abs())),
        None => "steps by number".to_owned(),
    };
    let row = |step: &ViewStep| rows.iter().position(|row| *row == class(step)).unwrap_or_default();
    html! {
        figure.timeline {
            svg.timeline viewBox=(format!("0 0 {WIDTH} {height}")) role="group" aria-label=(summary) {
                line.axis x1="0" x2=(WIDTH) y1=(height - 1) y2=(height - 1) {}
                @for (at, step) in answer.steps.iter().enumerate() {
                    (bar(step, &span(step, at, answer.steps.len(), times.as_ref()), row(step)))
                }
            }
            figcaption.faint {
                @for row in &rows { span class=(format!("key {row}")) { (row) } " " }
                (summary)
                @if let Some(first) = answer.steps.iter().find_map(|step| step.time).filter(|_| times.is_some()) {
                    " from " (display::time(first.0))
                }
            }
        }
    }
}

/// Returns the times from the first to the last, in milliseconds, unless they are the same or missing.
fn times(steps: &[ViewStep]) -> Option<Range<i64>> {
    let start = steps.iter().filter_map(begin).min()?;
    let end = steps.iter().filter_map(|step| Some(begin(step)?.saturating_add(length(step)))).max()?;
    (start < end).then_some(start..end)
}

fn begin(step: &ViewStep) -> Option<i64> {
    Some(step.time?.0.timestamp_millis())
}

fn length(step: &ViewStep) -> i64 {
    i64::try_from(step.duration_ms.unwrap_or(0)).unwrap_or(i64::MAX)
}

/// The beginning and the width of a bar.
struct BarSpan {
    x: i64,
    width: i64,
}

/// Returns where the bar of the step `at` this position on the page is.
fn span(step: &ViewStep, at: usize, count: usize, times: Option<&Range<i64>>) -> BarSpan {
    let scaled = |value: i64, all: i64| {
        let scaled = i128::from(value.max(0)) * i128::from(WIDTH) / i128::from(all.max(1));
        i64::try_from(scaled).unwrap_or(WIDTH).min(WIDTH)
    };
    let (x, width) = match (times, begin(step)) {
        (Some(times), Some(begin)) => {
            let all = times.end.saturating_sub(times.start);
            (scaled(begin.saturating_sub(times.start), all), scaled(length(step), all))
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

fn bar(step: &ViewStep, span: &BarSpan, row: usize) -> Markup {
    let class = if step.failed { "failed" } else { class(step) };
    let y = i64::try_from(row).unwrap_or_default() * ROW + 1;
    let label = label(step);
    let drawn = html! {
        rect class=(class) x=(span.x) y=(y) width=(span.width) height=(BAR) { title { (label) } }
    };
    svg::linked(Some(&format!("#step-{}", step.index)), &label, &drawn)
}

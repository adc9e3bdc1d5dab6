//! The drawing of a chain of records, each of which states the digest of the one before.

use maud::{Markup, html};

use super::steps::{class, label};
use crate::artifact::Kind;
use crate::formats;
use crate::server::svg;
use crate::vault::view::{ViewAnswer, ViewStep};

/// The number of records of a row, and the distances between them, in user units.
const COLUMNS: usize = 20;
const ACROSS: usize = 50;
const DOWN: usize = 52;
const RADIUS: usize = 8;

/// Maximum number of records that are drawn.
const RECORDS: usize = 200;

/// Draws the records on the page, if the artifact is a chain: one whose longer versions extend it.
pub(super) fn drawing(answer: &ViewAnswer) -> Markup {
    let is_chain = formats::named(&answer.artifact.kind).and_then(Kind::versions).is_some();
    let records: Vec<(&ViewStep, String)> = answer
        .steps
        .iter()
        .take(RECORDS)
        .filter_map(|step| Some((step, format!("{:.6}", step.digest?))))
        .collect();
    if !is_chain || records.len() < 2 {
        return html! {};
    }
    let columns = records.len().min(COLUMNS);
    let (width, height) = (columns * ACROSS, records.len().div_ceil(COLUMNS) * DOWN);
    html! {
        figure.timeline {
            div.scroll tabindex="0" role="region" aria-label="Chain" {
                svg.chain width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="group" aria-label="Chain of records" {
                    @for at in 1..records.len() { (joint(at)) }
                    @for (at, (step, hash)) in records.iter().enumerate() { (record(at, step, hash)) }
                }
            }
            figcaption.faint {
                "Each record states the hash of the one before; the last hash is that of the trace."
                @if answer.steps.len() > RECORDS { " The first " (RECORDS) " records are drawn." }
            }
        }
    }
}

/// Returns the center of a record.
fn center(at: usize) -> (usize, usize) {
    (at % COLUMNS * ACROSS + ACROSS / 2, at / COLUMNS * DOWN + RADIUS + 4)
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
    let class = if step.failed { "failed" } else { class(step) };
    let label = format!("{} {hash}", label(step));
    let drawn = html! {
        g {
            title { (label) }
            circle class=(class) cx=(x) cy=(y) r=(RADIUS) {}
            text.hash x=(x) y=(y + RADIUS + 14) text-anchor="middle" { (hash) }
        }
    };
    svg::linked(Some(&format!("#step-{}", step.index)), &label, &drawn)
}

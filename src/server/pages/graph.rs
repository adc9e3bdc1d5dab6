//! The graph of links of an artifact.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;

use super::{parts, search};
use crate::display::counted;
use crate::formats;
use crate::server::address;
use crate::server::text::{drawn_line, line, title_line};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::links::{LinkEdge, LinkEnd, LinksAnswer, LinksRequest};

/// Maximum number of links that are drawn.
const LINKS: u64 = 80;

/// Maximum depth.
const DEPTHS: u8 = 4;

/// The size of a node and the distances between nodes, in user units.
const WIDTH: i64 = 150;
const HEIGHT: i64 = 44;
const ACROSS: i64 = 270;
const DOWN: i64 = 68;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    depth: u8,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { depth: 2 }
    }
}

/// Makes the page of the graph of links around an artifact.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let Parameters { depth } = visit.parameters()?;
    if !(1..=DEPTHS).contains(&depth) {
        return Err(PageError::BadRequest(format!("the depth is a number from 1 to {DEPTHS}")));
    }
    let artifact = search::artifact_of_path(visit)?.artifact;
    let core = artifact.core;
    let request = LinksRequest { depth, limit: Some(LINKS), ..LinksRequest::new(core) };
    let answer = visit.run(&request)?;
    let body = html! {
        h1 { "Links of " span.kind { (formats::bare_noun(&artifact.kind)) } " " (parts::hash(core)) }
        nav.pages aria-label="Depth" {
            @for other in 1..=DEPTHS {
                a href=(address::graph(core, other)) aria-current=[(other == depth).then_some("page")] { "depth " (other) }
            }
        }
        @if answer.edges.is_empty() { p { "No artifact in the vault is linked to it." } } @else { (drawing(&answer)) }
        @if answer.left_out > 0 { p.faint { (counted(answer.left_out, "link")) " not drawn." } }
        @if answer.not_followed > 0 { p.faint { "The links of " (counted(answer.not_followed, "artifact")) " were not followed." } }
        (table(&answer))
    };
    let title = format!("Links of {core:.12}");
    Ok(ResponseContent::Page(HtmlPage { title, section: "/artifacts", body }))
}

/// The position of a node: its column, with the artifact itself in column 0, and its row.
type GraphPosition = (i64, i64);

/// Returns the position of each node: what links to the artifact is at its left, what it links to at its right.
fn positions(answer: &LinksAnswer) -> Vec<GraphPosition> {
    let mut columns: Vec<Option<i64>> = vec![None; answer.nodes.len()];
    if let Some(first) = columns.first_mut() {
        *first = Some(0);
    }
    // Nodes are sorted by distance, and every node has a link to one that is closer.
    for _ in 0..=DEPTHS {
        for LinkEdge { from, to, .. } in &answer.edges {
            let (one, other) = (columns.get(*from).copied().flatten(), columns.get(*to).copied().flatten());
            match (one, other) {
                (Some(column), None) => {
                    set(&mut columns, *to, if column < 0 { column - 1 } else { column + 1 });
                }
                (None, Some(column)) => {
                    set(&mut columns, *from, if column > 0 { column + 1 } else { column - 1 });
                }
                _ => {}
            }
        }
    }
    let mut rows: BTreeMap<i64, i64> = BTreeMap::new();
    let place = |column: Option<i64>| {
        let column = column.unwrap_or_default();
        let row = rows.entry(column).or_default();
        *row += 1;
        (column, *row - 1)
    };
    columns.into_iter().map(place).collect()
}

fn set(columns: &mut [Option<i64>], at: usize, column: i64) {
    if let Some(entry) = columns.get_mut(at) {
        *entry = Some(column);
    }
}

fn drawing(answer: &LinksAnswer) -> Markup {
    let positions = positions(answer);
    let column = |position: &GraphPosition| position.0;
    let (first, last) =
        (positions.iter().map(column).min().unwrap_or(0), positions.iter().map(column).max().unwrap_or(0));
    let most = positions.iter().map(|position| position.1).max().unwrap_or(0);
    // Columns are centered.
    let counts = positions.iter().fold(BTreeMap::new(), |mut counts: BTreeMap<i64, i64>, (column, _)| {
        *counts.entry(*column).or_default() += 1;
        counts
    });
    let corner = |(column, row): GraphPosition| {
        let free = most + 1 - counts.get(&column).copied().unwrap_or(0);
        ((column - first) * ACROSS + 4, row * DOWN + free * DOWN / 2 + 4)
    };
    let corners: Vec<(i64, i64)> = positions.into_iter().map(corner).collect();
    let (width, height) = ((last - first) * ACROSS + WIDTH + 8, most * DOWN + HEIGHT + 8);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Graph" {
            svg.graph width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="group" aria-label="Graph of links" {
                @for edge in &answer.edges { (edge_between(edge, &corners)) }
                @for (index, (node, corner)) in answer.nodes.iter().zip(&corners).enumerate() {
                    (node_at(&node.target, corner.0, corner.1, index == 0))
                }
            }
        }
    }
}

fn edge_between(edge: &LinkEdge, corners: &[(i64, i64)]) -> Markup {
    let (Some(from), Some(to)) = (corners.get(edge.from), corners.get(edge.to)) else { return html! {} };
    let is_right = to.0 >= from.0;
    let (begin, end) = if is_right { (from.0 + WIDTH, to.0) } else { (from.0, to.0 + WIDTH) };
    let (y, z) = (from.1 + HEIGHT / 2, to.1 + HEIGHT / 2);
    let bend = (end - begin) / 2;
    let path = if from.0 == to.0 {
        // Within a column, the line runs beside it.
        let side = from.0 + WIDTH;
        format!("M{side},{y} C{},{y} {},{z} {side},{z}", side + 40, side + 40)
    } else {
        format!("M{begin},{y} C{},{y} {},{z} {end},{z}", begin + bend, end - bend)
    };
    let middle = if from.0 == to.0 { from.0 + WIDTH + 32 } else { i64::midpoint(begin, end) };
    html! {
        g {
            title { (title_line(edge.because.as_deref().unwrap_or_default())) }
            path.edge class=[edge.manual.then_some("stated")] d=(path) {}
            text.relation x=(middle) y=(i64::midpoint(y, z) - 4) text-anchor="middle" {
                @if is_right { (drawn_line(&edge.relation)) " →" } @else { "← " (drawn_line(&edge.relation)) }
            }
        }
    }
}

fn node_at(end: &LinkEnd, x: i64, y: i64, is_root: bool) -> Markup {
    let LinkEnd { kind, core_hash, digest, name, .. } = end;
    let noun = kind
        .as_deref()
        .map_or_else(|| "not in the vault".to_owned(), |kind| formats::bare_noun(kind).to_owned());
    let label = core_hash.map(|core| format!("{core:.12}"));
    let label = label.or_else(|| digest.map(|digest| format!("{digest:.12}"))).or_else(|| name.clone());
    let label = label.unwrap_or_default();
    let class = match (is_root, core_hash) {
        (true, _) => "node root",
        (_, Some(_)) => "node",
        _ => "node missing",
    };
    let drawn = html! {
        g class=(class) {
            rect x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="6" {}
            // The space separates the texts for those who have them read out.
            text x=(x + 10) y=(y + 18) { (drawn_line(&noun)) " " }
            text.hash x=(x + 10) y=(y + 35) { (drawn_line(&label.chars().take(16).collect::<String>())) }
        }
    };
    let label = format!("{noun} {label}");
    parts::linked_drawing(core_hash.map(address::artifact).as_deref(), &label, &drawn)
}

/// Lists the links, for those who cannot see the drawing.
fn table(answer: &LinksAnswer) -> Markup {
    let end = |index: usize| answer.nodes.get(index).map(|node| parts::link_end(&node.target));
    html! {
        details {
            summary { "As a table" }
            div.scroll tabindex="0" role="region" aria-label="Links" {
                table {
                    thead { tr { th { "from" } th { "relation" } th { "to" } th { "because" } } }
                    tbody {
                        @for edge in &answer.edges {
                            tr {
                                td { @if let Some(end) = end(edge.from) { (end) } }
                                td { (line(&edge.relation)) }
                                td { @if let Some(end) = end(edge.to) { (end) } }
                                td { (line(edge.because.as_deref().unwrap_or_default())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

//! The graph of links of an artifact.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;

use super::names::ArtifactNames;
use super::{parts, search};
use crate::display::{columns, counted};
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
const WIDTH: i64 = 230;
const HEIGHT: i64 = 62;
const ACROSS: i64 = 350;
const DOWN: i64 = 78;

/// The distance between the lines of a text beside a line.
const LINE: i64 = 14;

/// Maximum width of the texts in a node, in columns of a terminal.
const COLUMNS: usize = 28;

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
    let nodes = answer.nodes.iter().filter_map(|node| node.target.core_hash);
    let names = ArtifactNames::read(visit, nodes.chain([core]).collect())?;
    let name = names.run_id(core).map_or_else(|| format!("{core:.12}"), str::to_owned);
    let body = html! {
        h1 {
            "Links of " span.kind { (formats::bare_noun(&artifact.kind)) } " "
            a.hash href=(address::artifact(core)) { (line(&name)) }
        }
        @if let Some(prompt) = names.excerpt(core) { p.excerpt { (line(prompt)) } }
        nav.pages aria-label="Depth" {
            @for other in 1..=DEPTHS {
                a href=(address::graph(core, other)) aria-current=[(other == depth).then_some("page")] { "depth " (other) }
            }
            @if !answer.edges.is_empty() { a href="#start" { "To the start" } }
        }
        @if answer.edges.is_empty() { p { "No artifact in the vault is linked to it." } } @else { (drawing(&answer, &names)) }
        @if answer.left_out > 0 { p.faint { (counted(answer.left_out, "link")) " not drawn." } }
        @if answer.not_followed > 0 { p.faint { "The links of " (counted(answer.not_followed, "artifact")) " were not followed." } }
        (table(&answer, &names))
    };
    let title = format!("Links of {name}");
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

fn drawing(answer: &LinksAnswer, names: &ArtifactNames) -> Markup {
    let positions = positions(answer);
    let column = |position: &GraphPosition| position.0;
    let (first, last) =
        (positions.iter().map(column).min().unwrap_or(0), positions.iter().map(column).max().unwrap_or(0));
    let most = positions.iter().map(|position| position.1).max().unwrap_or(0);
    // The artifact itself is at the top, so that it is in view however many others there are.
    let corner = |(column, row): GraphPosition| ((column - first) * ACROSS + 4, row * DOWN + 4);
    let corners: Vec<(i64, i64)> = positions.into_iter().map(corner).collect();
    let (width, height) = ((last - first) * ACROSS + WIDTH + 8, most * DOWN + HEIGHT + 8);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Graph" {
            svg.graph width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="group" aria-label="Graph of links" {
                @for edges in parallel(&answer.edges) { (edges_between(&edges, &corners)) }
                @for (index, (node, corner)) in answer.nodes.iter().zip(&corners).enumerate() {
                    (node_at(&node.target, names, *corner, index == 0))
                }
            }
        }
    }
}

/// Groups links between the same two nodes, which one line is drawn for.
fn parallel(edges: &[LinkEdge]) -> Vec<Vec<&LinkEdge>> {
    let mut groups: BTreeMap<(usize, usize), Vec<&LinkEdge>> = BTreeMap::new();
    for edge in edges {
        groups.entry((edge.from.min(edge.to), edge.from.max(edge.to))).or_default().push(edge);
    }
    groups.into_values().collect()
}

/// Draws links between two nodes: a line, and the relations below each other.
fn edges_between(edges: &[&LinkEdge], corners: &[(i64, i64)]) -> Markup {
    let Some(first) = edges.first() else { return html! {} };
    let (Some(from), Some(to)) = (corners.get(first.from), corners.get(first.to)) else { return html! {} };
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
    let reasons: Vec<&str> = edges.iter().filter_map(|edge| edge.because.as_deref()).collect();
    let is_stated = edges.iter().all(|edge| edge.manual);
    let first_line = i64::midpoint(y, z) - 4;
    html! {
        g {
            title { (title_line(&reasons.join("; "))) }
            path.edge class=[is_stated.then_some("stated")] d=(path) {}
            @for (edge, line) in edges.iter().zip(0..) {
                text.relation x=(middle) y=(first_line + line * LINE) text-anchor="middle" {
                    @if is_right == (edge.from == first.from) { (drawn_line(&edge.relation)) " → " }
                    @else { "← " (drawn_line(&edge.relation)) " " }
                }
            }
        }
    }
}

fn node_at(end: &LinkEnd, names: &ArtifactNames, (x, y): (i64, i64), is_root: bool) -> Markup {
    let LinkEnd { kind, core_hash, digest, name, .. } = end;
    let noun = kind.as_deref().map_or("not in the vault", formats::bare_noun);
    let hash = core_hash.map(|core| core.0).or(*digest).map(|digest| format!("{digest:.12}"));
    let hash = hash.or_else(|| name.clone()).unwrap_or_default();
    let prompt = core_hash.and_then(|core| names.excerpt(core)).unwrap_or_default();
    let texts = match core_hash.and_then(|core| names.run_id(core)) {
        Some(run_id) => [format!("{noun} {hash}"), without_middle(run_id), beginning(prompt)],
        None => [noun.to_owned(), without_middle(&hash), beginning(prompt)],
    };
    let class = match (is_root, core_hash) {
        (true, _) => "node root",
        (_, Some(_)) => "node",
        _ => "node missing",
    };
    let [first, second, third] = &texts;
    let drawn = html! {
        g id=[is_root.then_some("start")] class=(class) {
            rect x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="6" {}
            // The spaces separate the texts for those who have them read out.
            text x=(x + 10) y=(y + 18) { (drawn_line(first)) " " }
            text.hash x=(x + 10) y=(y + 36) { (drawn_line(second)) " " }
            text.faint x=(x + 10) y=(y + 53) { (drawn_line(third)) }
        }
    };
    // People who speak to their browser say what they see.
    let label = texts.join(" ");
    parts::linked_drawing(core_hash.map(address::artifact).as_deref(), label.trim_end(), &drawn)
}

/// Returns as many of the first characters as fit into a node.
fn beginning(text: &str) -> String {
    let mut width = 0;
    let fits = |character: &char| {
        width += columns(*character);
        width <= COLUMNS
    };
    let start: String = text.chars().take_while(fits).collect();
    if start.len() == text.len() { start } else { start + "…" }
}

/// Returns the first and the last characters of an id that is too long for a node: ids often begin alike.
fn without_middle(id: &str) -> String {
    let count = id.chars().count();
    if count <= COLUMNS {
        return id.to_owned();
    }
    let start: String = id.chars().take(COLUMNS / 3).collect();
    let end: String = id.chars().skip(count - (COLUMNS - COLUMNS / 3 - 1)).collect();
    format!("{start}…{end}")
}

/// Lists the links, for those who cannot see the drawing.
fn table(answer: &LinksAnswer, names: &ArtifactNames) -> Markup {
    let end = |index: usize| {
        let target = &answer.nodes.get(index)?.target;
        Some(html! {
            @if let Some(kind) = &target.kind { (parts::kind(kind)) " " }
            (names.link_end(target))
        })
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_into_nodes() {
        assert_eq!(beginning("short"), "short");
        assert_eq!(beginning(&"a".repeat(30)), format!("{}…", "a".repeat(28)));
        assert_eq!(beginning(&"漢".repeat(15)), format!("{}…", "漢".repeat(14)));
        let id = "run-2026-11-28-nightly-evaluation-0042";
        assert_eq!(without_middle(id), "run-2026-…ly-evaluation-0042");
        assert_eq!(without_middle("run-1"), "run-1");
    }
}

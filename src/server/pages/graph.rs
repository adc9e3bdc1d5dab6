//! The graph of links of an artifact, and the places of its nodes, lines and texts.

use std::collections::BTreeMap;
use std::fmt::Write;

use maud::{Markup, html};
use serde::Deserialize;

use super::parts::{self, ArtifactNames};
use super::search;
use crate::display::{columns, counted};
use crate::formats;
use crate::server::address;
use crate::server::frame::{drawn_line, line, long_line, title_line};
use crate::server::visit::{HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::links::{LinkEdge, LinkEnd, LinksAnswer, LinksRequest};

/// Maximum number of links that are drawn.
const LINKS: u64 = 80;

/// Maximum depth.
const DEPTHS: u8 = 4;

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
        @if let Some(prompt) = names.excerpt(core) { p.excerpt { (long_line(prompt)) } }
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

fn drawing(answer: &LinksAnswer, names: &ArtifactNames) -> Markup {
    let groups = parallel(&answer.edges);
    let mut layout = GraphLayout::new(answer, &groups);
    let labels: Vec<GraphLabel> = groups.iter().flatten().filter_map(|edge| layout.label(edge)).collect();
    let (width, height) = layout.size;
    html! {
        div.scroll tabindex="0" role="region" aria-label="Graph" {
            svg.graph width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="group" aria-label="Graph of links" {
                @for edges in &groups { (edges_between(edges, &layout)) }
                // No line is drawn over a text.
                @for GraphLabel { text, x, y, anchor } in &labels {
                    text.relation x=(x) y=(y) text-anchor=(anchor) { (drawn_line(text)) " " }
                }
                @for (index, (node, (x, y))) in answer.nodes.iter().zip(&layout.corners).enumerate() {
                    (node_at(&node.target, names, *x, *y, index == 0))
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

/// Draws a line for links between two nodes.
fn edges_between(edges: &[&LinkEdge], layout: &GraphLayout) -> Markup {
    let Some(path) = edges.first().and_then(|first| layout.path(first)) else { return html! {} };
    let reasons: Vec<&str> = edges.iter().filter_map(|edge| edge.because.as_deref()).collect();
    let is_stated = edges.iter().all(|edge| edge.manual);
    html! {
        g {
            title { (title_line(&reasons.join("; "))) }
            path.edge class=[is_stated.then_some("stated")] d=(path) {}
        }
    }
}

fn node_at(end: &LinkEnd, names: &ArtifactNames, x: i64, y: i64, is_root: bool) -> Markup {
    let LinkEnd { kind, core_hash, digest, name, .. } = end;
    let noun = kind.as_deref().map_or("not in the vault", formats::bare_noun);
    let hash = core_hash.map(|core| core.0).or(*digest).map(|digest| format!("{digest:.12}"));
    let hash = hash.or_else(|| name.clone()).unwrap_or_default();
    let prompt = core_hash.and_then(|core| names.excerpt(core)).unwrap_or_default();
    let texts = match core_hash.and_then(|core| names.run_id(core)) {
        Some(run_id) => [format!("{noun} {hash}"), without_middle(run_id), beginning(prompt, COLUMNS)],
        None => [noun.to_owned(), without_middle(&hash), beginning(prompt, COLUMNS)],
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
    parts::linked_drawing(core_hash.map(address::artifact).as_deref(), None, &drawn)
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

/// The size of a node and the distances between nodes, in user units.
pub(super) const WIDTH: i64 = 230;
pub(super) const HEIGHT: i64 = 62;
const ACROSS: i64 = 372;
const DOWN: i64 = 78;

/// The distance between a text and what is beside it, and between the lines of texts.
const GAP: i64 = 8;
const LINE: i64 = 14;

/// The distance between lines that pass a column.
const LANE: i64 = 12;

/// The width of a narrow character, and the maximum number of columns of a relation.
const CHARACTER: i64 = 7;
const RELATION: usize = 15;

/// The places of nodes, lines and texts.
pub(super) struct GraphLayout {
    /// The upper left corners of the nodes.
    pub(super) corners: Vec<(i64, i64)>,
    /// The width and the height of the drawing.
    pub(super) size: (i64, i64),
    /// Where the lines between two nodes pass the columns between these, from the left to the right: below all their nodes.
    lanes: BTreeMap<(usize, usize), Vec<(i64, i64)>>,
    /// The texts that have a place: their left and right ends, and their baselines.
    texts: Vec<(i64, i64, i64)>,
}

/// The text of a link.
pub(super) struct GraphLabel {
    pub(super) text: String,
    pub(super) x: i64,
    pub(super) y: i64,
    /// Which end of the text is at `x`.
    pub(super) anchor: &'static str,
}

impl GraphLayout {
    /// Places the nodes of an answer, and the lines of the links that are grouped by their nodes.
    pub(super) fn new(answer: &LinksAnswer, groups: &[Vec<&LinkEdge>]) -> Self {
        let positions = positions(answer);
        let columns = positions.iter().map(|(column, _)| *column);
        let (first, last) = (columns.clone().min().unwrap_or(0), columns.max().unwrap_or(0));
        let left = |column: i64| (column - first) * ACROSS + 4;
        // The artifact itself is at the top, so that it is in view however many others there are.
        let corners: Vec<(i64, i64)> =
            positions.iter().map(|(column, row)| (left(*column), row * DOWN + 4)).collect();
        let mut bottoms: BTreeMap<i64, i64> = BTreeMap::new();
        for ((column, _), (_, top)) in positions.iter().zip(&corners) {
            let bottom = bottoms.entry(*column).or_default();
            *bottom = (*bottom).max(top + HEIGHT);
        }
        let mut lanes: BTreeMap<(usize, usize), Vec<(i64, i64)>> = BTreeMap::new();
        for edge in groups.iter().filter_map(|edges| edges.first()) {
            let ends = [edge.from, edge.to].map(|end| positions.get(end).map_or(0, |(column, _)| *column));
            for column in ends[0].min(ends[1]) + 1..ends[0].max(ends[1]) {
                let bottom = bottoms.entry(column).or_default();
                *bottom += LANE;
                lanes.entry(nodes(edge)).or_default().push((left(column), *bottom));
            }
        }
        let height = bottoms.values().max().copied().unwrap_or_default();
        Self { corners, size: (left(last) + WIDTH + 4, height + LINE), lanes, texts: Vec::new() }
    }

    /// Returns the corners of the nodes of a link.
    fn ends(&self, edge: &LinkEdge) -> Option<((i64, i64), (i64, i64))> {
        Some((*self.corners.get(edge.from)?, *self.corners.get(edge.to)?))
    }

    /// Returns the line of a link, which crosses no node: it passes the columns between its nodes below theirs, and runs
    /// beside a column that both are in.
    pub(super) fn path(&self, edge: &LinkEdge) -> Option<String> {
        let (from, to) = self.ends(edge)?;
        let middle = HEIGHT / 2;
        if from.0 == to.0 {
            let (side, y, z) = (from.0 + WIDTH, from.1 + middle, to.1 + middle);
            return Some(format!("M{side},{y} C{0},{y} {0},{z} {side},{z}", side + 40));
        }
        let (left, right) = if from.0 < to.0 { (from, to) } else { (to, from) };
        let (mut x, mut y) = (left.0 + WIDTH, left.1 + middle);
        let mut path = format!("M{x},{y}");
        let lanes = self.lanes.get(&nodes(edge)).map(Vec::as_slice).unwrap_or_default();
        for (next, height) in lanes.iter().copied().chain([(right.0, right.1 + middle)]) {
            let bend = (next - x) / 2;
            // Writing to a string cannot fail.
            let _ = write!(path, " C{},{y} {},{height} {next},{height}", x + bend, next - bend);
            if next != right.0 {
                let _ = write!(path, " H{}", next + WIDTH);
            }
            (x, y) = (next + WIDTH, height);
        }
        Some(path)
    }

    /// Places the text of a link at the node that is farther from the artifact, below the texts that would overlap it.
    pub(super) fn label(&mut self, edge: &LinkEdge) -> Option<GraphLabel> {
        let (from, to) = self.ends(edge)?;
        let name = beginning(&edge.relation, RELATION);
        let text = match (from.0 - to.0, from.1 - to.1) {
            (..0, _) => format!("{name} →"),
            (0, ..0) => format!("{name} ↓"),
            (0, _) => format!("{name} ↑"),
            _ => format!("← {name}"),
        };
        let (far, near) = if edge.from > edge.to { (from, to) } else { (to, from) };
        let width =
            text.chars().map(|one| if columns(one) > 1 { 2 * CHARACTER } else { CHARACTER }).sum::<i64>();
        let (x, anchor) = if far.0 > near.0 { (far.0 - GAP, "end") } else { (far.0 + WIDTH + GAP, "start") };
        let (begin, end) = if anchor == "end" { (x - width, x) } else { (x, x + width) };
        let mut y = if far.0 == near.0 { i64::midpoint(far.1, near.1) } else { far.1 } + HEIGHT / 2 - GAP / 2;
        while self
            .texts
            .iter()
            .any(|(first, last, line)| begin < *last && *first < end && (y - line).abs() < LINE)
        {
            y += LINE;
        }
        self.texts.push((begin, end, y));
        self.size.1 = self.size.1.max(y + GAP);
        Some(GraphLabel { text, x, y, anchor })
    }
}

/// Returns the nodes of a link, whatever its direction.
fn nodes(edge: &LinkEdge) -> (usize, usize) {
    (edge.from.min(edge.to), edge.from.max(edge.to))
}

/// Returns the column and the row of each node: the artifact itself is in column 0, what links to it at its left, what it
/// links to at its right.
fn positions(answer: &LinksAnswer) -> Vec<(i64, i64)> {
    let mut columns: Vec<Option<i64>> = vec![None; answer.nodes.len()];
    if let Some(first) = columns.first_mut() {
        *first = Some(0);
    }
    // Nodes are sorted by distance, and every node has a link to one that is closer.
    for _ in &answer.nodes {
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
        if columns.iter().all(Option::is_some) {
            break;
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

/// Returns as many of the first characters as fit into a number of columns of a terminal.
pub(super) fn beginning(text: &str, limit: usize) -> String {
    let mut width = 0;
    let fits = |character: &char| {
        width += columns(*character);
        width <= limit
    };
    let start: String = text.chars().take_while(fits).collect();
    if start.len() == text.len() { start } else { start + "…" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::links::{LinkEnd, LinkNode, LinkStrength};

    #[test]
    fn texts_fit_into_nodes() {
        assert_eq!(beginning("short", COLUMNS), "short");
        assert_eq!(beginning(&"a".repeat(30), COLUMNS), format!("{}…", "a".repeat(28)));
        assert_eq!(beginning(&"漢".repeat(15), COLUMNS), format!("{}…", "漢".repeat(14)));
        let id = "run-2026-11-28-nightly-evaluation-0042";
        assert_eq!(without_middle(id), "run-2026-…ly-evaluation-0042");
        assert_eq!(without_middle("run-1"), "run-1");
    }

    /// Returns the links of an artifact: each from a node to another one.
    fn linked(links: &[(usize, usize)]) -> LinksAnswer {
        let node = || LinkNode {
            target: LinkEnd { dangling: true, kind: None, core_hash: None, digest: None, name: None },
            depth: 1,
        };
        let edge = |(from, to): &(usize, usize)| LinkEdge {
            from: *from,
            relation: "relation".to_owned(),
            to: *to,
            manual: false,
            strength: LinkStrength::Stated,
            because: None,
        };
        let count = links.iter().map(|(from, to)| from.max(to) + 1).max().unwrap();
        LinksAnswer {
            nodes: (0..count).map(|_| node()).collect(),
            edges: links.iter().map(edge).collect(),
            ..LinksAnswer::default()
        }
    }

    #[test]
    fn a_link_passes_a_column_below_its_nodes() {
        // The node before the artifact has a link to the one after it.
        let answer = linked(&[(1, 0), (0, 2), (1, 2)]);
        let groups: Vec<Vec<&LinkEdge>> = answer.edges.iter().map(|edge| vec![edge]).collect();
        let layout = GraphLayout::new(&answer, &groups);
        assert_eq!(layout.corners, [(ACROSS + 4, 4), (4, 4), (2 * ACROSS + 4, 4)]);
        let [straight, _, around] = [0, 1, 2].map(|at| layout.path(&answer.edges[at]).unwrap());
        assert!(!straight.contains('H'), "{straight}");
        let below = 4 + HEIGHT + LANE;
        assert!(around.contains(&format!(" {},{below} H{}", ACROSS + 4, ACROSS + 4 + WIDTH)), "{around}");
        assert!(layout.size.1 > below);
    }

    #[test]
    fn texts_of_links_do_not_overlap() {
        // Four links of the same two nodes, and one of each of them to a third.
        let answer = linked(&[(0, 1), (0, 1), (1, 0), (0, 1), (0, 2), (1, 2)]);
        let groups: Vec<Vec<&LinkEdge>> = answer.edges.iter().map(|edge| vec![edge]).collect();
        let mut layout = GraphLayout::new(&answer, &groups);
        let labels: Vec<GraphLabel> = answer.edges.iter().filter_map(|edge| layout.label(edge)).collect();
        let arrows: Vec<char> =
            labels.iter().filter_map(|label| label.text.chars().find(|one| !one.is_ascii())).collect();
        assert_eq!(arrows, ['→', '→', '←', '→', '→', '↓']);
        for (at, one) in labels.iter().enumerate() {
            for other in &labels[at + 1..] {
                assert!(one.x != other.x || (one.y - other.y).abs() >= LINE);
            }
        }
    }
}

//! The graph of links of an artifact.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;

use super::graph_layout::{GraphLabel, GraphLayout, HEIGHT, WIDTH, beginning};
use super::names::ArtifactNames;
use super::{parts, search};
use crate::display::counted;
use crate::formats;
use crate::server::address;
use crate::server::text::{drawn_line, line, long_line, title_line};
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
                @for (index, (node, corner)) in answer.nodes.iter().zip(&layout.corners).enumerate() {
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

fn node_at(end: &LinkEnd, names: &ArtifactNames, (x, y): (i64, i64), is_root: bool) -> Markup {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_into_nodes() {
        assert_eq!(beginning("short", COLUMNS), "short");
        assert_eq!(beginning(&"a".repeat(30), COLUMNS), format!("{}…", "a".repeat(28)));
        assert_eq!(beginning(&"漢".repeat(15), COLUMNS), format!("{}…", "漢".repeat(14)));
        let id = "run-2026-11-28-nightly-evaluation-0042";
        assert_eq!(without_middle(id), "run-2026-…ly-evaluation-0042");
        assert_eq!(without_middle("run-1"), "run-1");
    }
}

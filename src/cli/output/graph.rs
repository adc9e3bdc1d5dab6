//! Output of a graph of links, as a tree and in formats of other programs.

use std::collections::HashSet;
use std::io::{self, Write};

use runvault::digest::CoreHash;
use runvault::vault::query::{Graph, LinkTarget, Node};
use serde::Serialize;

use crate::cli::commands::links::{self, JsonLink};
use crate::cli::output::escape::brief;
use crate::cli::output::json;

/// Writes the links of each node below it. Nodes already expanded are not expanded again.
pub(crate) fn tree(out: &mut dyn Write, graph: &Graph) -> io::Result<()> {
    if let Some(LinkTarget::Artifact(artifact)) = graph.nodes.first().map(|node| &node.target) {
        links::heading(out, artifact)?;
    }
    let mut written = HashSet::from([0]);
    below(out, graph, 0, "  ", &mut written)
}

/// Writes the links below a node. The depth of the traversal limits the recursion.
fn below(
    out: &mut dyn Write,
    graph: &Graph,
    number: usize,
    indent: &str,
    written: &mut HashSet<usize>,
) -> io::Result<()> {
    for (direction, other, edge) in graph.seen_from(number) {
        let Some(Node { target, .. }) = graph.nodes.get(other) else { continue };
        links::print_parts(out, indent, direction, &edge.relation, target, &edge.origin)?;
        if written.insert(other) {
            below(out, graph, other, &format!("{indent}    "), written)?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct Line<'g> {
    from: CoreHash,
    depth: usize,
    #[serde(flatten)]
    link: JsonLink<'g>,
}

/// Writes a line of JSON for each link.
pub(crate) fn json(out: &mut dyn Write, graph: &Graph) -> io::Result<()> {
    for (number, node) in graph.nodes.iter().enumerate() {
        let LinkTarget::Artifact(artifact) = &node.target else { continue };
        for (direction, other, edge) in graph.seen_from(number) {
            let Some(Node { target, .. }) = graph.nodes.get(other) else { continue };
            let link = JsonLink::from_parts(direction, &edge.relation, target, &edge.origin);
            json::line(out, &Line { from: artifact.core, depth: node.depth + 1, link })?;
        }
    }
    Ok(())
}

/// Returns the label of a node in a diagram, without characters that end a quoted text.
fn label(target: &LinkTarget) -> String {
    let text = match target {
        LinkTarget::Artifact(artifact) => format!("{} {:.12}", artifact.kind, artifact.core),
        LinkTarget::MissingDigest(digest) => format!("missing {digest:.12}"),
        LinkTarget::MissingName(name) => format!("missing {name}"),
    };
    quotable(&text)
}

/// Returns `text` without characters that end a quoted text or are special in diagrams.
fn quotable(text: &str) -> String {
    brief(text).to_string().replace(['"', '\\', '<', '>', '[', ']', '{', '}', '|', '#', '&'], "'")
}

fn is_missing(node: &Node) -> bool {
    !matches!(node.target, LinkTarget::Artifact(_))
}

/// Writes the graph for Graphviz.
pub(crate) fn dot(out: &mut dyn Write, graph: &Graph) -> io::Result<()> {
    writeln!(out, "digraph links {{")?;
    for (number, node) in graph.nodes.iter().enumerate() {
        let style = if is_missing(node) { ", style=dashed" } else { "" };
        writeln!(out, "  n{number} [label=\"{}\"{style}];", label(&node.target))?;
    }
    for edge in &graph.edges {
        writeln!(out, "  n{} -> n{} [label=\"{}\"];", edge.from, edge.to, quotable(&edge.relation))?;
    }
    writeln!(out, "}}")
}

/// Writes the graph for Mermaid.
pub(crate) fn mermaid(out: &mut dyn Write, graph: &Graph) -> io::Result<()> {
    writeln!(out, "flowchart LR")?;
    for (number, node) in graph.nodes.iter().enumerate() {
        let (open, close) = if is_missing(node) { ("([", "])") } else { ("[", "]") };
        writeln!(out, "  n{number}{open}\"{}\"{close}", label(&node.target))?;
    }
    for edge in &graph.edges {
        writeln!(out, "  n{} -->|{}| n{}", edge.from, quotable(&edge.relation), edge.to)?;
    }
    Ok(())
}

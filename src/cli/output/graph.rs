//! Output of a graph of links, as a tree and in formats of other programs.

use std::collections::HashSet;
use std::io::{self, Write};

use runvault::formats;
use runvault::vault::links::{Direction, LinkEdge, LinkEnd, LinkNode, LinkStrength, LinksAnswer};

use crate::cli::output::escape::brief;
use crate::cli::output::json;
use crate::cli::output::links;

/// Writes the links of each node below it. Nodes already expanded are not expanded again.
pub(crate) fn tree(out: &mut dyn Write, graph: &LinksAnswer) -> io::Result<()> {
    if let Some(LinkEnd { kind: Some(kind), core_hash: Some(core), .. }) =
        graph.nodes.first().map(|node| &node.target)
    {
        links::heading(out, kind, *core)?;
    }
    LinkTreeWriter { graph, seen: graph.by_node(), written: HashSet::from([0]) }.below(out, 0, "  ")
}

/// A tree that is written.
struct LinkTreeWriter<'g> {
    graph: &'g LinksAnswer,
    /// The links that are seen from each node.
    seen: Vec<Vec<(Direction, usize, &'g LinkEdge)>>,
    /// The nodes already expanded.
    written: HashSet<usize>,
}

impl LinkTreeWriter<'_> {
    /// Writes the links below a node. The depth of the traversal limits the recursion.
    fn below(&mut self, out: &mut dyn Write, number: usize, indent: &str) -> io::Result<()> {
        let seen = self.seen.get_mut(number).map(std::mem::take).unwrap_or_default();
        for (direction, other, edge) in seen {
            let Some(LinkNode { target, .. }) = self.graph.nodes.get(other) else { continue };
            links::print(out, indent, &edge.seen_as(direction, target))?;
            if self.written.insert(other) {
                self.below(out, other, &format!("{indent}    "))?;
            }
        }
        Ok(())
    }
}

/// Writes a line of JSON for each link.
pub(crate) fn json(out: &mut dyn Write, graph: &LinksAnswer) -> io::Result<()> {
    graph.links().iter().try_for_each(|link| json::line(out, link))
}

/// Returns the label of a node in a diagram, without characters that end a quoted text.
fn label(target: &LinkEnd) -> String {
    let LinkEnd { kind, core_hash, digest, name, .. } = target;
    let kind = kind.as_deref().map_or("missing", |kind| formats::bare_noun(kind));
    let text = match (core_hash, digest) {
        (Some(core), _) => format!("{kind} {core:.12}"),
        (None, Some(digest)) => format!("{kind} {digest:.12}"),
        (None, None) => format!("{kind} {}", name.as_deref().unwrap_or_default()),
    };
    quotable(&text)
}

/// Returns `text` without characters that end a quoted text or are special in diagrams.
fn quotable(text: &str) -> String {
    brief(text).to_string().replace(['"', '\\', '<', '>', '[', ']', '{', '}', '|', '#', '&'], "'")
}

/// Writes the graph for Graphviz.
pub(crate) fn dot(out: &mut dyn Write, graph: &LinksAnswer) -> io::Result<()> {
    writeln!(out, "digraph links {{")?;
    for (number, node) in graph.nodes.iter().enumerate() {
        let style = if node.target.dangling { ", style=dashed" } else { "" };
        writeln!(out, "  n{number} [label=\"{}\"{style}];", label(&node.target))?;
    }
    for edge in &graph.edges {
        let style = if edge.strength == LinkStrength::Coincident { ", style=dotted" } else { "" };
        let relation = quotable(&edge.relation);
        writeln!(out, "  n{} -> n{} [label=\"{relation}\"{style}];", edge.from, edge.to)?;
    }
    writeln!(out, "}}")
}

/// Writes the graph for Mermaid.
pub(crate) fn mermaid(out: &mut dyn Write, graph: &LinksAnswer) -> io::Result<()> {
    writeln!(out, "flowchart LR")?;
    for (number, node) in graph.nodes.iter().enumerate() {
        let (open, close) = if node.target.dangling { ("([", "])") } else { ("[", "]") };
        writeln!(out, "  n{number}{open}\"{}\"{close}", label(&node.target))?;
    }
    for edge in &graph.edges {
        let arrow = if edge.strength == LinkStrength::Coincident { "-.->" } else { "-->" };
        writeln!(out, "  n{} {arrow}|{}| n{}", edge.from, quotable(&edge.relation), edge.to)?;
    }
    Ok(())
}

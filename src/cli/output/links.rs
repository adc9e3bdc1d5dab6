//! Output of links, and of the artifacts that they belong to.

use std::collections::HashSet;
use std::io::{self, Write};

use anstyle::Style;
use runvault::digest::CoreHash;
use runvault::display::{brief, escaped};
use runvault::formats;
use runvault::vault::LinkOrigin;
use runvault::vault::links::{
    Direction, LinkEdge, LinkEnd, LinkNode, LinkStrength, LinkSummary, LinksAnswer,
};

use super::columns::KIND_WIDTH;
use super::fit::{self, Shortening, TrailingLayout};
use super::stdout::{CAUTION, FAINT, HASH};
use super::terminal;

/// Writes the heading of an artifact on its own line.
pub(crate) fn heading(out: &mut dyn Write, kind: &str, core: CoreHash) -> io::Result<()> {
    let kind = escaped(formats::bare_noun(kind)).to_string();
    let core = fitting_hash(core, fit::width(&kind) + 1);
    writeln!(out, "{kind} {HASH}{core}{HASH:#}")
}

/// Formats a core hash for a line with this number of columns taken: in full, or on a narrow terminal as a prefix long
/// enough for other commands.
pub(crate) fn fitting_hash(core: CoreHash, used: usize) -> String {
    let whole = core.to_string();
    match terminal::width() {
        Some(width) if used + whole.len() > width => format!("{core:.12}"),
        _ => whole,
    }
}

/// The width of the relation column.
const RELATION_WIDTH: usize = 12;

/// The minimum width of a reason next to a link; otherwise it is put below,
const REASON_WIDTH: usize = 20;

/// with this indent.
const BELOW: usize = 3;

/// Maximum width of a link without the reason.
const LINK_WIDTH: usize = 38;

/// Writes a link as one line, or as several on a narrow terminal.
pub(crate) fn print(out: &mut dyn Write, indent: &str, link: &LinkSummary) -> io::Result<()> {
    let LinkSummary { direction, relation, target, .. } = link;
    let arrow = match direction {
        Direction::Out => "->",
        Direction::In => "<-",
    };
    let relation = escaped(relation).to_string();
    let because = escaped(&link_reason(link)).to_string();
    let width = terminal::width().unwrap_or(usize::MAX);
    // The indentation of distant links is limited.
    let indent = indent.get(..width.saturating_sub(LINK_WIDTH)).unwrap_or(indent);
    let has_room = fit::width(indent) + LINK_WIDTH <= width;
    let (relation_pad, kind_pad) = if has_room { (RELATION_WIDTH, KIND_WIDTH) } else { (0, 0) };
    let [(kind, kind_style), (name, name_style)] = target_parts(target);
    let lead = format!("{indent}{arrow} {relation:<relation_pad$} ");
    let before = fit::width(&lead) + fit::width(&kind).max(kind_pad) + 1;
    // Names of runs often differ only at the end.
    let name = Shortening::Ends.apply(&name, width.saturating_sub(before));
    write!(out, "{lead}{kind_style}{kind:<kind_pad$}{kind_style:#} {name_style}{name}{name_style:#}")?;
    let used = before + fit::width(&name);
    let trail = TrailingLayout { used, below: fit::width(indent) + BELOW, least: REASON_WIDTH };
    trail.write(out, &because, FAINT)
}

/// Formats the other end of a link.
pub(crate) fn target_text(target: &LinkEnd) -> String {
    let [(kind, kind_style), (name, name_style)] = target_parts(target);
    format!("{kind_style}{kind:<KIND_WIDTH$}{kind_style:#} {name_style}{name}{name_style:#}")
}

/// Returns the type and the identity of the other end of a link, each with its color.
fn target_parts(target: &LinkEnd) -> [(String, Style); 2] {
    let LinkEnd { kind, core_hash, digest, name, .. } = target;
    let name = match (core_hash, digest) {
        (Some(core), _) => (format!("{core:.12}"), HASH),
        (None, Some(digest)) => (format!("{digest:.12}"), HASH),
        (None, None) => (escaped(name.as_deref().unwrap_or_default()).to_string(), Style::new()),
    };
    match kind {
        Some(kind) => [(escaped(formats::bare_noun(kind)).to_string(), Style::new()), name],
        None => [("unresolved".to_owned(), CAUTION), name],
    }
}

/// Formats the origin of a link.
pub(crate) fn origin_text(origin: &LinkOrigin) -> String {
    match origin {
        LinkOrigin::Derived(because) => because.clone(),
        LinkOrigin::Manual(None) => "added manually".to_owned(),
        LinkOrigin::Manual(Some(note)) => format!("added manually: {note}"),
    }
}

/// Formats the reason for a link.
fn link_reason(link: &LinkSummary) -> String {
    match (link.manual, &link.because) {
        (false, because) => because.clone().unwrap_or_default(),
        (true, None) => "added manually".to_owned(),
        (true, Some(note)) => format!("added manually: {note}"),
    }
}

/// Writes the links of each node below it. Nodes already expanded are not expanded again.
pub(crate) fn tree(out: &mut dyn Write, graph: &LinksAnswer) -> io::Result<()> {
    if let Some(LinkEnd { kind: Some(kind), core_hash: Some(core), .. }) =
        graph.nodes.first().map(|node| &node.target)
    {
        heading(out, kind, *core)?;
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
            print(out, indent, &edge.seen_as(direction, target))?;
            if self.written.insert(other) {
                self.below(out, other, &format!("{indent}    "))?;
            }
        }
        Ok(())
    }
}

/// Writes a line of JSON for each link.
pub(crate) fn json(out: &mut dyn Write, graph: &LinksAnswer) -> io::Result<()> {
    graph.links().iter().try_for_each(|link| crate::cli::output::json::line(out, link))
}

/// Returns the label of a node in a diagram, without characters that end a quoted text.
fn node_label(target: &LinkEnd) -> String {
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
        writeln!(out, "  n{number} [label=\"{}\"{style}];", node_label(&node.target))?;
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
        writeln!(out, "  n{number}{open}\"{}\"{close}", node_label(&node.target))?;
    }
    for edge in &graph.edges {
        let arrow = if edge.strength == LinkStrength::Coincident { "-.->" } else { "-->" };
        writeln!(out, "  n{} {arrow}|{}| n{}", edge.from, quotable(&edge.relation), edge.to)?;
    }
    Ok(())
}

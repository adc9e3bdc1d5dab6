//! `runvault links`

use std::io::{self, Write};

use anstyle::Style;
use clap::{Args as ClapArgs, ValueEnum};
use runvault::digest::CoreHash;
use runvault::vault::links::{LinkDirection, LinkEnd, LinkSummary, LinksAnswer, LinksRequest};
use runvault::vault::query::Origin;

use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::columns::KIND_WIDTH;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::fit::{self, Trail};
use crate::cli::output::graph;
use crate::cli::output::stdout::{self, CAUTION, FAINT, HASH, counted};

/// List an artifact's links, optionally followed to a given depth.
///
/// Most links are derived from what artifacts state, so the order of arrival does not matter. An unresolved link refers to
/// an artifact that is not in the vault, and is resolved when that artifact arrives.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: Named,

    /// Maximum depth, at most 100
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100))]
    depth: u8,

    /// Only links of this relation, such as replays
    #[arg(long)]
    relation: Option<String>,

    /// Only links in this direction
    #[arg(long, value_enum, default_value_t = Way::Both)]
    direction: Way,

    /// Maximum number of links. Default: 1000 as a tree, 100000 in other formats
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Tree)]
    format: Format,

    /// The same as --format json: one line of JSON for each link
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    Out,
    In,
    Both,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Tree,
    Json,
    Dot,
    Mermaid,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let artifact = self.hash.locate(&vault)?.artifact;
        let found = vault.run(&LinksRequest {
            artifact: artifact.core,
            depth: self.depth,
            relation: self.relation.clone(),
            direction: match self.direction {
                Way::Out => Some(LinkDirection::Out),
                Way::In => Some(LinkDirection::In),
                Way::Both => None,
            },
            limit: Some(self.limit.unwrap_or(self.most())),
        })?;
        match self.format {
            _ if self.json => graph::json(&mut stdout::raw(), &found)?,
            Format::Json => graph::json(&mut stdout::raw(), &found)?,
            Format::Dot => graph::dot(&mut stdout::text(), &found)?,
            Format::Mermaid => graph::mermaid(&mut stdout::text(), &found)?,
            Format::Tree => {
                graph::tree(&mut stdout::text(), &found)?;
                if found.edges.is_empty() {
                    stdout::note("no links");
                }
            }
        }
        if let Some(note) = left_out(&found) {
            stdout::note(&note);
        }
        Ok(Status::Done)
    }

    /// Returns the default maximum number of links.
    fn most(&self) -> u64 {
        if matches!(self.format, Format::Tree) && !self.json { LISTED } else { LISTED_FOR_PROGRAMS }
    }
}

/// The default maximum number of links in the tree format, and below in other formats.
const LISTED: u64 = 1_000;
const LISTED_FOR_PROGRAMS: u64 = 100_000;

/// Describes the omitted links; `None` if there are none.
fn left_out(found: &LinksAnswer) -> Option<String> {
    let shown = found.edges.len() as u64;
    let more = (found.left_out > 0).then(|| format!("and {} more", found.left_out));
    let others = (found.not_followed > 0)
        .then(|| format!("links of {} were not examined", counted(found.not_followed, "other artifact")));
    let parts: Vec<String> = more.into_iter().chain(others).collect();
    let hint = match found.not_followed {
        0 => format!("--limit {} lists them", shown.saturating_add(found.left_out)),
        _ => "--limit sets how many are listed".to_owned(),
    };
    (!parts.is_empty()).then(|| format!("{} {}; {hint}", counted(shown, "link"), parts.join("; ")))
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
        LinkDirection::Out => "->",
        LinkDirection::In => "<-",
    };
    let relation = escaped(relation).to_string();
    let because = escaped(&reason(link)).to_string();
    let width = stdout::width().unwrap_or(usize::MAX);
    // The indentation of distant links is limited.
    let indent = indent.get(..width.saturating_sub(LINK_WIDTH)).unwrap_or(indent);
    let has_room = fit::width(indent) + LINK_WIDTH <= width;
    let (relation_pad, kind_pad) = if has_room { (RELATION_WIDTH, KIND_WIDTH) } else { (0, 0) };
    let [(kind, kind_style), (name, name_style)] = target_parts(target);
    let lead = format!("{indent}{arrow} {relation:<relation_pad$} ");
    let before = fit::width(&lead) + fit::width(&kind).max(kind_pad) + 1;
    let name = fit::cut(&name, width.saturating_sub(before));
    write!(out, "{lead}{kind_style}{kind:<kind_pad$}{kind_style:#} {name_style}{name}{name_style:#}")?;
    let taken = before + fit::width(&name);
    let trail = Trail { taken, below: fit::width(indent) + BELOW, least: REASON_WIDTH };
    trail.write(out, &because, FAINT)
}

/// Writes the heading of an artifact on its own line.
pub(crate) fn heading(out: &mut dyn Write, kind: &str, core: CoreHash) -> io::Result<()> {
    let kind = escaped(kind).to_string();
    let core = fitting(core, fit::width(&kind) + 1);
    writeln!(out, "{kind} {HASH}{core}{HASH:#}")
}

/// Formats a core hash for a line with this number of columns taken: in full, or on a narrow terminal as a prefix long
/// enough for other commands.
pub(crate) fn fitting(core: CoreHash, taken: usize) -> String {
    let whole = core.to_string();
    match stdout::width() {
        Some(width) if taken + whole.len() > width => format!("{core:.12}"),
        _ => whole,
    }
}

/// Formats the other end of a link.
pub(crate) fn target_text(target: &LinkEnd) -> String {
    let [(kind, kind_style), (name, name_style)] = target_parts(target);
    format!("{kind_style}{kind:<KIND_WIDTH$}{kind_style:#} {name_style}{name}{name_style:#}")
}

/// Returns the type and the identity of the other end of a link, each with its colour.
fn target_parts(target: &LinkEnd) -> [(String, Style); 2] {
    let LinkEnd { kind, core_hash, digest, name, .. } = target;
    let name = match (core_hash, digest) {
        (Some(core), _) => (format!("{core:.12}"), HASH),
        (None, Some(digest)) => (format!("{digest:.12}"), HASH),
        (None, None) => (escaped(name.as_deref().unwrap_or_default()).to_string(), Style::new()),
    };
    match kind {
        Some(kind) => [(escaped(kind).to_string(), Style::new()), name],
        None => [("unresolved".to_owned(), CAUTION), name],
    }
}

/// Formats the origin of a link.
pub(crate) fn because(origin: &Origin) -> String {
    match origin {
        Origin::Derived(because) => because.clone(),
        Origin::Stated(None) => "stated".to_owned(),
        Origin::Stated(Some(note)) => format!("stated: {note}"),
    }
}

/// Formats the reason for a link.
fn reason(link: &LinkSummary) -> String {
    match (link.stated, &link.because) {
        (false, because) => because.clone().unwrap_or_default(),
        (true, None) => "stated".to_owned(),
        (true, Some(note)) => format!("stated: {note}"),
    }
}

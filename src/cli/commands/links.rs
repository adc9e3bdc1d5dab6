//! `runvault links`

use std::io::{self, Write};

use anstyle::Style;
use clap::{Args as ClapArgs, ValueEnum};
use runvault::digest::{CoreHash, Digest};
use runvault::storage::ArtifactRecord;
use runvault::vault::query::{Direction, Graph, Link, LinkTarget, Origin, Traversal};
use serde::Serialize;

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
        let walk = Traversal {
            depth: usize::from(self.depth),
            relation: self.relation.clone(),
            direction: match self.direction {
                Way::Out => Some(Direction::Out),
                Way::In => Some(Direction::In),
                Way::Both => None,
            },
            limit: self.limit.map_or(self.most(), |limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        };
        let found = vault.traverse(&artifact, &walk)?;
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
    fn most(&self) -> usize {
        if matches!(self.format, Format::Tree) && !self.json { LISTED } else { LISTED_FOR_PROGRAMS }
    }
}

/// The default maximum number of links in the tree format, and below in other formats.
const LISTED: usize = 1_000;
const LISTED_FOR_PROGRAMS: usize = 100_000;

/// Describes the omitted links; `None` if there are none.
fn left_out(found: &Graph) -> Option<String> {
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

/// Writes a link as one line.
pub(crate) fn print(out: &mut dyn Write, indent: &str, link: &Link) -> io::Result<()> {
    print_parts(out, indent, link.direction, &link.relation, &link.target, &link.origin)
}

/// The width of the relation column.
const RELATION_WIDTH: usize = 12;

/// The minimum width of a reason next to a link; otherwise it is put below,
const REASON_WIDTH: usize = 20;

/// with this indent.
const BELOW: usize = 3;

/// Maximum width of a link without the reason.
const LINK_WIDTH: usize = 38;

/// Writes a link, given by its parts, as one line, or as several on a narrow terminal.
pub(crate) fn print_parts(
    out: &mut dyn Write,
    indent: &str,
    direction: Direction,
    relation: &str,
    target: &LinkTarget,
    origin: &Origin,
) -> io::Result<()> {
    let arrow = match direction {
        Direction::Out => "->",
        Direction::In => "<-",
    };
    let relation = escaped(relation).to_string();
    let because = escaped(&because(origin)).to_string();
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
pub(crate) fn heading(out: &mut dyn Write, artifact: &ArtifactRecord) -> io::Result<()> {
    let kind = escaped(&artifact.kind).to_string();
    let core = fitting(artifact.core, fit::width(&kind) + 1);
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
pub(crate) fn target_text(target: &LinkTarget) -> String {
    let [(kind, kind_style), (name, name_style)] = target_parts(target);
    format!("{kind_style}{kind:<KIND_WIDTH$}{kind_style:#} {name_style}{name}{name_style:#}")
}

/// Returns the type and the identity of the other end of a link, each with its colour.
fn target_parts(target: &LinkTarget) -> [(String, Style); 2] {
    let unresolved = || ("unresolved".to_owned(), CAUTION);
    match target {
        LinkTarget::Artifact(artifact) => {
            [(escaped(&artifact.kind).to_string(), Style::new()), (format!("{:.12}", artifact.core), HASH)]
        }
        LinkTarget::MissingDigest(digest) => [unresolved(), (format!("{digest:.12}"), HASH)],
        LinkTarget::MissingName(name) => [unresolved(), (escaped(name).to_string(), Style::new())],
    }
}

/// Formats the other end of a link without colours.
pub(crate) fn plain_target(target: &LinkTarget) -> String {
    match target {
        LinkTarget::Artifact(artifact) => format!("{} {:.12}", artifact.kind, artifact.core),
        LinkTarget::MissingDigest(digest) => format!("unresolved {digest:.12}"),
        LinkTarget::MissingName(name) => format!("unresolved {name}"),
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

/// A link as JSON.
#[derive(Serialize)]
pub(crate) struct JsonLink<'l> {
    direction: &'static str,
    relation: &'l str,
    #[serde(flatten)]
    target: JsonTarget<'l>,
    stated: bool,
    because: Option<&'l str>,
}

impl<'l> JsonLink<'l> {
    pub(crate) fn new(link: &'l Link) -> Self {
        Self::from_parts(link.direction, &link.relation, &link.target, &link.origin)
    }

    pub(crate) fn from_parts(
        direction: Direction,
        relation: &'l str,
        target: &'l LinkTarget,
        origin: &'l Origin,
    ) -> Self {
        let (stated, because) = match origin {
            Origin::Derived(because) => (false, Some(because.as_str())),
            Origin::Stated(note) => (true, note.as_deref()),
        };
        let direction = match direction {
            Direction::Out => "out",
            Direction::In => "in",
        };
        Self { direction, relation, target: JsonTarget::new(target), stated, because }
    }
}

/// The other end of a link as JSON.
#[derive(Serialize)]
pub(crate) struct JsonTarget<'l> {
    dangling: bool,
    kind: Option<&'l str>,
    core_hash: Option<CoreHash>,
    digest: Option<Digest>,
    name: Option<&'l str>,
}

impl<'l> JsonTarget<'l> {
    pub(crate) fn new(target: &'l LinkTarget) -> Self {
        let mut json = Self { dangling: true, kind: None, core_hash: None, digest: None, name: None };
        match target {
            LinkTarget::Artifact(artifact) => {
                (json.dangling, json.kind) = (false, Some(artifact.kind.as_str()));
                json.core_hash = Some(artifact.core);
            }
            LinkTarget::MissingDigest(digest) => json.digest = Some(*digest),
            LinkTarget::MissingName(name) => json.name = Some(name),
        }
        json
    }
}

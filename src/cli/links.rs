//! `runvault links`

use std::io::{self, Write};

use clap::{Args as ClapArgs, ValueEnum};
use runvault::digest::{CoreHash, Digest};
use runvault::query::{Direction, Link, LinkTarget, Origin, Walk};
use serde::Serialize;

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::graph;
use super::hash::Named;
use super::output::{self, CAUTION, FAINT, HASH};
use super::vault::VaultArgs;

/// List what an artifact is linked to, near and far.
///
/// Most links follow from what artifacts state, so the order of arrival does not matter. A dangling link points to
/// something that is not in the vault, and resolves by itself when that arrives.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A core hash, a capture's own hash, the first digits of one, or @tag
    hash: Named,

    /// Follow links so far, at most 100
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100))]
    depth: u8,

    /// Only links of this relation, such as replays
    #[arg(long)]
    relation: Option<String>,

    /// Only links in this direction
    #[arg(long, value_enum, default_value_t = Way::Both)]
    direction: Way,

    /// How to print: for people, as lines of JSON, or for Graphviz or Mermaid
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
        let walk = Walk {
            depth: usize::from(self.depth),
            relation: self.relation.clone(),
            direction: match self.direction {
                Way::Out => Some(Direction::Out),
                Way::In => Some(Direction::In),
                Way::Both => None,
            },
        };
        let found = vault.walk(&artifact, &walk)?;
        match self.format {
            _ if self.json => graph::json(&mut output::raw(), &found)?,
            Format::Json => graph::json(&mut output::raw(), &found)?,
            Format::Dot => graph::dot(&mut output::text(), &found)?,
            Format::Mermaid => graph::mermaid(&mut output::text(), &found)?,
            Format::Tree => {
                graph::tree(&mut output::text(), &found)?;
                if found.edges.is_empty() {
                    output::note("no links");
                }
            }
        }
        Ok(Status::Done)
    }
}

/// Writes a link as one line.
pub(crate) fn print(out: &mut dyn Write, indent: &str, link: &Link) -> io::Result<()> {
    print_parts(out, indent, link.direction, &link.relation, &link.target, &link.origin)
}

/// Writes a link, given by its parts, as one line.
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
    let (target, because) = (target_text(target), because(origin));
    let because = escaped(&because);
    writeln!(out, "{indent}{arrow} {relation:<12} {target} {FAINT}{because}{FAINT:#}")
}

/// The other end of a link as people read it.
pub(crate) fn target_text(target: &LinkTarget) -> String {
    match target {
        LinkTarget::Artifact(artifact) => {
            let kind = escaped(&artifact.kind).to_string();
            format!("{kind:<8} {HASH}{:.12}{HASH:#}", artifact.core)
        }
        LinkTarget::MissingDigest(digest) => {
            format!("{CAUTION}dangling{CAUTION:#} {HASH}{digest:.12}{HASH:#}")
        }
        LinkTarget::MissingName(name) => format!("{CAUTION}dangling{CAUTION:#} {}", escaped(name)),
    }
}

/// The same without colours.
pub(crate) fn plain_target(target: &LinkTarget) -> String {
    match target {
        LinkTarget::Artifact(artifact) => format!("{} {:.12}", artifact.kind, artifact.core),
        LinkTarget::MissingDigest(digest) => format!("dangling {digest:.12}"),
        LinkTarget::MissingName(name) => format!("dangling {name}"),
    }
}

/// Why there is a link, as people read it.
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
    pub(crate) fn of(link: &'l Link) -> Self {
        Self::of_parts(link.direction, &link.relation, &link.target, &link.origin)
    }

    pub(crate) fn of_parts(
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
        Self { direction, relation, target: JsonTarget::of(target), stated, because }
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
    pub(crate) fn of(target: &'l LinkTarget) -> Self {
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

//! `runvault links`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::digest::{CoreHash, Digest, DigestPrefix};
use runvault::query::{Direction, Link, LinkTarget};
use serde::Serialize;

use super::escape::Escaped;
use super::exit::{Failure, Status};
use super::output::{self, CAUTION, FAINT, HASH};
use super::vault::VaultArgs;
use super::{hash, json};

/// List the links of an artifact in both directions.
///
/// Links follow from what artifacts state, so the order of arrival does not matter. A dangling link points to something
/// that is not in the vault, and resolves by itself when that arrives.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A core hash, a capture's own hash, or the first digits of one
    #[arg(value_parser = hash::prefix)]
    hash: DigestPrefix,

    /// Print one line of JSON for each link
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let artifact = vault.locate(&self.hash)?.artifact;
        let links = vault.links(&artifact)?;
        if self.json {
            let mut out = output::raw();
            links.iter().try_for_each(|link| json::line(&mut out, &JsonLink::of(link)))?;
            return Ok(Status::Done);
        }
        let mut out = output::text();
        writeln!(out, "{} {HASH}{}{HASH:#}", Escaped(&artifact.kind), artifact.core)?;
        links.iter().try_for_each(|link| print(&mut out, "  ", link))?;
        if links.is_empty() {
            output::note("no links");
        }
        Ok(Status::Done)
    }
}

/// Writes a link as one line.
pub(crate) fn print(out: &mut dyn Write, indent: &str, link: &Link) -> io::Result<()> {
    let arrow = match link.direction {
        Direction::Out => "->",
        Direction::In => "<-",
    };
    let target = match &link.target {
        LinkTarget::Artifact(artifact) => {
            format!("{:<8} {HASH}{:.12}{HASH:#}", Escaped(&artifact.kind).to_string(), artifact.core)
        }
        LinkTarget::MissingDigest(digest) => {
            format!("{CAUTION}dangling{CAUTION:#} {HASH}{digest:.12}{HASH:#}")
        }
        LinkTarget::MissingName(name) => format!("{CAUTION}dangling{CAUTION:#} {}", Escaped(name)),
    };
    let because = Escaped(&link.because);
    writeln!(out, "{indent}{arrow} {:<12} {target} {FAINT}{because}{FAINT:#}", link.relation)
}

/// A link as JSON.
#[derive(Serialize)]
pub(crate) struct JsonLink<'l> {
    direction: &'static str,
    relation: &'l str,
    dangling: bool,
    kind: Option<&'l str>,
    core_hash: Option<CoreHash>,
    digest: Option<Digest>,
    name: Option<&'l str>,
    because: &'l str,
}

impl<'l> JsonLink<'l> {
    pub(crate) fn of(link: &'l Link) -> Self {
        let mut json = Self {
            direction: match link.direction {
                Direction::Out => "out",
                Direction::In => "in",
            },
            relation: &link.relation,
            dangling: true,
            kind: None,
            core_hash: None,
            digest: None,
            name: None,
            because: &link.because,
        };
        match &link.target {
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

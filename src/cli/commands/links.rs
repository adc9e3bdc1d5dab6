//! `runvault links`

use clap::{Args as ClapArgs, ValueEnum};
use runvault::vault::links::{Direction, LinksAnswer, LinksRequest};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::links;
use crate::cli::output::stdout::{self, counted};

/// List an artifact's links, optionally followed to a given depth
///
/// Most links are derived from what artifacts state, so the order of arrival does not matter. An unresolved link refers to
/// an artifact that is not in the vault, and is resolved when that artifact arrives.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    hash: ArtifactArg,

    /// Maximum depth, at most 100
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100))]
    depth: u8,

    /// Only links of this relation, such as replays
    #[arg(long)]
    relation: Option<String>,

    /// Only links in this direction
    #[arg(long, value_enum, default_value_t = LinkDirectionArg::Both)]
    direction: LinkDirectionArg,

    /// Also follow links that may be coincidences, such as replays: two artifacts have an exchange in common
    #[arg(long, hide_short_help = true)]
    coincident: bool,

    /// Maximum number of links. Default: 1000 as a tree, 100000 in other formats
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// Output format
    #[arg(long, value_enum, default_value_t = LinkGraphFormat::Tree, hide_short_help = true)]
    format: LinkGraphFormat,

    /// The same as --format json: one line of JSON for each link
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum LinkDirectionArg {
    Out,
    In,
    Both,
}

#[derive(Clone, Copy, ValueEnum)]
enum LinkGraphFormat {
    Tree,
    Json,
    Dot,
    Mermaid,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let artifact = self.hash.locate(&vault)?.artifact;
        let found = vault.run(&LinksRequest {
            artifact: artifact.core,
            depth: self.depth,
            relation: self.relation.clone(),
            direction: match self.direction {
                LinkDirectionArg::Out => Some(Direction::Out),
                LinkDirectionArg::In => Some(Direction::In),
                LinkDirectionArg::Both => None,
            },
            coincident: self.coincident,
            limit: Some(self.limit.unwrap_or(self.most())),
        })?;
        match self.format {
            _ if self.json => links::json(&mut stdout::raw(), &found)?,
            LinkGraphFormat::Json => links::json(&mut stdout::raw(), &found)?,
            LinkGraphFormat::Dot => links::dot(&mut stdout::text(), &found)?,
            LinkGraphFormat::Mermaid => links::mermaid(&mut stdout::text(), &found)?,
            LinkGraphFormat::Tree => {
                links::tree(&mut stdout::text(), &found)?;
                if found.edges.is_empty() {
                    stdout::note("no links");
                }
            }
        }
        if let Some(note) = left_out(&found) {
            stdout::note(&note);
        }
        if found.only_coincident > 0 {
            let artifacts = counted(found.only_coincident, "artifact");
            stdout::note(&format!(
                "links of {artifacts} were not followed; --coincident follows replays as well"
            ));
        }
        Ok(Status::Done)
    }

    /// Returns the default maximum number of links.
    fn most(&self) -> u64 {
        if matches!(self.format, LinkGraphFormat::Tree) && !self.json { LISTED } else { LISTED_FOR_PROGRAMS }
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

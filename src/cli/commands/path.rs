//! `runvault path`

use clap::Args as ClapArgs;
use runvault::vault::path::{MAX_SEARCHED, PathAnswer, PathRequest};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{self, counted};
use crate::cli::output::{json, links};

/// Show the shortest path of links between two artifacts
///
/// Prints the reason for each step.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact where the path starts: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(value_name = "FROM", add = CandidateSource::ARTIFACTS.completer())]
    one: ArtifactArg,

    /// The artifact where the path ends: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(value_name = "TO", add = CandidateSource::ARTIFACTS.completer())]
    other: ArtifactArg,

    /// Also follow links that may be coincidences, such as replays: two artifacts have an exchange in common
    #[arg(long, hide_short_help = true)]
    coincident: bool,

    /// Print one line of JSON for each step
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let (one, other) = (self.one.locate(&vault)?.artifact, self.other.locate(&vault)?.artifact);
        let request = PathRequest { from: one.core, to: other.core, coincident: self.coincident };
        let found = vault.run(&request)?;
        let Some(steps) = &found.steps else { return Err(CommandError::No(self.no_path(&request, &found))) };
        if self.json {
            let mut out = stdout::raw();
            steps.iter().try_for_each(|step| json::line(&mut out, step))?;
            return Ok(Status::Done);
        }
        let mut out = stdout::text();
        links::heading(&mut out, &one.kind, one.core)?;
        for step in steps {
            links::print(&mut out, "  ", &step.link)?;
        }
        if !steps.is_empty() {
            links::heading(&mut out, &other.kind, other.core)?;
        }
        Ok(Status::Done)
    }

    /// Describes what was searched without success.
    fn no_path(&self, request: &PathRequest, found: &PathAnswer) -> String {
        let PathRequest { from, to, .. } = request;
        let searched = match (found.is_complete, found.reached) {
            (true, 1) => format!("no artifact is linked to {from:.12}"),
            (true, reached) => format!("{} can be reached from {from:.12}", counted(reached - 1, "artifact")),
            (false, _) => format!("the {MAX_SEARCHED} artifacts nearest to {from:.12} were searched"),
        };
        let hint = if self.coincident { "" } else { "; --coincident follows replays as well" };
        format!("no path of links from {from:.12} to {to:.12}: {searched}{hint}")
    }
}

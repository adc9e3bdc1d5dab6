//! `runvault path`

use clap::Args as ClapArgs;
use runvault::vault::MAX_SEARCHED;
use runvault::vault::path::PathRequest;

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::json;
use crate::cli::output::links;
use crate::cli::output::stdout;

/// Show the shortest path of links between two artifacts
///
/// Prints the reason for each step.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact where the path starts: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(value_name = "FROM")]
    one: ArtifactArg,

    /// The artifact where the path ends: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(value_name = "TO")]
    other: ArtifactArg,

    /// Print one line of JSON for each step
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let (one, other) = (self.one.locate(&vault)?.artifact, self.other.locate(&vault)?.artifact);
        let request = PathRequest { from: one.core, to: other.core };
        let Some(steps) = vault.run(&request)?.steps else {
            return Err(CommandError::No(format!(
                "no path of links from {:.12} to {:.12}; the {MAX_SEARCHED} nearest artifacts were searched",
                one.core, other.core
            )));
        };
        if self.json {
            let mut out = stdout::raw();
            steps.iter().try_for_each(|step| json::line(&mut out, step))?;
            return Ok(Status::Done);
        }
        let mut out = stdout::text();
        links::heading(&mut out, &one.kind, one.core)?;
        for step in &steps {
            links::print(&mut out, "  ", &step.link)?;
        }
        if !steps.is_empty() {
            links::heading(&mut out, &other.kind, other.core)?;
        }
        Ok(Status::Done)
    }
}

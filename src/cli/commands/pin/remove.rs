//! `runvault pin remove`

use clap::Args as ClapArgs;
use runvault::vault::annotate::UnpinRequest;

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::change;
use crate::cli::output::exit::{CommandError, Status};

/// Unpin an artifact
#[derive(ClapArgs)]
#[command(aliases = ["del", "delete", "rm", "unset"])]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: ArtifactArg,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let core_hash = self.hash.locate_artifact(&vault)?.artifact.core;
        let answer = vault.run(&UnpinRequest { core_hash })?;
        change::print_removal(self.json, answer, "unpinned", || {
            CommandError::No(format!(
                "{core_hash:.12} is not pinned; \"runvault pin list\" lists pinned artifacts"
            ))
        })
    }
}

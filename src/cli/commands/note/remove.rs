//! `runvault note remove`

use clap::Args as ClapArgs;
use runvault::vault::annotate::RemoveNoteRequest;

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::change;
use crate::cli::output::exit::{CommandError, Status};

/// Remove an artifact's note
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
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        let answer = vault.run(&RemoveNoteRequest { core_hash: artifact.core })?;
        change::print_removal(self.json, answer, "note removed", || super::has_none(&artifact))
    }
}

//! `runvault pin add`

use clap::Args as ClapArgs;
use runvault::vault::annotate::PinRequest;

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::change;
use crate::cli::output::exit::{CommandError, Status};

/// Protect an artifact from removal
///
/// Neither rm (even with --force) nor forget removes a pinned artifact. "runvault pin list" lists pinned artifacts.
#[derive(ClapArgs)]
#[command(alias = "set")]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: ArtifactArg,

    /// The reason
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let core_hash = self.hash.locate_artifact(&vault)?.artifact.core;
        let answer = vault.run(&PinRequest { core_hash, note: self.note.clone() })?;
        change::print(self.json, &answer, if answer.changed { "pinned" } else { "already pinned" })
    }
}

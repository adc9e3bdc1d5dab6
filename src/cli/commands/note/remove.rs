//! `runvault note remove`

use clap::Args as ClapArgs;
use runvault::vault::annotate::RemoveNoteRequest;

use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::stdout;

/// Remove an artifact's note
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: Named,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        if !vault.run(&RemoveNoteRequest { core_hash: artifact.core })?.changed {
            return Err(super::has_none(&artifact));
        }
        stdout::note("note removed");
        Ok(Status::Done)
    }
}

//! `runvault pin remove`

use clap::Args as ClapArgs;

use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::stdout;

/// Unpin an artifact.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: Named,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        if !vault.unpin(&artifact)? {
            return Err(Failure::No(format!(
                "{:.12} is not pinned; \"runvault pin list\" lists pinned artifacts",
                artifact.core
            )));
        }
        stdout::note("unpinned");
        Ok(Status::Done)
    }
}

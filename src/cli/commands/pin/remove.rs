//! `runvault pin remove`

use clap::Args as ClapArgs;
use runvault::vault::annotate::UnpinRequest;

use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::stdout;

/// Unpin an artifact
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: Named,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let core_hash = self.hash.locate_artifact(&vault)?.artifact.core;
        if !vault.run(&UnpinRequest { core_hash })?.changed {
            return Err(Failure::No(format!(
                "{core_hash:.12} is not pinned; \"runvault pin list\" lists pinned artifacts"
            )));
        }
        stdout::note("unpinned");
        Ok(Status::Done)
    }
}

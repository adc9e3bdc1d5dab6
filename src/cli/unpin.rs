//! `runvault unpin`

use clap::Args as ClapArgs;

use super::exit::{Failure, Status};
use super::hash::Named;
use super::output;
use super::vault::VaultArgs;

/// Unpin an artifact.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A core hash, a prefix of one, @tag, or latest
    hash: Named,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        if !vault.unpin(&artifact)? {
            return Err(Failure::No(format!(
                "{:.12} is not pinned; \"runvault pins\" lists pinned artifacts",
                artifact.core
            )));
        }
        output::note("unpinned");
        Ok(Status::Done)
    }
}

//! `runvault unpin`

use clap::Args as ClapArgs;

use super::exit::{Failure, Status};
use super::hash::Named;
use super::output;
use super::vault::VaultArgs;

/// Allow a pinned artifact to be removed.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A core hash, the first digits of one, @tag, or latest
    hash: Named,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        if !vault.unpin(&artifact)? {
            return Err(Failure::No(format!(
                "{:.12} is not pinned; \"runvault pins\" lists what is",
                artifact.core
            )));
        }
        output::note("unpinned");
        Ok(Status::Done)
    }
}

//! `runvault tag`

use clap::Args as ClapArgs;

use super::exit::{Failure, Status};
use super::hash::{self, Named};
use super::output;
use super::vault::VaultArgs;

/// Give an artifact a name.
///
/// @NAME stands for it wherever a hash is asked for. A name stands for one artifact: another one that had it loses it, and
/// the journal knows which.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A core hash, the first digits of one, another @tag of it, or latest
    hash: Named,

    /// The name, such as baseline or release/1.4
    #[arg(value_parser = hash::tag)]
    name: String,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        let new = vault.tag(&artifact, &self.name)?;
        output::note(if new { "tagged" } else { "was tagged so before" });
        Ok(Status::Done)
    }
}

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
        let before = vault.snapshot()?.tagged(&self.name)?.filter(|before| before.id != artifact.id);
        let new = vault.tag(&artifact, &self.name)?;
        output::note(&match before {
            Some(before) if new => format!("tagged; @{} was {:.12} before", self.name, before.core),
            _ if new => "tagged".to_owned(),
            _ => "was tagged so before".to_owned(),
        });
        Ok(Status::Done)
    }
}

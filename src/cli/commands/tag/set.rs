//! `runvault tag set`

use clap::Args as ClapArgs;

use crate::cli::args::hash::{self, Named};
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::stdout;

/// Set a tag on an artifact.
///
/// @NAME can be used in place of a hash. A tag names one artifact: setting it on another artifact moves it, and the
/// journal records both.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, another tag, a run id, or latest
    hash: Named,

    /// The tag, such as baseline or release/1.4
    #[arg(value_parser = hash::tag)]
    name: String,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        let before = vault.snapshot()?.with_tag(&self.name)?.filter(|before| *before != artifact.core);
        let new = vault.tag(&artifact, &self.name)?;
        stdout::note(&match before {
            Some(before) if new => format!("tagged; @{} was {:.12}", self.name, before),
            _ if new => "tagged".to_owned(),
            _ => "already tagged".to_owned(),
        });
        Ok(Status::Done)
    }
}

//! `runvault tag set`

use clap::Args as ClapArgs;
use runvault::vault::annotate::{SetTagAnswer, SetTagRequest};

use crate::cli::args::hash::{self, ArtifactArg};
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::change;
use crate::cli::output::exit::{CommandError, Status};

/// Set a tag on an artifact
///
/// @NAME can be used in place of a hash. A tag names one artifact: setting it on another artifact moves it, and the
/// journal records both.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, another tag, a run id, or latest
    hash: ArtifactArg,

    /// The tag, such as baseline or release/1.4
    #[arg(value_parser = hash::tag)]
    name: String,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let core_hash = self.hash.locate_artifact(&vault)?.artifact.core;
        let request = SetTagRequest { core_hash, name: self.name.clone() };
        let answer = vault.run(&request)?;
        let note = match &answer {
            SetTagAnswer { moved_from: Some(before), .. } => {
                format!("tagged; @{} was {before:.12}", self.name)
            }
            SetTagAnswer { changed: true, .. } => "tagged".to_owned(),
            SetTagAnswer { changed: false, .. } => "already tagged".to_owned(),
        };
        change::print(self.json, &answer, &note)
    }
}

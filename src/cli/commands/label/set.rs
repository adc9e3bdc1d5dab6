//! `runvault label set`

use clap::Args as ClapArgs;
use runvault::vault::annotate::SetLabelsRequest;

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::label;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::change;
use crate::cli::output::exit::{CommandError, Status};

/// Set labels on an artifact
///
/// A value that the artifact has for the same key is replaced, and the journal records both.
#[derive(ClapArgs)]
#[command(alias = "add")]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: ArtifactArg,

    /// The labels, such as commit=4f2a91c
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = label::pair)]
    labels: Vec<(String, String)>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let labels = label::unique(&self.labels)?;
        let vault = vault.open()?;
        let core_hashes = vec![self.hash.locate_artifact(&vault)?.artifact.core];
        let answer = vault.run(&SetLabelsRequest { core_hashes, labels })?;
        change::print(self.json, &answer, if answer.changed { "labeled" } else { "already labeled" })
    }
}

//! `runvault label remove`

use clap::Args as ClapArgs;
use runvault::vault::annotate::RemoveLabelsRequest;
use runvault::vault::annotations::LabelsRequest;

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::label;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::change;
use crate::cli::output::exit::{CommandError, Status};

/// Remove labels from an artifact
#[derive(ClapArgs)]
#[command(aliases = ["del", "delete", "rm", "unset"])]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: ArtifactArg,

    /// The keys of the labels
    #[arg(required = true, value_name = "KEY", value_parser = label::key)]
    keys: Vec<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let core = self.hash.locate_artifact(&vault)?.artifact.core;
        let labels = vault.run(&LabelsRequest { artifact: core })?.labels;
        let is_missing = |key: &&str| labels.iter().all(|label| label.key != **key);
        let missing: Vec<&str> = self.keys.iter().map(String::as_str).filter(is_missing).collect();
        let none = || {
            let keys = missing.join(" or ");
            CommandError::No(format!(
                "{core:.12} has no label {keys}; \"runvault show {core:.12}\" lists its labels"
            ))
        };
        let request =
            RemoveLabelsRequest { core_hashes: vec![core], keys: self.keys.iter().cloned().collect() };
        let answer = vault.run(&request)?;
        let status = change::print_removal(self.json, answer, "label removed", none)?;
        if missing.is_empty() { Ok(status) } else { Err(none()) }
    }
}

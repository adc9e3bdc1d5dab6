//! `runvault tag remove`

use clap::Args as ClapArgs;
use runvault::vault::annotate::RemoveTagRequest;

use crate::cli::args::hash;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::change;
use crate::cli::output::exit::{CommandError, Status};

/// Remove a tag
#[derive(ClapArgs)]
#[command(aliases = ["del", "delete", "rm", "unset"])]
pub(crate) struct Args {
    /// The tag
    #[arg(value_parser = hash::tag)]
    name: String,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let name = &self.name;
        let answer = vault.open()?.run(&RemoveTagRequest { name: name.clone() })?;
        change::print_removal(self.json, answer, "untagged", || {
            CommandError::No(format!("there is no tag {name}; \"runvault tag list\" lists the tags"))
        })
    }
}

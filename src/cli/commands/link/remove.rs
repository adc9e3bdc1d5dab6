//! `runvault link remove`

use clap::Args as ClapArgs;
use runvault::vault::annotate::RemoveLinkRequest;

use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::link::add::LinkArgs;
use crate::cli::output::change;
use crate::cli::output::exit::{CommandError, Status};

/// Remove a manually added link
///
/// Derived links follow from the content of artifacts and cannot be removed.
#[derive(ClapArgs)]
#[command(aliases = ["del", "delete", "rm", "unset"])]
pub(crate) struct Args {
    #[command(flatten)]
    ends: LinkArgs,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let (source, target) = self.ends.locate(&vault)?;
        let relation = &self.ends.relation;
        let answer = vault.run(&RemoveLinkRequest { source, relation: relation.clone(), target })?;
        change::print_removal(self.json, answer, "unlinked", || {
            CommandError::No(format!(
                "there is no manual link {source:.12} {relation} {target:.12}; \"runvault links\" lists links"
            ))
        })
    }
}

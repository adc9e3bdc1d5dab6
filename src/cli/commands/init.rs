//! `runvault init`

use clap::Args as ClapArgs;
use runvault::display::escaped;
use runvault::vault::api::PathName;

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::json;

/// Create an empty vault
///
/// Only its owner can read it. An existing file is left unchanged.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.create()?;
        let note = format!("created {}", escaped(&vault.path().to_string_lossy()));
        json::print_change(self.json, &PathName::from(vault.path()), &note)
    }
}

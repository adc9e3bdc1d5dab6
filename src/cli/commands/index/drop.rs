//! `runvault index drop`

use clap::Args as ClapArgs;

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::stdout;

/// Remove the search index
#[derive(ClapArgs)]
pub(crate) struct Args {}

impl Args {
    #[expect(clippy::unused_self, reason = "every command has this form")]
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        if vault.open()?.drop_search()? {
            stdout::note("removed the search index; \"runvault gc\" reclaims the space");
            return Ok(Status::Done);
        }
        stdout::note("there is no search index");
        Ok(Status::No)
    }
}

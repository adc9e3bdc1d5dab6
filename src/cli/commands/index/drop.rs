//! `runvault index drop`

use clap::Args as ClapArgs;
use runvault::vault::search::DropSearchIndexRequest;

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::change;
use crate::cli::output::exit::{CommandError, Status};

/// Remove the search index
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let answer = vault.open()?.run(&DropSearchIndexRequest {})?;
        if answer.changed {
            let note = "removed the search index; \"runvault gc\" reclaims the space";
            return change::print(self.json, &answer, note);
        }
        change::print(self.json, &answer, "there is no search index")?;
        Ok(Status::No)
    }
}

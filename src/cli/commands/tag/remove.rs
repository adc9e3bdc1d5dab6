//! `runvault tag remove`

use clap::Args as ClapArgs;
use runvault::vault::annotate::RemoveTagRequest;

use crate::cli::args::hash;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::stdout;

/// Remove a tag
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The tag
    #[arg(value_parser = hash::tag)]
    name: String,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let name = &self.name;
        if !vault.open()?.run(&RemoveTagRequest { name: name.clone() })?.changed {
            return Err(Failure::No(format!("there is no tag {name}; \"runvault tag list\" lists the tags")));
        }
        stdout::note("untagged");
        Ok(Status::Done)
    }
}

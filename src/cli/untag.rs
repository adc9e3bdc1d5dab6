//! `runvault untag`

use clap::Args as ClapArgs;

use super::exit::{Failure, Status};
use super::vault::VaultArgs;
use super::{hash, output};

/// Take a name away.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The name
    #[arg(value_parser = hash::tag)]
    name: String,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        if !vault.open()?.untag(&self.name)? {
            let name = &self.name;
            return Err(Failure::No(format!("nothing is tagged {name}; \"runvault tags\" lists the tags")));
        }
        output::note("untagged");
        Ok(Status::Done)
    }
}

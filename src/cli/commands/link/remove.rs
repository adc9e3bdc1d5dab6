//! `runvault link remove`

use clap::Args as ClapArgs;
use runvault::storage::StatedLink;

use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::link::add::Ends;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::stdout;

/// Remove a manually added link.
///
/// Derived links follow from the content of artifacts and cannot be removed.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    ends: Ends,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let (source, target) = self.ends.locate(&vault)?;
        let link = StatedLink { source: source.core, relation: &self.ends.relation, target: target.core };
        if !vault.take_back_link(link)? {
            return Err(Failure::No(format!(
                "there is no manual link {:.12} {} {:.12}; \"runvault links\" lists links",
                source.core, self.ends.relation, target.core
            )));
        }
        stdout::note("unlinked");
        Ok(Status::Done)
    }
}

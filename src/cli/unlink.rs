//! `runvault unlink`

use clap::Args as ClapArgs;
use runvault::store::StatedLink;

use super::exit::{Failure, Status};
use super::link::Ends;
use super::output;
use super::vault::VaultArgs;

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
        let link = StatedLink { source: &source, relation: &self.ends.relation, target: &target };
        if !vault.take_back_link(link)? {
            return Err(Failure::No(format!(
                "there is no manual link {:.12} {} {:.12}; \"runvault links\" lists links",
                source.core, self.ends.relation, target.core
            )));
        }
        output::note("unlinked");
        Ok(Status::Done)
    }
}

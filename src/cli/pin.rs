//! `runvault pin`

use clap::Args as ClapArgs;

use super::exit::{Failure, Status};
use super::hash::Named;
use super::output;
use super::vault::VaultArgs;

/// Protect an artifact from removal.
///
/// Neither rm, with or without --force, nor forget removes it, until it is unpinned. "runvault pins" lists what is pinned.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A core hash, the first digits of one, @tag, or latest
    hash: Named,

    /// Why, in a sentence
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        let new = vault.pin(&artifact, self.note.as_deref())?;
        output::note(if new { "pinned" } else { "was pinned before" });
        Ok(Status::Done)
    }
}

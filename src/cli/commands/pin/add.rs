//! `runvault pin add`

use clap::Args as ClapArgs;

use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::stdout;

/// Protect an artifact from removal.
///
/// Neither rm (even with --force) nor forget removes a pinned artifact. "runvault pin list" lists pinned artifacts.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: Named,

    /// The reason
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        let new = vault.pin(&artifact, self.note.as_deref())?;
        stdout::note(if new { "pinned" } else { "already pinned" });
        Ok(Status::Done)
    }
}

//! The directory of `runvault gateway recover` and `discard`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::cli::args::gateway::default_spool;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::CommandError;

/// The directory with the calls that are not in the vault.
#[derive(ClapArgs)]
pub(super) struct SpoolArgs {
    /// Directory for the calls of runs that are not finished. Default: beside the vault, its name with -gateway
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
}

impl SpoolArgs {
    /// Returns the directory.
    pub(super) fn directory(&self, args: &VaultArgs) -> Result<PathBuf, CommandError> {
        self.spool.clone().map_or_else(|| default_spool(args), Ok)
    }
}

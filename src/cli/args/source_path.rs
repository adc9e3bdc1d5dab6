//! The option to record the paths that captures were read from.

use clap::Args;

use crate::cli::args::settings;
use crate::cli::output::exit::CommandError;

/// Whether source paths are recorded.
#[derive(Args)]
pub(crate) struct SourcePathArgs {
    /// Do not record source paths
    ///
    /// Without this, each new capture is stored with the path that it was read from, as it was given or found. The
    /// setting source-path changes the default.
    #[arg(long)]
    no_source_path: bool,
}

impl SourcePathArgs {
    /// Returns whether paths are left out.
    pub(crate) fn leaves_out(&self) -> Result<bool, CommandError> {
        Ok(self.no_source_path || !settings::source_path()?)
    }
}

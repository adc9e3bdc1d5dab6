//! How much a command prints, and how.

use clap::Args;

use crate::cli::output::{pager, verbosity};

/// Options of the output of every command.
#[derive(Args)]
pub(crate) struct OutputArgs {
    /// Print no summaries, notes or progress; only data, warnings and errors
    #[arg(short, long, global = true, help_heading = "Output", conflicts_with = "verbose")]
    quiet: bool,

    /// Print more: which vault is used, and for "add", "verify", "import" and "watch" every file and signature
    #[arg(short, long, global = true, help_heading = "Output")]
    verbose: bool,

    /// Do not show long output with a pager
    #[arg(long, global = true, help_heading = "Output", hide_short_help = true)]
    no_pager: bool,
}

impl OutputArgs {
    /// Applies the options to this process.
    pub(crate) fn apply(&self, command: &str) {
        verbosity::set(self.quiet, self.verbose);
        if !self.no_pager {
            pager::allow_for(command);
        }
    }
}

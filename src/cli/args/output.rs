//! Options of the amount and form of output.

use clap::Args;

use crate::cli::output::{pager, terminal};

/// Options of the output of every command.
#[derive(Args)]
pub(crate) struct OutputArgs {
    /// Print only results, warnings and errors
    ///
    /// Summaries, notes and progress are omitted. "add", "import" and "watch" list only what is rejected; "verify"
    /// still prints one line for each file.
    #[arg(short, long, global = true, help_heading = "Output", conflicts_with = "verbose")]
    quiet: bool,

    /// Print details: the vault, every file, signatures
    ///
    /// Names the vault that is used. "add", "import", "verify" and "watch" also list files that are already stored and
    /// files that are not artifacts, and the states of signatures.
    #[arg(short, long, global = true, help_heading = "Output")]
    verbose: bool,

    /// Do not show long output with a pager
    #[arg(long, global = true, help_heading = "Output", hide_short_help = true)]
    no_pager: bool,
}

impl OutputArgs {
    /// Applies the options to this process.
    pub(crate) fn apply(&self, command: &str) {
        terminal::set(self.quiet, self.verbose);
        if !self.no_pager {
            pager::allow_for(command);
        }
    }
}

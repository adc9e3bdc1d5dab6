//! `runvault completions`

use std::io::Write;

use clap::Args as ClapArgs;
use clap_complete::Shell;

use crate::cli::args::vault::VaultArgs;
use crate::cli::args::{completing, help};
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout;

/// Print a completion script for a shell
///
/// The script completes commands and options, and also hashes, tags, models, tools and run ids in the vault. Load it at
/// shell startup, since it belongs to the version of runvault that printed it.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,

    /// Print a script that completes only commands and options and never runs runvault
    #[arg(long = "static")]
    is_static: bool,
}

impl Args {
    pub(crate) fn run(&self, _: &VaultArgs) -> Result<Status, CommandError> {
        let mut script = Vec::new();
        match completing::shell(&self.shell.to_string()).filter(|_| !self.is_static) {
            Some(shell) => completing::write_registration(shell, &mut script)?,
            None => clap_complete::generate(self.shell, &mut help::command(), "runvault", &mut script),
        }
        stdout::raw().write_all(&script)?;
        Ok(Status::Done)
    }
}

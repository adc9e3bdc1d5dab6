//! `runvault completions`

use std::io::Write;

use clap::Args as ClapArgs;
use clap_complete::Shell;

use super::exit::{Failure, Status};
use super::{completing, help, output};

/// Print a completion script for a shell.
///
/// With it the shell asks runvault what may come next: besides commands and options also hashes, tags, models, tools and
/// run ids of the vault that is meant. Let the shell read the script whenever it starts: it belongs to the program that
/// printed it.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,

    /// Print a script that knows only commands and options, and never calls runvault
    #[arg(long = "static")]
    is_static: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let mut script = Vec::new();
        match completing::shell(&self.shell.to_string()).filter(|_| !self.is_static) {
            Some(shell) => completing::write_registration(shell, &mut script)?,
            None => clap_complete::generate(self.shell, &mut help::command(), "runvault", &mut script),
        }
        output::raw().write_all(&script)?;
        Ok(Status::Done)
    }
}

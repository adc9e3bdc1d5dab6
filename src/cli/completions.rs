//! `runvault completions`

use std::io::Write;

use clap::{Args as ClapArgs, Command};
use clap_complete::Shell;

use super::exit::{Failure, Status};
use super::output;

/// Print a completion script for a shell.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

impl Args {
    pub(crate) fn run(&self, mut command: Command) -> Result<Status, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "runvault", &mut script);
        output::raw().write_all(&script)?;
        Ok(Status::Done)
    }
}

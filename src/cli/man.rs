//! `runvault man`

use std::io::Write;

use clap::{Args as ClapArgs, Command};

use super::exit::{Failure, Status};
use super::output;

/// Print the manual page of runvault or of one of its commands.
///
/// For example: runvault man find | man -l -
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A command, such as find
    command: Option<String>,
}

impl Args {
    pub(crate) fn run(&self, mut root: Command) -> Result<Status, Failure> {
        root.build();
        let command = match &self.command {
            None => root,
            Some(name) => {
                let found = root.find_subcommand(name).cloned();
                found.ok_or_else(|| Failure::No(format!("there is no command {name}")))?
            }
        };
        let name = command.get_display_name().unwrap_or("runvault").to_owned();
        let mut page = Vec::new();
        clap_mangen::Man::new(command.name(name)).render(&mut page)?;
        output::raw().write_all(&page)?;
        Ok(Status::Done)
    }
}

//! Additions to `--help`, the manual pages and docs/commands.md: groups of commands, and examples.

mod examples;
mod groups;
#[cfg(test)]
mod tests;

use clap::{Command, CommandFactory};

pub(crate) use examples::for_command as examples_of;

use crate::cli::Cli;

/// Returns the commands with their complete help.
pub(crate) fn command() -> Command {
    groups::arranged(with_examples(Cli::command(), &mut String::new()))
}

/// Adds the examples to a command. `path` contains the names of its parent commands.
fn with_examples(command: Command, path: &mut String) -> Command {
    let length = path.len();
    let command = match examples::text(path) {
        Some(text) => command.after_help(text),
        None => command,
    };
    command.mut_subcommands(|inner| {
        if !path.is_empty() {
            path.push(' ');
        }
        path.push_str(inner.get_name());
        let inner = with_examples(inner, path);
        path.truncate(length);
        inner
    })
}

//! Additions to `--help`, the manual pages and docs/commands/: groups of commands, and examples.

mod examples;
mod groups;
mod narrow;
mod short;
#[cfg(test)]
mod tests;

use std::ffi::OsString;

use clap::{Command, CommandFactory};

pub(crate) use examples::for_command as examples_of;

use crate::cli::Cli;
use crate::cli::output::terminal;

/// Returns the commands with their complete help.
pub(crate) fn command() -> Command {
    groups::arranged(extended(Cli::command()), &groups::GROUPS, DOCUMENTED_WIDTH)
}

/// The width of the help in the documentation.
const DOCUMENTED_WIDTH: usize = 80;

/// Returns the commands with the help that a command line asks for: everyday commands if it asks for a summary.
pub(crate) fn command_for(words: &[OsString]) -> Command {
    let asks_for_summary =
        words.len() < 2 || words.iter().take_while(|word| *word != "--").any(|word| word == "-h");
    let width = terminal::width().unwrap_or(DOCUMENTED_WIDTH);
    let listed: &[_] = if asks_for_summary { &groups::SUMMARY } else { &groups::GROUPS };
    let command = narrow::fitted(groups::arranged(extended(Cli::command()), listed, width), width);
    if asks_for_summary { short::with_common_in_one_line(command) } else { command }
}

fn extended(root: Command) -> Command {
    with_examples(short::without_rare(root), &mut String::new())
}

/// Adds the examples to a command. `path` contains the names of its parent commands.
fn with_examples(command: Command, path: &mut String) -> Command {
    let length = path.len();
    let command = match examples::text(path) {
        Some(text) => command.after_long_help(text),
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

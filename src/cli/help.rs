//! What `--help`, the manual pages and docs/commands.md say beside the arguments: groups of commands, and examples.

mod examples;
mod groups;
#[cfg(test)]
mod tests;

use clap::{Command, CommandFactory};

pub(crate) use examples::of as examples_of;

use super::Cli;

/// The commands with all that is said of them.
pub(crate) fn command() -> Command {
    groups::arranged(with_examples(Cli::command(), &mut String::new()))
}

/// `path` are the names of the commands above this one.
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

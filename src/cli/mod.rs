//! The command-line interface: arguments in, text out. Each command is one file with its arguments, execution and
//! output.

mod args;
mod attribute_names;
mod commands;
mod hints;
mod output;
mod remedies;
mod suggestions;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{FromArgMatches, Parser};

use args::output::OutputArgs;
use args::vault::VaultArgs;
use args::{completing, help, spellings};
use clap::Args;
use commands::Command;
use output::escape::escaped;
use output::exit::{CommandError, Status};
use output::exit_code;
use output::{pager, stdout, time};

/// A verified, content-addressed archive for AI agent runs.
#[derive(Parser)]
#[command(name = "runvault", version, propagate_version = true, max_term_width = 100)]
#[command(after_long_help = "Exit status: 0 success; 1 negative result (violations, not found, different); \
    2 could not run (I/O, database); 3 usage error.")]
struct Cli {
    #[command(flatten)]
    vault: VaultArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(subcommand)]
    command: Command,
}

/// Runs the command given on the command line.
pub(crate) fn main() -> ExitCode {
    if let Err(failure) = time::fix_clock_for_tests() {
        return exit_code::exit_code(Err(failure));
    }
    if let Some(status) = completing::answer() {
        return status;
    }
    let words = spellings::modernize(std::env::args_os().collect());
    let cli = Cli::parse_single_command(&words).map_or_else(
        || {
            help::command_for(&words)
                .try_get_matches_from(&words)
                .and_then(|matches| Cli::from_arg_matches(&matches))
        },
        Ok,
    );
    match cli {
        Ok(cli) => {
            let status = exit_code::exit_code(cli.run());
            pager::finish();
            status
        }
        Err(error) => exit_code::usage_exit_code(error, &help::command_for(&words), &words),
    }
}

impl Cli {
    /// Parses the arguments if they are those of a single command without errors. Defining all commands takes longer
    /// than most of them run, so this defines only the command that seems to be used. Otherwise, all commands are
    /// defined and parsed.
    fn parse_single_command(words: &[OsString]) -> Option<Self> {
        let name = words.get(spellings::command_index(words)?)?;
        let command = Command::alone(name.to_str()?)?;
        let root = VaultArgs::augment_args(clap::Command::new("runvault"));
        let root = OutputArgs::augment_args(root).subcommand(command);
        let matches = root.try_get_matches_from(words).ok()?;
        Self::from_arg_matches(&matches).ok()
    }

    fn run(self) -> Result<Status, CommandError> {
        self.output.apply(self.command.name());
        runvault::Vault::set_wait_observer(|what| stdout::note(&format!("waiting for {}", escaped(what))));
        self.command.run(&self.vault)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_can_be_defined_alone() {
        for command in Cli::command().get_subcommands() {
            let alone = Command::alone(command.get_name()).unwrap();
            let arguments = |command: &clap::Command| -> Vec<String> {
                command.get_arguments().map(|argument| argument.get_id().to_string()).collect()
            };
            assert_eq!(arguments(&alone), arguments(command));
        }
        assert!(Command::alone("nonsense").is_none());
    }
}

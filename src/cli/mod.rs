//! The command-line interface: arguments in, text out. Each command is one file with its arguments, execution and
//! output.

mod args;
mod commands;
mod hints;
mod output;
mod remedies;
mod suggestions;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, FromArgMatches, Parser};
use runvault::display::escaped;

use args::output::OutputArgs;
use args::vault::VaultArgs;
use args::{completing, help};
use commands::Command;
use output::exit::{CommandError, Status};
use output::{exit_code, pager, stdout, time};

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
    let words: Vec<OsString> = std::env::args_os().collect();
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
        let name = command_name(words)?;
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

/// Options of all commands that are followed by a value.
const WITH_VALUE: [&str; 2] = ["--vault", "--actor"];

/// Returns the command in the words of a command line, which begin with the program.
fn command_name(words: &[OsString]) -> Option<&OsString> {
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--") => return words.next(),
            Some(option) if WITH_VALUE.contains(&option) => drop(words.next()),
            Some(option) if option.starts_with('-') => {}
            _ => return Some(word),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_is_behind_options_with_their_values() {
        let root = Cli::command();
        let with_value = root.get_arguments().filter(|argument| argument.get_action().takes_values());
        let mut with_value: Vec<String> =
            with_value.filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect();
        with_value.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(with_value, WITH_VALUE);
        let command = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            command_name(&words).map(|word| word.to_str().unwrap().to_owned())
        };
        assert_eq!(command("runvault --vault tag -q --actor=x find a").as_deref(), Some("find"));
        assert_eq!(command("runvault -- add"), Some("add".to_owned()));
        assert_eq!(command("runvault --vault v"), None);
    }

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

//! The command-line interface: arguments in, text out. Each command is one file with its arguments, execution and
//! output.

mod args;
mod commands;
mod hints;
mod output;

use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, FromArgMatches, Parser};

use args::vault::{OutputArgs, VaultArgs};
use args::{completing, help};
use commands::Command;
use output::exit::{CommandError, Status};
use output::stdout::{self, BAD, without_passwords};
use output::{terminal, time};
use runvault::display::escaped;

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
        return exit_code(Err(failure));
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
            let status = exit_code(cli.run());
            terminal::finish();
            status
        }
        Err(error) => usage_exit_code(error, &help::command_for(&words), &words),
    }
}

impl Cli {
    /// Parses the arguments if they are those of a single command without errors. Defining all commands takes longer
    /// than most of them run, so this defines only the command that seems to be used. Otherwise, all commands are
    /// defined and parsed.
    fn parse_single_command(words: &[OsString]) -> Option<Self> {
        let name = arguments(words).next()?;
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

/// Returns the words of a command line that are neither the program, nor options, nor the values of options of all
/// commands. The first one is the command.
fn arguments(words: &[OsString]) -> impl Iterator<Item = &OsString> {
    let mut words = words.iter().skip(1);
    let mut has_options = true;
    std::iter::from_fn(move || {
        loop {
            let word = words.next()?;
            match word.to_str().filter(|_| has_options) {
                Some("--") => has_options = false,
                Some(option) if WITH_VALUE.contains(&option) => drop(words.next()),
                Some(option) if option.starts_with('-') => {}
                _ => return Some(word),
            }
        }
    })
}

/// Returns the command that a command line names, as far as it names one.
fn named_command<'c>(root: &'c clap::Command, words: &[OsString]) -> &'c clap::Command {
    arguments(words).fold(root, |command, word| command.find_subcommand(word).unwrap_or(command))
}

/// Prints the failure, if any, and returns the exit code of the process.
fn exit_code(outcome: Result<Status, CommandError>) -> ExitCode {
    let failure = match outcome {
        Ok(Status::Done) | Err(CommandError::ClosedPipe) => return ExitCode::SUCCESS,
        Ok(Status::No) => return ExitCode::from(1),
        Ok(Status::Incomplete) => return ExitCode::from(2),
        #[cfg(feature = "gateway")]
        Ok(Status::OfProgram(code)) => return ExitCode::from(code),
        Err(failure) => failure,
    };
    stdout::error(&failure.to_string());
    if let CommandError::Ambiguous { candidates: lines, .. } | CommandError::Refused { because: lines, .. } =
        &failure
    {
        for line in lines {
            stdout::message(&format!("  {}", escaped(line)));
        }
    }
    ExitCode::from(match failure {
        CommandError::No(_) | CommandError::Ambiguous { .. } | CommandError::Refused { .. } => 1,
        CommandError::CouldNotRun(_) => 2,
        CommandError::Usage(_) => 3,
        CommandError::Interrupted | CommandError::Stopped => terminal::INTERRUPTED,
        CommandError::ClosedPipe => 0,
    })
}

/// Prints help, or a usage error of the command line `words` of `command`.
fn usage_exit_code(mut error: clap::Error, command: &clap::Command, words: &[OsString]) -> ExitCode {
    if !error.use_stderr() {
        let printed = stdout::help(&error.render().ansi().to_string());
        return exit_code(printed.map(|()| Status::Done).map_err(CommandError::from));
    }
    if error.kind() == clap::error::ErrorKind::UnknownArgument {
        suggest_option(&mut error, command, words);
    }
    match suggestion(&error, named_command(command, words)) {
        Some(suggestion) => stdout::error(&suggestion),
        None => stdout::message(&usage_text(error)),
    }
    ExitCode::from(3)
}

/// Replaces the option that is suggested for an unknown one: the spelling alone says little about what was meant.
fn suggest_option(error: &mut clap::Error, command: &clap::Command, words: &[OsString]) {
    error.remove(ContextKind::SuggestedArg);
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg)
        && let Some(option) = hints::for_option(typed, command, named_command(command, words))
    {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(option));
    }
}

/// Returns the error for a command that does not exist here but is known from other programs.
fn suggestion(error: &clap::Error, command: &clap::Command) -> Option<String> {
    if let Some(ContextValue::String(path)) = error.get(ContextKind::InvalidArg)
        && !path.starts_with('-')
        && command.get_name() == "init"
    {
        return Some(format!("the path of a vault is given with --vault: \"runvault init --vault {path}\""));
    }
    let ContextValue::String(name) = error.get(ContextKind::InvalidSubcommand)? else { return None };
    Some(format!("there is no command {name}; {}", hints::for_command(name)?))
}

/// Returns the reason why the value of a numeric argument is not valid, in place of that of the standard library.
fn number_expected(reason: &(dyn Error + 'static)) -> Option<&'static str> {
    if reason.is::<ParseFloatError>() {
        return Some("expected a number");
    }
    Some(match reason.downcast_ref::<ParseIntError>()?.kind() {
        IntErrorKind::PosOverflow => "the number is too large",
        IntErrorKind::NegOverflow => "the number is too small",
        IntErrorKind::Zero => "the number must not be 0",
        _ => "expected a whole number",
    })
}

/// Returns the text of a usage error. Arguments may be file names from untrusted sources, so they are escaped in place,
/// and the complete text once more.
fn usage_text(mut error: clap::Error) -> String {
    let harmless = |text: &String| escaped(&without_passwords(text)).to_string();
    let context: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => Some((kind, ContextValue::String(harmless(text)))),
            ContextValue::Strings(texts) => {
                Some((kind, ContextValue::Strings(texts.iter().map(harmless).collect())))
            }
            _ => None,
        })
        .collect();
    for (kind, value) in context {
        error.insert(kind, value);
    }
    let mut text = error.to_string();
    if let Some(reason) = error.source()
        && let Some(expected) = number_expected(reason)
    {
        text = text.replace(&format!(": {reason}"), &format!(": {expected}"));
    }
    let lines: Vec<String> = text.trim_end().lines().map(|line| escaped(line).to_string()).collect();
    let text = lines.join("\n");
    match text.strip_prefix("error:") {
        Some(rest) => format!("{BAD}error:{BAD:#}{rest}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

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
            arguments(&words).next().map(|word| word.to_str().unwrap().to_owned())
        };
        assert_eq!(command("runvault --vault tag -q --actor=x find a").as_deref(), Some("find"));
        assert_eq!(command("runvault -- add"), Some("add".to_owned()));
        assert_eq!(command("runvault --vault v"), None);
        let words = ["runvault", "--vault", "add", "tag", "--json", "set"].map(OsString::from);
        assert_eq!(named_command(&root, &words).get_name(), "set");
    }

    #[test]
    fn numbers_are_explained_by_what_is_wrong_with_them() {
        let reason = |text: &str| number_expected(&text.parse::<i8>().unwrap_err());
        assert_eq!(reason("many"), Some("expected a whole number"));
        assert_eq!(reason("128"), Some("the number is too large"));
        assert_eq!(reason("-129"), Some("the number is too small"));
        let zero = "0".parse::<NonZeroUsize>().unwrap_err();
        assert_eq!(number_expected(&zero), Some("the number must not be 0"));
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

//! The exit code of the process, and the messages that explain it.

use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use runvault::display::escaped;

use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::passwords::without_passwords;
use crate::cli::output::stdout::{self, BAD};
use crate::cli::output::stop;
use crate::cli::suggestions;

/// Prints the failure, if any, and returns the exit code of the process.
pub(crate) fn exit_code(outcome: Result<Status, CommandError>) -> ExitCode {
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
        CommandError::Interrupted | CommandError::Stopped => stop::INTERRUPTED,
        CommandError::ClosedPipe => 0,
    })
}

/// Prints help, or a usage error of the command line `words` of `command`.
pub(crate) fn usage_exit_code(
    mut error: clap::Error,
    command: &clap::Command,
    words: &[OsString],
) -> ExitCode {
    if !error.use_stderr() {
        let printed = stdout::help(&error.render().ansi().to_string());
        return exit_code(printed.map(|()| Status::Done).map_err(CommandError::from));
    }
    if error.kind() == clap::error::ErrorKind::UnknownArgument {
        suggest_option(&mut error, command, words);
    }
    match suggestion(&error, suggestions::named_command(command, words)) {
        Some(suggestion) => stdout::error(&suggestion),
        None => stdout::message(&usage_text(error)),
    }
    ExitCode::from(3)
}

/// Replaces the option that is suggested for an unknown one: the spelling alone says little about what was meant.
fn suggest_option(error: &mut clap::Error, command: &clap::Command, words: &[OsString]) {
    error.remove(ContextKind::SuggestedArg);
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg)
        && let Some(option) = suggestions::for_option(typed, command, words)
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
    Some(format!("there is no command {name}; {}", suggestions::for_command(name)?))
}

/// Returns the reason why the value of a numeric argument is not valid, in place of that of the standard library.
fn number_expected(reason: &(dyn Error + 'static)) -> Option<&'static str> {
    if reason.is::<ParseFloatError>() {
        return Some("expected a number");
    }
    Some(match reason.downcast_ref::<ParseIntError>()?.kind() {
        IntErrorKind::PosOverflow => "the number is too large",
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

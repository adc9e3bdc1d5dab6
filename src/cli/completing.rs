//! Answers of shells that ask what may come next, while somebody types.
//!
//! The script that `runvault completions` prints calls runvault again, with [`VARIABLE`] set and the words of the line.
//! Nothing is said on standard error then, and nothing is made or changed.

mod bash;
mod candidates;
mod line;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, Command};
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::{EnvCompleter, Shells};

use super::{help, output, settings};

use bash::Bash;
use candidates::Source;
use line::Line;

/// Names the shell that asks.
const VARIABLE: &str = "RUNVAULT_COMPLETE";

/// Those whose scripts can ask.
pub(crate) fn shell(name: &str) -> Option<&'static dyn EnvCompleter> {
    const KNOWN: Shells<'static> = Shells::builtins();
    if name == Bash.name() {
        return Some(&Bash);
    }
    KNOWN.0.iter().copied().find(|shell| shell.is(name))
}

/// Writes the script that makes a shell ask.
pub(crate) fn write_registration(shell: &dyn EnvCompleter, out: &mut dyn Write) -> std::io::Result<()> {
    shell.write_registration(VARIABLE, "runvault", "runvault", &program().to_string_lossy(), out)
}

/// How this program was called. A path is made to be the same from everywhere.
fn program() -> OsString {
    let called = std::env::args_os().next().unwrap_or_else(|| "runvault".into());
    if Path::new(&called).components().count() < 2 {
        return called;
    }
    std::path::absolute(&called).map_or(called, OsString::from)
}

/// Answers if a shell asks, and gives how that ended.
pub(crate) fn answer() -> Option<ExitCode> {
    let name = settings::variable(VARIABLE)?;
    let name = Path::new(&name).file_stem()?.to_string_lossy().into_owned();
    let answered = shell(&name).is_some_and(|shell| write_answer(shell).is_ok());
    // A shell that gets no answer offers what it otherwise would.
    Some(if answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write_answer(shell: &dyn EnvCompleter) -> std::io::Result<()> {
    settings::be_silent();
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let line = Line::of(&words);
    let mut answer = Vec::new();
    let directory = std::env::current_dir().ok();
    shell.write_complete(&mut command(&line), words, directory.as_deref(), &mut answer)?;
    output::raw().write_all(&answer)
}

/// The commands, where arguments know what may be meant by them.
fn command(line: &Line) -> Command {
    knowing(help::command(), line)
}

fn knowing(command: Command, line: &Line) -> Command {
    let command = command.mut_args(|argument| with_source(argument, line));
    command.mut_subcommands(|inner| knowing(inner, line))
}

fn with_source(argument: Arg, line: &Line) -> Arg {
    let Some(source) = Source::of(&argument) else { return argument };
    let line = line.clone();
    argument.add(ArgValueCompleter::new(move |typed: &std::ffi::OsStr| {
        // What is no text is nothing that runvault has a name for.
        typed.to_str().map(|typed| source.candidates(typed, &line)).unwrap_or_default()
    }))
}

//! Shell completion.
//!
//! The script that `runvault completions` prints calls runvault, with [`VARIABLE`] set and the words of the command
//! line. It then prints nothing on standard error, and creates or changes nothing.

mod bash;
mod candidates;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap_complete::env::{EnvCompleter, Shells};

use crate::cli::args::variable::variable;
use crate::cli::args::{help, settings};
use crate::cli::output::stdout;

use bash::Bash;
use candidates::asked_words;

pub(crate) use candidates::CandidateSource;

/// The variable that contains the name of the calling shell.
const VARIABLE: &str = "RUNVAULT_COMPLETE";

/// Returns the completer of a supported shell.
pub(crate) fn shell(name: &str) -> Option<&'static dyn EnvCompleter> {
    const BUILTIN_SHELLS: Shells<'static> = Shells::builtins();
    if name == Bash.name() {
        return Some(&Bash);
    }
    BUILTIN_SHELLS.0.iter().copied().find(|shell| shell.is(name))
}

/// Writes the registration script of a shell.
pub(crate) fn write_registration(shell: &dyn EnvCompleter, out: &mut dyn Write) -> std::io::Result<()> {
    shell.write_registration(VARIABLE, "runvault", "runvault", &program().to_string_lossy(), out)
}

/// Returns the name by which this program was called. A relative path is made absolute.
fn program() -> OsString {
    let called = std::env::args_os().next().unwrap_or_else(|| "runvault".into());
    if Path::new(&called).components().count() < 2 {
        return called;
    }
    std::path::absolute(&called).map_or(called, OsString::from)
}

/// Answers a completion request, if there is one, and returns the exit code.
pub(crate) fn answer() -> Option<ExitCode> {
    let name = variable(VARIABLE)?;
    let name = Path::new(&name).file_stem()?.to_string_lossy().into_owned();
    let answered = shell(&name).is_some_and(|shell| write_answer(shell).is_ok());
    // Without an answer, the shell falls back to its default completion.
    Some(if answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write_answer(shell: &dyn EnvCompleter) -> std::io::Result<()> {
    settings::be_silent();
    let mut answer = Vec::new();
    let directory = std::env::current_dir().ok();
    shell.write_complete(&mut help::command(), asked_words(), directory.as_deref(), &mut answer)?;
    stdout::raw().write_all(&answer)
}

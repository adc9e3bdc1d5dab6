//! Arguments in, text out. Each command is one file: its arguments, its run, its printing.

mod add;
mod completions;
mod escape;
mod exit;
mod export;
mod find;
mod get;
mod hash;
mod inputs;
mod json;
mod links;
mod man;
mod output;
mod progress;
mod report;
mod rules;
mod show;
mod time;
mod vault;
mod verify;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use exit::{Failure, Status};
use vault::VaultArgs;

/// An archive for what AI agent runs leave behind: verified, content-addressed, in one file.
#[derive(Parser)]
#[command(name = "runvault", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Exit status: 0 done; 1 the answer is no (violations, not found); \
    2 could not run (I/O, database); 3 wrong usage.")]
struct Cli {
    #[command(flatten)]
    vault: VaultArgs,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one in a process")]
enum Command {
    /// Verify artifacts and store them.
    Add(add::Args),
    /// Apply the same checks and store nothing.
    Verify(verify::Args),
    /// Write an artifact's exact bytes.
    Get(get::Args),
    /// Tell what an artifact is and what it is linked to.
    Show(show::Args),
    /// Find artifacts by what they mention.
    Find(find::Args),
    /// List the links of an artifact in both directions.
    Links(links::Args),
    /// List the rules, or explain one.
    Rules(rules::Args),
    /// Print a completion script for a shell.
    Completions(completions::Args),
    /// Print the manual page of runvault or of one of its commands.
    Man(man::Args),
}

/// Runs the command that the process was started with.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::of_usage(&error),
    };
    exit::of(cli.run())
}

impl Cli {
    fn run(self) -> Result<Status, Failure> {
        let vault = &self.vault;
        match self.command {
            Command::Add(args) => args.run(vault),
            Command::Verify(args) => args.run(),
            Command::Get(args) => args.run(vault),
            Command::Show(args) => args.run(vault),
            Command::Find(args) => args.run(vault),
            Command::Links(args) => args.run(vault),
            Command::Rules(args) => args.run(),
            Command::Completions(args) => args.run(Cli::command()),
            Command::Man(args) => args.run(Cli::command()),
        }
    }
}

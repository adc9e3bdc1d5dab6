//! The command-line interface: arguments in, text out. Each command is one file with its arguments, execution and
//! output.

mod actor;
mod add;
mod audit;
mod backup;
mod captures;
mod columns;
mod completing;
mod completions;
mod config;
mod dangling;
mod diff;
mod disk;
mod escape;
mod exit;
mod export;
mod fields;
mod find;
mod fit;
mod forget;
mod fork_notes;
mod forks;
mod fsck;
mod gc;
mod get;
mod graph;
mod grid;
mod hash;
mod help;
mod hints;
mod hits;
mod import;
mod init;
mod inputs;
mod json;
mod keys;
mod length;
mod limits;
mod link;
mod links;
mod log;
mod man;
mod mover;
mod note;
mod output;
mod pin;
mod pins;
mod place;
mod progress;
mod prompt;
mod reindex;
mod replay;
mod report;
mod resume;
mod rm;
mod rules;
mod search;
mod settings;
mod show;
mod signature;
mod sql;
mod stats;
mod stop;
mod stub;
mod table;
mod tag;
mod tags;
mod template;
mod time;
mod tombstones;
mod unlink;
mod unpin;
mod untag;
mod upgrade;
mod vault;
mod verify;
mod watch;
mod why;

use std::process::ExitCode;

use clap::{Args, FromArgMatches, Parser, Subcommand};

use exit::{Failure, Status};
use vault::VaultArgs;

/// A verified, content-addressed archive for AI agent runs.
#[derive(Parser)]
#[command(name = "runvault", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Exit status: 0 success; 1 negative result (violations, not found, different); \
    2 could not run (I/O, database); 3 usage error.")]
struct Cli {
    #[command(flatten)]
    vault: VaultArgs,

    #[command(subcommand)]
    command: Command,
}

/// Defines the enum of all commands, and a function that defines a single command.
macro_rules! commands {
    ($($command:ident($name:ident)),* $(,)?) => {
        #[derive(Subcommand)]
        enum Command {
            $($command($name::Args)),*
        }

        impl Command {
            /// Returns the definition of the command with this name.
            fn alone(name: &str) -> Option<clap::Command> {
                Some(match name {
                    $(stringify!($name) => $name::Args::augment_args(clap::Command::new(stringify!($name))),)*
                    _ => return None,
                })
            }
        }
    };
}

commands! {
    Init(init),
    Add(add),
    Watch(watch),
    Verify(verify),
    Get(get),
    Show(show),
    Find(find),
    Search(search),
    Replay(replay),
    Stub(stub),
    Links(links),
    Link(link),
    Unlink(unlink),
    Why(why),
    Dangling(dangling),
    Forks(forks),
    Audit(audit),
    Sql(sql),
    Diff(diff),
    Tag(tag),
    Untag(untag),
    Tags(tags),
    Note(note),
    Pin(pin),
    Unpin(unpin),
    Pins(pins),
    Log(log),
    Stats(stats),
    Rm(rm),
    Forget(forget),
    Gc(gc),
    Tombstones(tombstones),
    Backup(backup),
    Export(export),
    Import(import),
    Fsck(fsck),
    Reindex(reindex),
    Upgrade(upgrade),
    Rules(rules),
    Config(config),
    Completions(completions),
    Man(man),
}

/// Runs the command given on the command line.
pub(crate) fn main() -> ExitCode {
    if let Err(failure) = time::fix_clock_for_tests() {
        return exit::exit_code(Err(failure));
    }
    if let Some(status) = completing::answer() {
        return status;
    }
    let cli = Cli::parse_single_command().map_or_else(
        || help::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)),
        Ok,
    );
    match cli {
        Ok(cli) => exit::exit_code(cli.run()),
        Err(error) => exit::usage_exit_code(error),
    }
}

impl Cli {
    /// Parses the arguments if they are those of a single command without errors. Defining all commands takes longer
    /// than most of them run, so this defines only the command that seems to be used. Otherwise, all commands are
    /// defined and parsed.
    fn parse_single_command() -> Option<Self> {
        let command = std::env::args_os().skip(1).find_map(|argument| Command::alone(argument.to_str()?))?;
        let root = VaultArgs::augment_args(clap::Command::new("runvault")).subcommand(command);
        let matches = root.try_get_matches().ok()?;
        Self::from_arg_matches(&matches).ok()
    }

    fn run(self) -> Result<Status, Failure> {
        let vault = &self.vault;
        match self.command {
            Command::Init(args) => args.run(vault),
            Command::Add(args) => args.run(vault),
            Command::Watch(args) => args.run(vault),
            Command::Verify(args) => args.run(vault),
            Command::Get(args) => args.run(vault),
            Command::Show(args) => args.run(vault),
            Command::Find(args) => args.run(vault),
            Command::Search(args) => args.run(vault),
            Command::Replay(args) => args.run(vault),
            Command::Stub(args) => args.run(vault),
            Command::Links(args) => args.run(vault),
            Command::Link(args) => args.run(vault),
            Command::Unlink(args) => args.run(vault),
            Command::Why(args) => args.run(vault),
            Command::Dangling(args) => args.run(vault),
            Command::Forks(args) => args.run(vault),
            Command::Audit(args) => args.run(vault),
            Command::Sql(args) => args.run(vault),
            Command::Diff(args) => args.run(vault),
            Command::Tag(args) => args.run(vault),
            Command::Untag(args) => args.run(vault),
            Command::Tags(args) => args.run(vault),
            Command::Note(args) => args.run(vault),
            Command::Pin(args) => args.run(vault),
            Command::Unpin(args) => args.run(vault),
            Command::Pins(args) => args.run(vault),
            Command::Log(args) => args.run(vault),
            Command::Stats(args) => args.run(vault),
            Command::Rm(args) => args.run(vault),
            Command::Forget(args) => args.run(vault),
            Command::Gc(args) => args.run(vault),
            Command::Tombstones(args) => args.run(vault),
            Command::Backup(args) => args.run(vault),
            Command::Export(args) => args.run(vault),
            Command::Import(args) => args.run(vault),
            Command::Fsck(args) => args.run(vault),
            Command::Reindex(args) => args.run(vault),
            Command::Upgrade(args) => args.run(vault),
            Command::Rules(args) => args.run(),
            Command::Config(args) => args.run(vault),
            Command::Completions(args) => args.run(),
            Command::Man(args) => args.run(help::command(), vault),
        }
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

//! Arguments in, text out. Each command is one file: its arguments, its run, its printing.

mod actor;
mod add;
mod audit;
mod backup;
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
mod forks;
mod fsck;
mod gc;
mod get;
mod graph;
mod grid;
mod hash;
mod help;
mod hits;
mod import;
mod inputs;
mod json;
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
mod sql;
mod stats;
mod stub;
mod table;
mod tag;
mod tags;
mod template;
mod time;
mod unlink;
mod unpin;
mod untag;
mod vault;
mod verify;
mod watch;
mod why;

use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};

use exit::{Failure, Status};
use vault::VaultArgs;

/// An archive for what AI agent runs leave behind: verified, content-addressed, in one file.
#[derive(Parser)]
#[command(name = "runvault", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Exit status: 0 done; 1 the answer is no (violations, not found, different); \
    2 could not run (I/O, database); 3 wrong usage.")]
struct Cli {
    #[command(flatten)]
    vault: VaultArgs,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Add(add::Args),
    Watch(watch::Args),
    Verify(verify::Args),
    Get(get::Args),
    Show(show::Args),
    Find(find::Args),
    Search(search::Args),
    Replay(replay::Args),
    Stub(stub::Args),
    Links(links::Args),
    Link(link::Args),
    Unlink(unlink::Args),
    Why(why::Args),
    Dangling(dangling::Args),
    Forks(forks::Args),
    Audit(audit::Args),
    Sql(sql::Args),
    Diff(diff::Args),
    Tag(tag::Args),
    Untag(untag::Args),
    Tags(tags::Args),
    Note(note::Args),
    Pin(pin::Args),
    Unpin(unpin::Args),
    Pins(pins::Args),
    Log(log::Args),
    Stats(stats::Args),
    Rm(rm::Args),
    Forget(forget::Args),
    Gc(gc::Args),
    Backup(backup::Args),
    Export(export::Args),
    Import(import::Args),
    Fsck(fsck::Args),
    Reindex(reindex::Args),
    Rules(rules::Args),
    Config(config::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs the command that the process was started with.
pub(crate) fn main() -> ExitCode {
    if let Some(status) = completing::answer() {
        return status;
    }
    // What help says beside the arguments takes time to put together, and is seldom asked for.
    let cli = Cli::try_parse()
        .or_else(|_| help::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)));
    match cli {
        Ok(cli) => exit::of(cli.run()),
        Err(error) => exit::of_usage(error),
    }
}

impl Cli {
    fn run(self) -> Result<Status, Failure> {
        let vault = &self.vault;
        match self.command {
            Command::Add(args) => args.run(vault),
            Command::Watch(args) => args.run(vault),
            Command::Verify(args) => args.run(),
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
            Command::Backup(args) => args.run(vault),
            Command::Export(args) => args.run(vault),
            Command::Import(args) => args.run(vault),
            Command::Fsck(args) => args.run(vault),
            Command::Reindex(args) => args.run(vault),
            Command::Rules(args) => args.run(),
            Command::Config(args) => args.run(),
            Command::Completions(args) => args.run(),
            Command::Man(args) => args.run(help::command()),
        }
    }
}

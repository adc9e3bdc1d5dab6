//! The commands, one file or directory each: arguments, execution, output.

pub(crate) mod add;
mod assert;
pub(crate) mod audit;
mod backup;
mod completions;
pub(crate) mod config;
mod copy;
pub(crate) mod diff;
#[cfg(feature = "gateway")]
mod exec;
pub(crate) mod export;
pub(crate) mod find;
pub(crate) mod forget;
mod forks;
pub(crate) mod fsck;
#[cfg(feature = "gateway")]
mod gateway;
mod gc;
pub(crate) mod get;
pub(crate) mod import;
pub(crate) mod index;
mod init;
mod label;
pub(crate) mod link;
pub(crate) mod links;
mod list;
pub(crate) mod log;
mod man;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "gateway")]
mod mcp_proxy;
pub(crate) mod mover;
mod note;
mod path;
mod pin;
pub(crate) mod replay;
mod rm;
pub(crate) mod rules;
pub(crate) mod search;
#[cfg(feature = "server")]
mod serve;
pub(crate) mod show;
mod sql;
mod stats;
mod tag;
mod tombstones;
mod unresolved;
pub(crate) mod verify;
mod view;
mod watch;

use clap::{Args as _, Subcommand};

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};

/// Defines a command with subcommands, each with arguments that run it.
macro_rules! verbs {
    ($(#[$about:meta])* $($verb:ident($arguments:ty)),+ $(,)?) => {
        $(#[$about])*
        #[derive(clap::Args)]
        pub(crate) struct Args {
            #[command(subcommand)]
            verb: Verb,
        }

        #[derive(clap::Subcommand)]
        enum Verb {
            $($verb($arguments)),+
        }

        impl Args {
            pub(crate) fn run(
                &self,
                vault: &crate::cli::args::vault::VaultArgs,
            ) -> Result<crate::cli::output::exit::Status, crate::cli::output::exit::CommandError> {
                match &self.verb {
                    $(Verb::$verb(args) => args.run(vault)),+
                }
            }
        }
    };
}

use verbs;

/// Defines the enum of all commands, and a function that defines a single command.
macro_rules! commands {
    ($($(#[$condition:meta])? $command:ident($name:ident)),* $(,)?) => {
        #[derive(Subcommand)]
        pub(crate) enum Command {
            $($(#[$condition])? $command($name::Args)),*
        }

        impl Command {
            /// Returns the definition of the command with this name.
            pub(crate) fn alone(name: &str) -> Option<clap::Command> {
                // The names of modules have no hyphens.
                Some(match name.replace('-', "_").as_str() {
                    $(
                        $(#[$condition])?
                        stringify!($name) => $name::Args::augment_args(clap::Command::new(name.to_owned())),
                    )*
                    _ => return None,
                })
            }

            /// Returns the name of the command.
            pub(crate) fn name(&self) -> &'static str {
                match self {
                    $($(#[$condition])? Self::$command(_) => stringify!($name)),*
                }
            }

            /// Runs the command.
            pub(crate) fn run(self, vault: &VaultArgs) -> Result<Status, CommandError> {
                match self {
                    $($(#[$condition])? Self::$command(args) => args.run(vault)),*
                }
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
    View(view),
    List(list),
    Find(find),
    Search(search),
    #[cfg(feature = "server")]
    Serve(serve),
    #[cfg(feature = "gateway")]
    Gateway(gateway),
    #[cfg(feature = "gateway")]
    Exec(exec),
    #[cfg(feature = "gateway")]
    McpProxy(mcp_proxy),
    #[cfg(feature = "mcp")]
    Mcp(mcp),
    Replay(replay),
    Links(links),
    Link(link),
    Path(path),
    Unresolved(unresolved),
    Forks(forks),
    Audit(audit),
    Sql(sql),
    Diff(diff),
    Assert(assert),
    Tag(tag),
    Note(note),
    Label(label),
    Pin(pin),
    Log(log),
    Stats(stats),
    Rm(rm),
    Forget(forget),
    Gc(gc),
    Tombstones(tombstones),
    Backup(backup),
    Copy(copy),
    Export(export),
    Import(import),
    Fsck(fsck),
    Index(index),
    Rules(rules),
    Config(config),
    Completions(completions),
    Man(man),
}

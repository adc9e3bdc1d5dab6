//! The short help of `-h`: the common options only.

use clap::{Arg, Command};

/// Returns a function that leaves options of these names out of the short help of a command, which shares them with
/// commands where they are common.
pub(crate) fn rarely(names: &'static [&'static str]) -> impl Fn(Arg) -> Arg {
    move |argument| {
        let is_rare = argument.get_long().is_some_and(|name| names.contains(&name));
        if is_rare { argument.hide_short_help(true) } else { argument }
    }
}

/// Options of every command, which the short help lists in one line.
const COMMON: [&str; 5] = ["vault", "quiet", "verbose", "help", "version"];

/// Describes the options of every command in one line of their short help. The commands must have been built.
pub(super) fn with_common_in_one_line(command: Command) -> Command {
    command.mut_subcommands(|inner| {
        let hidden = |argument: Arg| {
            let is_common = COMMON.contains(&argument.get_id().as_str());
            if is_common { argument.hide_short_help(true) } else { argument }
        };
        let inner = inner
            .mut_args(hidden)
            .after_help("Global options: --vault, -q, -v. --help shows all options and examples.");
        with_common_in_one_line(inner)
    })
}

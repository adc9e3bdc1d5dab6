//! Additions to `--help`, the manual pages and docs/commands/: groups of commands, and examples.

mod examples;
#[cfg(test)]
mod tests;

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory};

use crate::cli::Cli;
use crate::cli::output::{fit, terminal};

pub(crate) use examples::for_command as examples_of;

/// Returns the commands with their complete help.
pub(crate) fn command() -> Command {
    arranged(extended(Cli::command()), &GROUPS, DOCUMENTED_WIDTH)
}

/// The width of the help in the documentation.
const DOCUMENTED_WIDTH: usize = 80;

/// Returns the commands with the help that a command line asks for: everyday commands if it asks for a summary.
pub(crate) fn command_for(words: &[OsString]) -> Command {
    let asks_for_summary =
        words.len() < 2 || words.iter().take_while(|word| *word != "--").any(|word| word == "-h");
    let width = terminal::width().unwrap_or(DOCUMENTED_WIDTH);
    let listed: &[_] = if asks_for_summary { &SUMMARY } else { &GROUPS };
    let command = fitted(arranged(extended(Cli::command()), listed, width), width);
    if asks_for_summary { with_common_in_one_line(command) } else { command }
}

fn extended(root: Command) -> Command {
    with_examples(root, &mut String::new())
}

/// Adds the examples to a command. `path` contains the names of its parent commands.
fn with_examples(command: Command, path: &mut String) -> Command {
    let length = path.len();
    let command = match examples::text(path) {
        Some(text) => command.after_long_help(text),
        None => command,
    };
    command.mut_subcommands(|inner| {
        if !path.is_empty() {
            path.push(' ');
        }
        path.push_str(inner.get_name());
        let inner = with_examples(inner, path);
        path.truncate(length);
        inner
    })
}

/// The indent of further usage lines.
const USAGE_INDENT: &str = "\n         ";

/// Wraps the usage of every command that does not fit into this width.
fn fitted(mut command: Command, width: usize) -> Command {
    // Global options are part of every usage.
    command.build();
    let name = command.get_name().to_owned();
    below(command, &name, width)
}

fn below(command: Command, path: &str, width: usize) -> Command {
    let command = command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        below(inner, &path, width)
    });
    let usage = command.clone().bin_name(path).render_usage().to_string();
    if fit::width(&usage) <= width {
        return command;
    }
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let lines = fit::fold(usage, width.saturating_sub(USAGE_INDENT.len()).max(1));
    command.override_usage(lines.join(USAGE_INDENT))
}

/// Commands in a group with a heading.
type CommandGroup = (&'static str, &'static [&'static str]);

/// The groups of the summary.
const SUMMARY: [CommandGroup; 1] = [(
    "Common commands",
    &[
        "add", "verify", "get", "show", "view", "list", "find", "search", "serve", "exec", "replay", "diff",
        "links", "sql", "stats", "tag", "label", "pin", "backup", "export", "import", "rm", "forget", "fsck",
        "log", "help",
    ],
)];

/// Groups of all commands. clap itself adds `help`.
const GROUPS: [CommandGroup; 9] = [
    (
        "Everyday",
        &[
            "init",
            "add",
            "watch",
            "verify",
            "get",
            "show",
            "view",
            "list",
            "find",
            "search",
            #[cfg(feature = "server")]
            "serve",
            #[cfg(feature = "mcp")]
            "mcp",
        ],
    ),
    (
        "Record, replay and compare",
        &[
            #[cfg(feature = "gateway")]
            "exec",
            #[cfg(feature = "gateway")]
            "gateway",
            #[cfg(feature = "gateway")]
            "mcp-proxy",
            "replay",
            "diff",
            "assert",
        ],
    ),
    ("Links", &["links", "link", "path", "unresolved", "forks", "audit"]),
    ("Tables and numbers", &["sql", "stats"]),
    ("Names, labels, notes and protection", &["tag", "label", "note", "pin"]),
    ("Copies", &["backup", "copy", "export", "import"]),
    ("Removal", &["rm", "forget", "gc", "tombstones"]),
    ("Trust", &["fsck", "index", "log", "rules"]),
    ("Settings and help", &["config", "completions", "man", "help"]),
];

/// The group of commands that are in no other group.
const REST: &str = "Other";

const HELP: &str = "Print this message or the help of a command";

/// Returns the root command, whose help lists the commands in these groups, in lines of this width.
fn arranged(root: Command, groups: &'static [CommandGroup], width: usize) -> Command {
    let styles = root.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let listing = grouped(&root, groups).into_iter().map(|(heading, commands)| {
        let line = |(name, about): (String, String)| {
            let about = fit::fold(&about, width.saturating_sub(INDENT).max(NARROWEST))
                .join(&format!("\n{:INDENT$}", ""));
            format!("  {literal}{name:<11}{literal:#}  {about}\n")
        };
        let lines: Vec<String> = commands.into_iter().map(line).collect();
        format!("\n{header}{heading}:{header:#}\n{}", lines.concat())
    });
    let listing = listing.collect::<Vec<_>>().concat();
    let head = "{before-help}{about-with-newline}\n{usage-heading} {usage}\n";
    let more = if groups.len() < GROUPS.len() { "\nrunvault --help lists all commands.\n" } else { "" };
    let text = format!("{head}{listing}{more}\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    root.help_template(text)
}

/// The minimum width of descriptions.
const NARROWEST: usize = 20;

/// The width of the column of command names.
const INDENT: usize = 15;

/// Returns the groups with the names and descriptions of all commands.
/// Returns the groups with the names and descriptions of their commands, and of those that are in none if the groups
/// are to have all.
fn grouped(root: &Command, groups: &'static [CommandGroup]) -> Vec<(&'static str, Vec<(String, String)>)> {
    let about = |name: &str| {
        let found = root.find_subcommand(name).map(about_of);
        found.or_else(|| (name == "help").then(|| HELP.to_owned()))
    };
    let known = |name: &&str| Some(((*name).to_owned(), about(name)?));
    let mut listed: Vec<_> =
        groups.iter().map(|(heading, names)| (*heading, names.iter().filter_map(known).collect())).collect();
    let is_grouped = |name: &str| groups.iter().any(|(_, names)| names.contains(&name));
    let rest = root.get_subcommands().filter(|command| !is_grouped(command.get_name()));
    let rest: Vec<_> = rest.map(|command| (command.get_name().to_owned(), about_of(command))).collect();
    if !rest.is_empty() && groups.len() == GROUPS.len() {
        listed.push((REST, rest));
    }
    listed
}

fn about_of(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

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
fn with_common_in_one_line(command: Command) -> Command {
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

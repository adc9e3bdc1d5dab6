//! The list of commands in `--help`, by purpose.

use clap::Command;

use crate::cli::output::fit;

/// Commands in a group with a heading.
type CommandGroup = (&'static str, &'static [&'static str]);

/// The groups of the summary.
pub(super) const SUMMARY: [CommandGroup; 1] = [(
    "Common commands",
    &[
        "add", "verify", "get", "show", "view", "list", "find", "search", "serve", "exec", "replay", "diff",
        "links", "sql", "stats", "tag", "label", "pin", "backup", "export", "import", "rm", "forget", "fsck",
        "log", "help",
    ],
)];

/// Groups of all commands. clap itself adds `help`.
pub(super) const GROUPS: [CommandGroup; 9] = [
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
            "replay",
            "diff",
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
pub(super) fn arranged(root: Command, groups: &'static [CommandGroup], width: usize) -> Command {
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
#[cfg(test)]
pub(super) fn groups(root: &Command) -> Vec<(&'static str, Vec<(String, String)>)> {
    grouped(root, &GROUPS)
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group() {
        let root = Cli::command();
        let ungrouped: Vec<_> = groups(&root).into_iter().filter(|(heading, _)| *heading == REST).collect();
        assert!(ungrouped.is_empty(), "these belong into a group in groups.rs: {ungrouped:?}");
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        let mut all: Vec<&str> = root.get_subcommands().map(Command::get_name).chain(["help"]).collect();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }
}

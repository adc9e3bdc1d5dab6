//! Suggestions for commands that people know from other programs.

use runvault::display::similar;
use runvault::formats;

/// What to use in place of commands of git, restic, jujutsu, borg and others.
const SUGGESTIONS: &[(&[&str], &str)] = &[
    (&["dir", "snapshots"], "\"runvault list\" lists what is stored, \"runvault find\" finds artifacts"),
    (
        &["cat", "cat-file", "fetch", "read"],
        "\"runvault get HASH\" writes an artifact's bytes, \"runvault view HASH\" a transcript",
    ),
    (
        &["inspect", "info", "describe"],
        "\"runvault show HASH\" describes an artifact, \"runvault stats\" the vault",
    ),
    (&["status", "du", "df"], "\"runvault stats\" shows counts and disk usage"),
    (
        &["check", "doctor", "scrub"],
        "\"runvault fsck\" checks the vault, \"runvault verify PATH\" checks files without storing them",
    ),
    (&["validate", "lint"], "\"runvault verify PATH\" checks files without storing them"),
    (&["repair", "recover", "rescue"], "\"runvault fsck --repair\" repairs what it can"),
    (
        &["prune", "clean", "compact", "vacuum"],
        "\"runvault forget\" applies a retention policy, \"runvault gc\" reclaims disk space",
    ),
    (
        &["restore", "extract", "checkout"],
        "\"runvault get HASH -o PATH\" writes an artifact to a file; a backup is a vault, which --vault names",
    ),
    (
        &["remove", "delete", "del"],
        "\"runvault rm HASH\" removes an artifact, \"runvault tag remove NAME\" a tag; labels, links, notes and pins alike",
    ),
    (
        &["put", "store", "save", "commit", "ingest", "create"],
        "\"runvault add PATH\" adds artifacts, \"runvault init\" creates a vault",
    ),
    (&["open", "new"], "\"runvault init\" creates a vault"),
    (&["grep", "rg"], "\"runvault search TEXT\" searches the text of artifacts"),
    (&["query", "select"], "\"runvault find\" filters artifacts, \"runvault sql QUERY\" runs a query"),
    (&["history", "reflog", "journal"], "\"runvault log\" shows the journal"),
    (
        &["cp", "clone", "dump", "sync"],
        "\"runvault copy FROM TO\" copies a vault into another one, \"runvault backup FILE\" to a file, \"runvault export\" artifacts to a bundle",
    ),
    (
        &["push", "send"],
        "\"runvault copy FROM TO\" copies a vault into another one, \"runvault export --all -o FILE.rvz\" writes a bundle for it",
    ),
    (&["archive", "bundle"], "\"runvault export HASH -o FILE.rvz\" writes artifacts to a bundle"),
    (&["pull", "load", "receive"], "\"runvault import FILE.rvz\" adds the artifacts of a bundle"),
    (&["compare", "cmp"], "\"runvault diff A B\" compares two artifacts"),
    (
        &["graph", "refs", "references", "tree"],
        "\"runvault links HASH\" lists links, \"runvault unresolved\" references to missing artifacts",
    ),
    (
        &["run", "record"],
        "\"runvault exec -- PROGRAM\" records its model calls, \"runvault gateway\" those of other clients",
    ),
    (&["captures"], "\"runvault show HASH\" lists the captures of an artifact"),
    (&["browse", "web", "ui"], "\"runvault serve\" shows the vault in a browser"),
    (&["name", "alias", "bookmark", "rename"], "\"runvault tag set HASH NAME\" names an artifact"),
    (&["keep", "protect", "lock"], "\"runvault pin add HASH\" protects an artifact from removal"),
    (&["unlock"], "a vault needs no unlocking; \"runvault pin remove HASH\" allows removal"),
    (&["play", "mock"], "\"runvault replay HASH --serve-stdio\" serves recorded responses"),
    (&["set", "get-config", "settings"], "\"runvault config\" shows or changes settings"),
    (&["reindex"], "\"runvault index rebuild\" rebuilds all indexes"),
    (&["version"], "\"runvault --version\" prints the version"),
];

/// What to use in place of a command with the name of a kind.
const OF_KIND: &str = "\"runvault list KIND\" lists the artifacts of one kind";

/// Returns what to use in place of a command that does not exist.
pub(crate) fn for_command(name: &str) -> Option<&'static str> {
    let known = SUGGESTIONS.iter().find(|(names, _)| names.contains(&name));
    let is_kind = || formats::called(name).is_some();
    known.map(|(_, suggestion)| *suggestion).or_else(|| is_kind().then_some(OF_KIND))
}

/// Returns the option of `command`, or of all commands, that an unknown one may stand for.
pub(crate) fn for_option(typed: &str, root: &clap::Command, command: &clap::Command) -> Option<String> {
    let known: Vec<String> = command
        .get_arguments()
        .chain(root.get_arguments().filter(|argument| argument.is_global_set()))
        .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
        .collect();
    let similar = similar(typed, known.iter().map(String::as_str), 1);
    similar.first().map(|option| (*option).to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn suggestions_name_commands_that_exist() {
        let root = Cli::command();
        for (names, suggestion) in SUGGESTIONS {
            for name in *names {
                assert!(root.find_subcommand(name).is_none(), "{name} is a command");
            }
            for line in suggestion.split("\"runvault ").skip(1) {
                let words: Vec<&str> = line.split('"').next().unwrap().split(' ').collect();
                assert!(words[0].starts_with('-') || root.find_subcommand(words[0]).is_some(), "{words:?}");
            }
        }
    }
}

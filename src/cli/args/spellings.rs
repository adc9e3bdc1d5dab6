//! Former spellings of commands, which are still accepted but not documented.

use std::ffi::{OsStr, OsString};

/// Commands that have other names now.
const RENAMED: [(&str, &[&str]); 9] = [
    ("untag", &["tag", "remove"]),
    ("tags", &["tag", "list"]),
    ("unpin", &["pin", "remove"]),
    ("pins", &["pin", "list"]),
    ("unlink", &["link", "remove"]),
    ("reindex", &["index", "rebuild"]),
    ("dangling", &["unresolved"]),
    ("why", &["path"]),
    ("stub", &["replay"]),
];

/// Commands whose subcommands are new, with the subcommands and the one that was meant before.
const DIVIDED: [(&str, &[&str], &str); 5] = [
    ("tag", &["set", "remove", "list"], "set"),
    ("label", &["set", "remove", "list"], "set"),
    ("pin", &["add", "remove", "list"], "add"),
    ("link", &["add", "remove", "list"], "add"),
    ("note", &["set", "show", "remove"], "show"),
];

/// Names of subcommands in other programs, and the subcommand that is meant, if the command has it.
const SYNONYMS: [(&str, &str); 7] = [
    ("add", "set"),
    ("del", "remove"),
    ("delete", "remove"),
    ("ls", "list"),
    ("rm", "remove"),
    ("set", "add"),
    ("unset", "remove"),
];

/// Options of all commands that are followed by a value.
const WITH_VALUE: [&str; 2] = ["--vault", "--actor"];

/// Options with a value that a divided command took before its other arguments.
const NOTE: &str = "--note";

/// Returns the index of the command in the words of a command line, which begin with the program.
pub(crate) fn command_index(words: &[OsString]) -> Option<usize> {
    positionals(words, 1).next()
}

/// Returns the indexes of the words from `first` that are neither options nor values of options.
fn positionals(words: &[OsString], first: usize) -> impl Iterator<Item = usize> {
    let (mut is_value, mut are_all) = (false, false);
    words.iter().enumerate().skip(first).filter_map(move |(index, word)| {
        if std::mem::take(&mut is_value) {
            return None;
        }
        match word.to_str() {
            _ if are_all => Some(index),
            Some("--") => {
                are_all = true;
                None
            }
            Some(option) if WITH_VALUE.contains(&option) || option == NOTE => {
                is_value = true;
                None
            }
            Some("-") => Some(index),
            Some(option) if option.starts_with('-') => None,
            _ => Some(index),
        }
    })
}

/// Replaces a former spelling by the current one.
pub(crate) fn modernize(words: Vec<OsString>) -> Vec<OsString> {
    let Some(command) = command_index(&words) else { return words };
    let at = if words.get(command).is_some_and(|word| word == "help") { command + 1 } else { command };
    let Some(name) = words.get(at).and_then(|word| word.to_str()) else { return words };
    if let Some((_, now)) = RENAMED.iter().find(|(old, _)| *old == name) {
        return replaced(words, at, now);
    }
    let rest = words.get(at + 1..).unwrap_or_default();
    match name {
        "search" if has(rest, "--build") => without(words, at, "--build", &["index", "build"]),
        "search" if has(rest, "--drop") => without(words, at, "--drop", &["index", "drop"]),
        _ if at != command || has(rest, "--help") || has(rest, "-h") => words,
        _ => divided(words, at),
    }
}

fn divided(words: Vec<OsString>, at: usize) -> Vec<OsString> {
    let name = words.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    let divided = DIVIDED.into_iter().find(|(known, ..)| *known == name);
    let Some((name, verbs, meant)) = divided else { return words };
    let arguments: Vec<usize> = positionals(&words, at + 1).collect();
    let Some((index, first)) = arguments.first().and_then(|index| Some((*index, words.get(*index)?))) else {
        return words;
    };
    let is_verb = |word: &str| verbs.contains(&word);
    if first.to_str().is_some_and(|first| is_verb(first) || first == "help") {
        return words;
    }
    if let Some((_, verb)) = SYNONYMS.iter().find(|(word, verb)| first == word && is_verb(verb)) {
        return replaced(words, index, &[verb]);
    }
    let rest = words.get(at + 1..).unwrap_or_default();
    match name {
        "note" if has(rest, "--remove") => without(words, at, "--remove", &["note", "remove"]),
        "note" if arguments.len() > 1 => replaced(words, at, &["note", "set"]),
        _ => replaced(words, at, &[name, meant]),
    }
}

/// Returns whether an option is among the words.
fn has(words: &[OsString], option: &str) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == option)
}

/// Replaces the word at `at`.
fn replaced(mut words: Vec<OsString>, at: usize, by: &[&str]) -> Vec<OsString> {
    words.splice(at..=at, by.iter().map(OsStr::new).map(OsStr::to_owned));
    words
}

/// Replaces the word at `at`, and removes an option after it.
fn without(words: Vec<OsString>, at: usize, option: &str, by: &[&str]) -> Vec<OsString> {
    let index = words.iter().skip(at).position(|word| word == option);
    let mut words = words;
    if let Some(index) = index {
        words.remove(at + index);
    }
    replaced(words, at, by)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn now(line: &str) -> String {
        let words = std::iter::once("runvault").chain(line.split(' ')).map(OsString::from).collect();
        let words = modernize(words).into_iter().skip(1).map(|word| word.into_string().unwrap());
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn former_spellings_are_replaced() {
        for (then, expected) in [
            ("tags --json", "tag list --json"),
            ("untag baseline", "tag remove baseline"),
            ("--vault why --actor=tags untag baseline", "--vault why --actor=tags tag remove baseline"),
            ("tag 4df877 baseline", "tag set 4df877 baseline"),
            ("tag 4df877 list", "tag set 4df877 list"),
            ("tag --vault list 4df877 baseline", "tag set --vault list 4df877 baseline"),
            ("pin --note list 4df877", "pin add --note list 4df877"),
            ("pin latest", "pin add latest"),
            ("link a governs b", "link add a governs b"),
            ("note 4df877", "note show 4df877"),
            ("note 4df877 --json", "note show 4df877 --json"),
            ("note 4df877 text", "note set 4df877 text"),
            ("note 4df877 -", "note set 4df877 -"),
            ("note --remove 4df877", "note remove 4df877"),
            ("search --build", "index build"),
            ("search --vault v --drop", "index drop --vault v"),
            ("stub 3941d3 --serve-stdio", "replay 3941d3 --serve-stdio"),
            ("help untag", "help tag remove"),
            ("label latest a=b", "label set latest a=b"),
            ("tag rm baseline", "tag remove baseline"),
            ("tag add 4df877 baseline", "tag set 4df877 baseline"),
            ("label --vault rm delete 4df877 a", "label --vault rm remove 4df877 a"),
            ("pin set latest", "pin add latest"),
            ("reindex --help", "index rebuild --help"),
        ] {
            assert_eq!(now(then), expected);
        }
    }

    #[test]
    fn current_spellings_are_unchanged() {
        for line in [
            "tag list",
            "tag set 4df877 baseline",
            "tag --vault v list",
            "tag",
            "tag --help",
            "tag help set",
            "help tag",
            "pin add latest",
            "link remove a governs b",
            "note show 4df877",
            "note set 4df877 --remove",
            "search tags",
            "search -- --build",
            "get untag",
            "--vault tags",
        ] {
            assert_eq!(now(line), line);
        }
    }

    #[test]
    fn the_tables_are_those_of_the_commands() {
        let root = Cli::command();
        let with_value = root.get_arguments().filter(|argument| argument.get_action().takes_values());
        let mut with_value: Vec<String> =
            with_value.filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect();
        with_value.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(with_value, WITH_VALUE);
        for (name, verbs, meant) in DIVIDED {
            let command = root.find_subcommand(name).unwrap();
            let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            assert_eq!(known, verbs);
            assert!(verbs.contains(&meant));
        }
        for (old, now) in RENAMED {
            assert!(root.find_subcommand(old).is_none(), "{old}");
            let found = now.iter().try_fold(&root, |command, name| command.find_subcommand(name));
            assert!(found.is_some(), "{now:?}");
        }
    }
}

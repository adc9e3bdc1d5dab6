use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};

use super::{GROUPS, REST, command, examples, grouped};
use crate::cli::Cli;
use crate::cli::args::settings;

/// Returns all commands below `command` with their paths, such as `config set`.
fn all(command: &Command, path: &str) -> Vec<(String, Command)> {
    let named = command.get_subcommands().filter(|inner| inner.get_name() != "help");
    let below = named.flat_map(|inner| {
        let path = [path, inner.get_name()].join(" ").trim().to_owned();
        let further = all(inner, &path);
        std::iter::once((path, inner.clone())).chain(further)
    });
    below.collect()
}

fn built() -> Command {
    let mut root = command();
    root.build();
    root
}

/// Splits a line into words like a shell, as far as the examples require.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (None, ' ') => words.push(String::new()),
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => words.last_mut().unwrap().push(character),
        }
    }
    words
}

#[test]
fn clap_finds_nothing_wrong() {
    command().debug_assert();
}

#[test]
fn every_command_has_an_example_and_every_argument_a_description() {
    let root = built();
    let commands = all(&root, "");
    assert!(commands.len() > 30);
    for (path, command) in &commands {
        assert!(!examples::for_command(path).is_empty(), "{path} has no example in examples.rs");
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(!about.is_empty() && !about.ends_with('.'), "{path}: {about:?}");
        for argument in command.get_arguments() {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.len() > 3 && !help.ends_with('.'), "{path} {}: {help:?}", argument.get_id());
        }
    }
    for path in examples::paths() {
        assert!(commands.iter().any(|(known, _)| known == path), "there is no command {path}");
    }
}

#[test]
fn examples_are_what_the_program_takes() {
    for path in examples::paths() {
        for (what, line) in examples::for_command(path) {
            let begins = line.find(&format!("runvault {path}")).or_else(|| line.find("runvault ")).unwrap();
            let ends = ["| ", "> ", ")"].iter().filter_map(|end| line[begins..].find(end)).min();
            let call = &line[begins..begins + ends.unwrap_or(line.len() - begins)];
            let parsed = command().try_get_matches_from(words(call.trim()));
            assert!(parsed.is_ok(), "{what}: {call}: {}", parsed.unwrap_err());
        }
    }
}

#[test]
fn the_list_of_commands_fits_a_terminal() {
    let help = command().term_width(80).render_help().to_string();
    for line in help.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_eq!(grouped(&built(), &GROUPS).len(), help.lines().filter(|line| line.ends_with(':')).count() - 1);
}

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}

/// Compares a file of docs/ with its expected contents. With `UPDATE_DOCS` set, writes the file instead.
fn expect_document(name: &str, expected: &str) {
    let path = document(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, expected).unwrap();
        return;
    }
    let actual = std::fs::read_to_string(&path).unwrap_or_default();
    let different = actual.lines().zip(expected.lines()).find(|(one, other)| one != other);
    let at = different
        .map_or_else(String::new, |(one, other)| format!("it has {one:?}, and should have {other:?}; "));
    assert!(
        actual == expected,
        "docs/{name} is not what --help says: {at}UPDATE_DOCS=1 cargo test --bin runvault docs writes it"
    );
}

/// The help of a command, in Markdown.
fn section(heading: &str, command: &Command) -> String {
    let help = command.clone().term_width(80).render_long_help().to_string().replace('`', "");
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    format!("{heading}\n\n```text\n{}\n```\n", lines.join("\n"))
}

/// The command without the options that every command has.
fn without_common_options(command: &Command) -> Command {
    command.clone().mut_args(|argument| {
        let is_common = argument.is_global_set() || ["help", "version"].contains(&argument.get_id().as_str());
        if is_common { argument.hide(true) } else { argument }
    })
}

#[test]
fn docs_of_all_commands() {
    let root = built();
    let mut pages: Vec<(String, String)> = Vec::new();
    for (path, command) in all(&root, "") {
        let level = if path.contains(' ') { "\n##" } else { "#" };
        let text = section(&format!("{level} runvault {path}"), &without_common_options(&command));
        let name = path.split(' ').next().unwrap_or_default();
        match pages.last_mut() {
            Some((last, page)) if last == name => page.push_str(&text),
            _ => pages.push((name.to_owned(), text)),
        }
    }
    let links: Vec<String> = pages.iter().map(|(name, _)| format!("[{name}]({name}.md)")).collect();
    let index = format!(
        "# Commands\n\nA page for each command has what `runvault COMMAND --help` prints, without the options that all \
         commands have\nand that this page lists. A test writes these pages: \
         `UPDATE_DOCS=1 cargo test --bin runvault docs`.\n\n{}\n\n{}",
        links.join(" · "),
        section("## runvault", &root)
    );
    pages.push(("README".to_owned(), index));
    let is_page = |name: &str| pages.iter().any(|(page, _)| name.strip_suffix(".md") == Some(page));
    for entry in std::fs::read_dir(document("commands")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(is_page(&name), "docs/commands/{name} is the page of no command");
    }
    for (name, page) in &pages {
        expect_document(&format!("commands/{name}.md"), page);
    }
}

#[test]
fn docs_of_all_settings() {
    const BEGIN: &str =
        "<!-- The table is written by a test: UPDATE_DOCS=1 cargo test --bin runvault docs -->\n";
    const END: &str = "<!-- The end of the table -->\n";
    let row = |known: &&dyn settings::AnySetting| {
        let entry = known.entry();
        let argument = entry.argument().map(|argument| format!("`{argument}`")).unwrap_or_default();
        let (name, variable) = (entry.name, entry.variable());
        format!("| `{name}` | `{variable}` | {argument} | {} | {} |\n", entry.default_text(), entry.about)
    };
    let rows: Vec<String> = settings::ALL.iter().map(row).collect();
    let head = "| setting | variable | argument | default | what it says |\n|---|---|---|---|---|\n";
    let table = format!("{head}{}", rows.concat());
    let actual = std::fs::read_to_string(document("configuration.md")).unwrap_or_default();
    let (before, rest) = actual.split_once(BEGIN).expect("docs/configuration.md has the mark of the table");
    let (_, after) = rest.split_once(END).expect("docs/configuration.md has the end of the table");
    expect_document("configuration.md", &format!("{before}{BEGIN}\n{table}\n{END}{after}"));
}

/// The help of a command as shown on a terminal of this width.
fn shown(command: &Command, width: usize, is_long: bool) -> String {
    let mut command = command.clone().term_width(width);
    if is_long { command.render_long_help().to_string() } else { command.render_help().to_string() }
}

#[test]
fn short_help_fits_one_screen() {
    let root = super::fitted(super::arranged(super::extended(Cli::command()), &super::SUMMARY, 80), 80);
    let root = super::with_common_in_one_line(root);
    for (path, command) in all(&root, "").into_iter().chain([(String::new(), root.clone())]) {
        let help = shown(&command, 80, false);
        // The list of the everyday commands is longer than the options of each.
        let lines = if path.is_empty() { 40 } else { 24 };
        assert!(help.lines().count() <= lines, "{path}: {} lines\n{help}", help.lines().count());
        let wide = help.lines().find(|line| line.trim_end().chars().count() > 80);
        assert_eq!(wide, None, "{path}");
    }
}

#[test]
fn no_word_is_broken_on_a_narrow_terminal() {
    let mut root = super::fitted(super::arranged(super::extended(Cli::command()), &super::GROUPS, 40), 40);
    root.build();
    for (path, command) in all(&root, "").into_iter().chain([(String::new(), root.clone())]) {
        for is_long in [false, true] {
            let help = shown(&command, 40, is_long);
            for line in help.lines() {
                // Only a word that is longer than the line itself, such as an option with its value, may stand out.
                let is_short = line.trim_end().chars().count() <= 40;
                let words = line.split_whitespace().count();
                let is_option = line.trim_start().starts_with('-');
                assert!(is_short || words == 1 || is_option, "{path}: {line}");
            }
        }
    }
}

#[test]
fn every_command_is_in_one_group() {
    let root = Cli::command();
    let ungrouped: Vec<_> =
        grouped(&root, &GROUPS).into_iter().filter(|(heading, _)| *heading == REST).collect();
    assert!(ungrouped.is_empty(), "these belong into a group in GROUPS: {ungrouped:?}");
    let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    grouped.sort_unstable();
    let mut all: Vec<&str> = root.get_subcommands().map(Command::get_name).chain(["help"]).collect();
    all.sort_unstable();
    assert_eq!(grouped, all);
}

//! Sources, help and documents use standard technical English: words and names that were replaced do not come back.

use std::path::{Path, PathBuf};

use crate::sandbox::repository;

/// Words and phrases that a practitioner has to guess. Each matches as a whole word, in any case.
const WORDS: &[&str] = &[
    "anew",
    "nobody",
    "somebody",
    "stranger",
    "strangers",
    "so many",
    "what is no artifact",
    "is told of",
    "who is meant",
    "leave behind",
    "mend",
    "mends",
    "mended",
    "rehearse",
    "rehearsal",
    "rehearsals",
    "rehearsed",
    "bring in step",
    "brought in step",
    "what the system says",
    "what the store says",
    "what the database says",
];

/// Names of earlier versions; each matches as a part of an identifier.
const NAMES: &[&str] = &[
    "artifacts_beginning",
    "as_filled_str",
    "at_hand",
    "blobs_of_nothing",
    "bring_in_step",
    "bring_up_to_date",
    "may_mention",
    "may_pass",
    "shared_beginnings",
    "stated_bare",
    "stated_either",
    "take_from_others",
    "workplace",
    "ColumnSort",
    "Mended",
    "NotItsCapture",
    "NotSoMany",
    "OtherKind",
    "PATIENCE",
    "Settling",
    "Stranger",
    "Teller",
    "Trouble",
    "Unplayed",
    "Wanted",
    "artifact-twice",
    "others-can-write",
    "mentions-disordered",
];

/// British spellings; each matches as a part of a word. The spelling is American, as in the Rust documentation.
const SPELLINGS: &[&str] = &[
    " labelled",
    "ehaviour",
    "ecognise",
    "ecognisi",
    "eighbour",
    "erialise",
    "itialise",
    "odernise",
    "olour",
    "ormalisa",
    "ormalise",
    "ptimisa",
    "ptimise",
];

#[test]
fn standard_words_are_used() {
    let root = repository("");
    let mut files = vec![
        root.join("Cargo.toml"),
        root.join("README.md"),
        root.join("CHANGELOG.md"),
        root.join("ARCHITECTURE.md"),
        root.join("CONTRIBUTING.md"),
    ];
    let is_of_the_project = |file: &PathBuf| {
        let has_words_as_data = ["tests/it/language.rs", "benches/corpus/words.rs"];
        !has_words_as_data.iter().any(|data| file.ends_with(data))
            && !file.iter().any(|part| part == "node_modules")
    };
    for directory in [
        "src",
        "docs",
        "benches",
        "examples",
        "tests",
        "bindings/python/python",
        "bindings/python/src",
        "fuzz/fuzz_targets",
        "fuzz/src",
    ] {
        collect(&root.join(directory), &mut files);
    }
    let mut found = Vec::new();
    for file in files.into_iter().filter(is_of_the_project) {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(&root).unwrap().display().to_string();
        found.extend(violations(&text).into_iter().map(|(line, what)| format!("{name}:{line}: {what}")));
    }
    assert!(found.is_empty(), "{} places:\n{}", found.len(), found.join("\n"));
}

/// The first words of a module head name what the module has.
#[test]
fn module_heads_name_a_thing() {
    let (root, mut files) = (repository(""), Vec::new());
    collect(&root.join("src"), &mut files);
    let questions = ["How", "What", "When", "Where", "Whether", "Who", "Why"];
    files.retain(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        let head = text.strip_prefix("//! ").unwrap_or_default();
        head.split_whitespace().next().is_some_and(|first| questions.contains(&first))
    });
    assert!(files.is_empty(), "{files:#?}");
}

#[test]
fn a_banned_word_is_found_as_a_whole_word_only() {
    let lines =
        |text| violations(text).into_iter().map(|(line, what)| format!("{line} {what}")).collect::<Vec<_>>();
    assert_eq!(lines("fine\nIt is made Anew.\n"), ["2 anew"]);
    assert_eq!(lines("renewed, recommended, amends\n"), [""; 0]);
    assert_eq!(lines("as so\n/// many others\n"), ["1 so many"]);
    assert_eq!(lines("self.at_hand.len()"), ["1 at_hand"]);
    assert_eq!(lines("a colour\nof optimistic neighbors"), ["1 olour"]);
}

/// The lines with a banned word or name, and what it is. A phrase may go on in the next line, after the mark of a comment.
fn violations(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let wanted: Vec<String> = WORDS.iter().map(|word| format!(" {word} ")).collect();
    let mut lines = text.lines().map(|line| (line, normalized(line))).enumerate().peekable();
    while let Some((at, (line, words))) = lines.next() {
        let parts = NAMES.iter().chain(SPELLINGS).filter(|name| line.contains(**name));
        found.extend(parts.map(|name| (at + 1, *name)));
        let next = lines.peek().map_or("", |(_, (_, next))| next.as_str());
        let both = format!("{words}{}", next.trim_start());
        for (word, wanted) in WORDS.iter().zip(&wanted) {
            if words.contains(wanted) || both.contains(wanted) && !next.contains(wanted) {
                found.push((at + 1, *word));
            }
        }
    }
    found
}

/// The words of a line in small letters, each between single spaces.
fn normalized(line: &str) -> String {
    let words = line.split(|character: char| !character.is_alphanumeric() && character != '_');
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    format!(" {} ", words.join(" "))
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "md") {
            files.push(path);
        }
    }
}

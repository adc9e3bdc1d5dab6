//! The commands that are tried on changed vaults.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Mutant, limited};
use crate::fsck::questions::{self, CONTRACT, PART, RUN, SESSION, SMALL, TRACE};
use crate::sandbox::{Sandbox, repository, session};

/// Commands that change the vault or go through all of it. Those of one line are run one after another on one copy.
const SEQUENCES: &[&[&[&str]]] = &[
    &[&["fsck"], &["fsck", "--quick"], &["fsck", "--sample=50%"]],
    &[&["fsck", "--repair"], &["fsck"], &["add", "d"], &["gc"]],
    &[&["fsck", "--repair", "--from", "examples"], &["fsck"]],
    &[&["index", "rebuild"], &["fsck"]],
    &[&["gc"], &["fsck", "--quick"]],
    &[&["gc", "--dry-run"], &["fsck"]],
    &[&["backup", "b.vault", "--force"]],
    &[&["export", "--all", "-o", "e.rvz", "--force"]],
    &[&["export", SESSION, "--with-links", "-o", "e.rvz", "--force"]],
    &[&["import", "i.rvz"]],
    &[&["add", "d", "examples"]],
    &[&["add", "--dry-run", "d", "examples"]],
    &[&["add", "--allow-removed", "examples", "--signing-key-file", "keys.toml"]],
    &[&["watch", "--once", "d"]],
    &[&["rm", SESSION, "--force", "--with-containers"]],
    &[&["rm", RUN, "--force"], &["fsck", "--repair"]],
    &[&["rm", SMALL, "--force"], &["rm", PART, "--force"]],
    &[&["forget", "--keep-last", "1", "--yes", "--force"], &["gc"]],
    &[&["index", "build"], &["search", "label"]],
    &[&["index", "drop"], &["index", "build"]],
    &[&["tag", "set", RUN, "x"], &["tag", "remove", "golden"]],
    &[&["note", "set", RUN, "x"], &["note", "remove", CONTRACT]],
    &[&["pin", "add", RUN], &["pin", "remove", CONTRACT]],
    &[&["link", "add", RUN, "follows", TRACE], &["link", "remove", CONTRACT, "governs", TRACE]],
    &[&["sql", "--save", "s.db"]],
    &[&["log", "--verify-from", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]],
];

/// The files that commands need beside the vault.
pub(super) fn sandbox() -> Sandbox {
    let sandbox = Sandbox::without_vault();
    std::os::unix::fs::symlink(repository("examples"), sandbox.path("examples")).unwrap();
    let other = Sandbox::new();
    other.add([other.write("other.json", session("other", &[("prompt", "of a bundle")]))]);
    other.run(["export", "--all", "-o", "i.rvz"]).expect(0);
    std::fs::copy(other.path("i.rvz"), sandbox.path("i.rvz")).unwrap();
    sandbox.write("d/new.json", session("new", &[("prompt 3", "another response")]));
    sandbox.write("d/run.rpk", crate::signatures::signed("theirs", "another secret"));
    crate::signatures::ring(&sandbox, "keys.toml", &[("theirs", "another secret")]);
    sandbox
}

/// Tries the commands on the mutant: of the reading ones and of the sequences one in `stride`, from `first` on. Gives what
/// broke.
pub(super) fn try_all(sandbox: &Sandbox, mutant: &Mutant, (first, stride): (usize, usize)) -> Vec<String> {
    let mut broken = Vec::new();
    let originals = originals();
    let mut try_one = |words: &[&str], is_changed: bool| {
        let outcome = limited::run(sandbox, words);
        let slow = outcome.elapsed > Duration::from_secs(5);
        if slow && std::env::var_os("RUNVAULT_FUZZ_SECONDS").is_some() {
            super::keep(&format!("slow: {:?} {words:?} {}", outcome.elapsed, mutant.described));
        }
        if let Some(what) = outcome.broken {
            broken.push(format!("{words:?}: {what}"));
        } else if let ["get", named] = words
            && *named != "@golden"
            && outcome.status == Some(0)
            && !is_changed
            && !originals.contains(&outcome.stdout)
        {
            broken.push(format!("{words:?}: it gives bytes that were never stored"));
        }
    };
    mutant.write(sandbox);
    for words in questions::questions(true).iter().skip(first).step_by(stride) {
        try_one(&words.iter().map(String::as_str).collect::<Vec<_>>(), false);
    }
    for sequence in SEQUENCES.iter().skip(first).step_by(stride) {
        mutant.write(sandbox);
        let _ = std::fs::remove_file(sandbox.path("s.db"));
        for words in *sequence {
            try_one(words, true);
        }
    }
    broken
}

/// What `get` may give of the artifacts that are asked for.
fn originals() -> BTreeSet<Vec<u8>> {
    let names = [
        "contract.yaml",
        "run.rpk",
        "session.json",
        "session-rerecorded.json",
        "session-small-model.json",
        "trace.ndjson",
        "trace-partial.ndjson",
    ];
    let mut originals: BTreeSet<Vec<u8>> =
        names.iter().map(|name| std::fs::read(repository("examples").join(name)).unwrap()).collect();
    originals.insert(crate::signatures::signed("ours", "secret").into_bytes());
    originals
}

/// On a vault that is as it was made, no command is wrong usage, and nothing fails that needs nothing else.
#[test]
fn every_sequence_can_be_run() {
    let sandbox = sandbox();
    let bytes = super::bases::ALL[0].bytes.clone();
    let mutant = Mutant { files: vec![("", bytes)], described: String::new() };
    for sequence in SEQUENCES {
        mutant.write(&sandbox);
        for words in *sequence {
            let outcome = limited::run(&sandbox, words);
            let said = std::fs::read_to_string(sandbox.path("stderr")).unwrap();
            assert!(matches!(outcome.status, Some(0..=1)), "{words:?}: {said}");
        }
    }
}

//! Labels: stored, held to the journal, restored from it.

use std::collections::BTreeMap;

use runvault::digest::{CoreHash, DigestPrefix};
use runvault::storage::interface::{Annotation, Storage};
use runvault::storage::{Actor, Store};

use crate::fsck::{bytes_of, findings, of_bytes, sql};
use crate::sandbox::{Sandbox, repository};

const CONTRACT: &str = "5c496a37feba";
const TRACE: &str = "7c8de5910f63";
const SESSION: &str = "4df877dec7f4";

/// Sets labels on the artifacts whose core hashes begin with these digits, always at the same time by the same actor.
pub(crate) fn set(sandbox: &Sandbox, prefixes: &[&str], labels: &[(&str, &str)]) {
    let store = Store::open(&sandbox.vault()).unwrap().acting_as(Actor::new("tests").unwrap());
    let mut change = store.transaction("2020-01-04T10:00:00Z".parse().unwrap()).unwrap();
    let core = |prefix: &&str| -> CoreHash {
        let prefix: DigestPrefix = prefix.parse().unwrap();
        change.snapshot().resolve(&prefix, 2).unwrap().artifacts[0]
    };
    let cores: Vec<CoreHash> = prefixes.iter().map(core).collect();
    let labels: BTreeMap<String, String> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    change.annotate(&Annotation::SetLabels { cores: &cores, labels: &labels }).unwrap();
    change.commit().unwrap();
}

/// The examples with labels that artifacts share and that were replaced.
fn labeled() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(["add".into(), repository("examples")]).expect(0);
    set(&sandbox, &[CONTRACT, TRACE, SESSION], &[("commit", "4f2a"), ("branch", "main")]);
    set(&sandbox, &[TRACE], &[("commit", "77ab"), ("note", "")]);
    sandbox
}

/// What everything that reads labels says.
fn answers(sandbox: &Sandbox) -> Vec<String> {
    let asked: &[&[&str]] = &[
        &["sql", "SELECT * FROM labels ORDER BY artifact, key"],
        &["show", CONTRACT, "--json"],
        &["show", TRACE],
    ];
    let answer = |arguments: &&[&str]| {
        let ran = sandbox.run(*arguments);
        format!("{} {}{}", ran.status, ran.stdout, ran.stderr)
    };
    asked.iter().map(answer).collect()
}

#[test]
fn labels_are_held_to_the_journal_and_restored_from_it() {
    let mut reports = String::new();
    let original = labeled();
    assert_eq!(findings(&original, &[]), "");
    let (before, bytes) = (answers(&original), bytes_of(&original));
    assert!(before[2].contains("branch=main, commit=77ab, note="), "{}", before[2]);
    for change in [
        "DELETE FROM label",
        "DELETE FROM label WHERE artifact = (SELECT min(artifact) FROM label)",
        "DELETE FROM label_value WHERE key = 'branch'",
        "UPDATE label_value SET value = 'forged' WHERE key = 'commit' AND value = '4f2a'",
        "UPDATE label_value SET id = id + 10 WHERE key = 'branch'",
        "UPDATE label SET at = at + 1",
        "UPDATE label SET artifact = 99 WHERE artifact = (SELECT max(artifact) FROM label)",
        "UPDATE label SET value = (SELECT id FROM label_value WHERE value = '77ab')
           WHERE value = (SELECT id FROM label_value WHERE value = '4f2a')",
    ] {
        let sandbox = of_bytes(&bytes);
        sql(&sandbox).execute_batch(change).unwrap();
        let quick = findings(&sandbox, &["--quick"]);
        assert_ne!(quick, "", "{change}");
        assert_eq!(findings(&sandbox, &[]), quick, "{change}");
        let mended = findings(&sandbox, &["--repair"]);
        assert!(mended.lines().all(|line| line.starts_with("repaired")), "{change}\n{mended}");
        assert_eq!(findings(&sandbox, &[]), "", "{change}");
        assert_eq!(answers(&sandbox), before, "{change}");
        reports += &format!("{change}\n{quick}{mended}\n");
    }
    insta::assert_snapshot!(reports);
}

#[test]
fn labels_that_the_journal_does_not_know_are_found_and_stay() {
    let mut reports = String::new();
    let bytes = bytes_of(&labeled());
    for change in [
        "INSERT INTO label SELECT a.id, (SELECT id FROM label_value WHERE key = 'branch'), 0 FROM artifact a
           WHERE a.id NOT IN (SELECT artifact FROM label) ORDER BY a.id LIMIT 1",
        "INSERT INTO label_value (key, value) VALUES ('forged', 'x');
         INSERT INTO label SELECT min(artifact), (SELECT id FROM label_value WHERE key = 'forged'), 0 FROM label",
    ] {
        let sandbox = of_bytes(&bytes);
        sql(&sandbox).execute_batch(change).unwrap();
        reports += &format!("{change}\n{}", findings(&sandbox, &[]));
        reports += &format!("{}\n", findings(&sandbox, &["--repair"]));
    }
    insta::assert_snapshot!(reports);
}

#[test]
fn nothing_of_the_labels_of_a_removed_artifact_remains() {
    let sandbox = labeled();
    sandbox.run(["rm", TRACE, "--force"]).expect(0);
    let left: Vec<String> = sql(&sandbox)
        .prepare("SELECT key || '=' || value FROM label_value ORDER BY 1")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(left, ["branch=main", "commit=4f2a"]);
    assert_eq!(findings(&sandbox, &[]), "");
}

//! Vaults of earlier schemas open, and answer as if their artifacts had been added today.

use std::fs;

use runvault::digest::Digest;
use serde_json::Value;

use crate::sandbox::{Sandbox, repository};

/// Vaults with the repository's examples and one stated link, each made by the last program of its schema. They are kept
/// for good.
const VAULTS: &[(u32, &str)] = &[
    (1, "tests/vaults/schema-1.vault.zst"),
    (2, "tests/vaults/schema-2.vault.zst"),
    (3, "tests/vaults/schema-3.vault.zst"),
    (4, "tests/vaults/schema-4.vault.zst"),
    (5, "tests/vaults/schema-5.vault.zst"),
    (6, "tests/vaults/schema-6.vault.zst"),
    (7, "tests/vaults/schema-7.vault.zst"),
];

/// The examples are as they were when the first of those vaults was made.
fn added_today() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(["add".into(), repository("examples")]).expect(0);
    let first = |kind: &str| {
        let found =
            sandbox.run(["find", kind, "--sort", "core", "--all-versions", "--json"]).expect(0).json();
        found[0]["core_hash"].as_str().unwrap().to_owned()
    };
    let (contract, trace) = (first("contracts"), first("traces"));
    sandbox.run(["link", "add", &contract, "governs", &trace, "--note", "the first one"]).expect(0);
    sandbox
}

fn of_schema(version: u32, file: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let vault = zstd::decode_all(fs::File::open(repository(file)).unwrap()).unwrap();
    fs::write(sandbox.vault(), &vault).unwrap();
    let refused = sandbox.run(["find"]).expect(2);
    assert!(refused.stderr.contains("\"runvault upgrade\""), "{}", refused.stderr);
    assert!(fs::read(sandbox.vault()).unwrap() == vault, "find changed an old vault");
    sandbox.run(["upgrade"]).expect(0);
    let copy = sandbox.path(&format!("v.vault.schema-{version}"));
    let kept =
        rusqlite::Connection::open_with_flags(copy, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let kept: u32 = kept.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, version);
    sandbox
}

/// What a vault says, without the times at which things were added.
fn answers(sandbox: &Sandbox) -> Vec<String> {
    let mut answers = Vec::new();
    let mut ask = |arguments: &[&str]| {
        let ran = sandbox.run(arguments);
        let mut lines = ran.json();
        lines.iter_mut().for_each(forget_times);
        answers.push(format!("{arguments:?}: {} {lines:#?}", ran.status));
    };
    ask(&["find", "--json", "--sort", "core"]);
    ask(&["unresolved", "--all", "--json"]);
    ask(&["forks", "--json"]);
    ask(&["find", "--json", "--prompt", "What is the refund policy?"]);
    let everything = sandbox.run(["find", "--all-versions", "--json", "--sort", "core"]).expect(0).json();
    for artifact in &everything {
        let core = artifact["core_hash"].as_str().unwrap();
        ask(&["show", core, "--json"]);
        ask(&["links", core, "--depth", "3", "--json"]);
        ask(&["find", "--json", "--sort", "core", "--mentions", core]);
    }
    for artifact in &everything {
        let core = artifact["core_hash"].as_str().unwrap();
        if artifact["kind"] != "pack" {
            answers.push(sandbox.run(["get", core]).expect(0).stdout);
        }
    }
    answers
}

fn forget_times(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("added_at");
            members.remove("seen_at");
            members.remove("stated_at");
            members.values_mut().for_each(forget_times);
        }
        Value::Array(elements) => elements.iter_mut().for_each(forget_times),
        _ => {}
    }
}

#[test]
fn vaults_of_earlier_schemas_answer_as_new_ones_do() {
    let today = answers(&added_today());
    for (version, file) in VAULTS {
        let sandbox = of_schema(*version, file);
        let then = answers(&sandbox);
        assert_eq!(then.len(), today.len());
        for (then, today) in then.iter().zip(&today) {
            assert_eq!(then, today, "schema {version}");
        }
        assert_eq!(sandbox.run(["fsck"]).expect(0).stdout, "", "schema {version}");
        // They take in more, and know what they have.
        let again = sandbox.run(["add".into(), repository("examples")]).expect(0);
        assert!(again.stderr.starts_with("0 added"), "{}", again.stderr);
        sandbox.add([sandbox.write("new.json", crate::sandbox::session("new", &[("p", "r")]))]);
        assert_eq!(sandbox.run(["find", "--prompt", "p", "--json"]).expect(0).json().len(), 1);
    }
}

#[test]
fn the_chain_of_the_journal_goes_on_through_upgrades() {
    for (version, file) in VAULTS {
        let sandbox = of_schema(*version, file);
        sandbox.add([sandbox.write("new.json", crate::sandbox::session("new", &[("p", "r")]))]);
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = rusqlite::Connection::open_with_flags(sandbox.vault(), flags).unwrap();
        let mut entries =
            connection.prepare("SELECT entry, chain FROM journal_entries ORDER BY seq").unwrap();
        let rows =
            entries.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).unwrap();
        let mut chain = [0; 32];
        let mut count = 0;
        for row in rows {
            let (entry, stated) = row.unwrap();
            let digest = Digest::from_content(&[chain.as_slice(), entry.as_bytes()].concat());
            assert_eq!(digest.to_string(), stated, "{entry}");
            chain = *digest.as_bytes();
            count += 1;
        }
        assert!(count > 8, "{count}");
    }
}

/// The schema of a vault whose derived data is current changes without deriving it again: the table of unresolved
/// references is filled from the lists of mentions.
#[test]
fn references_of_a_vault_of_schema_7_are_found_after_the_upgrade() {
    let sandbox = crate::unresolved::referring();
    let unresolved = ["unresolved", "--all", "--json"];
    let before = sandbox.run(unresolved).expect(0).stdout;
    assert!(before.contains("sha256:"), "{before}");
    let schema_7 = "DROP TABLE unresolved_reference; PRAGMA user_version = 7";
    crate::fsck::sql(&sandbox).execute_batch(schema_7).unwrap();
    let printed = sandbox.run(["upgrade"]).expect(0).stderr;
    assert!(printed.contains("v.vault is current"), "{printed}");
    assert_eq!(sandbox.run(unresolved).expect(0).stdout, before);
    assert_eq!(sandbox.run(["fsck"]).expect(0).stdout, "");
}

/// No command of this program opens such a vault, so the error must not name one that checks it.
#[test]
fn a_damaged_vault_that_cannot_be_upgraded_is_left_to_the_program_that_wrote_it() {
    let sandbox = Sandbox::new();
    let file = fs::File::open(repository("tests/vaults/schema-6.vault.zst")).unwrap();
    let mut bytes = zstd::decode_all(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 3_000].fill(0xff);
    fs::write(sandbox.vault(), bytes).unwrap();
    let ran = sandbox.run(["upgrade"]).expect(2);
    assert!(ran.stderr.contains("restore it from a backup"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("fsck"), "{}", ran.stderr);
}

//! Vaults of earlier schemas.

use std::fs::File;

use serde_json::Value;

use super::Database;
use crate::sandbox::repository;

/// The schema of the dump, which `pg_dump --inserts` made of a vault with the examples and a stated link.
const DUMPED: &str = "runvault_v1";

/// Returns a vault of the first schema.
fn of_first_schema() -> Option<Database> {
    let database = Database::new()?;
    let dump = File::open(repository("tests/vaults/postgres-1.sql.zst")).unwrap();
    let dump = String::from_utf8(zstd::decode_all(dump).unwrap()).unwrap();
    let mut client = database.schema.client();
    client.batch_execute(&dump.replace(DUMPED, database.schema.name())).unwrap();
    Some(database)
}

fn forget_times(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for name in ["added_at", "seen_at", "stated_at", "source_path"] {
                members.remove(name);
            }
            members.values_mut().for_each(forget_times);
        }
        Value::Array(elements) => elements.iter_mut().for_each(forget_times),
        _ => {}
    }
}

/// What a vault says, without the times at which things were added.
fn answers(database: &Database) -> Vec<String> {
    let mut answers = Vec::new();
    let mut ask = |arguments: &[&str]| {
        let ran = database.run(arguments);
        let mut lines = ran.json();
        lines.iter_mut().for_each(forget_times);
        answers.push(format!("{arguments:?}: {} {lines:#?}", ran.status));
    };
    ask(&["find", "--json", "--sort", "core"]);
    ask(&["unresolved", "--json"]);
    ask(&["find", "--json", "--prompt", "What is the refund policy?"]);
    let everything = database.run(["find", "--all-versions", "--json", "--sort", "core"]).expect(0).json();
    for artifact in &everything {
        let core = artifact["core_hash"].as_str().unwrap();
        ask(&["show", core, "--json"]);
        ask(&["links", core, "--depth", "3", "--json"]);
    }
    let documents = everything.iter().filter(|artifact| artifact["kind"] != "pack");
    answers.extend(documents.map(|document| {
        let core = document["core_hash"].as_str().unwrap();
        database.run(["get", core]).expect(0).stdout
    }));
    answers
}

#[test]
fn a_vault_of_the_first_schema_answers_as_a_new_one_after_its_upgrade() {
    let Some(today) = Database::with_examples() else { return };
    let Some(then) = of_first_schema() else { return };
    let first = |kind: &str| {
        let found = today.run(["find", kind, "--sort", "core", "--all-versions", "--json"]).expect(0).json();
        found[0]["core_hash"].as_str().unwrap().to_owned()
    };
    let (contract, trace) = (first("contracts"), first("traces"));
    today.run(["link", "add", &contract, "governs", &trace, "--note", "the first one"]).expect(0);
    let example = repository("examples/session.json");
    let example = example.to_str().unwrap();
    for arguments in [&["find"][..], &["add", "--create", example], &["log"], &["stats"]] {
        let refused = then.run(arguments).expect(2);
        assert!(refused.stderr.contains("(schema version 1, the current one is"), "{}", refused.stderr);
        assert!(refused.stderr.contains("\"runvault upgrade\""), "{}", refused.stderr);
    }
    let exists = then.run(["init"]).expect(2);
    assert!(exists.stderr.contains("already exists"), "{}", exists.stderr);
    let upgraded = then.run(["upgrade"]).expect(0);
    assert!(upgraded.stderr.contains("schema version 1 to "), "{}", upgraded.stderr);
    let again = then.run(["upgrade"]).expect(0);
    assert!(again.stderr.contains(" is current: schema version "), "{}", again.stderr);
    for (then, today) in answers(&then).iter().zip(&answers(&today)) {
        assert_eq!(then, today);
    }
    let added = then.run(["add", repository("examples").to_str().unwrap()]).expect(0);
    assert!(added.stderr.starts_with("0 added"), "{}", added.stderr);
    then.run(["index", "build"]).expect(0);
    assert!(!then.run(["search", "ticket", "--json"]).expect(0).json().is_empty());
}

//! The index is rebuilt from the artifacts, and answers as it did.

use super::{examples, findings, siblings, sql};
use crate::sandbox::{Sandbox, session};

/// All that the vault says, without the numbers of its rows.
fn answers(sandbox: &Sandbox) -> String {
    let mut answers = String::new();
    let mut ask = |arguments: &[&str]| {
        let ran = sandbox.run(arguments);
        answers.push_str(&format!("{arguments:?}: {}\n{}\n", ran.status, ran.stdout));
    };
    ask(&["find", "--json", "--sort", "core"]);
    ask(&["unresolved", "--json"]);
    ask(&["forks", "--json"]);
    for artifact in sandbox.run(["find", "--all-versions", "--json", "--sort", "core"]).json() {
        let core = artifact["core_hash"].as_str().unwrap();
        ask(&["show", core, "--json"]);
        ask(&["links", core, "--json", "--depth", "2"]);
        ask(&["find", "--mentions", core, "--json"]);
    }
    for table in [
        "SELECT a.core_hash, t.name, t.value FROM attributes t JOIN artifacts a USING (artifact) ORDER BY 1, 2, 3",
        "SELECT capture_hash, size, added_at, warnings FROM captures ORDER BY 1",
        "SELECT hex(a.core), handle FROM identity JOIN artifact a ON a.id = artifact ORDER BY 1, 2",
        "SELECT hex(a.core), relation, handle, dangles FROM name_mention JOIN artifact a ON a.id = artifact ORDER BY 1, 2, 3",
        "SELECT k.name, r.name, role_group, unit, relation, dangles FROM role r JOIN kind k ON k.id = kind ORDER BY 1, 2",
        "SELECT id, name, stated_by, member FROM kind ORDER BY id",
        "SELECT id, hex(core), kind, added_at FROM artifact ORDER BY id",
    ] {
        let connection = sql(sandbox);
        let mut statement = connection.prepare(table).unwrap();
        let count = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let row: Vec<rusqlite::types::Value> = (0..count).map(|at| row.get(at).unwrap()).collect();
            answers.push_str(&format!("{row:?}\n"));
        }
    }
    answers
}

const EMPTY_THE_INDEX: &str = "
    DELETE FROM mention_list; DELETE FROM mention_segment; DELETE FROM mention_bucket; DELETE FROM attribute;
    DELETE FROM attribute_value; DELETE FROM identity; DELETE FROM name_mention; DELETE FROM role;
    UPDATE capture SET warnings = 'x', seal = zeroblob(16), size = 0; UPDATE kind SET stated_by = 'x', member = 'x'";

#[test]
fn a_vault_whose_index_was_rebuilt_answers_as_before() {
    for sandbox in [examples(), siblings()] {
        let before = answers(&sandbox);
        let ran = sandbox.run(["index", "rebuild"]).expect(0);
        assert!(ran.stderr.contains("indexed, 0 findings"), "{}", ran.stderr);
        assert_eq!(answers(&sandbox), before);
        assert_eq!(findings(&sandbox, &[]), "");
        sql(&sandbox).execute_batch(EMPTY_THE_INDEX).unwrap();
        assert_ne!(findings(&sandbox, &[]), "");
        sandbox.run(["index", "rebuild"]).expect(0);
        assert_eq!(answers(&sandbox), before);
        assert_eq!(findings(&sandbox, &[]), "");
        // What comes later is added as ever.
        sandbox.add([sandbox.write("new.json", session("new", &[("p", "r")]))]);
        assert_eq!(findings(&sandbox, &[]), "");
    }
}

#[test]
fn an_artifact_that_would_not_be_admitted_stays_as_it_is() {
    let sandbox = examples();
    // As if a rule had changed: bytes that are intact, and no session.
    let bytes = b"{\"model_io_schema_version\": \"1.0.0\"}";
    let digest = runvault::digest::Digest::from_content(bytes);
    let change = "UPDATE payload SET encoding = 0, base = NULL, dictionary = NULL, digests = NULL, bytes = ?2 WHERE blob = \
                    (SELECT blob FROM capture c JOIN artifact a ON a.id = c.artifact WHERE hex(a.core) LIKE ?1)";
    let connection = sql(&sandbox);
    connection.execute(change, ("103EF1C54B58%", bytes.as_slice())).unwrap();
    let change = "UPDATE blob SET digest = ?2, size = ?3 WHERE id = \
                    (SELECT blob FROM capture c JOIN artifact a ON a.id = c.artifact WHERE hex(a.core) LIKE ?1)";
    connection.execute(change, ("103EF1C54B58%", digest.as_bytes(), bytes.len())).unwrap();
    let find = ["find", "--model", "triage-small-1", "--json"];
    let before = sandbox.run(find).expect(0).stdout;
    let ran = sandbox.run(["index", "rebuild"]).expect(1);
    assert!(ran.stdout.contains("not-admitted capture sha256:"), "{}", ran.stdout);
    assert!(ran.stderr.contains("7 artifacts indexed"), "{}", ran.stderr);
    assert_eq!(sandbox.run(find).expect(0).stdout, before);
}

#[test]
fn killing_it_does_no_harm() {
    let sandbox = Sandbox::new();
    for number in 0..600 {
        let text = session(&format!("adapter-{number}"), &[("p", "r"), (&format!("p{number}"), "s")]);
        sandbox.write(&format!("d/{number:04}.json"), text);
    }
    sandbox.run(["add", "d"]).expect(0);
    let before = sandbox.run(["find", "--prompt", "p", "--json", "--sort", "core"]).expect(0).stdout;
    for round in 0..8 {
        let mut child =
            sandbox.command().args(["index", "rebuild"]).stderr(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(40 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let after = sandbox.run(["find", "--prompt", "p", "--json", "--sort", "core"]).expect(0).stdout;
        assert!(after == before, "round {round}");
        assert_eq!(findings(&sandbox, &[]), "", "round {round}");
    }
}

//! What follows from the journal is compared with it, in both directions, and restored from it.

use rusqlite::Row;
use rusqlite::types::Value;

use super::{bytes_of, examples, findings, found_and_repaired, of_bytes, sql};
use crate::sandbox::{Sandbox, repository};

const CONTRACT: &str = "5c496a37feba";
const TRACE: &str = "7c8de5910f63";
const SMALL: &str = "103ef1c54b58";
const SESSION: &str = "4df877dec7f4";

/// The examples with a tag, a note, pins, stated links and tombstones.
fn annotated() -> Sandbox {
    let sandbox = examples();
    for arguments in [
        &["tag", "set", CONTRACT, "golden"][..],
        &["tag", "set", TRACE, "golden"],
        &["tag", "set", SMALL, "gone"],
        &["tag", "set", CONTRACT, "agreed/2"],
        &["note", "set", CONTRACT, "first"],
        &["note", "set", CONTRACT, "second, which is the one"],
        &["note", "set", TRACE, "of the trace"],
        &["pin", "add", CONTRACT, "--note", "keep"],
        &["pin", "add", TRACE],
        &["link", "add", CONTRACT, "governs", TRACE, "--note", "agreed"],
        &["link", "add", TRACE, "follows", CONTRACT],
        &["rm", SMALL, "--force", "--reason", "small"],
        &["tag", "remove", "agreed/2"],
        &["tag", "set", CONTRACT, "agreed"],
        &["add", repository("examples/trace.ndjson").to_str().unwrap()],
    ] {
        sandbox.run(arguments).expect(0);
    }
    sandbox
}

/// What everything that reads what people set says.
fn answers(sandbox: &Sandbox) -> Vec<String> {
    let asked: &[&[&str]] = &[
        &["tag", "list", "--json"],
        &["sql", "SELECT * FROM notes"],
        &["pin", "list", "--json"],
        &["links", CONTRACT, "--json"],
        &["show", "@golden", "--json"],
        &["get", "@golden"],
        &["find", "--json"],
        &["show", SMALL],
        &["show", "latest"],
        &["show", "latest~3"],
        &["sql", "SELECT artifact, seen_at FROM artifacts ORDER BY artifact"],
        &["sql", "SELECT capture_hash, seen_at FROM captures ORDER BY capture_hash"],
        &["sql", "SELECT hash, seq, reason FROM tombstones ORDER BY hash"],
    ];
    let answer = |arguments: &&[&str]| {
        let ran = sandbox.run(*arguments);
        format!("{} {}{}", ran.status, ran.stdout, ran.stderr)
    };
    asked.iter().map(answer).collect()
}

#[test]
fn a_vault_with_annotations_and_removals_is_clean() {
    let sandbox = annotated();
    assert_eq!(findings(&sandbox, &[]), "");
    assert_eq!(findings(&sandbox, &["--quick"]), "");
    // What was removed and came back still has its tombstone.
    sandbox.run(["rm", SESSION, "--force", "--with-containers"]).expect(0);
    assert_eq!(findings(&sandbox, &[]), "");
    sandbox.run(["link", "remove", CONTRACT, "governs", TRACE]).expect(0);
    sandbox.run(["pin", "remove", TRACE]).expect(0);
    sandbox.run(["note", "remove", CONTRACT]).expect(0);
    assert_eq!(findings(&sandbox, &[]), "");
}

/// Every row of the tables that answers about what people set are read from.
fn rows(sandbox: &Sandbox) -> Vec<(&'static str, Vec<Vec<Value>>)> {
    let connection = sql(sandbox);
    let tables = ["tag", "note", "pin", "link", "tombstone", "capture", "artifact"];
    let rows = |table: &'static str| {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
        let columns = statement.column_count();
        let read = |row: &Row<'_>| (0..columns).map(|at| row.get(at)).collect();
        (table, statement.query_map([], read).unwrap().map(Result::unwrap).collect())
    };
    tables.map(rows).into()
}

#[test]
fn what_people_set_is_held_to_the_journal_and_restored_from_it() {
    let original = annotated();
    let (before, stored) = (answers(&original), rows(&original));
    let changes = [
        "DELETE FROM tag WHERE name = 'golden'",
        "UPDATE tag SET artifact = (SELECT artifact FROM tag WHERE name = 'agreed') WHERE name = 'golden'",
        "UPDATE tag SET at = at + 1 WHERE name = 'golden'",
        "UPDATE tag SET artifact = 99 WHERE name = 'golden'",
        "DELETE FROM note",
        "UPDATE note SET text = 'forged'",
        "UPDATE note SET at = 0",
        "UPDATE note SET artifact = 99 WHERE artifact = (SELECT min(artifact) FROM note)",
        "DELETE FROM pin",
        "UPDATE pin SET note = 'forged'",
        "UPDATE pin SET at = at - 1 WHERE note IS NULL",
        "DELETE FROM link",
        "UPDATE link SET note = 'forged' WHERE note IS NULL",
        "UPDATE link SET note = NULL WHERE note IS NOT NULL",
        "UPDATE link SET at = 7",
        "DELETE FROM tombstone",
        "UPDATE tombstone SET entry = entry - 1",
        "UPDATE tombstone SET core = zeroblob(32)",
        "UPDATE tombstone SET reason = 'forged', size = size + 1",
        "UPDATE note SET folded = x'00'",
        "UPDATE capture SET seen_at = seen_at + 1 WHERE id = 3",
        "UPDATE artifact SET seen_at = 0 WHERE id = 3",
        "UPDATE artifact SET arrival = arrival + 1 WHERE id = 3",
        "UPDATE artifact SET arrival = 7 - arrival WHERE id IN (1, 3)",
    ];
    let reports = found_and_repaired(&bytes_of(&original), &changes, |change, sandbox| {
        // The answers follow from the rows; they are asked once for each table.
        assert_eq!(rows(sandbox), stored, "{change}");
        if change.starts_with("DELETE") || change.ends_with("id IN (1, 3)") {
            assert_eq!(answers(sandbox), before, "{change}");
        }
    });
    insta::assert_snapshot!(reports);
}

#[test]
fn what_the_journal_does_not_know_is_found_and_stays() {
    let mut reports = String::new();
    let bytes = bytes_of(&annotated());
    for change in [
        "INSERT INTO tag SELECT 'forged', artifact, at FROM tag WHERE name = 'golden'",
        "UPDATE tag SET name = 'forged' WHERE name = 'golden'",
        "INSERT INTO note SELECT id, 'forged', CAST('forged' AS BLOB), 0 FROM artifact WHERE id NOT IN (SELECT artifact FROM note) ORDER BY id LIMIT 1",
        "INSERT INTO pin SELECT id, 'forged', 0 FROM artifact WHERE id NOT IN (SELECT artifact FROM pin) ORDER BY id LIMIT 1",
        "INSERT INTO link SELECT source, 'forges', target, note, at FROM link LIMIT 1",
        "INSERT INTO tombstone VALUES (zeroblob(32), 1, 0, zeroblob(32), 'trace', NULL, NULL, 0, 0)",
    ] {
        let sandbox = of_bytes(&bytes);
        sql(&sandbox).execute_batch(change).unwrap();
        reports += &format!("{change}\n{}", findings(&sandbox, &[]));
        // An end of the journal that was cut off looks the same.
        reports += &format!("{}\n", findings(&sandbox, &["--repair"]));
    }
    insta::assert_snapshot!(reports);
}

#[test]
fn an_entry_that_is_not_understood_is_a_finding() {
    let sandbox = annotated();
    let connection = sql(&sandbox);
    let add = |entry: &str| {
        let (seq, chain): (i64, [u8; 32]) = connection
            .query_row("SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        let next = runvault::digest::Digest::from_content(&[&chain, entry.as_bytes()].concat());
        let sql = "INSERT INTO journal (seq, at, entry, chain) VALUES (?1, 1767225600000, ?2, ?3)";
        connection.execute(sql, (seq + 1, entry, next.as_bytes())).unwrap();
    };
    add(r#"{"action":"invent","at":"2026-01-01T00:00:00.000Z"}"#);
    let found = findings(&sandbox, &[]);
    assert!(
        found.starts_with("unknown-entry | entry 25 | this program does not know the action \"invent\""),
        "{found}"
    );
    assert_eq!(found.lines().count(), 1, "{found}");
    // What it may have changed is not known, so nothing is restored.
    connection.execute("DELETE FROM note", []).unwrap();
    let report = findings(&sandbox, &["--repair"]);
    let names_it = |line: &str| {
        line.starts_with("missing-row | artifact ") && line.ends_with(" | note: the journal records it")
    };
    assert!(!report.contains("repaired") && report.lines().any(names_it), "{report}");
}

#[test]
fn a_forged_journal_is_a_finding_and_nothing_is_restored_from_it() {
    let sandbox = annotated();
    let change =
        "UPDATE journal SET entry = replace(entry, 'of the trace', 'of a thief') WHERE entry IS NOT NULL";
    sql(&sandbox).execute_batch(change).unwrap();
    let found = findings(&sandbox, &[]);
    let named = [
        ("broken-chain | entry ", ""),
        ("different-row | artifact ", " | note: text differs from the journal"),
    ];
    for (id, detail) in named {
        let is_it = |line: &str| line.starts_with(id) && line.ends_with(detail);
        assert!(found.lines().any(is_it), "{detail}: {found}");
    }
    assert!(!findings(&sandbox, &["--repair"]).contains("repaired"));
    assert!(sandbox.run(["show", TRACE]).expect(0).stdout.contains("of the trace"));
}

#[test]
fn the_order_of_arrival_is_held_to_the_journal_and_restored_from_it() {
    let latest = |sandbox: &Sandbox| sandbox.run(["show", "latest", "--json"]).expect(0).stdout;
    let list = |sandbox: &Sandbox| sandbox.run(["find", "--json"]).expect(0).stdout;
    let capture = |sandbox: &Sandbox| sandbox.run(["show", SESSION, "--json"]).expect(0).stdout;
    let swap = |columns: &[(&str, &str)], one: i64, two: i64| -> String {
        let swap = |(table, column): &(&str, &str)| {
            format!(
                "UPDATE {table} SET {column} = CASE {column} WHEN {one} THEN -{two} ELSE -{one} END
                  WHERE {column} IN ({one}, {two});
                 UPDATE {table} SET {column} = -{column} WHERE {column} < 0;"
            )
        };
        columns.iter().map(swap).collect()
    };
    let artifacts = [
        ("artifact", "id"),
        ("capture", "artifact"),
        ("attribute", "artifact"),
        ("identity", "artifact"),
        ("name_mention", "artifact"),
    ];
    let captures = [("capture", "id"), ("member", "capture"), ("mention_list", "capture")];
    for (columns, one, two) in [(&artifacts[..], 1, 7), (&artifacts[..], 6, 7), (&captures[..], 1, 2)] {
        let sandbox = examples();
        let before = (latest(&sandbox), list(&sandbox), capture(&sandbox));
        sql(&sandbox).execute_batch(&swap(columns, one, two)).unwrap();
        let found = findings(&sandbox, &["--quick"]);
        assert!(
            found
                .lines()
                .all(|line| line.starts_with("different-row | ")
                    && line.contains(": id differs from the journal"))
                && !found.is_empty(),
            "{found}"
        );
        let repaired = findings(&sandbox, &["--repair"]);
        assert!(repaired.lines().all(|line| line.starts_with("repaired: ")), "{repaired}");
        assert_eq!(findings(&sandbox, &[]), "");
        assert_eq!((latest(&sandbox), list(&sandbox), capture(&sandbox)), before);
    }
}

#[test]
fn the_time_beside_an_entry_is_not_shown_and_is_held_to_its_text() {
    let sandbox = annotated();
    let shown = sandbox.run(["log"]).expect(0).stdout;
    sql(&sandbox).execute("UPDATE journal SET at = 0 WHERE entry IS NOT NULL", []).unwrap();
    assert_eq!(sandbox.run(["log"]).expect(0).stdout, shown);
    assert_eq!(sandbox.run(["log", "--until", "2000-01-01"]).expect(1).stdout, "");
    assert!(sandbox.run(["show", SMALL]).expect(1).stderr.contains("was removed on 2"));
    let found = findings(&sandbox, &[]);
    let expected = |line: &str| {
        line.starts_with("different-row | entry ") && line.ends_with("differs from the time in its text")
    };
    assert!(found.lines().count() == 16 && found.lines().all(expected), "{found}");
    findings(&sandbox, &["--repair"]);
    assert_eq!(findings(&sandbox, &[]), "");
}

//! Queries that would do more than to read, and those with mistakes in them.

use std::fs;

use runvault::Vault;
use runvault::artifact::Cell;
use runvault::vault::sql::SqlError;

use super::{ask, examples, text};
use crate::sandbox::{Sandbox, session};

const WRITES: &[&str] = &[
    "INSERT INTO tag VALUES ('x', 1, 1)",
    "DELETE FROM artifact",
    "UPDATE artifact SET added_at = 0",
    "WITH x AS (SELECT 1) DELETE FROM artifact",
    "UPDATE artifact SET added_at = 0 RETURNING id",
    "REPLACE INTO note VALUES (1, 'x', 1)",
    "DROP VIEW sessions",
    "DROP VIEW interactions",
    "ALTER TABLE artifact RENAME TO gone",
    "CREATE TABLE t (a)",
    "CREATE TEMP TABLE t (a)",
    "CREATE TEMP TABLE t AS SELECT * FROM artifacts",
    "CREATE TEMP VIEW v AS SELECT runvault_rows(0, 1)",
    "CREATE VIRTUAL TABLE temp.v USING fts5(a)",
    "CREATE INDEX i ON artifact (id)",
    "CREATE TEMP TRIGGER t AFTER INSERT ON artifact BEGIN SELECT 1; END",
    "ATTACH 'other.db' AS other",
    "ATTACH ':memory:' AS other",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO 'copy.db'",
    "ANALYZE",
    "REINDEX",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "RELEASE s",
    "PRAGMA query_only = OFF",
    "PRAGMA query_only",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA user_version = 9",
    "PRAGMA writable_schema = ON",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA temp_store_directory = '/'",
    "SELECT load_extension('libx.so')",
    "SELECT runvault_rows(0, 1)",
    "SELECT runvault_cell(0, 1, 0, 0)",
    "EXPLAIN DELETE FROM artifact",
];

#[test]
fn queries_only_read() {
    let sandbox = examples();
    let before = fs::read(sandbox.vault()).unwrap();
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let reader = vault.sql().unwrap();
    for query in WRITES {
        for query in [(*query).to_owned(), format!("/* a */ {query} ; -- b")] {
            match reader.prepare(&query, &[]).map(drop) {
                Err(SqlError::Refused(_)) => {}
                other => panic!("{query}: {other:?}"),
            }
        }
        let ran = sandbox.run(["sql", query]).expect(3);
        assert!(
            ran.stdout.is_empty() && ran.stderr.contains("a query can only read"),
            "{query}: {}",
            ran.stderr
        );
    }
    // SQLite can be built without it.
    match reader.prepare("SELECT fts3_tokenizer('simple')", &[]).map(drop) {
        Err(SqlError::Refused(_)) => {}
        Err(SqlError::Query(message)) => assert!(message.contains("no such function"), "{message}"),
        other => panic!("{other:?}"),
    }
    // What was refused is forgotten, and the reader goes on.
    assert_eq!(ask(&*reader, "SELECT count(*) FROM sessions"), [[Cell::Integer(2)]]);
    drop(reader);
    drop(vault);
    assert_eq!(fs::read(sandbox.vault()).unwrap(), before);
    assert!(!sandbox.path("other.db").exists() && !sandbox.path("copy.db").exists());
}

#[test]
fn what_reads_is_allowed() {
    let sandbox = examples();
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let reader = vault.sql().unwrap();
    for (query, rows) in [
        ("SELECT 1", 1),
        ("  SELECT 1 ; ; -- and no more", 1),
        ("VALUES (1), (2)", 2),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n LIMIT 3", 3),
        ("EXPLAIN QUERY PLAN SELECT 1", 1),
        ("PRAGMA table_info(tags)", 3),
        ("SELECT * FROM pragma_table_info('interactions')", 7),
        ("SELECT * FROM journal LIMIT 1", 1),
        ("SELECT name FROM main.sqlite_schema WHERE name = 'artifacts'", 1),
        ("SELECT * FROM json_each('[1,2]')", 2),
        ("SELECT count(*) OVER (), max(i) OVER (PARTITION BY artifact) FROM interactions", 6),
    ] {
        assert_eq!(ask(&*reader, query).len(), rows, "{query}");
    }
}

#[test]
fn a_question_that_has_no_answer_says_why() {
    let sandbox = examples();
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let reader = vault.sql().unwrap();
    let said: Vec<String> = [
        "",
        " -- nothing\n",
        ";",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE artifact",
        "SELECT\n  promt_hash FROM interactions",
        "SELECT s.x FROM sessions AS s, Tags",
        "SELECT i FROM interactions WHERE \"promt_hash\" = 'x'",
        "SELECT * FROM session",
        "SELECT * FROM other.sessions",
        "SELECT nothing(1)",
        "SELEKT é",
        "SELECT 'é', (",
        "SELECT 'a\0b'",
        "SELECT abs(-9223372036854775807 - 1)",
        "SELECT json('{')",
        "SELECT :a",
        "SELECT ?",
        "SELECT zeroblob(2000000000)",
    ]
    .iter()
    .map(|query| match reader.prepare(query, &[]) {
        Err(error) => format!("{query:?}\n  {error}\n"),
        Ok(mut statement) => match statement.rows().next() {
            Some(Err(error)) => format!("{query:?}\n  {error}\n"),
            other => panic!("{query}: {other:?}"),
        },
    })
    .collect();
    insta::assert_snapshot!(said.concat());
    for query in ["", "SELECT * FROM nothing", "SELECT abs(-9223372036854775807 - 1)"] {
        sandbox.run(["sql", query]).expect(3);
    }
}

#[test]
fn a_parameter_has_one_value() {
    let sandbox = examples();
    let ran = sandbox.run(["sql", "--param", "a=1", "--param", "b=2", "--param", "a=1", "SELECT :a, :b"]);
    assert!(ran.expect(3).stderr.contains("the parameter :a has two values"));
    let ran = sandbox.run(["sql", "--csv", "--no-header", "--param", ":a=1=2", "SELECT :a"]);
    assert_eq!(ran.expect(0).stdout, "1=2\r\n");
    for wrong in ["=1", ":=1", "a"] {
        let told = sandbox.run(["sql", "--param", wrong, "SELECT 1"]).expect(3).stderr;
        assert!(told.contains("expected NAME=VALUE"), "{told}");
    }
}

#[test]
fn parameters_are_values_and_nothing_else() {
    let sandbox = examples();
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let reader = vault.sql().unwrap();
    let mut query =
        reader.prepare("SELECT :a, @b, $a", &[("b", Cell::Null), ("a", text("'; DROP"))]).unwrap();
    let rows: Vec<_> = query.rows().map(Result::unwrap).collect();
    assert_eq!(rows, [[text("'; DROP"), Cell::Null, text("'; DROP")]]);
    // Asked again, it answers again.
    assert_eq!(query.rows().count(), 1);
    for (query, parameters) in [
        ("SELECT :a", &[][..]),
        ("SELECT :a", &[("b", Cell::Null)]),
        ("SELECT 1", &[("a", Cell::Null)]),
        ("SELECT ?1", &[("1", Cell::Null), ("2", Cell::Null)]),
    ] {
        let refused = reader.prepare(query, parameters).map(drop);
        assert!(matches!(refused, Err(SqlError::Parameter(_))), "{query}: {refused:?}");
    }
    let by_model =
        "SELECT adapter_id FROM sessions WHERE model_id = :model AND interactions = CAST(:n AS INTEGER)";
    let ran = sandbox
        .run(["sql", "--json", "--param", "model=triage-large-2", "--param", "n=3", by_model])
        .expect(0);
    assert_eq!(ran.json().len(), 1);
    sandbox.run(["sql", "--param", "model", by_model]).expect(3);
}

/// What would draw, hide or pretend, if it came to a terminal as it is.
const HOSTILE: &str = "\u{1b}[2J\u{202e}\r\n\t\"a\",\u{0}\u{9b}1m";

#[test]
fn nothing_from_an_artifact_controls_a_terminal() {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("s.json", session(HOSTILE, &[("p", HOSTILE)]))]);
    let query = "SELECT response_content AS \"\u{1b}[2J\" FROM interactions";
    let shown = sandbox.run(["sql", query]).expect(0).stdout;
    assert!(shown.chars().all(|character| character == '\n' || !character.is_control()), "{shown:?}");
    assert!(shown.contains("\\u{1b}[2J\\u{202e}\\r\\n\\t\"a\",\\u{0}\\u{9b}1m"), "{shown}");
    // Data is data.
    let csv = sandbox.run(["sql", "--csv", "--no-header", query]).expect(0).stdout;
    assert_eq!(csv, format!("\"{}\"\r\n", HOSTILE.replace('"', "\"\"")));
    let json = sandbox.run(["sql", "--json", query]).expect(0);
    assert!(json.stdout.is_ascii());
    assert_eq!(json.json()[0]["\u{1b}[2J"], HOSTILE);
    let refused = sandbox.run(["sql", "SELECT * FROM \"\u{1b}[2J\""]).expect(3).stderr;
    assert!(!refused.contains('\u{1b}'), "{refused:?}");
}

//! SQL queries in a database: the same views as in a file.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Database;
use crate::agent_sessions::forms;
use crate::sandbox::{Ran, repository};

/// How long it may take on a busy machine until a query begins or ends.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Runs the program on both vaults.
fn on_both(database: &Database, arguments: &[&str], status: i32) -> (Ran, Ran) {
    (database.run_on_file(arguments).expect(status), database.run(arguments).expect(status))
}

/// Returns a database and a file with the same content.
fn with_everything() -> Option<Database> {
    let database = Database::new()?;
    for (directory, status) in [("examples", 0), ("tests/corpus", 1)] {
        database.run_on_file(["add".as_ref(), repository(directory).as_os_str()]).expect(status);
    }
    for (name, document) in forms::documents() {
        let file = database.sandbox.write(name, document);
        database.run_on_file(["add".as_ref(), file.as_os_str()]).expect(0);
    }
    database.copy_file();
    for arguments in [
        &["tag", "set", "4df877dec7f4", "best"][..],
        &["note", "set", "4df877dec7f4", "Ein Ärgernis"],
        &["pin", "add", "5c496a37feba", "--note", "why"],
        &["label", "set", "4df877dec7f4", "commit=abc"],
        &["link", "add", "4df877dec7f4", "about", "5c496a37feba"],
        &["rm", "--force", "--reason", "names a customer", "7c8de5910f63"],
    ] {
        let (expected, found) = (database.run_on_file(arguments), database.run(arguments));
        assert_eq!(found.status, expected.status, "{arguments:?}: {}", found.stderr);
    }
    Some(database)
}

/// Returns the rows of an answer, sorted: without an order, each engine has its own.
fn rows(ran: &Ran) -> Vec<String> {
    let mut rows: Vec<String> = ran.stdout.lines().map(str::to_owned).collect();
    rows.sort();
    rows
}

fn queries() -> Vec<String> {
    let docs = std::fs::read_to_string(repository("docs/sql.md")).unwrap();
    let blocks = docs.split("\n```sql\n").skip(1).filter_map(|rest| rest.split_once("\n```"));
    blocks.map(|(query, _)| query.to_owned()).collect()
}

#[test]
fn documented_queries_have_the_same_answers_as_in_a_file() {
    let Some(database) = with_everything() else { return };
    let (mut same, mut others) = (0, 0);
    for query in queries() {
        let arguments = ["sql", "--json", &query];
        if query.contains("->>") {
            // The dialects differ. The form for PostgreSQL is documented beside it.
            database.run(arguments).expect(3);
            others += 1;
            continue;
        }
        let (expected, found) = on_both(&database, &arguments, 0);
        assert_eq!(rows(&found), rows(&expected), "{query}");
        same += 1;
    }
    assert!(same >= 8 && others == 1, "{same} {others}");
    let docs = std::fs::read_to_string(repository("docs/sql.md")).unwrap();
    let json = "record::json #>> '{result,errors,0,message}'";
    assert!(docs.contains(json));
    // PostgreSQL reads no value from a document that has this character anywhere.
    let readable = "CAST(record AS TEXT) NOT LIKE '%u0000%'";
    let ask = |value: &str| {
        format!("SELECT i, {value} AS message FROM records WHERE {readable} ORDER BY core_hash, i")
    };
    let expected = database.run_on_file(["sql", &ask("record ->> '$.result.errors[0].message'")]).expect(0);
    assert_eq!(database.run(["sql", &ask(json)]).expect(0).stdout, expected.stdout);
}

#[test]
fn every_view_has_the_same_rows_as_in_a_file() {
    let Some(database) = with_everything() else { return };
    let (expected, found) = on_both(&database, &["sql", "--tables", "--json"], 0);
    assert_eq!(found.stdout, expected.stdout);
    let mut empty = Vec::new();
    for view in expected.json() {
        let name = view["name"].as_str().unwrap();
        let columns = view["columns"].as_array().unwrap().iter();
        let columns: Vec<String> = columns
            .map(|column| match (column["name"].as_str().unwrap(), column["sort"].as_str()) {
                // Of one type in a database.
                (name, Some("any")) => format!("CAST(\"{name}\" AS TEXT) AS \"{name}\""),
                (name, _) => format!("\"{name}\""),
            })
            .collect();
        let query = format!("SELECT {} FROM {name}", columns.join(", "));
        let (expected, found) = on_both(&database, &["sql", "--json", &query], 0);
        assert_eq!(rows(&found), rows(&expected), "{name}");
        if rows(&expected).is_empty() {
            empty.push(name.to_owned());
        }
    }
    assert_eq!(empty, ["attachments"]);
}

#[test]
fn other_programs_read_the_views_in_the_schema() {
    let Some(database) = with_everything() else { return };
    let mut client = database.schema.client();
    for (query, expected) in [
        ("SELECT count(*) FROM artifacts", "SELECT count(*) AS n FROM artifacts"),
        (
            "SELECT count(*) FROM attributes WHERE number > 1",
            "SELECT count(*) AS n FROM attributes WHERE number > 1",
        ),
        ("SELECT count(*) FROM captures", "SELECT sum(captures) AS n FROM artifacts"),
    ] {
        let found: i64 = client.query_one(query, &[]).unwrap().get(0);
        let expected = database.run_on_file(["sql", "--json", expected]).expect(0).json();
        assert_eq!(Some(found), expected[0]["n"].as_i64(), "{query}");
    }
}

#[test]
fn queries_can_only_read() {
    let Some(database) = Database::with_examples() else { return };
    let before = database.run(["log", "--head"]).expect(0).stdout;
    for query in [
        "DELETE FROM tag",
        "WITH x AS (DELETE FROM attribute RETURNING 1) SELECT * FROM x",
        "SELECT 1 INTO newtable",
        "EXPLAIN ANALYZE DELETE FROM attribute",
        "SELECT * FROM artifact FOR UPDATE",
        "COMMIT",
        "COPY artifact TO STDOUT",
        "SET search_path TO public",
        "SELECT 1; DROP TABLE attribute",
        "",
        "SELECT nextval('nothing')",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "INSERT INTO interactions SELECT * FROM interactions",
    ] {
        let refused = database.run(["sql", query]);
        assert!([2, 3].contains(&refused.status), "{query}: {} {}", refused.status, refused.stderr);
        assert_eq!(refused.stdout, "", "{query}");
        let refused = database.run(["sql", "--csv", query]);
        assert!([2, 3].contains(&refused.status) && refused.stdout.is_empty(), "{query}: {}", refused.stdout);
    }
    assert_eq!(database.run(["log", "--head"]).expect(0).stdout, before);
    let count = database.run(["sql", "--json", "SELECT count(*) AS n FROM attributes"]).expect(0).json();
    assert!(count[0]["n"].as_i64() > Some(5));
}

#[test]
fn errors_name_the_place_and_what_there_is() {
    let Some(database) = Database::with_examples() else { return };
    for (query, expected) in [
        ("SELECT *\n  FROM nothing", "(line 2, column 8); tables: artifacts, captures, "),
        ("SELECT mode FROM runs", "(line 1, column 8); runs has artifact, core_hash, "),
        ("SELECT 1 / 0", "division by zero"),
        ("SELECT :missing", "the parameter :missing has no value"),
        ("SELECT 'a", "unterminated quoted string"),
    ] {
        let failed = database.run(["sql", query]).expect(3);
        assert!(failed.stderr.contains(expected), "{query}: {}", failed.stderr);
    }
}

#[test]
fn values_of_every_type_are_shown() {
    let Some(database) = Database::with_examples() else { return };
    let query = "SELECT true AS b, 1::smallint AS s, 2.5::real AS r, sum(x) AS i, avg(x) AS a, NULL AS n, 'é' AS t,
                        'a'::bytea AS y, timestamp '2026-01-02 03:04:05' AS d, '{\"a\": 1}'::jsonb AS j, ARRAY[1, 2] AS l
                   FROM generate_series(1, 4) AS g (x) -- the end";
    let found = database.run(["sql", "--json", query]).expect(0).json();
    let expected = serde_json::json!({
        "b": 1, "s": 1, "r": 2.5, "i": 10, "a": 2.5, "n": null, "t": "é", "d": "2026-01-02 03:04:05", "j": "{\"a\": 1}",
        "l": "{1,2}"
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&found[0][name], value, "{name}");
    }
    assert_ne!(found[0]["y"], Value::Null);
    let many =
        database.run(["sql", "--csv", "--no-header", "SELECT x FROM generate_series(1, 2500) AS g (x)"]);
    let numbers: Vec<u32> = many.expect(0).stdout.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(numbers, (1..=2_500).collect::<Vec<_>>());
    let param = ["sql", "--json", "--param", "n=2", "SELECT CAST(:n AS integer) + 1 AS n, :n AS t"];
    let found = database.run(param).expect(0).json();
    assert_eq!((found[0]["n"].as_i64(), found[0]["t"].as_str()), (Some(3), Some("2")));
    assert!(database.run(["sql", "EXPLAIN SELECT * FROM artifacts"]).expect(0).stdout.contains("artifact"));
}

#[test]
fn saved_files_are_the_same() {
    let Some(database) = with_everything() else { return };
    let saved = |name: &str, ran: Ran| {
        ran.expect(0);
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        rusqlite::Connection::open_with_flags(database.sandbox.path(name), flags).unwrap()
    };
    let path = |name: &str| database.sandbox.path(name).to_str().unwrap().to_owned();
    let file = saved("file.db", database.run_on_file(["sql", "--save", &path("file.db")]));
    let other = saved("other.db", database.run(["sql", "--save", &path("other.db"), "--force"]));
    let tables =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB '*_fts*' ORDER BY name";
    let names = |connection: &rusqlite::Connection| -> Vec<String> {
        let mut statement = connection.prepare(tables).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(names(&other), names(&file));
    assert!(names(&file).len() > 15);
    for table in names(&file) {
        let content = |connection: &rusqlite::Connection| {
            let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
            let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
            let first = usize::from(columns.first().is_some_and(|column| column == "row_id"));
            let mut rows: Vec<String> = statement
                .query_map([], |row| {
                    let cell =
                        |index| row.get::<_, rusqlite::types::Value>(index).map(|value| format!("{value:?}"));
                    (first..columns.len()).map(cell).collect::<rusqlite::Result<Vec<_>>>()
                })
                .unwrap()
                .map(|row| row.unwrap().join("|"))
                .collect();
            rows.sort();
            (columns, rows)
        };
        assert_eq!(content(&other), content(&file), "{table}");
    }
}

/// The server would go on for a day.
#[test]
fn a_query_ends_when_its_client_has_left() {
    let Some(database) = Database::with_examples() else { return };
    let mut client = database.schema.client();
    let (class, object) = (40, i32::try_from(std::process::id()).unwrap());
    let mut waits_until = |is_running: bool| {
        let sql = format!(
            "SELECT count(*) FROM pg_locks
              WHERE locktype = 'advisory' AND classid = {class} AND objid = {object} AND objsubid = 2 AND granted"
        );
        let begun = Instant::now();
        while (client.query_one(&sql, &[]).unwrap().get::<_, i64>(0) > 0) != is_running {
            assert!(begun.elapsed() < TIMEOUT, "it is running: {}", !is_running);
            // The server has other things to do.
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let query = format!("SELECT pg_advisory_lock({class}, {object}), pg_sleep(86400)");
    let mut command = database.sandbox.command();
    command.env("RUNVAULT_VAULT", &database.address).args(["sql", &query]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    waits_until(true);
    child.kill().unwrap();
    child.wait().unwrap();
    waits_until(false);
}

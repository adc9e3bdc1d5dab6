//! What is saved for other programs.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use runvault::Vault;
use runvault::artifact::{Cell, ColumnType};
use runvault::formats;
use runvault::vault::sql::{
    self, METADATA, ROW_ID, SaveForm, SaveOptions, SaveSummary, SqlError, TITLE, VaultSqlReader,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::{ask, everything, examples};
use crate::sandbox::{Sandbox, run_pack};

fn opened(path: &Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

fn save(reader: &VaultSqlReader<'_>, path: &Path) -> Result<SaveSummary, SqlError> {
    let options = SaveOptions { path, form: SaveForm::Sqlite, force: false };
    sql::save(reader, &options, &mut |_, _| ControlFlow::Continue(()))
}

/// All rows of a query.
fn rows(connection: &Connection, query: &str) -> Vec<Vec<Cell>> {
    let mut statement = connection.prepare(query).unwrap();
    let width = statement.column_count();
    let cell = |value: ValueRef<'_>| match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(integer) => Cell::Integer(integer),
        ValueRef::Real(real) => Cell::Real(real),
        ValueRef::Text(text) => Cell::Text(String::from_utf8(text.to_vec()).unwrap()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
    };
    let rows = statement
        .query_map([], |row| (0..width).map(|index| row.get_ref(index).map(cell)).collect())
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// The first column of all rows, as text.
fn texts(connection: &Connection, query: &str) -> Vec<String> {
    let texts = rows(connection, query).into_iter().map(|mut row| match row.remove(0) {
        Cell::Text(text) => text,
        other => format!("{other:?}"),
    });
    texts.collect()
}

#[test]
fn a_saved_file_has_what_the_views_have() {
    let (sandbox, vault) = everything();
    let path = sandbox.path("saved.db");
    let mut watched = Vec::new();
    let reader = vault.sql().unwrap();
    let options = SaveOptions { path: &path, form: SaveForm::Sqlite, force: false };
    let saved = sql::save(&*reader, &options, &mut |table, rows| {
        watched.push((table, rows));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(saved.bytes, fs::metadata(&path).unwrap().len());
    let connection = opened(&path);
    for (view, (table, count)) in reader.views().iter().zip(&saved.rows) {
        assert_eq!(view.name, *table);
        let columns: Vec<String> = view.columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
        let query = format!("SELECT {} FROM \"{}\"", columns.join(", "), view.name);
        let rows = rows(&connection, &format!("{query} ORDER BY rowid"));
        assert_eq!(rows.len(), usize::try_from(*count).unwrap());
        assert!(rows.is_empty() || watched.contains(&(view.name, *count)));
        let mut expected = ask(&*reader, &query);
        let key = view.columns.iter().position(|column| column.is_key);
        if let Some(key) = key {
            // Its rows are found by their keys.
            expected
                .sort_by_key(|row| if let Cell::Integer(key) = row[key] { key } else { panic!("{row:?}") });
        }
        for row in &mut expected {
            for (cell, column) in row.iter_mut().zip(&view.columns) {
                // Places are text there.
                if let (Cell::Integer(integer), ColumnType::Any) = (&cell, column.sort) {
                    *cell = Cell::Text(integer.to_string());
                }
            }
        }
        assert_eq!(rows, expected, "{}", view.name);
    }
    let checks = ["integrity_check", "foreign_key_check", "journal_mode"]
        .map(|check| texts(&connection, &format!("PRAGMA {check}")).join(" "));
    assert_eq!(checks, ["ok", "", "delete"]);
}

#[test]
fn every_table_has_an_integer_key_and_refers_to_others_by_it() {
    let (sandbox, vault) = everything();
    let reader = vault.sql().unwrap();
    save(&*reader, &sandbox.path("saved.db")).unwrap();
    let connection = opened(&sandbox.path("saved.db"));
    for view in reader.views() {
        let keys = rows(
            &connection,
            &format!("SELECT name, type FROM pragma_table_info('{}') WHERE pk = 1", view.name),
        );
        let name = view.columns.iter().find(|column| column.is_key).map_or(ROW_ID, |column| column.name);
        assert_eq!(keys, [[Cell::Text(name.to_owned()), Cell::Text("INTEGER".to_owned())]], "{}", view.name);
    }
    let references = |table: &str| {
        texts(
            &connection,
            &format!(
                "SELECT \"from\" || ' ' || \"table\" || ' ' || \"to\" FROM pragma_foreign_key_list('{table}') ORDER BY 1"
            ),
        )
    };
    assert_eq!(references("runs"), ["artifact artifacts artifact"]);
    assert_eq!(references("steps"), ["artifact runs artifact"]);
    assert_eq!(references("captures"), ["artifact artifacts artifact"]);
    assert_eq!(references("links"), ["artifact artifacts artifact", "target_artifact artifacts artifact"]);
    assert_eq!(references("stated_links"), ["artifact artifacts artifact", "target artifacts artifact"]);
    assert_eq!(references("tombstones"), ["seq journal_entries seq"]);
}

#[test]
fn artifacts_have_titles() {
    let sandbox = examples();
    sandbox.add([sandbox.write("long.rpk", run_pack(&"r".repeat(200), &[]))]);
    sandbox.run(["sql", "--save", "saved.db"]).expect(0);
    let connection = opened(&sandbox.path("saved.db"));
    let titles = texts(&connection, &format!("SELECT {TITLE} FROM artifacts ORDER BY 1"));
    assert!(titles.contains(&format!("run pack {}", "r".repeat(71))), "{titles:?}");
    assert!(titles.contains(&"session 4df877dec7f4".to_owned()), "{titles:?}");
    for kind in formats::ALL {
        let differing = format!(
            "SELECT k.artifact FROM \"{}\" k JOIN artifacts a USING (artifact) WHERE k.{TITLE} IS NOT a.{TITLE}",
            kind.plural()
        );
        assert!(rows(&connection, &differing).is_empty());
    }
}

#[test]
fn words_are_found_in_texts() {
    let sandbox = examples();
    sandbox.run(["sql", "--save", "saved.db"]).expect(0);
    let connection = opened(&sandbox.path("saved.db"));
    for (table, column, word) in [
        ("interactions", "response_content", "bug"),
        ("steps", "prompt_text", "summarise"),
        ("records", "record", "label"),
        ("effects", "effect", "reentrant"),
        ("artifacts", TITLE, "session"),
    ] {
        let found = format!(
            "SELECT {column} FROM {table} WHERE rowid IN (SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH '{word}')"
        );
        let found = texts(&connection, &found);
        assert!(!found.is_empty(), "{table}");
        let all = format!("SELECT count(*) FROM {table} WHERE {column} LIKE '%{word}%'");
        assert!(found.len() >= texts(&connection, &all).len().min(1), "{table}");
    }
    // The index is that of the texts.
    drop(connection);
    let connection =
        Connection::open_with_flags(sandbox.path("saved.db"), OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    for table in texts(&connection, "SELECT name FROM sqlite_schema WHERE sql LIKE '%USING fts5%'") {
        connection
            .execute(&format!("INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)"), [])
            .unwrap_or_else(|error| panic!("{table}: {error}"));
    }
}

#[test]
fn what_is_looked_for_by_a_hash_has_an_index() {
    let sandbox = examples();
    sandbox.run(["sql", "--save", "saved.db"]).expect(0);
    let connection = opened(&sandbox.path("saved.db"));
    for query in [
        "SELECT * FROM artifacts WHERE core_hash = 'x'",
        "SELECT * FROM interactions WHERE prompt_hash = 'x'",
        "SELECT * FROM interactions WHERE artifact = 1",
        "SELECT * FROM mentions WHERE digest = 'x'",
        "SELECT * FROM links WHERE target_artifact = 1",
        "SELECT * FROM steps WHERE hash = 'x'",
    ] {
        let plan: String =
            connection.query_row(&format!("EXPLAIN QUERY PLAN {query}"), [], |row| row.get(3)).unwrap();
        assert!(plan.starts_with("SEARCH"), "{query}: {plan}");
    }
}

#[test]
fn a_file_that_is_there_stays_unless_it_may_be_replaced() {
    let sandbox = examples();
    let said = sandbox.run(["sql", "--save", "saved.db"]).expect(0).stdout;
    assert!(said.starts_with("saved.db: 25 tables, "), "{said}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(sandbox.path("saved.db")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    sandbox.write("saved.db", "something else");
    let refused = sandbox.run(["sql", "--save", "saved.db"]).expect(2);
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(fs::read(sandbox.path("saved.db")).unwrap(), b"something else");
    let line = &sandbox.run(["sql", "--save", "saved.db", "--force", "--json"]).expect(0).json()[0];
    assert_eq!((line["path"].as_str(), &line["rows"]["sessions"]), (Some("saved.db"), &2.into()));
    assert_eq!(line["bytes"], fs::metadata(sandbox.path("saved.db")).unwrap().len());
    let before = fs::read(sandbox.vault()).unwrap();
    for (path, why) in
        [("v.vault", "the vault itself"), ("no/such.db", "no such directory"), (".", "is not a file")]
    {
        let refused = sandbox.run(["sql", "--save", path, "--force"]).expect(2);
        assert!(refused.stderr.contains("cannot write"), "{path}: {why}: {}", refused.stderr);
    }
    assert_eq!(fs::read(sandbox.vault()).unwrap(), before);
    let left: Vec<String> = fs::read_dir(sandbox.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("unfinished"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn metadata_describes_every_file_beside_it() {
    let sandbox = examples();
    let metadata = || -> serde_json::Value {
        serde_json::from_slice(&fs::read(sandbox.path(METADATA)).unwrap()).unwrap()
    };
    sandbox.run(["sql", "--save", "one.db"]).expect(0);
    sandbox.run(["sql", "--save", "other.db"]).expect(0);
    for name in ["one", "other"] {
        let tables = &metadata()["databases"][name]["tables"];
        assert_eq!(tables["runs"]["label_column"], TITLE);
        assert_eq!(tables["steps"]["facets"][0], "type");
        assert_eq!(tables["steps"]["columns"]["tool"], "the tool that the step concerns");
    }
    // Of another program, it stays unless it may be replaced.
    sandbox.write(METADATA, "{\"name\": \"a package\"}");
    let refused = sandbox.run(["sql", "--save", "third.db"]).expect(2);
    assert!(refused.stderr.contains(METADATA) && refused.stderr.contains("--force"), "{}", refused.stderr);
    assert!(!sandbox.path("third.db").exists());
    sandbox.run(["sql", "--save", "third.db", "--force"]).expect(0);
    assert!(metadata()["databases"]["third"].is_object() && metadata()["name"].is_null());
}

#[test]
fn a_file_is_whole_or_not_there() {
    let (sandbox, _) = super::mostly_damaged(&[0]);
    let ran = sandbox.run(["sql", "--save", "saved.db"]).expect(2);
    assert!(ran.stderr.contains("damaged"), "{}", ran.stderr);
    assert!(!sandbox.path("saved.db").exists() && !sandbox.path(METADATA).exists());
}

#[test]
fn the_same_vault_is_saved_as_the_same_bytes() {
    let sandbox = examples();
    sandbox.run(["sql", "--save", "one.db"]).expect(0);
    sandbox.run(["sql", "--save", "other.db"]).expect(0);
    assert!(fs::read(sandbox.path("one.db")).unwrap() == fs::read(sandbox.path("other.db")).unwrap());
}

#[test]
fn an_empty_vault_has_empty_tables() {
    let sandbox = Sandbox::new();
    let vault = Vault::open_or_create(&sandbox.vault()).unwrap();
    let reader = vault.sql().unwrap();
    for view in reader.views() {
        assert!(ask(&*reader, &format!("SELECT * FROM \"{}\"", view.name)).is_empty());
    }
    let saved = save(&*reader, &sandbox.path("saved.db")).unwrap();
    assert!(saved.rows.iter().all(|(_, rows)| *rows == 0));
}

/// What Datasette asks of a file when it is opened and a table is looked at, of plain views in a vault and of all tables in
/// a saved file.
#[test]
fn other_programs_find_their_way() {
    let (sandbox, vault) = everything();
    save(&*vault.sql().unwrap(), &sandbox.path("saved.db")).unwrap();
    for path in [sandbox.vault(), sandbox.path("saved.db")] {
        let connection = opened(&path);
        let mut objects = connection
            .prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
            .unwrap();
        let names: Vec<String> =
            objects.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert!(names.contains(&"artifacts".to_owned()));
        for name in names {
            for asked in ["table_xinfo", "foreign_key_list", "index_list"] {
                let mut statement = connection.prepare(&format!("PRAGMA {asked}([{name}])")).unwrap();
                assert!(statement.query([]).unwrap().next().is_ok());
            }
            let mut statement = connection.prepare(&format!("SELECT * FROM [{name}] LIMIT 101")).unwrap();
            let mut rows = statement.query([]).unwrap();
            while rows.next().unwrap().is_some() {}
            connection
                .query_row(&format!("SELECT count(*) FROM [{name}]"), [], |row| row.get::<_, i64>(0))
                .unwrap();
        }
    }
}

#[test]
fn an_interrupted_save_leaves_nothing() {
    let sandbox = examples();
    let directory = sandbox.path("saved");
    std::fs::create_dir(&directory).unwrap();
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let mut rows = 0;
    let path = directory.join("all.db");
    let options = SaveOptions { path: &path, form: SaveForm::Sqlite, force: false };
    let outcome = sql::save(&*vault.sql().unwrap(), &options, &mut |_, _| {
        rows += 1;
        assert!(std::fs::read_dir(&directory).unwrap().count() == 1);
        if rows == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(outcome, Err(SqlError::Interrupted)));
    assert_eq!((rows, std::fs::read_dir(&directory).unwrap().count()), (20, 0));
}

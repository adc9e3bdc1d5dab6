//! What is saved for other programs.

use std::fs;
use std::ops::ControlFlow;

use runvault::Vault;
use runvault::artifact::Cell;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::{ask, everything, examples};
use crate::sandbox::Sandbox;

fn opened(path: &std::path::Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// All rows of a table in the order in which they were written.
fn rows(connection: &Connection, table: &str) -> Vec<Vec<Cell>> {
    let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\" ORDER BY rowid")).unwrap();
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

#[test]
fn a_saved_file_has_what_the_views_have() {
    let (sandbox, vault) = everything();
    let path = sandbox.path("saved.db");
    let mut watched = Vec::new();
    let reader = vault.sql().unwrap();
    let saved = reader
        .save(&path, false, &mut |table, rows| {
            watched.push((table, rows));
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(saved.bytes, fs::metadata(&path).unwrap().len());
    let connection = opened(&path);
    for (view, (table, count)) in reader.views().iter().zip(&saved.rows) {
        assert_eq!(view.name, *table);
        let rows = rows(&connection, view.name);
        assert_eq!(rows.len(), usize::try_from(*count).unwrap());
        assert!(rows.is_empty() || watched.contains(&(view.name, *count)));
        let mut expected = ask(&*reader, &format!("SELECT * FROM \"{}\"", view.name));
        if view.name == "artifacts" {
            // Its rows are found by their numbers.
            expected.sort_by_key(|row| format!("{:?}", row[0]).len());
            assert_eq!(rows.len(), expected.len());
            continue;
        }
        assert_eq!(rows, expected, "{}", view.name);
    }
    let checks = ["integrity_check", "foreign_key_check", "journal_mode"].map(|check| {
        let mut statement = connection.prepare(&format!("PRAGMA {check}")).unwrap();
        let found = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        found.map(Result::unwrap).collect::<Vec<_>>().join(" ")
    });
    assert_eq!(checks, ["ok", "", "delete"]);
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
    assert!(said.starts_with("saved.db: 23 tables, "), "{said}");
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
fn a_file_is_whole_or_not_there() {
    let (sandbox, _) = super::mostly_damaged(&[0]);
    let ran = sandbox.run(["sql", "--save", "saved.db"]).expect(2);
    assert!(ran.stderr.contains("damaged"), "{}", ran.stderr);
    assert!(!sandbox.path("saved.db").exists());
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
    let saved = reader.save(&sandbox.path("saved.db"), false, &mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(saved.rows.iter().all(|(_, rows)| *rows == 0));
}

/// What Datasette asks of a file when it is opened and a table is looked at, of plain views in a vault and of all tables in
/// a saved file.
#[test]
fn other_programs_find_their_way() {
    let (sandbox, vault) = everything();
    vault
        .sql()
        .unwrap()
        .save(&sandbox.path("saved.db"), false, &mut |_, _| ControlFlow::Continue(()))
        .unwrap();
    for path in [sandbox.vault(), sandbox.path("saved.db")] {
        let connection = opened(&path);
        let mut objects = connection
            .prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
            .unwrap();
        let names: Vec<String> =
            objects.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert!(names.contains(&"sessions".to_owned()));
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
    let outcome = vault.sql().unwrap().save(&directory.join("all.db"), false, &mut |_, _| {
        rows += 1;
        assert!(std::fs::read_dir(&directory).unwrap().count() == 1);
        if rows == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(outcome, Err(runvault::vault::sql::SqlError::Interrupted)));
    assert_eq!((rows, std::fs::read_dir(&directory).unwrap().count()), (20, 0));
}

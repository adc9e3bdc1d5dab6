//! Changes of rows and columns, also to types that their columns do not take, and of the schema.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::super::mutate::Random;
use crate::fsck::sql;
use crate::sandbox::Sandbox;

/// Numbers that overflow, underflow, or refer to what does not exist.
const NUMBERS: &[i64] = &[
    0,
    1,
    -1,
    2,
    3,
    255,
    1 << 20,
    1 << 24,
    1 << 31,
    1 << 40,
    1 << 53,
    1 << 62,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    253_402_300_800_000,
    -62_135_596_800_001,
];

const TEXTS: &[&str] = &[
    "",
    "x",
    "{}",
    "[]",
    "null",
    "{\"action\":\"add\"}",
    "\u{1b}[2J\u{202e}",
    "sha256:",
    "../../x",
    "run:",
    "\0",
];

/// Sizes of long values.
const LONG: usize = 1 << 20;

/// Statements that change what the vault consists of; `$t` is a table.
const STATEMENTS: &[&str] = &[
    "DROP TABLE IF EXISTS $t",
    "ALTER TABLE $t RENAME TO other",
    "DELETE FROM $t",
    "CREATE TRIGGER t AFTER INSERT ON $t BEGIN DELETE FROM $t; END",
    "CREATE TRIGGER t AFTER INSERT ON journal BEGIN INSERT INTO journal SELECT seq + 1, at, actor, kind, core, capture, size, \
     entry, chain FROM journal ORDER BY seq DESC LIMIT 1; END",
    "CREATE TRIGGER t BEFORE UPDATE ON artifact BEGIN SELECT RAISE(ABORT, 'no'); END",
    "CREATE TABLE more (x)",
    "CREATE TABLE more (x); CREATE TRIGGER t AFTER INSERT ON $t BEGIN INSERT INTO more SELECT n FROM (WITH RECURSIVE c (n) AS \
     (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c); END",
    "ALTER TABLE $t RENAME TO other; CREATE VIEW $t AS WITH RECURSIVE c (id, core, kind, digest, size, seq, at, name) AS \
     (SELECT 1, 1, 1, 1, 1, 1, 1, 1 UNION ALL SELECT id + 1, 1, 1, 1, 1, 1, 1, 1 FROM c) SELECT * FROM c",
    "DROP VIEW IF EXISTS journal_entries; CREATE VIEW journal_entries AS WITH RECURSIVE c (seq, entry, chain) AS \
     (SELECT 0, '', '' UNION ALL SELECT seq, entry, chain FROM c) SELECT * FROM c",
    "DROP VIEW IF EXISTS artifacts; CREATE VIEW artifacts AS WITH RECURSIVE c (artifact) AS \
     (SELECT 0 UNION ALL SELECT artifact FROM c) SELECT * FROM c",
    "CREATE INDEX more ON $t (1)",
    "DROP VIEW IF EXISTS artifacts; CREATE VIEW artifacts AS SELECT 1 AS artifact",
    "DROP VIEW IF EXISTS captures; CREATE VIEW captures AS SELECT * FROM captures_",
    "DROP INDEX IF EXISTS artifact_by_core",
    "DROP INDEX IF EXISTS blob_by_digest",
    "DROP INDEX IF EXISTS capture_by_artifact",
    "PRAGMA user_version = 1",
    "PRAGMA user_version = 3",
    "PRAGMA user_version = -1",
    "PRAGMA application_id = 7",
    "PRAGMA auto_vacuum = 1; VACUUM",
    "PRAGMA journal_mode = DELETE; PRAGMA page_size = 65536; VACUUM",
    "PRAGMA journal_mode = DELETE; PRAGMA encoding = 'UTF-16'; VACUUM",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'blob') \
     WHERE name = '$t'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 1 WHERE name = '$t'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE $t (x)' WHERE name = '$t'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = NULL WHERE name = '$t'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET type = 'view', rootpage = 0 WHERE name = '$t'",
    "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = '$t'",
    "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = '$t'",
];

/// A table with the names of its columns.
struct Table {
    name: String,
    columns: Vec<String>,
}

/// One change of the vault in `sandbox`, and a description of it. A change that the database refuses is none.
pub(super) fn change(sandbox: &Sandbox, random: &mut Random) -> String {
    let connection = sql(sandbox);
    connection.pragma_update(None, "ignore_check_constraints", true).unwrap();
    match connection.busy_timeout(std::time::Duration::from_mins(1)).and_then(|()| tables(&connection)) {
        Ok(tables) if !tables.is_empty() => {
            let described = changed(connection, sandbox, &tables, random);
            described.unwrap_or_else(|error| format!("nothing: {error}"))
        }
        _ => "nothing: no tables".to_owned(),
    }
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<Table>> {
    let mut statement = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name")?;
    let names: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut tables = Vec::new();
    for name in names {
        let statement = connection.prepare(&format!("SELECT * FROM \"{name}\""))?;
        let columns = statement.column_names().into_iter().map(str::to_owned).collect();
        tables.push(Table { name, columns });
    }
    Ok(tables)
}

fn changed(
    connection: Connection,
    sandbox: &Sandbox,
    tables: &[Table],
    random: &mut Random,
) -> rusqlite::Result<String> {
    let table = random.of(tables);
    if random.below(6) == 0 {
        let statement = random.of(STATEMENTS).replace("$t", &table.name);
        let done = connection.execute_batch(&statement);
        return Ok(format!("{statement}: {done:?}"));
    }
    let (Some(row), Some(other)) = (row(&connection, table, random)?, row(&connection, table, random)?)
    else {
        return insert(&connection, table, random);
    };
    let column = random.below(table.columns.len());
    match random.below(8) {
        0 => {
            let sql = format!("DELETE FROM \"{}\" WHERE {}", table.name, condition(table, 1));
            connection.execute(&sql, params_from_iter(&row))?;
            Ok(format!("{}: without {}", table.name, short(&row)))
        }
        1 => insert(&connection, table, random),
        2 => {
            // In two steps through a value that is in neither row, where the column is a key.
            set(&connection, table, &row, column, &Value::Integer(1 << 50))?;
            let mut moved = row.clone();
            moved[column] = Value::Integer(1 << 50);
            let first = set(&connection, table, &other, column, &row[column])?;
            set(&connection, table, &moved, column, &other[column])?;
            Ok(format!("{first}, and the other way round"))
        }
        3 | 4 => set(&connection, table, &row, column, &other[column]),
        5 => {
            drop(connection);
            set_any_type(sandbox, table, &row, column, &value(&row[column], random))
        }
        6 => {
            let value = value(&row[column], random);
            let sql = format!("UPDATE \"{}\" SET \"{}\" = ?1", table.name, table.columns[column]);
            connection.execute(&sql, [&value])?;
            Ok(format!("{}.{} is {} in every row", table.name, table.columns[column], short(&[value])))
        }
        _ => set(&connection, table, &row, column, &value(&row[column], random)),
    }
}

fn row(connection: &Connection, table: &Table, random: &mut Random) -> rusqlite::Result<Option<Vec<Value>>> {
    let count: usize =
        connection.query_row(&format!("SELECT count(*) FROM \"{}\"", table.name), [], |row| row.get(0))?;
    if count == 0 {
        return Ok(None);
    }
    let sql = format!("SELECT * FROM \"{}\" LIMIT 1 OFFSET {}", table.name, random.below(count));
    let read = |row: &rusqlite::Row<'_>| (0..table.columns.len()).map(|at| row.get(at)).collect();
    connection.query_row(&sql, [], read).map(Some)
}

fn condition(table: &Table, from: usize) -> String {
    let wanted: Vec<String> =
        table.columns.iter().zip(from..).map(|(name, at)| format!("\"{name}\" IS ?{at}")).collect();
    wanted.join(" AND ")
}

fn set(
    connection: &Connection,
    table: &Table,
    row: &[Value],
    column: usize,
    value: &Value,
) -> rusqlite::Result<String> {
    let name = &table.columns[column];
    let sql = format!("UPDATE \"{}\" SET \"{name}\" = ?1 WHERE {}", table.name, condition(table, 2));
    connection.execute(&sql, params_from_iter(std::iter::once(value).chain(row)))?;
    Ok(format!("{}.{name} becomes {} in {}", table.name, short(std::slice::from_ref(value)), short(row)))
}

/// The same, with the table's definition changed so that it takes values of any type, and back.
fn set_any_type(
    sandbox: &Sandbox,
    table: &Table,
    row: &[Value],
    column: usize,
    value: &Value,
) -> rusqlite::Result<String> {
    let replace = |from: &str, to: &str| {
        let connection = sql(sandbox);
        connection.execute_batch("PRAGMA writable_schema = ON")?;
        let sql = "UPDATE sqlite_schema SET sql = replace(sql, ?1, ?2) WHERE name = ?3";
        connection.execute(sql, (from, to, &table.name))
    };
    replace(") STRICT", ") /*STRICT*/")?;
    let connection = sql(sandbox);
    connection.pragma_update(None, "ignore_check_constraints", true)?;
    let described = set(&connection, table, row, column, value);
    drop(connection);
    replace(") /*STRICT*/", ") STRICT")?;
    described.map(|described| format!("{described} (of any type)"))
}

/// A row of values that are not fit for anything.
fn insert(connection: &Connection, table: &Table, random: &mut Random) -> rusqlite::Result<String> {
    let row = match row(connection, table, random)? {
        Some(mut row) => {
            let column = random.below(row.len());
            row[column] = value(&row[column], random);
            row
        }
        None => table.columns.iter().map(|_| value(&Value::Null, random)).collect(),
    };
    let places: Vec<String> = (1..=row.len()).map(|at| format!("?{at}")).collect();
    let sql = format!("INSERT OR REPLACE INTO \"{}\" VALUES ({})", table.name, places.join(", "));
    connection.execute(&sql, params_from_iter(&row))?;
    Ok(format!("{}: with {}", table.name, short(&row)))
}

/// A value that is not `value`, most often of its type.
fn value(value: &Value, random: &mut Random) -> Value {
    if random.below(3) > 0 {
        match value {
            Value::Integer(number) if random.below(2) == 0 => {
                return Value::Integer(number.wrapping_add(1 << random.below(16)));
            }
            Value::Integer(_) => return Value::Integer(*random.of(NUMBERS)),
            Value::Text(text) => return Value::Text(changed_text(text, random)),
            Value::Blob(bytes) => return Value::Blob(changed_bytes(bytes.clone(), random)),
            Value::Null | Value::Real(_) => {}
        }
    }
    match random.below(8) {
        0 => Value::Null,
        1 => Value::Real(f64::from(u32::try_from(random.below(1000)).unwrap()) / 7.0),
        2 => Value::Real(f64::INFINITY),
        3 => Value::Blob(vec![0; [0, 1, 16, 32, LONG][random.below(5)]]),
        4 => Value::Blob(changed_bytes(vec![1; 32], random)),
        5 => Value::Text(changed_text("", random)),
        _ => Value::Integer(*random.of(NUMBERS)),
    }
}

fn changed_text(text: &str, random: &mut Random) -> String {
    match random.below(8) {
        0 => "[".repeat(LONG / 8),
        1 => "{\"a\":".repeat(LONG / 16),
        2 => "x".repeat(LONG),
        3 => text.chars().rev().collect(),
        4 => text.replacen(char::is_numeric, "9", 1 + random.below(3)),
        5 => text.chars().take(random.below(text.len() + 1)).collect(),
        _ => (*random.of(TEXTS)).to_owned(),
    }
}

fn changed_bytes(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    match random.below(6) {
        0 => bytes.truncate(random.below(bytes.len() + 1)),
        1 => bytes.extend((0..random.below(40)).map(|_| 0x80)),
        2 => bytes.extend([0xff; 10]),
        3 => bytes.reverse(),
        _ => {
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = if random.below(2) == 0 { *byte ^ (1 << random.below(8)) } else { 0xff };
                }
            }
        }
    }
    bytes
}

/// The values for a description.
fn short(row: &[Value]) -> String {
    format!("{row:?}").chars().take(300).collect()
}

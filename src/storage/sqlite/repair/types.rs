//! Repairs of values that are not of the types of their columns, and of texts that are not UTF-8.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Transaction};

use crate::storage::check::{Repair, Subject};

/// Gives texts that are stored as blobs, and blobs that are stored as texts, the types of their columns again: tables are
/// strict, so nothing else was written there. In the file, the types differ in one bit. Whether the bytes are the right ones is
/// checked as for every value.
pub(super) fn restore(transaction: &Transaction<'_>, repaired: &mut Vec<Repair>) -> rusqlite::Result<()> {
    transaction.pragma_update(None, "defer_foreign_keys", true)?;
    let columns: Vec<(String, String, String)> = transaction
        .prepare(
            "SELECT t.name, c.name, c.type FROM sqlite_schema t, pragma_table_info(t.name) c
              WHERE t.type = 'table' AND t.sql LIKE '%) STRICT%' AND c.type IN ('TEXT', 'BLOB') ORDER BY t.name, c.cid",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (table, column, right) in columns {
        let wrong = if right == "TEXT" { "blob" } else { "text" };
        // A row that would then have the key of another one stays as it is.
        let sql = format!(
            "UPDATE OR IGNORE \"{table}\" SET \"{column}\" = CAST(\"{column}\" AS {right})
              WHERE typeof(\"{column}\") = '{wrong}'"
        );
        if transaction.execute(&sql, [])? > 0 {
            repaired
                .push(Repair { subject: Subject::Table(table), did: "given the types of its columns again" });
        }
    }
    Ok(())
}

/// Columns of texts that follow from the journal.
const JOURNALED: &[(&str, &str)] = &[
    ("tag", "name"),
    ("note", "text"),
    ("pin", "note"),
    ("link", "relation"),
    ("link", "note"),
    ("label", "key"),
    ("label", "value"),
    ("tombstone", "kind"),
    ("tombstone", "actor"),
    ("tombstone", "reason"),
    ("signature", "state"),
    ("signature", "key_id"),
];

/// Deletes rows with damaged texts that the journal has undamaged. None of them can be read, and with one of them a whole table.
pub(super) fn drop_unreadable(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.pragma_update(None, "defer_foreign_keys", true)?;
    for (table, column) in JOURNALED {
        for text in unreadable(transaction, table, column)? {
            let sql = format!("DELETE FROM {table} WHERE CAST({column} AS BLOB) IS ?1");
            transaction.execute(&sql, [text])?;
        }
    }
    // SQLite takes IS NULL to be false for these columns.
    transaction.execute("DELETE FROM label WHERE typeof(key) = 'null' OR typeof(value) = 'null'", [])?;
    transaction.execute("DELETE FROM tombstone WHERE typeof(kind) = 'null'", []).map(drop)
}

/// Gives kinds whose names cannot be read names that no kind has. Their artifacts are given their kinds when they are indexed
/// again.
pub(super) fn rename_kinds(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    for name in unreadable(transaction, "kind", "name")? {
        transaction.execute("UPDATE kind SET name = 'row ' || id WHERE CAST(name AS BLOB) IS ?1", [name])?;
    }
    Ok(())
}

/// Removes damaged warnings, which are derived from the bytes of their captures.
pub(super) fn drop_warnings(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    for text in unreadable(transaction, "capture", "warnings")? {
        let sql = "UPDATE capture SET warnings = NULL WHERE CAST(warnings AS BLOB) IS ?1";
        transaction.execute(sql, [text])?;
    }
    Ok(())
}

/// Returns the bytes of the texts in a column that are not UTF-8.
fn unreadable(connection: &Connection, table: &str, column: &str) -> rusqlite::Result<Vec<Vec<u8>>> {
    let sql = format!("SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut unreadable = Vec::new();
    while let Some(row) = rows.next()? {
        if let ValueRef::Text(bytes) = row.get_ref(0)?
            && std::str::from_utf8(bytes).is_err()
        {
            unreadable.push(bytes.to_vec());
        }
    }
    Ok(unreadable)
}

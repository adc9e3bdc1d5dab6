//! SQL indexes, which follow from the rows of their tables.

use rusqlite::{Connection, ErrorCode, Transaction};

use super::types;
use crate::storage::check::{Repair, Subject};
use crate::storage::sqlite::reclaim::vacuum;
use crate::storage::sqlite::{Result, Store, write_lock};

impl Store {
    /// Rebuilds SQLite's own indexes and gives values the types of their columns again, unless the file is too damaged for
    /// that.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn repair_sql_indexes(&self) -> Result<Vec<Repair>> {
        let rebuilt = self.repair(|transaction| {
            transaction.execute_batch("REINDEX")?;
            with_types(transaction)
        });
        match rebuilt {
            Err(error) if error.is_of_damaged_file() => {}
            rebuilt => return rebuilt,
        }
        // SQLite clears an index before it builds it again, so it cannot rebuild one whose pages it cannot read.
        let replaced = self.with_connection(unreadable).and_then(|indexes| {
            self.repair(|transaction| {
                indexes.iter().try_for_each(|index| index.replace(transaction))?;
                with_types(transaction)
            })
        });
        let repairs = match replaced {
            Err(error) if error.is_of_damaged_file() => return Ok(Vec::new()),
            replaced => replaced?,
        };
        // The pages of replaced indexes belong to nothing. If a table is damaged as well, they stay, and are found.
        match self.with_connection(|connection| vacuum(connection)) {
            Err(error) if !error.is_of_damaged_file() => Err(error),
            Ok(()) | Err(_) => Ok(repairs),
        }
    }
}

/// Restores types, and returns all repairs after indexes were rebuilt.
fn with_types(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<Repair>> {
    let subject = Subject::File("database".to_owned());
    let mut repairs = vec![Repair { subject, did: "rebuilt SQL indexes" }];
    types::restore(transaction, &mut repairs)?;
    Ok(repairs)
}

/// An index whose pages cannot be read.
struct UnreadableIndex {
    name: String,
    table: String,
    /// Its definition; `None` if it belongs to a `UNIQUE` constraint.
    definition: Option<String>,
}

/// Rebuilds every index, and returns those that cannot be rebuilt. After the attempt, its transaction can change nothing.
fn unreadable(connection: &mut Connection) -> rusqlite::Result<Vec<UnreadableIndex>> {
    let indexes: Vec<UnreadableIndex> = connection
        .prepare("SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name")?
        .query_map([], |row| {
            Ok(UnreadableIndex { name: row.get(0)?, table: row.get(1)?, definition: row.get(2)? })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut unreadable = Vec::new();
    for index in indexes {
        let transaction = write_lock::begin(connection)?;
        match transaction.execute_batch(&format!("REINDEX {}", quoted(&index.name))) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                transaction.rollback()?;
                unreadable.push(index);
            }
            rebuilt => {
                rebuilt?;
                transaction.commit()?;
            }
        }
    }
    Ok(unreadable)
}

impl UnreadableIndex {
    /// Builds the index in other pages.
    fn replace(&self, connection: &Connection) -> rusqlite::Result<()> {
        match &self.definition {
            Some(definition) => {
                in_schema(connection, || {
                    let sql = "DELETE FROM sqlite_schema WHERE type = 'index' AND name = ?1";
                    connection.execute(sql, [&self.name]).map(drop)
                })?;
                connection.execute_batch(definition)
            }
            None => self.replace_automatic(connection),
        }
    }

    /// Gives the index of a constraint, which cannot be created by itself, the pages of one with the same columns.
    fn replace_automatic(&self, connection: &Connection) -> rusqlite::Result<()> {
        const SAME: &str = "index_with_the_same_columns";
        let columns: Vec<String> = connection
            .prepare("SELECT name FROM pragma_index_info(?1) ORDER BY seqno")?
            .query_map([&self.name], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
        let table = quoted(&self.table);
        connection.execute_batch(&format!("CREATE INDEX {SAME} ON {table} ({})", columns.join(", ")))?;
        in_schema(connection, || {
            let sql =
                "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = ?2)
                        WHERE name = ?1";
            connection.execute(sql, (&self.name, SAME))?;
            connection.execute("DELETE FROM sqlite_schema WHERE name = ?1", [SAME]).map(drop)
        })
    }
}

/// Makes a change of the schema by its table.
fn in_schema(connection: &Connection, change: impl FnOnce() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA writable_schema = ON")?;
    let changed = change();
    connection.execute_batch("PRAGMA writable_schema = RESET")?;
    changed
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

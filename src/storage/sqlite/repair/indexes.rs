//! SQL indexes, which follow from the rows of their tables.

use rusqlite::{Connection, ErrorCode};

use super::types;
use crate::storage::check::{Repair, Subject};
use crate::storage::sqlite::connection::secure_delete;
use crate::storage::sqlite::reclaim::vacuum;
use crate::storage::sqlite::{Result, Store, schema, write_lock};

impl Store {
    /// Rebuilds SQLite's own indexes and gives values the types of their columns again, unless the file is too damaged for
    /// that.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn repair_sql_indexes(&self) -> Result<Vec<Repair>> {
        let repaired = self.with_connection(rebuild).and_then(|unreadable| {
            let repairs = self.repair(|transaction| {
                unreadable.iter().try_for_each(|index| index.replace(transaction))?;
                let subject = Subject::File("database".to_owned());
                let mut repairs = vec![Repair { subject, did: "rebuilt SQL indexes" }];
                types::restore(transaction, &mut repairs)?;
                Ok(repairs)
            })?;
            Ok((unreadable.is_empty(), repairs))
        });
        let (are_readable, repairs) = match repaired {
            Err(error) if error.is_of_damaged_file() => return Ok(Vec::new()),
            repaired => repaired?,
        };
        if are_readable {
            return Ok(repairs);
        }
        // The pages of replaced indexes belong to nothing. If a table is damaged as well, they stay, and are found.
        match self.with_connection(|connection| vacuum(connection)) {
            Err(error) if !error.is_of_damaged_file() => Err(error),
            Ok(()) | Err(_) => Ok(repairs),
        }
    }
}

/// An index whose pages cannot be read.
struct UnreadableIndex {
    name: String,
    table: String,
    /// Its definition; `None` if it belongs to a `UNIQUE` constraint.
    definition: Option<String>,
}

/// Rebuilds every index, and returns those that SQLite cannot rebuild because it clears an index first, and for this reads its
/// pages. After the attempt, its transaction can change nothing.
fn rebuild(connection: &mut Connection) -> rusqlite::Result<Vec<UnreadableIndex>> {
    // Deleted content is overwritten.
    secure_delete(connection, true)?;
    let indexes: Vec<UnreadableIndex> = connection
        .prepare("SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name")?
        .query_map([], |row| {
            Ok(UnreadableIndex { name: row.get(0)?, table: row.get(1)?, definition: row.get(2)? })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut unreadable = Vec::new();
    for index in indexes {
        let transaction = write_lock::begin(connection)?;
        match transaction.execute_batch(&format!("REINDEX {}", schema::quoted(&index.name))) {
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
                schema::change_by_table(connection, || {
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
        let columns: Vec<String> = columns.iter().map(|column| schema::quoted(column)).collect();
        let table = schema::quoted(&self.table);
        connection.execute_batch(&format!("CREATE INDEX {SAME} ON {table} ({})", columns.join(", ")))?;
        schema::change_by_table(connection, || {
            let sql =
                "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = ?2)
                        WHERE name = ?1";
            connection.execute(sql, (&self.name, SAME))?;
            connection.execute("DELETE FROM sqlite_schema WHERE name = ?1", [SAME]).map(drop)
        })
    }
}

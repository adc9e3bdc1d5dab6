//! Databases of other programs: they are read while these programs use them, and never written.

use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::connection;
use crate::storage::{Result, StorageError};

/// A database of another program, in the state of the first query.
#[derive(Debug)]
pub(crate) struct ForeignDatabase {
    connection: Connection,
    path: PathBuf,
}

/// A value in such a database.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ForeignValue {
    /// There is none, or there is no such column.
    Null,
    /// A number, as JSON writes it.
    Number(String),
    /// A text.
    Text(String),
}

/// The rows of a table to be read. The names are not those of a user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignRows<'q> {
    /// The name of the table.
    pub(crate) table: &'q str,
    /// The names of the columns to return.
    pub(crate) columns: &'q [&'q str],
    /// A column, and the text that it has in the rows.
    pub(crate) equal: Option<(&'q str, &'q str)>,
    /// The columns that the rows are sorted by.
    pub(crate) order: &'q [&'q str],
    /// The maximum size of all their texts in bytes.
    pub(crate) limit: u64,
}

impl ForeignDatabase {
    /// Opens the database at `path`.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let open = || {
            let connection = connection::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            // The program writes while several queries read one state.
            connection.execute_batch("BEGIN").map(|()| connection)
        };
        let connection = open().map_err(|error| StorageError::from_sqlite(path, error))?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// Returns whether it has a table of this name. A view is none: it could compute without end.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub(crate) fn has_table(&self, table: &str) -> Result<bool> {
        let query = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name = ?1";
        let found = self.connection.query_row(query, [table], |row| row.get::<_, i64>(0));
        found.map(|tables| tables > 0).map_err(|error| StorageError::from_sqlite(&self.path, error))
    }

    /// Returns rows, with a value for each requested column.
    ///
    /// # Errors
    /// Returns an error if they cannot be read, and of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if their texts
    /// have more bytes than the limit.
    pub(crate) fn rows(&self, rows: &ForeignRows<'_>) -> Result<Vec<Vec<ForeignValue>>> {
        let (values, left) = self.read(rows).map_err(|error| StorageError::from_sqlite(&self.path, error))?;
        left.map(|_| values).ok_or_else(|| {
            let (path, limit) = (self.path.display(), rows.limit);
            StorageError::invalid(format!("{path}: a session has more than {limit} bytes"))
        })
    }

    fn columns(&self, table: &str) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
        statement.query_map([table], |row| row.get(0))?.collect()
    }

    /// Returns the rows, and what is left of the limit.
    fn read(&self, rows: &ForeignRows<'_>) -> rusqlite::Result<(Vec<Vec<ForeignValue>>, Option<u64>)> {
        // Versions of a program differ in the columns that they have.
        let known = self.columns(rows.table)?;
        let column = |name: &&str| {
            if known.iter().any(|known| known == name) { format!("\"{name}\"") } else { "NULL".to_owned() }
        };
        let columns: Vec<String> = rows.columns.iter().map(column).collect();
        let order: Vec<String> = rows.order.iter().map(column).collect();
        let matching = rows.equal.map(|(name, _)| format!(" WHERE {} = ?1", column(&name)));
        let sorted = (!order.is_empty()).then(|| format!(" ORDER BY {}", order.join(", ")));
        let clauses: String = matching.into_iter().chain(sorted).collect();
        let text = format!("SELECT {} FROM \"{}\"{clauses}", columns.join(", "), rows.table);
        let mut statement = self.connection.prepare(&text)?;
        let (mut read, mut left) = (Vec::new(), Some(rows.limit));
        let mut found = statement.query(params_from_iter(rows.equal.map(|(_, value)| value)))?;
        while let Some(row) = found.next()? {
            let mut values = Vec::with_capacity(columns.len());
            for index in 0..columns.len() {
                let value = ForeignValue::from(row.get_ref(index)?);
                if let ForeignValue::Text(text) = &value {
                    left = left.and_then(|left| left.checked_sub(text.len() as u64));
                }
                values.push(value);
            }
            if left.is_none() {
                break;
            }
            read.push(values);
        }
        Ok((read, left))
    }
}

impl From<ValueRef<'_>> for ForeignValue {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Integer(number) => Self::Number(number.to_string()),
            ValueRef::Real(number) if number.is_finite() => Self::Number(number.to_string()),
            ValueRef::Text(text) | ValueRef::Blob(text) => {
                Self::Text(String::from_utf8_lossy(text).into_owned())
            }
            ValueRef::Null | ValueRef::Real(_) => Self::Null,
        }
    }
}

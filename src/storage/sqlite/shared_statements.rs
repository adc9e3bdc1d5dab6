//! Prepared statements, and those that vaults in files share with those in PostgreSQL.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::rc::Rc;

use rusqlite::types::{ToSql, ToSqlOutput, Type, Value, ValueRef};
use rusqlite::vtab::array::Array;
use rusqlite::{CachedStatement, Connection, Error, Result, Statement, params_from_iter};

use crate::storage::sql::{DamagedValue, Dialect, SqlParameter, SqlRow, SqlSession, SqlTable, SqlValue};

impl From<DamagedValue> for Error {
    fn from(damaged: DamagedValue) -> Self {
        Self::FromSqlConversionFailure(damaged.column, Type::Null, Box::new(damaged))
    }
}

impl ToSql for SqlParameter {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let values = match self {
            Self::Value(_, value) => return value.to_sql(),
            Self::List(_, values) => values,
        };
        // Joined with, a value would be found twice.
        let values: BTreeSet<&SqlValue> = values.iter().collect();
        let owned = |value: &SqlValue| Ok(Value::try_from(ValueRef::from(value))?);
        let values: Array = Rc::new(values.into_iter().map(owned).collect::<rusqlite::Result<_>>()?);
        Ok(ToSqlOutput::from_rc(values, c"rarray"))
    }
}

impl<'v> From<&'v SqlValue> for ValueRef<'v> {
    fn from(value: &'v SqlValue) -> Self {
        match value {
            SqlValue::Null => Self::Null,
            SqlValue::Integer(number) => Self::Integer(*number),
            SqlValue::Text(text) => Self::Text(text.as_bytes()),
            SqlValue::Bytes(bytes) => Self::Blob(bytes),
        }
    }
}

impl ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.into()))
    }
}

/// Returns a row of a query.
pub(super) fn shared_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<SqlRow> {
    let value = |column| {
        Ok(match row.get_ref(column)? {
            ValueRef::Null => SqlValue::Null,
            ValueRef::Integer(number) => SqlValue::Integer(number),
            // Bytes that are no text are damage where a text is expected.
            ValueRef::Text(bytes) => match str::from_utf8(bytes) {
                Ok(text) => SqlValue::Text(text.to_owned()),
                Err(_) => SqlValue::Bytes(bytes.to_vec()),
            },
            ValueRef::Blob(bytes) => SqlValue::Bytes(bytes.to_vec()),
            ValueRef::Real(_) => return Err(Error::InvalidColumnType(column, String::new(), Type::Real)),
        })
    };
    (0..row.as_ref().column_count()).map(value).collect::<rusqlite::Result<_>>().map(SqlRow)
}

impl SqlSession for Connection {
    type Error = Error;
    const DIALECT: Dialect = Dialect::Sqlite;

    fn rows(&self, sql: &str, parameters: &[SqlParameter]) -> rusqlite::Result<Vec<SqlRow>> {
        let mut statement = self.prepare_cached(sql)?;
        // The other database needs more.
        let parameters = params_from_iter(parameters.iter().take(statement.parameter_count()));
        statement.query_map(parameters, shared_row)?.collect()
    }

    fn each(
        &self,
        sql: &str,
        parameters: &[SqlParameter],
        take: &mut dyn FnMut(SqlRow) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(parameters))?;
        while let Some(row) = rows.next()? {
            take(shared_row(row)?)?;
        }
        Ok(())
    }

    fn execute(&self, sql: &str, parameters: &[SqlParameter]) -> rusqlite::Result<u64> {
        let mut statement = self.prepare_cached(sql)?;
        let parameters = params_from_iter(parameters.iter().take(statement.parameter_count()));
        statement.execute(parameters).map(|rows| rows as u64)
    }

    fn insert(&self, table: &SqlTable, rows: Vec<Vec<SqlValue>>) -> rusqlite::Result<()> {
        let columns: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        let values: Vec<String> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
        let (name, columns, values) = (table.name, columns.join(", "), values.join(", "));
        let sql = format!("INSERT INTO {name} ({columns}) VALUES ({values}) ON CONFLICT DO NOTHING");
        let mut statement = self.prepare_cached(&sql)?;
        rows.into_iter().try_for_each(|row| statement.execute(params_from_iter(row)).map(drop))
    }

    fn delete(&self, table: &SqlTable, keys: &[Vec<SqlValue>]) -> rusqlite::Result<()> {
        let mut sql = format!("DELETE FROM {} WHERE 1", table.name);
        for (number, (column, _)) in (1..).zip(table.columns.iter().take(table.key)) {
            // Writing to a string cannot fail.
            let _ = write!(sql, " AND {column} = ?{number}");
        }
        let mut statement = self.prepare_cached(&sql)?;
        keys.iter()
            .try_for_each(|key| statement.execute(params_from_iter(key.iter().take(table.key))).map(drop))
    }
}

/// A lender of prepared statements.
pub(super) trait StatementProvider {
    /// Calls `work` with the statement of `sql`.
    ///
    /// # Errors
    /// Returns an error if the statement cannot be prepared, and those of `work`.
    fn with<T>(&self, sql: &'static str, work: impl FnOnce(&mut Statement<'_>) -> Result<T>) -> Result<T>;
}

impl StatementProvider for Connection {
    fn with<T>(&self, sql: &'static str, work: impl FnOnce(&mut Statement<'_>) -> Result<T>) -> Result<T> {
        let mut statement = self.prepare_cached(sql)?;
        work(&mut statement)
    }
}

/// The statements that a transaction uses for each artifact. Each is taken from the cache of the connection only once: a
/// use of that cache costs almost as much as a lookup in a table.
pub(super) struct TransactionStatements<'t> {
    connection: &'t Connection,
    held: RefCell<Vec<(&'static str, Option<CachedStatement<'t>>)>>,
}

impl<'t> TransactionStatements<'t> {
    pub(super) fn new(connection: &'t Connection) -> Self {
        Self { connection, held: RefCell::new(Vec::new()) }
    }

    /// Returns the place of the statement, and the statement unless it is in use.
    fn take(&self, sql: &'static str) -> (usize, Option<CachedStatement<'t>>) {
        let mut held = self.held.borrow_mut();
        // Texts that are equal and not the same have a statement each.
        let known = held.iter_mut().enumerate().find(|(_, (known, _))| std::ptr::eq(*known, sql));
        if let Some((place, (_, statement))) = known {
            return (place, statement.take());
        }
        held.push((sql, None));
        (held.len() - 1, None)
    }
}

impl StatementProvider for TransactionStatements<'_> {
    fn with<T>(&self, sql: &'static str, work: impl FnOnce(&mut Statement<'_>) -> Result<T>) -> Result<T> {
        let (place, statement) = self.take(sql);
        let mut statement = match statement {
            Some(statement) => statement,
            None => self.connection.prepare_cached(sql)?,
        };
        let outcome = work(&mut statement);
        if let Some((_, free)) = self.held.borrow_mut().get_mut(place) {
            *free = Some(statement);
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::sqlite::connection;

    static COUNT: &str = "SELECT count(*) FROM t";

    #[test]
    fn statements_are_used_again_also_within_their_own_use_and_after_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let connection = connection::connect(file.path()).unwrap();
        connection.execute_batch("CREATE TABLE t (x UNIQUE)").unwrap();
        let statements = TransactionStatements::new(&connection);
        let insert = |x: i64| statements.with("INSERT INTO t VALUES (?1)", |insert| insert.execute([x]));
        let count = || statements.with(COUNT, |count| count.query_row([], |row| row.get::<_, i64>(0)));
        insert(1).unwrap();
        insert(1).unwrap_err();
        insert(2).unwrap();
        assert_eq!(count(), Ok(2));
        let within = statements.with(COUNT, |outer| {
            let mut rows = outer.query([])?;
            rows.next()?;
            count()
        });
        assert_eq!(within, Ok(2));
        assert_eq!(statements.held.borrow().len(), 2);
        statements.with("SELECT", |_| Ok(())).unwrap_err();
    }
}

//! Prepared statements.

use std::cell::RefCell;

use rusqlite::{CachedStatement, Connection, Result, Statement, Transaction};

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

impl StatementProvider for Transaction<'_> {
    fn with<T>(&self, sql: &'static str, work: impl FnOnce(&mut Statement<'_>) -> Result<T>) -> Result<T> {
        (**self).with(sql, work)
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

//! A connection in a transaction, with the statements that vaults in PostgreSQL share with those in files.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::{ToSql, Type};
use postgres::{Client, Row, SimpleQueryMessage};

use super::error::{PostgresError, PostgresResult};
use super::parameters::{ParameterRows, TypedParameter, numbered, shared_row, typed};
use super::pool::{PostgresPooledConnection, PostgresServer};
use super::schema::expect_current;
use super::statements::Preparation;
use crate::storage::sql::{Dialect, SqlParameter, SqlRow, SqlSession, SqlTable, SqlType, SqlValue, text_key};

/// The settings of each transaction; those of a connection would be lost behind a pooler that assigns connections per
/// transaction. Compiling a plan takes longer than running it, because the server estimates that many more rows are read
/// than it takes to fill a page. A query does not go on after its client has left. Servers that do neither have no such
/// settings.
const SETTINGS: &str = "
  SELECT set_config('jit', 'off', true) WHERE current_setting('jit', true) = 'on';
  SELECT set_config('client_connection_check_interval', '2s', true)
   WHERE current_setting('client_connection_check_interval', true) = '0'";

/// What is checked when a transaction begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checked {
    /// The version of the vault, and that the server has the prepared statements of the connection.
    Version,
    /// The version of the vault. No statement is prepared.
    Unprepared,
    /// Nothing. No statement is prepared.
    Nothing,
}

/// A transaction. It is rolled back unless it is committed.
pub(in crate::storage) struct DatabaseTransaction<'s> {
    server: &'s PostgresServer,
    client: RefCell<PostgresPooledConnection>,
    is_open: Cell<bool>,
    /// Whether statements that are run again are prepared.
    prepares: bool,
}

impl<'s> DatabaseTransaction<'s> {
    /// Begins a transaction that reads one state, whatever others write.
    pub(super) fn to_read(server: &'s PostgresServer) -> PostgresResult<Self> {
        // The state is that of the first statement that reads.
        Self::begin(server, "REPEATABLE READ READ ONLY", "", Checked::Version)
    }

    /// Begins a transaction that reads one state, in which temporary tables can be created.
    pub(super) fn to_query(server: &'s PostgresServer) -> PostgresResult<Self> {
        // What statements refer to changes with the temporary tables.
        Self::begin(server, "REPEATABLE READ", "", Checked::Unprepared)
    }

    /// Begins a transaction that reads one state without relying on any table, and returns to the point `intact` after
    /// errors of statements.
    pub(super) fn to_inspect(server: &'s PostgresServer) -> PostgresResult<Self> {
        // The version was checked when the vault was opened, and its row may be damaged, like everything that a check reads.
        Self::begin(server, "REPEATABLE READ READ ONLY", "SAVEPOINT intact", Checked::Nothing)
    }

    /// Begins a transaction that writes, and waits for locks no longer than `busy_timeout`.
    pub(super) fn to_write(server: &'s PostgresServer, busy_timeout: Duration) -> PostgresResult<Self> {
        // Zero would be no limit. A writer that the network has cut off must not hold the lock of all writers until the
        // server finds out by itself. What was committed is on disk, whatever the default of the role is.
        let settings = format!(
            "SET LOCAL lock_timeout = '{}ms'; SET LOCAL idle_in_transaction_session_timeout = '5min';
             SELECT set_config('synchronous_commit', 'on', true)
              WHERE current_setting('synchronous_commit') = 'off'",
            busy_timeout.as_millis().clamp(1, 1 << 30)
        );
        Self::begin(server, "READ COMMITTED", &settings, Checked::Version)
    }

    /// Begins a transaction of this kind with these further statements. Connections that were lost while they were idle
    /// are replaced.
    fn begin(
        server: &'s PostgresServer,
        kind: &str,
        statements: &str,
        checked: Checked,
    ) -> PostgresResult<Self> {
        let mut attempts = server.max_connections();
        loop {
            let prepares = checked == Checked::Version && server.prepares();
            let mut client = server.lease()?;
            let count = if prepares { client.count_of_prepared() } else { "0".to_owned() };
            let read = match checked {
                Checked::Nothing => String::new(),
                _ => format!("SELECT format_version, {count} FROM vault"),
            };
            let opening = format!(
                "BEGIN ISOLATION LEVEL {kind}; SET LOCAL search_path TO \"{}\"; {SETTINGS}; {statements}; {read}",
                server.schema()
            );
            server.count_round_trip();
            let begun = client.simple_query(&opening).map_err(PostgresError::from);
            match begun.and_then(|answers| expect_version(server, checked, &answers)) {
                Ok(found) if !prepares || found == client.prepared() => {
                    return Ok(Self {
                        server,
                        client: RefCell::new(client),
                        is_open: Cell::new(true),
                        prepares,
                    });
                }
                Ok(_) => {
                    // This is another connection of the server than that of the last transaction.
                    server.stop_preparing();
                    client.forget_all();
                    client.batch_execute("ROLLBACK")?;
                }
                Err(failure) if failure.is_disconnection() && attempts > 0 => attempts -= 1,
                Err(failure) => {
                    // The connection returns to the pool outside of a transaction.
                    let _ = client.batch_execute("ROLLBACK");
                    return Err(failure);
                }
            }
        }
    }

    pub(super) fn server(&self) -> &'s PostgresServer {
        self.server
    }

    fn with<T>(
        &self,
        run: impl FnOnce(&mut Client) -> std::result::Result<T, postgres::Error>,
    ) -> PostgresResult<T> {
        self.server.count_round_trip();
        run(&mut self.client.borrow_mut()).map_err(PostgresError::from)
    }

    /// Returns how to run a statement, which is one that is run again.
    fn preparation(&self, sql: &str, parameters: &[TypedParameter<'_>]) -> PostgresResult<Preparation> {
        if !self.prepares {
            return Ok(Preparation::Text);
        }
        let types: Vec<Type> = parameters.iter().map(|(_, of)| of.clone()).collect();
        let mut client = self.client.borrow_mut();
        let prepared = client.preparation(sql, &types, || self.server.count_round_trip());
        prepared.map_err(PostgresError::from)
    }

    /// Returns what a statement returned. The server may have lost what was prepared, by a pooler between.
    fn checked<T>(&self, ran: std::result::Result<T, postgres::Error>) -> PostgresResult<T> {
        ran.map_err(PostgresError::from).inspect_err(|failure| {
            if failure.is_about_preparation() {
                self.client.borrow_mut().forget_all();
            }
        })
    }

    /// Returns the rows of a query as the driver has them.
    pub(super) fn query(&self, sql: &str, parameters: &[TypedParameter<'_>]) -> PostgresResult<Vec<Row>> {
        match self.preparation(sql, parameters)? {
            Preparation::Text => self.with(|client| client.query_typed(sql, parameters)),
            Preparation::Prepared(statement) => {
                self.server.count_round_trip();
                let ran = self.client.borrow_mut().query(&statement, &values(parameters));
                self.checked(ran)
            }
        }
    }

    /// Returns the rows of a query that the server plans for these parameters. For statements whose best plan depends on
    /// them.
    pub(super) fn rows_planned_for(
        &self,
        sql: &str,
        parameters: &[SqlParameter],
    ) -> PostgresResult<Vec<SqlRow>> {
        let sql = numbered(sql);
        let rows = self.with(|client| client.query_typed(&sql, &typed(parameters)))?;
        rows.iter().map(shared_row).collect()
    }

    /// Returns the first row of a query, if there is any.
    pub(super) fn row(&self, sql: &str, parameters: &[SqlParameter]) -> PostgresResult<Option<SqlRow>> {
        Ok(self.rows(sql, parameters)?.into_iter().next())
    }

    /// Returns the names and the types of the columns of a query.
    pub(super) fn describe(&self, sql: &str) -> PostgresResult<Vec<(String, Type)>> {
        let statement = self.with(|client| client.prepare(sql))?;
        let columns = statement.columns().iter();
        Ok(columns.map(|column| (column.name().to_owned(), column.type_().clone())).collect())
    }

    /// Calls `take` with each row of a query as they arrive, without keeping them. `take` must not use the session.
    pub(super) fn stream(
        &self,
        sql: &str,
        parameters: &[TypedParameter<'_>],
        take: &mut dyn FnMut(&Row) -> PostgresResult<()>,
    ) -> PostgresResult<()> {
        let preparation = self.preparation(sql, parameters)?;
        self.server.count_round_trip();
        let mut client = self.client.borrow_mut();
        let mut rows = match &preparation {
            Preparation::Text => client.query_typed_raw(sql, parameters.iter().cloned())?,
            Preparation::Prepared(statement) => client.query_raw(statement, values(parameters))?,
        };
        while let Some(row) = rows.next()? {
            take(&row)?;
        }
        Ok(())
    }

    /// Runs a statement, and returns the number of rows that it changed.
    pub(super) fn run(&self, sql: &str, parameters: &[TypedParameter<'_>]) -> PostgresResult<u64> {
        match self.preparation(sql, parameters)? {
            Preparation::Text => self.with(|client| client.execute_typed(sql, parameters)),
            Preparation::Prepared(statement) => {
                self.server.count_round_trip();
                let ran = self.client.borrow_mut().execute(&statement, &values(parameters));
                self.checked(ran)
            }
        }
    }

    /// Runs statements without parameters.
    pub(super) fn batch(&self, sql: &str) -> PostgresResult<()> {
        self.with(|client| client.batch_execute(sql))
    }

    /// Makes the changes durable.
    pub(super) fn commit(self) -> PostgresResult<()> {
        self.is_open.set(false);
        self.batch("COMMIT")
    }
}

/// Returns the values of parameters.
fn values<'p>(parameters: &[TypedParameter<'p>]) -> Vec<&'p (dyn ToSql + Sync)> {
    parameters.iter().map(|(value, _)| *value).collect()
}

/// Checks that the vault has the version of this program, and returns the number of prepared statements. Both are in the
/// last row of the answers.
fn expect_version(
    server: &PostgresServer,
    checked: Checked,
    answers: &[SimpleQueryMessage],
) -> PostgresResult<i64> {
    if checked == Checked::Nothing {
        return Ok(0);
    }
    let last = answers.iter().rev().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => Some((row.get(0)?, row.get(1)?)),
        _ => None,
    });
    let numbers = last.and_then(|(version, count)| Some((version.parse().ok()?, count.parse().ok()?)));
    let (version, count) = numbers.ok_or_else(|| PostgresError::damaged("it has no version"))?;
    expect_current(server.name(), version)?;
    Ok(count)
}

impl Drop for DatabaseTransaction<'_> {
    fn drop(&mut self) {
        if self.is_open.get() && !self.client.borrow().is_closed() {
            // If this fails, the connection is lost, and the transaction with it.
            let _ = self.batch("ROLLBACK");
        }
    }
}

/// Returns the condition that the rows `x` and `n` have the same key. Without a key, no row has that of another one.
fn same_key(table: &SqlTable) -> String {
    if table.key == 0 {
        return "false".to_owned();
    }
    let key = table.columns.iter().take(table.key);
    let same: Vec<String> = key.map(|(column, _)| format!("x.{column} = n.{column}")).collect();
    same.join(" AND ")
}

impl SqlSession for DatabaseTransaction<'_> {
    type Error = PostgresError;
    const DIALECT: Dialect = Dialect::Postgres;

    fn rows(&self, sql: &str, parameters: &[SqlParameter]) -> PostgresResult<Vec<SqlRow>> {
        self.query(&numbered(sql), &typed(parameters))?.iter().map(shared_row).collect()
    }

    fn each(
        &self,
        sql: &str,
        parameters: &[SqlParameter],
        take: &mut dyn FnMut(SqlRow) -> PostgresResult<()>,
    ) -> PostgresResult<()> {
        self.stream(&numbered(sql), &typed(parameters), &mut |row| take(shared_row(row)?))
    }

    fn execute(&self, sql: &str, parameters: &[SqlParameter]) -> PostgresResult<u64> {
        self.run(&numbered(sql), &typed(parameters))
    }

    fn insert(&self, table: &SqlTable, mut rows: Vec<Vec<SqlValue>>) -> PostgresResult<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut columns = table.columns.to_vec();
        if let Some(hashed) = table.hashed {
            for row in &mut rows {
                let key = match row.get(hashed) {
                    Some(SqlValue::Text(text)) => text_key(text).into(),
                    _ => SqlValue::Null,
                };
                row.push(key);
            }
            columns.push(("key", SqlType::Integer));
        }
        let rows = ParameterRows::new(&columns, rows);
        let (name, names) = (table.name, rows.names());
        let sql = format!(
            "INSERT INTO {name} ({names}) SELECT * FROM {} WHERE NOT EXISTS (SELECT 1 FROM {name} x WHERE {})",
            rows.source(),
            same_key(table)
        );
        self.execute(&sql, rows.parameters()).map(drop)
    }

    fn delete(&self, table: &SqlTable, keys: &[Vec<SqlValue>]) -> PostgresResult<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let key = table.columns.get(..table.key).unwrap_or_default();
        let rows = ParameterRows::new(key, keys.to_vec());
        let sql = format!("DELETE FROM {} x USING {} WHERE {}", table.name, rows.source(), same_key(table));
        self.execute(&sql, rows.parameters()).map(drop)
    }
}

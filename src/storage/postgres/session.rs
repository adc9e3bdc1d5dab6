//! A connection in a transaction.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::{ToSql, Type};
use postgres::{Client, Row, SimpleQueryMessage};

use super::error::{PostgresError, PostgresResult};
use super::parameter::Parameter;
use super::pool::{PostgresPooledConnection, PostgresServer};
use super::schema::{current, expect_current};
use super::statements::Preparation;

/// A transaction. It is rolled back unless it is committed.
pub(super) struct DatabaseTransaction<'s> {
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
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path TO \"{}\"; SELECT version FROM vault",
            server.schema()
        );
        Self::begin(server, &begin, true)
    }

    /// Begins a transaction that reads one state, in which temporary tables can be created.
    pub(super) fn to_query(server: &'s PostgresServer) -> PostgresResult<Self> {
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL search_path TO \"{}\"; SELECT version FROM vault",
            server.schema()
        );
        // What statements refer to changes with the temporary tables.
        Self::begin(server, &begin, false)
    }

    /// Begins a transaction that reads one state without relying on any table, and returns to the point `intact` after
    /// errors of statements.
    pub(super) fn to_inspect(server: &'s PostgresServer) -> PostgresResult<Self> {
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path TO \"{}\"; SELECT {}; SAVEPOINT intact",
            server.schema(),
            // The version was checked when the vault was opened, and its row may be damaged.
            current()
        );
        // What a check reads may be damaged in any way.
        Self::begin(server, &begin, false)
    }

    /// Begins a transaction that writes, and waits for locks no longer than `busy_timeout`.
    pub(super) fn to_write(server: &'s PostgresServer, busy_timeout: Duration) -> PostgresResult<Self> {
        // Zero would be no limit. A writer that the network has cut off must not hold the lock of all writers until the
        // server finds out by itself. What was committed is on disk, whatever the default of the role is.
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path TO \"{}\"; SET LOCAL lock_timeout = '{}ms';
             SET LOCAL idle_in_transaction_session_timeout = '5min';
             SELECT set_config('synchronous_commit', 'on', true)
              WHERE current_setting('synchronous_commit') = 'off';
             SELECT version FROM vault",
            server.schema(),
            busy_timeout.as_millis().clamp(1, 1 << 30)
        );
        Self::begin(server, &begin, true)
    }

    /// Begins a transaction with these statements, the last of which returns the version of the vault. Connections that
    /// were lost while they were idle are replaced.
    fn begin(server: &'s PostgresServer, statements: &str, prepares: bool) -> PostgresResult<Self> {
        let prepares = prepares && server.prepares();
        let mut attempts = server.max_connections();
        loop {
            let mut client = server.lease()?;
            server.count_round_trip();
            let begun = client.simple_query(statements).map_err(PostgresError::from);
            match begun.and_then(|answers| expect_version(server, &answers)) {
                Ok(()) => {
                    return Ok(Self {
                        server,
                        client: RefCell::new(client),
                        is_open: Cell::new(true),
                        prepares,
                    });
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
    fn preparation(&self, sql: &str, parameters: &[&dyn Parameter]) -> PostgresResult<Preparation> {
        if !self.prepares {
            return Ok(Preparation::Text);
        }
        let types: Vec<Type> = parameters.iter().map(|parameter| parameter.type_of()).collect();
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

    /// Returns the rows of a query.
    pub(super) fn rows(&self, sql: &str, parameters: &[&dyn Parameter]) -> PostgresResult<Vec<Row>> {
        match self.preparation(sql, parameters)? {
            Preparation::Text => self.rows_planned_for(sql, parameters),
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
        parameters: &[&dyn Parameter],
    ) -> PostgresResult<Vec<Row>> {
        self.with(|client| client.query_typed(sql, &typed(parameters)))
    }

    /// Returns the first row of a query, if there is any.
    pub(super) fn row(&self, sql: &str, parameters: &[&dyn Parameter]) -> PostgresResult<Option<Row>> {
        Ok(self.rows(sql, parameters)?.into_iter().next())
    }

    /// Returns the names and the types of the columns of a query.
    pub(super) fn describe(&self, sql: &str) -> PostgresResult<Vec<(String, Type)>> {
        let statement = self.with(|client| client.prepare(sql))?;
        let columns = statement.columns().iter();
        Ok(columns.map(|column| (column.name().to_owned(), column.type_().clone())).collect())
    }

    /// Calls `take` with each row of a query as they arrive, without keeping them. `take` must not use the session.
    pub(super) fn each(
        &self,
        sql: &str,
        parameters: &[&dyn Parameter],
        take: &mut dyn FnMut(&Row) -> PostgresResult<()>,
    ) -> PostgresResult<()> {
        let preparation = self.preparation(sql, parameters)?;
        self.server.count_round_trip();
        let mut client = self.client.borrow_mut();
        let mut rows = match &preparation {
            Preparation::Text => client.query_typed_raw(sql, typed(parameters))?,
            Preparation::Prepared(statement) => client.query_raw(statement, values(parameters))?,
        };
        while let Some(row) = rows.next()? {
            take(&row)?;
        }
        Ok(())
    }

    /// Runs a statement, and returns the number of rows that it changed.
    pub(super) fn execute(&self, sql: &str, parameters: &[&dyn Parameter]) -> PostgresResult<u64> {
        match self.preparation(sql, parameters)? {
            Preparation::Text => self.with(|client| client.execute_typed(sql, &typed(parameters))),
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
fn values<'p>(parameters: &[&'p dyn Parameter]) -> Vec<&'p (dyn ToSql + Sync)> {
    parameters.iter().map(|parameter| parameter.value()).collect()
}

/// Returns the values of parameters with their types.
fn typed<'p>(parameters: &[&'p dyn Parameter]) -> Vec<(&'p (dyn ToSql + Sync), Type)> {
    parameters.iter().map(|parameter| (parameter.value(), parameter.type_of())).collect()
}

/// Checks that the vault has the version of this program, which is in the last row of the answers.
fn expect_version(server: &PostgresServer, answers: &[SimpleQueryMessage]) -> PostgresResult<()> {
    let last = answers.iter().rev().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let version = last.and_then(|version| version.parse().ok());
    let version = version.ok_or_else(|| PostgresError::damaged("it has no version"))?;
    Ok(expect_current(server.name(), version)?)
}

impl Drop for DatabaseTransaction<'_> {
    fn drop(&mut self) {
        if self.is_open.get() && !self.client.borrow().is_closed() {
            // If this fails, the connection is lost, and the transaction with it.
            let _ = self.batch("ROLLBACK");
        }
    }
}

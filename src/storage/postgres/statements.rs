//! The statements that a connection has prepared.
//!
//! The server parses, analyses and plans a statement each time that it comes as text, which takes it several times as long
//! as running a look-up. A statement that a connection runs again is therefore prepared. The first time it is not: a command
//! that asks once would pay a round trip for it.
//!
//! The driver numbers the statements of a process, so that the statements of two processes have the same names. Through a
//! pooler that assigns connections of the server per transaction, a process could run a statement of another one. The text of
//! each statement therefore begins with a mark of its connection, and each transaction begins with counting the statements
//! with this mark and the others. Within a transaction, the connection of the server stays the same.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::{Deref, DerefMut};

use postgres::types::Type;
use postgres::{Client, Error, Statement};

/// Maximum number of statements that a connection remembers. The texts of the engine are fewer, except those made from
/// filters.
const MOST: usize = 256;

/// A connection, and the statements that it has prepared. They end with it.
pub(super) struct Connection {
    client: Client,
    known: HashMap<String, StatementCacheEntry>,
    /// A comment with a random number.
    mark: String,
    /// The number of statements that were asked for.
    uses: u64,
}

struct StatementCacheEntry {
    /// None if it was used once.
    statement: Option<Statement>,
    last_use: u64,
}

/// How a statement is to be run.
pub(super) enum Preparation {
    /// By its text.
    Text,
    /// It is prepared.
    Prepared(Statement),
}

impl Connection {
    pub(super) fn new(client: Client) -> Self {
        let mark = format!("/* runvault {:016x} */", RandomState::new().build_hasher().finish());
        Self { client, known: HashMap::new(), mark, uses: 0 }
    }

    /// Returns an expression that is [`Connection::prepared`] if the server has all prepared statements of this connection,
    /// and none of another one.
    pub(super) fn count_of_prepared(&self) -> String {
        format!(
            "(SELECT coalesce(sum(CASE WHEN starts_with(statement, '{}') THEN 1 ELSE -1 END), 0)
                FROM pg_prepared_statements)",
            self.mark
        )
    }

    /// Returns the number of statements that are prepared.
    pub(super) fn prepared(&self) -> i64 {
        let prepared = self.known.values().filter(|known| known.statement.is_some());
        i64::try_from(prepared.count()).unwrap_or(i64::MAX)
    }

    /// Returns how to run a statement with parameters of these types. `count` is called before a round trip to the
    /// server.
    pub(super) fn preparation(
        &mut self,
        sql: &str,
        types: &[Type],
        count: impl FnOnce(),
    ) -> Result<Preparation, Error> {
        self.uses += 1;
        let Some(known) = self.known.get_mut(sql) else {
            self.forget_one();
            self.known.insert(sql.to_owned(), StatementCacheEntry { statement: None, last_use: self.uses });
            return Ok(Preparation::Text);
        };
        known.last_use = self.uses;
        let statement = if let Some(statement) = &known.statement {
            statement.clone()
        } else {
            count();
            let statement = self.client.prepare_typed(&format!("{} {sql}", self.mark), types)?;
            known.statement = Some(statement.clone());
            statement
        };
        // One text always has the same types.
        Ok(if statement.params() == types { Preparation::Prepared(statement) } else { Preparation::Text })
    }

    /// Forgets the statement that was not used for the longest time, if there are too many.
    fn forget_one(&mut self) {
        if self.known.len() < MOST {
            return;
        }
        let oldest = self.known.iter().min_by_key(|(_, known)| known.last_use);
        if let Some(oldest) = oldest.map(|(sql, _)| sql.clone()) {
            self.known.remove(&oldest);
        }
    }

    /// Forgets all statements: the server may not have them any more.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
    }
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

#[cfg(test)]
mod tests {
    use super::MOST;
    use crate::storage::CreationPolicy;
    use crate::storage::conformance::postgres::Schema;
    use crate::storage::postgres::address::PostgresAddress;
    use crate::storage::postgres::pool::PostgresServer;
    use crate::storage::postgres::schema::prepare;
    use crate::storage::postgres::session::DatabaseTransaction;
    use crate::storage::sql::SqlSession as _;

    const SQL: &str = "SELECT $1::bigint + 1";

    fn server(address: &str) -> PostgresServer {
        let server = PostgresServer::connect(&PostgresAddress::parse(address).unwrap()).unwrap();
        prepare(&server, CreationPolicy::IfMissing, None).unwrap();
        server
    }

    /// Runs a statement, and returns the round trips that it took.
    fn ask(session: &DatabaseTransaction<'_>) -> u64 {
        let before = session.server().round_trips();
        let row = session.row(SQL, &[1_i64.into()]).unwrap().unwrap();
        assert_eq!(row.integer(0).unwrap(), 2);
        session.server().round_trips() - before
    }

    /// Returns the number of statements that the connection of a session has prepared.
    fn prepared(session: &DatabaseTransaction<'_>) -> i64 {
        let rows = session.rows_planned_for("SELECT count(*) FROM pg_prepared_statements", &[]).unwrap();
        rows[0].integer(0).unwrap()
    }

    #[test]
    fn statements_that_are_run_again_are_prepared() {
        let Some(schema) = Schema::new() else { return };
        let server = server(&schema.address());
        let session = DatabaseTransaction::to_read(&server).unwrap();
        assert_eq!((ask(&session), prepared(&session)), (1, 0));
        assert_eq!((ask(&session), prepared(&session)), (2, 1));
        drop(session);
        // The connection keeps them.
        let session = DatabaseTransaction::to_write(&server, crate::storage::BUSY_TIMEOUT).unwrap();
        assert_eq!((ask(&session), prepared(&session)), (1, 1));
    }

    #[test]
    fn nothing_is_prepared_if_the_address_says_so() {
        let Some(schema) = Schema::new() else { return };
        let server = server(&format!("{}&prepared_statements=false", schema.address()));
        let session = DatabaseTransaction::to_read(&server).unwrap();
        for _ in 0..3 {
            assert_eq!((ask(&session), prepared(&session)), (1, 0));
        }
    }

    #[test]
    fn a_connection_remembers_a_limited_number_of_statements() {
        let Some(schema) = Schema::new() else { return };
        let server = server(&schema.address());
        let session = DatabaseTransaction::to_read(&server).unwrap();
        for number in 0..MOST + 20 {
            let sql = format!("SELECT {number}");
            for _ in 0..2 {
                session.rows(&sql, &[]).unwrap();
            }
        }
        let prepared = prepared(&session);
        assert!((1..=i64::try_from(MOST).unwrap()).contains(&prepared), "{prepared}");
    }

    #[test]
    fn a_new_connection_has_prepared_nothing() {
        let Some(schema) = Schema::new() else { return };
        let server = server(&schema.address());
        let session = DatabaseTransaction::to_read(&server).unwrap();
        ask(&session);
        ask(&session);
        let rows = session.rows("SELECT pg_backend_pid()", &[]).unwrap();
        let process = i32::try_from(rows[0].integer(0).unwrap()).unwrap();
        drop(session);
        schema.client().execute("SELECT pg_terminate_backend($1, 60000)", &[&process]).unwrap();
        let session = DatabaseTransaction::to_read(&server).unwrap();
        assert_eq!((ask(&session), prepared(&session)), (1, 0));
    }

    #[test]
    fn statements_that_the_server_lost_are_prepared_again() {
        let Some(schema) = Schema::new() else { return };
        let server = server(&schema.address());
        let session = DatabaseTransaction::to_read(&server).unwrap();
        ask(&session);
        ask(&session);
        // As if a pooler had assigned another connection of the server.
        session.batch("DEALLOCATE ALL").unwrap();
        let failure = session.rows(SQL, &[1_i64.into()]).unwrap_err();
        assert!(failure.is_about_preparation() && failure.can_be_retried());
        let text = failure.at("the vault").to_string();
        assert!(text.contains("prepared_statements=false"), "{text}");
        drop(session);
        let session = DatabaseTransaction::to_read(&server).unwrap();
        assert_eq!([ask(&session), ask(&session), ask(&session)], [1, 2, 1]);
    }
}

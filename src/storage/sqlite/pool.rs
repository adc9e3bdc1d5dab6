//! The connections of a store: the first one is opened directly, further ones come from an r2d2 pool.
//!
//! A command uses one connection, so the pool and its thread are created only when a second one is needed. The pool
//! opens connections on demand and keeps no idle ones in advance.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use r2d2::{ManageConnection, NopErrorHandler, PooledConnection};
use rusqlite::{Connection, Error, MAIN_DB, ffi};
use scheduled_thread_pool::ScheduledThreadPool;

use super::connection::{BUSY_TIMEOUT, connect};
use super::{Result, StorageError, synced_log};

/// Maximum number of connections of one pool. Each uses several file handles, of which a process often has 1,024.
const MAX_CONNECTIONS: u32 = 256;

/// The thread that opens the connections of all pools of this process.
static SCHEDULER: LazyLock<Arc<ScheduledThreadPool>> = LazyLock::new(|| {
    let scheduler = ScheduledThreadPool::builder().num_threads(1).thread_name_pattern("vault-connections-{}");
    Arc::new(scheduler.build())
});

/// Opens the connections of a pool.
struct VaultConnectionManager {
    path: PathBuf,
}

impl ManageConnection for VaultConnectionManager {
    /// An error is passed to the caller, because r2d2 would retry until its timeout and return only the message.
    type Connection = rusqlite::Result<Connection>;
    type Error = std::convert::Infallible;

    fn connect(&self) -> std::result::Result<Self::Connection, Self::Error> {
        Ok(connect(&self.path))
    }

    fn is_valid(&self, _: &mut Self::Connection) -> std::result::Result<(), Self::Error> {
        Ok(())
    }

    fn has_broken(&self, connection: &mut Self::Connection) -> bool {
        connection.as_ref().map_or(true, |connection| !is_reusable(connection))
    }
}

/// Returns whether the connection can be used again. A read-only connection may have been opened while the disk was
/// full or the log was missing.
fn is_reusable(connection: &Connection) -> bool {
    connection.is_readonly(MAIN_DB).is_ok_and(|is_readonly| !is_readonly)
}

/// The connections of a store.
pub(super) struct ConnectionPool {
    path: PathBuf,
    first: Mutex<FirstConnection>,
    others: OnceLock<r2d2::Pool<VaultConnectionManager>>,
}

/// The state of the first connection.
enum FirstConnection {
    Closed,
    Idle(Connection),
    Leased,
}

impl ConnectionPool {
    pub(super) fn new(path: &Path, first: Option<Connection>) -> Self {
        let first = Mutex::new(first.map_or(FirstConnection::Closed, FirstConnection::Idle));
        Self { path: path.to_owned(), first, others: OnceLock::new() }
    }

    pub(super) fn lease(&self) -> Result<SqlitePooledConnection<'_>> {
        self.try_lease().map_err(|error| StorageError::from_sqlite(&self.path, error))
    }

    fn try_lease(&self) -> rusqlite::Result<SqlitePooledConnection<'_>> {
        let state = std::mem::replace(&mut *self.first(), FirstConnection::Leased);
        let first = match state {
            FirstConnection::Leased => {
                return self.other().map(|other| SqlitePooledConnection(ConnectionLease::Other(other)));
            }
            FirstConnection::Idle(connection) => Ok(connection),
            FirstConnection::Closed => connect(&self.path),
        };
        let connection = first.inspect_err(|_| *self.first() = FirstConnection::Closed)?;
        Ok(SqlitePooledConnection(ConnectionLease::First { pool: self, connection: Some(connection) }))
    }

    /// Leases a connection from the r2d2 pool.
    fn other(&self) -> rusqlite::Result<PooledConnection<VaultConnectionManager>> {
        let pool = self.others.get_or_init(|| {
            let builder = r2d2::Pool::builder().max_size(MAX_CONNECTIONS).min_idle(Some(0));
            let builder = builder.test_on_check_out(false).idle_timeout(None).max_lifetime(None);
            let builder = builder.connection_timeout(BUSY_TIMEOUT).error_handler(Box::new(NopErrorHandler));
            builder
                .thread_pool(Arc::clone(&SCHEDULER))
                .build_unchecked(VaultConnectionManager { path: self.path.clone() })
        });
        let mut connection = pool.get().map_err(|error| {
            let message = format!("none of {MAX_CONNECTIONS} connections became available: {error}");
            Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), Some(message))
        })?;
        match &mut *connection {
            Ok(_) => Ok(connection),
            Err(error) => Err(std::mem::replace(error, Error::InvalidQuery)),
        }
    }

    fn first(&self) -> MutexGuard<'_, FirstConnection> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that returns to its pool when dropped.
pub(super) struct SqlitePooledConnection<'p>(ConnectionLease<'p>);

enum ConnectionLease<'p> {
    First {
        pool: &'p ConnectionPool,
        /// `None` only once it has returned.
        connection: Option<Connection>,
    },
    Other(PooledConnection<VaultConnectionManager>),
}

impl Drop for ConnectionPool {
    fn drop(&mut self) {
        if let Some(others) = self.others.take() {
            drop(others);
            // The thread that opened a connection may still share the pool. Everything that it did before is finished
            // when it runs this, so that no connection outlives the store.
            let (finished, wait) = std::sync::mpsc::channel();
            SCHEDULER.execute(move || drop(finished));
            let _: std::result::Result<(), _> = wait.recv();
        }
        let first = std::mem::replace(&mut *self.first(), FirstConnection::Closed);
        if let FirstConnection::Idle(connection) = first {
            synced_log::close(connection);
        }
    }
}

impl Deref for SqlitePooledConnection<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match &self.0 {
            ConnectionLease::First { connection, .. } => connection.as_ref(),
            ConnectionLease::Other(connection) => connection.as_ref().ok(),
        }
        .unwrap_or_else(|| unreachable!("taken only when the lease ends, and opened before it begins"))
    }
}

impl DerefMut for SqlitePooledConnection<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        match &mut self.0 {
            ConnectionLease::First { connection, .. } => connection.as_mut(),
            ConnectionLease::Other(connection) => connection.as_mut().ok(),
        }
        .unwrap_or_else(|| unreachable!("taken only when the lease ends, and opened before it begins"))
    }
}

impl Drop for SqlitePooledConnection<'_> {
    fn drop(&mut self) {
        if let ConnectionLease::First { pool, connection } = &mut self.0 {
            // Closed before another one may take its place.
            let reusable = connection.take().filter(is_reusable);
            *pool.first() = reusable.map_or(FirstConnection::Closed, FirstConnection::Idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ErrorCode;

    use super::*;

    fn pool(directory: &tempfile::TempDir) -> ConnectionPool {
        let path = directory.path().join("v");
        crate::storage::sqlite::connection::create_file(&path).unwrap();
        let connection = connect(&path).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)").unwrap();
        ConnectionPool::new(&path, Some(connection))
    }

    fn number(lease: &SqlitePooledConnection<'_>, pragma: &str) -> i64 {
        lease.pragma_query_value(None, pragma, |row| row.get(0)).unwrap()
    }

    #[test]
    fn the_pool_is_created_for_the_second_connection_and_opens_no_idle_ones() {
        let directory = tempfile::tempdir().unwrap();
        let pool = pool(&directory);
        for _ in 0..3 {
            assert!(matches!(pool.lease().unwrap().0, ConnectionLease::First { .. }));
        }
        assert!(pool.others.get().is_none());
        let leases: Vec<_> = (0..3).map(|_| pool.lease().unwrap()).collect();
        let state = pool.others.get().unwrap().state();
        assert_eq!((state.connections, state.idle_connections), (2, 0));
        drop(leases);
        let state = pool.others.get().unwrap().state();
        assert_eq!((state.connections, state.idle_connections), (2, 2));
    }

    #[test]
    fn all_connections_have_the_same_settings() {
        let directory = tempfile::tempdir().unwrap();
        let pool = pool(&directory);
        let leases = [pool.lease().unwrap(), pool.lease().unwrap()];
        for (pragma, value) in [
            ("synchronous", 2),
            ("foreign_keys", 1),
            ("trusted_schema", 0),
            ("cell_size_check", 1),
            ("cache_size", -32_768),
            ("busy_timeout", 60_000),
        ] {
            assert_eq!(leases.each_ref().map(|lease| number(lease, pragma)), [value; 2], "{pragma}");
        }
    }

    #[test]
    fn a_failed_connection_returns_its_error_at_once_and_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let pool = pool(&directory);
        let first = pool.lease().unwrap();
        let path = directory.path().join("v");
        std::fs::rename(&path, directory.path().join("moved")).unwrap();
        let error = pool.try_lease().err().unwrap();
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen));
        assert_eq!(pool.others.get().unwrap().state().connections, 0);
        std::fs::rename(directory.path().join("moved"), &path).unwrap();
        let second = pool.lease().unwrap();
        second.execute("INSERT INTO t VALUES (1)", []).unwrap();
        let count: i64 = first.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 1);
    }
}

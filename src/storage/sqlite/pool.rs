//! The connections of a store, which r2d2 and `r2d2_sqlite` open on demand. None is opened in advance.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};

use r2d2::{CustomizeConnection, ManageConnection, NopErrorHandler, PooledConnection};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Error, MAIN_DB, OpenFlags, ffi};
use scheduled_thread_pool::ScheduledThreadPool;

use super::connection::{self, BUSY_TIMEOUT};
use super::identity::VaultFile;
use super::{Result, StorageError};

/// Maximum number of connections of one pool. Each uses several file handles, of which a process often has 1,024.
const MAX_CONNECTIONS: u32 = 256;

/// The thread that opens the connections of all pools of this process.
static SCHEDULER: LazyLock<Arc<ScheduledThreadPool>> = LazyLock::new(|| {
    let scheduler = ScheduledThreadPool::builder().num_threads(1).thread_name_pattern("vault-connections-{}");
    Arc::new(scheduler.build())
});

/// Opens the connections of a pool.
pub(super) struct VaultConnectionManager {
    path: PathBuf,
}

impl ManageConnection for VaultConnectionManager {
    /// An error is passed to the caller, because r2d2 would retry until its timeout and return only the message.
    type Connection = rusqlite::Result<Connection>;
    type Error = std::convert::Infallible;

    fn connect(&self) -> std::result::Result<Self::Connection, Self::Error> {
        Ok(connection::open(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE))
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

/// The settings of the connections of a pool.
#[derive(Debug)]
struct ConnectionSettings {
    file: Arc<VaultFile>,
}

impl CustomizeConnection<rusqlite::Result<Connection>, std::convert::Infallible> for ConnectionSettings {
    fn on_acquire(
        &self,
        connection: &mut rusqlite::Result<Connection>,
    ) -> std::result::Result<(), std::convert::Infallible> {
        if let Ok(opened) = connection
            && let Err(error) = connection::configure(opened).and_then(|()| self.file.guard(opened))
        {
            *connection = Err(error);
        }
        Ok(())
    }
}

/// The connections of a store.
pub(super) struct ConnectionPool {
    path: PathBuf,
    /// Created for the first connection.
    pool: OnceLock<OpenPool>,
}

struct OpenPool {
    connections: r2d2::Pool<VaultConnectionManager>,
    file: Arc<VaultFile>,
}

impl ConnectionPool {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), pool: OnceLock::new() }
    }

    pub(super) fn lease(&self) -> Result<SqlitePooledConnection<'static>> {
        let connection = self.try_lease().map_err(|error| StorageError::from_sqlite(&self.path, error))?;
        // An answer of the cache, or of connections that were opened before and after, would mix two vaults.
        if self.pool().file.is_another_vault() {
            return Err(StorageError::replaced(&self.path));
        }
        Ok(connection)
    }

    fn try_lease(&self) -> rusqlite::Result<SqlitePooledConnection<'static>> {
        let pool = self.pool();
        let mut connection = pool.connections.get().map_err(|error| {
            let message = format!("none of {MAX_CONNECTIONS} connections became available: {error}");
            Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), Some(message))
        })?;
        match &mut *connection {
            Ok(opened) => {
                pool.file.learn(opened);
                Ok(SqlitePooledConnection::Pooled(Box::new(connection), Arc::clone(&pool.file)))
            }
            Err(error) => Err(std::mem::replace(error, Error::InvalidQuery)),
        }
    }

    fn pool(&self) -> &OpenPool {
        self.pool.get_or_init(|| {
            let builder = r2d2::Pool::builder().max_size(MAX_CONNECTIONS).min_idle(Some(0));
            let builder = builder.test_on_check_out(false).idle_timeout(None).max_lifetime(None);
            let builder = builder.connection_timeout(BUSY_TIMEOUT).error_handler(Box::new(NopErrorHandler));
            let file = Arc::new(VaultFile::new(&self.path));
            let settings = ConnectionSettings { file: Arc::clone(&file) };
            let connections = builder
                .connection_customizer(Box::new(settings))
                .thread_pool(Arc::clone(&SCHEDULER))
                .build_unchecked(VaultConnectionManager { path: self.path.clone() });
            OpenPool { connections, file }
        })
    }
}

impl OpenPool {
    /// Keeps the connections from copying the log into the file when they are closed.
    fn keep_log(&self) {
        let idle = || (self.connections.state().idle_connections > 0).then(|| self.connections.get().ok());
        let leased: Vec<_> = std::iter::from_fn(|| idle().flatten()).collect();
        for connection in leased.iter().filter_map(|connection| connection.as_ref().ok()) {
            // If this fails, the connection is closed as any other one.
            let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

impl Drop for ConnectionPool {
    fn drop(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        let file = Arc::clone(&pool.file);
        let is_replaced = file.is_replaced();
        if is_replaced {
            pool.keep_log();
        }
        drop(pool);
        // The thread that opened a connection may still share the pool. Everything that it did before is finished
        // when it runs this, so that no connection outlives the store.
        let (finished, wait) = std::sync::mpsc::channel();
        SCHEDULER.execute(move || drop(finished));
        let _: std::result::Result<(), _> = wait.recv();
        if is_replaced {
            // If this fails, there is no log.
            let _ = file.set_log_aside();
        }
    }
}

/// A connection that is used by one thread until this is dropped.
pub(super) enum SqlitePooledConnection<'c> {
    /// A connection that returns to its pool, and the file that it was opened to.
    Pooled(Box<PooledConnection<VaultConnectionManager>>, Arc<VaultFile>),
    /// A connection that is not from a pool.
    Borrowed(&'c mut Connection),
}

impl SqlitePooledConnection<'_> {
    /// Returns whether another vault was written into the file, or took its place, so that what is read can be of either.
    pub(super) fn is_to_another_vault(&self) -> bool {
        match self {
            Self::Pooled(_, file) => file.is_another_vault(),
            Self::Borrowed(_) => false,
        }
    }
}

impl Deref for SqlitePooledConnection<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match self {
            Self::Pooled(connection, _) => {
                (**connection).as_ref().unwrap_or_else(|_| unreachable!("only open connections are leased"))
            }
            Self::Borrowed(connection) => connection,
        }
    }
}

impl DerefMut for SqlitePooledConnection<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        match self {
            Self::Pooled(connection, _) => {
                (**connection).as_mut().unwrap_or_else(|_| unreachable!("only open connections are leased"))
            }
            Self::Borrowed(connection) => connection,
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ErrorCode;

    use super::*;

    fn pool(directory: &tempfile::TempDir) -> ConnectionPool {
        let path = directory.path().join("v");
        connection::create_file(&path).unwrap();
        let connection = connection::connect(&path).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)").unwrap();
        ConnectionPool::new(&path)
    }

    fn number(lease: &SqlitePooledConnection<'_>, pragma: &str) -> i64 {
        lease.pragma_query_value(None, pragma, |row| row.get(0)).unwrap()
    }

    #[test]
    fn connections_are_opened_on_demand_and_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let pool = pool(&directory);
        for _ in 0..3 {
            drop(pool.lease().unwrap());
        }
        assert_eq!(pool.pool().connections.state().connections, 1);
        let leases: Vec<_> = (0..3).map(|_| pool.lease().unwrap()).collect();
        assert_eq!(pool.pool().connections.state().connections, 3);
        drop(leases);
        let state = pool.pool().connections.state();
        assert_eq!((state.connections, state.idle_connections), (3, 3));
    }

    #[test]
    fn the_last_connection_removes_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let pool = pool(&directory);
        pool.lease().unwrap().execute("INSERT INTO t VALUES (1)", []).unwrap();
        assert!(directory.path().join("v-wal").exists());
        drop(pool);
        let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert_eq!(files.len(), 1, "{files:?}");
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
        assert_eq!(pool.pool().connections.state().connections, 1);
        std::fs::rename(directory.path().join("moved"), &path).unwrap();
        let second = pool.lease().unwrap();
        second.execute("INSERT INTO t VALUES (1)", []).unwrap();
        let count: i64 = first.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 1);
    }
}

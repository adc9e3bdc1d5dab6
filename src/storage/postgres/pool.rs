//! Connections to the server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use r2d2::{NopErrorHandler, PooledConnection};

use super::address::PostgresAddress;
use super::blob_store::BlobStore;
use super::connecting::{LastFailure, ServerConnectionManager};
use super::error::{PostgresError, PostgresResult};
use crate::storage::{ErrorKind, Result, StorageError};

/// Maximum number of connections of one process. Each snapshot and each change holds one.
const MAX_CONNECTIONS: u32 = 20;

/// How long to wait for a connection when all are in use, or the server cannot be reached.
const POOL_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection that returns to the pool when it is dropped.
pub(super) type PostgresPooledConnection = PooledConnection<ServerConnectionManager>;

/// The server of a vault.
pub(super) struct PostgresServer {
    pool: r2d2::Pool<ServerConnectionManager>,
    schema: String,
    /// The address, as it may be shown.
    name: String,
    /// The role that the connections have.
    role: Option<String>,
    round_trips: AtomicU64,
    failure: LastFailure,
    blobs: Option<Box<dyn BlobStore>>,
    /// Whether connections may prepare statements.
    prepares: AtomicBool,
}

impl PostgresServer {
    /// Connects to the server.
    ///
    /// # Errors
    /// Returns an error of the kind `Connection` if it cannot be reached or refuses the connection, and of the kind
    /// `Missing` if it does not have the database.
    pub(super) fn connect(address: &PostgresAddress) -> Result<Self> {
        let name = address.to_string();
        let failure = LastFailure::default();
        let manager = ServerConnectionManager::connect_first(address, Arc::clone(&failure))?;
        let manager = manager.map_err(|failure| PostgresError::from(failure).at(&name))?;
        let pool = r2d2::Pool::builder()
            .max_size(MAX_CONNECTIONS)
            .min_idle(Some(0))
            // A lost connection is noticed by the first statement of a transaction, which costs nothing.
            .test_on_check_out(false)
            .connection_timeout(POOL_TIMEOUT)
            .error_handler(Box::new(NopErrorHandler))
            .build_unchecked(manager);
        let role = address.config.get_user().map(str::to_owned);
        let schema = address.schema.clone();
        Ok(Self {
            pool,
            schema,
            name,
            role,
            round_trips: AtomicU64::new(0),
            failure,
            blobs: None,
            prepares: AtomicBool::new(address.prepares),
        })
    }

    /// Returns a connection.
    pub(super) fn lease(&self) -> PostgresResult<PostgresPooledConnection> {
        self.pool.get().map_err(|timeout| {
            let failure = self.failure.lock().take();
            failure.map_or_else(
                || {
                    let message = format!("{}: no connection is free: {timeout}", self.name);
                    PostgresError::Storage(StorageError::new(ErrorKind::Busy, message))
                },
                PostgresError::from,
            )
        })
    }

    /// Sets where the bytes of blobs are: in the database, unless this is called.
    pub(super) fn set_blobs(&mut self, blobs: Option<Box<dyn BlobStore>>) {
        self.blobs = blobs;
    }

    /// Returns where the bytes of blobs are if they are not in the database.
    pub(super) fn blobs(&self) -> Option<&dyn BlobStore> {
        self.blobs.as_deref()
    }

    /// Returns the schema with the tables of the vault.
    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// Returns the address, without a password.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the role that the address states.
    pub(super) fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    /// Returns the maximum number of connections.
    pub(super) fn max_connections(&self) -> u32 {
        self.pool.max_size()
    }

    /// Returns whether connections may prepare statements.
    pub(super) fn prepares(&self) -> bool {
        self.prepares.load(Ordering::Relaxed)
    }

    /// Prepares no more statements: something between this process and the server assigns connections per transaction.
    pub(super) fn stop_preparing(&self) {
        self.prepares.store(false, Ordering::Relaxed);
    }

    /// Counts a round trip to the server.
    pub(super) fn count_round_trip(&self) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of round trips so far.
    #[cfg(test)]
    pub(super) fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.name).finish_non_exhaustive()
    }
}

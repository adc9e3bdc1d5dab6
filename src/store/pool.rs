//! Connections, all with the same settings.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{Result, StoreError};

/// How long a writer waits for another one to finish.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// How long to wait for readers to be done with the write-ahead log.
const PATIENCE_WITH_READERS: Duration = Duration::from_secs(5);

/// Creates an empty file that only its owner can read and write, and the directories above it, if there is none.
pub(super) fn create_file(path: &Path) -> Result<()> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| StoreError::Io { path, source }
    };
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    if !directory.is_dir() {
        std::fs::create_dir_all(directory).map_err(failed(directory))?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => sync_directory(directory).map_err(failed(directory)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(path)(error)),
    }
}

/// Makes sure that there is a file at `path` that can be opened: SQLite would only say that it cannot, and wait for the
/// other end of a pipe.
pub(super) fn expect_file(path: &Path) -> Result<()> {
    let failed = |source: std::io::Error| match source.kind() {
        ErrorKind::NotFound => StoreError::Missing { path: path.to_owned() },
        _ => StoreError::Io { path: path.to_owned(), source },
    };
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        let reason = "it is not a file".to_owned();
        return Err(StoreError::NotAVault { path: path.to_owned(), reason });
    }
    std::fs::File::open(path).map(drop).map_err(failed)
}

/// Makes sure that a new file in `directory` is still there after a power loss.
pub(super) fn sync_directory(directory: &Path) -> std::io::Result<()> {
    if cfg!(unix) { std::fs::File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Opens a connection to the vault at `path`, which must exist.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Opens a connection that cannot write.
pub(super) fn connect_to_read(path: &Path) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn open(path: &Path, mode: OpenFlags) -> rusqlite::Result<Connection> {
    // SQLite reads names that begin with "file:" as URIs, and what follows in them as options.
    let is_uri = path.as_os_str().to_string_lossy().starts_with("file:");
    let path = if is_uri { Path::new(".").join(path) } else { path.to_owned() };
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA trusted_schema = OFF;
         PRAGMA cell_size_check = ON;
         PRAGMA cache_size = -32768;",
    )?;
    Ok(connection)
}

/// Moves everything from the write-ahead log into the file, and empties the log; false if others still read from it.
pub(super) fn empty_log(connection: &Connection) -> rusqlite::Result<bool> {
    // Who reads may do so for long, and nothing depends on it.
    connection.busy_timeout(PATIENCE_WITH_READERS)?;
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
    connection.busy_timeout(PATIENCE)?;
    match busy {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(false),
        busy => Ok(!busy?),
    }
}

/// Connections that nobody uses at the moment. A command uses one, so there is no thread to keep them, nor a limit.
pub(super) struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(super) fn new(path: &Path, first: Connection) -> Self {
        Self { path: path.to_owned(), idle: Mutex::new(vec![first]) }
    }

    pub(super) fn lease(&self) -> Result<Lease<'_>> {
        let idle = self.idle().pop();
        let connection = idle.map_or_else(|| connect(&self.path), Ok);
        let connection = connection.map_err(|error| StoreError::of(&self.path, error))?;
        Ok(Lease { pool: self, connection: Some(connection) })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that goes back to its pool in the end.
pub(super) struct Lease<'p> {
    pool: &'p Pool,
    /// Taken only when it goes back.
    connection: Option<Connection>,
}

impl Deref for Lease<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().unwrap_or_else(|| unreachable!("only the end of the lease takes it"))
    }
}

impl DerefMut for Lease<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().unwrap_or_else(|| unreachable!("only the end of the lease takes it"))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.pool.idle().extend(self.connection.take());
    }
}

//! Connections, all with the same settings.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use r2d2_sqlite::SqliteConnectionManager;
use rusqlite::OpenFlags;

use super::{Result, StoreError};

pub(super) type Pool = r2d2::Pool<SqliteConnectionManager>;
pub(super) type Connection = r2d2::PooledConnection<SqliteConnectionManager>;

/// How long a writer waits for another one to finish.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

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
fn sync_directory(directory: &Path) -> std::io::Result<()> {
    if cfg!(unix) { std::fs::File::open(directory)?.sync_all() } else { Ok(()) }
}

/// A way to open connections to the vault at `path`, which must exist.
pub(super) fn manager(path: &Path) -> SqliteConnectionManager {
    // SQLite reads names that begin with "file:" as URIs, and what follows in them as options.
    let is_uri = path.as_os_str().to_string_lossy().starts_with("file:");
    let path = if is_uri { Path::new(".").join(path) } else { path.to_owned() };
    SqliteConnectionManager::file(path)
        .with_flags(OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .with_init(|connection| {
            connection.busy_timeout(PATIENCE)?;
            connection.set_prepared_statement_cache_capacity(64);
            connection.execute_batch(
                "PRAGMA synchronous = FULL;
                 PRAGMA foreign_keys = ON;
                 PRAGMA trusted_schema = OFF;
                 PRAGMA cell_size_check = ON;
                 PRAGMA cache_size = -32768;",
            )
        })
}

pub(super) fn open(path: &Path) -> Result<Pool> {
    let failed = |message: String| StoreError::Pool { path: path.to_owned(), message };
    r2d2::Pool::builder()
        .max_size(8)
        .min_idle(Some(0))
        .test_on_check_out(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .error_handler(Box::new(r2d2::NopErrorHandler))
        .build(manager(path))
        .map_err(|error| failed(error.to_string()))
}

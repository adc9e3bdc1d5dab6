//! Connections to a vault, all with the same settings.

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use r2d2::ManageConnection as _;
use r2d2_sqlite::SqliteConnectionManager;
use rusqlite::config::DbConfig;
use rusqlite::ffi::{SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, ffi};

use super::{Result, StorageError};
use crate::files;
use crate::files::open_vaults::files_of;

/// The time that a writer waits for another one to finish.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_mins(1);

/// The time to wait for readers to finish with the write-ahead log.
const READER_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates an empty file for a vault that only its owner can read and write, and its missing parent directories, unless
/// the file exists. Its name is on disk when this returns.
pub(super) fn create_file(path: &Path) -> Result<()> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| StorageError::io(&path, source)
    };
    if path.as_os_str().is_empty() {
        return Err(empty_path());
    }
    let directory = files::parent(path);
    files::create_dir_all(directory).map_err(failed(directory))?;
    match create_private(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // An empty file may have been created by a process that did not finish.
            if std::fs::metadata(path).is_ok_and(|there| there.len() > 0) {
                return Ok(());
            }
        }
        outcome => outcome.map_err(failed(path))?,
    }
    // The file may soon contain the only copy of its content, so its name must survive a power loss.
    files::sync_ancestors(directory).map_err(failed(directory))
}

/// Creates an empty file that only its owner can read and write.
pub(super) fn create_private(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Checks that there is a file at `path` that can be opened and that has one name. SQLite would only report that it
/// cannot open the file, and would block on a named pipe.
pub(super) fn expect_file(path: &Path) -> Result<()> {
    let failed = |source: std::io::Error| match source.kind() {
        ErrorKind::NotFound if path.as_os_str().is_empty() => empty_path(),
        ErrorKind::NotFound => StorageError::missing(path),
        _ => StorageError::io(path, source),
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        let reason = "it is not a file".to_owned();
        return Err(StorageError::not_a_vault(path, reason));
    }
    match links(&metadata) {
        0 | 1 => files::expect_readable(path).map_err(failed),
        links => Err(StorageError::hard_links(path, links)),
    }
}

/// Checks that each of the other files that SQLite uses for the vault at `path` is a file, if it exists. SQLite and the
/// checks of the log would block on a named pipe. `path` has no symbolic links.
pub(super) fn expect_files_beside(path: &Path) -> Result<()> {
    for sibling in files_of(path).skip(1) {
        if std::fs::metadata(&sibling).is_ok_and(|found| !found.is_file()) {
            let reason = format!("{} is not a file", sibling.display());
            return Err(StorageError::not_a_vault(path, reason));
        }
    }
    Ok(())
}

/// Returns the number of names (hard links) of the file.
#[cfg(unix)]
fn links(file: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(file)
}

/// Returns 1, because the metadata does not contain the number on this system.
#[cfg(not(unix))]
fn links(_: &std::fs::Metadata) -> u64 {
    1
}

/// Opens a connection to the vault at `path`, which must exist. If nothing can be written beside the vault, the
/// connection is read-only.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Opens a read-only connection.
pub(super) fn connect_to_read(path: &Path) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn open(path: &Path, mode: OpenFlags) -> rusqlite::Result<Connection> {
    let connect = || {
        let manager = SqliteConnectionManager::file(plain(path)).with_flags(mode | NO_MUTEX);
        let connection = manager.with_init(|connection| configure(connection)).connect()?;
        // The first query needs the shared memory file and the log.
        connection.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
        Ok(connection)
    };
    match connect() {
        Err(error) if is_without_log(&error) && has_log(path) => open_with_log(path),
        Err(error) if is_without_log(&error) => open_alone(path),
        outcome => outcome,
    }
}

const NO_MUTEX: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX;

/// Whether a connection to the vault at `path` is read-only because no space is left.
pub(super) fn is_without_room(path: &Path) -> bool {
    let connect = || {
        let mode = OpenFlags::SQLITE_OPEN_READ_WRITE | NO_MUTEX;
        Connection::open_with_flags(plain(path), mode)?.query_row("PRAGMA schema_version", [], |_| Ok(()))
    };
    connect().is_err_and(|error| {
        let code = error.sqlite_error().map(|error| error.extended_code);
        error.sqlite_error_code() == Some(ErrorCode::DiskFull)
            || matches!(code, Some(SQLITE_IOERR_SHMSIZE | SQLITE_IOERR_SHMOPEN))
    })
}

/// Returns an error if there is a rollback journal beside the vault at `path`. Vaults use write-ahead logs, so the
/// journal belongs to another file, and SQLite would write its pages into the vault. A vault has a rollback journal of
/// its own only during creation, before it has a second page. Must be called while this process does not have the vault
/// open: closing the file would drop its locks. `path` has no symbolic links: SQLite looks for the journal beside their target.
pub(super) fn expect_no_rollback_journal(path: &Path) -> rusqlite::Result<()> {
    const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    if !std::fs::metadata(&journal).is_ok_and(|found| found.is_file() && found.len() > 0) {
        return Ok(());
    }
    let first = |path: &Path| -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(100).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    // If a file cannot be read, SQLite reports the error.
    let (Ok(header), Ok(first)) = (first(path), first(Path::new(&journal))) else { return Ok(()) };
    let is_wal = header.get(18..20) == Some(&[2, 2]);
    let page = header.get(16..18).map_or(0, |size| match size {
        [0, 1] => 65_536,
        size => size.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    });
    let is_made = std::fs::metadata(path).is_ok_and(|found| found.len() > page);
    if first.starts_with(&MAGIC) && is_wal && is_made {
        let message = "a rollback journal of another file is next to it, named like the vault with \"-journal\" appended; SQLite \
                       would apply it to the vault, so move it elsewhere";
        return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_PERM), Some(message.to_owned())));
    }
    Ok(())
}

/// Returns a path that SQLite always treats as the name of a file. SQLite opens databases without a file for "" and
/// ":memory:", and parses names that begin with "file:" as URIs with options. It treats an absolute path, or one that
/// begins with a dot and a slash, only as a file.
fn plain(path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
}

/// Whether SQLite could not create or open the log or its shared memory because a directory, file or disk is not
/// writable.
fn is_without_log(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure | ErrorCode::DiskFull)
    )
}

/// Whether there is a non-empty log, without which the file is not the whole vault.
fn has_log(path: &Path) -> bool {
    // SQLite stores the log beside the target of a symbolic link.
    let mut log = real(path).into_os_string();
    log.push("-wal");
    std::fs::metadata(PathBuf::from(log)).is_ok_and(|log| log.len() > 0)
}

/// Opens a vault that has no log and beside which none can be created: only its file, without any locks. No connection
/// that could change it is open as long as there is no log.
pub(super) fn open_alone(path: &Path) -> rusqlite::Result<Connection> {
    let mut uri = b"file:".to_vec();
    for byte in plain(path).as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(*byte),
            _ => uri.extend(format!("%{byte:02X}").bytes()),
        }
    }
    uri.extend(b"?immutable=1");
    let uri = String::from_utf8_lossy(&uri).into_owned();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | NO_MUTEX;
    SqliteConnectionManager::file(uri)
        .with_flags(flags)
        .with_init(|connection| without_temporary_files(connection))
        .connect()
}

/// The SQLite VFS that takes no locks.
const WITHOUT_LOCKS: &CStr = if cfg!(windows) { c"win32-none" } else { c"unix-none" };

/// Opens a vault that has a log, but whose shared memory cannot be created. No other process has created it, or it
/// could be used. Each connection reads the whole log itself, without any locks.
fn open_with_log(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | NO_MUTEX;
    let connection = Connection::open_with_flags_and_vfs(plain(path), flags, WITHOUT_LOCKS)?;
    // Closing the connection writes nothing: it neither checkpoints nor changes the log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // An exclusive connection needs no shared memory.
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
    without_temporary_files(&connection)?;
    Ok(connection)
}

/// Sorts large results in memory, because no temporary files can be created.
fn without_temporary_files(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA temp_store = MEMORY")?;
    configure(connection)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(64);
    // No vault has triggers. Triggers created by another program could change what is written, or never end.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA cell_size_check = ON;
         PRAGMA cache_size = -32768;",
    )
}

/// Checkpoints the write-ahead log into the file and truncates it; returns false if others still read from it.
pub(super) fn empty_log(connection: &Connection) -> rusqlite::Result<bool> {
    // Readers may hold the log for long, and nothing depends on emptying it.
    connection.busy_timeout(READER_BUSY_TIMEOUT)?;
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
    connection.busy_timeout(BUSY_TIMEOUT)?;
    match busy {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(false),
        busy => Ok(!busy?),
    }
}

pub(super) fn empty_path() -> StorageError {
    StorageError::invalid("the path of the vault is empty")
}

pub(super) fn secure_delete(connection: &Connection, on: bool) -> rusqlite::Result<()> {
    // The pragma returns a row.
    connection.pragma_update_and_check(None, "secure_delete", on, |_| Ok(()))
}

/// Resolves symbolic links to the vault: SQLite stores the log beside the real file.
pub(super) fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

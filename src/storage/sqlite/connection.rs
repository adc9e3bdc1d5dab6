//! Connections to a vault, all with the same settings.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use r2d2::ManageConnection as _;
use r2d2_sqlite::SqliteConnectionManager;
use rusqlite::config::DbConfig;
use rusqlite::ffi::{SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE};
use rusqlite::functions::FunctionFlags;
use rusqlite::vtab::array;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, ffi};

use super::{Result, StorageError};
use crate::files;
use crate::files::files_of;
use crate::storage::interface::matches_pattern;

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

/// Checks that there is a file at `path` that can be opened, that has one name and is no mount point. SQLite would only
/// report that it cannot open the file, and would block on a named pipe.
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
    if is_mount_point(path) {
        return Err(StorageError::mounted(path));
    }
    match links(&metadata) {
        0 | 1 => files::expect_readable(path).map_err(failed),
        links => Err(StorageError::hard_links(path, links)),
    }
}

/// Returns whether the file is the root of a mount, as containers make of single files. Processes that know it by its other
/// name would have another log beside it.
#[cfg(target_os = "linux")]
fn is_mount_point(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    // Systems before Linux 5.8 do not say.
    statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS)
        .is_ok_and(|file| file.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(not(target_os = "linux"))]
fn is_mount_point(_: &Path) -> bool {
    false
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

/// Opens a connection to the vault at `path`, which must exist, with the settings of all connections. If nothing can be
/// written beside the vault, the connection is read-only.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    configure(&connection)?;
    Ok(connection)
}

/// Like [`connect`], but the connection is read-only.
pub(super) fn connect_to_read(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    configure(&connection)?;
    Ok(connection)
}

/// Opens a connection to the vault at `path`, which must exist, without further settings.
pub(super) fn open(path: &Path, mode: OpenFlags) -> rusqlite::Result<Connection> {
    let connect = || {
        let manager = SqliteConnectionManager::file(plain(path)).with_flags(mode | NO_MUTEX);
        let connection = manager.with_init(|connection| connection.busy_timeout(BUSY_TIMEOUT)).connect()?;
        // The first query needs the shared memory file and the log.
        connection.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
        Ok(connection)
    };
    let read = || if has_log(path) { open_with_log(path) } else { open_alone(path) };
    if !is_writable(path) && !has_shared_log(path) {
        // SQLite would create a log that belongs to this user, and that the owner of the vault could not write.
        return read();
    }
    match connect() {
        Err(error) if is_without_log(&error) => read(),
        outcome => outcome,
    }
}

/// Whether this user can write the file, if that can be determined without opening it.
#[cfg(unix)]
fn is_writable(path: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(not(unix))]
fn is_writable(_: &Path) -> bool {
    true
}

const NO_MUTEX: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX;

/// Whether a connection to the vault at `path` is read-only because no space is left.
pub(super) fn is_without_room(path: &Path) -> bool {
    let connect = || {
        let mode = OpenFlags::SQLITE_OPEN_READ_WRITE | NO_MUTEX;
        Connection::open_with_flags(plain(path), mode)?.query_row("PRAGMA schema_version", [], |_| Ok(()))
    };
    is_writable(path)
        && connect().is_err_and(|error| {
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
    let journal = sibling_path(path, "-journal");
    if !std::fs::metadata(&journal).is_ok_and(|found| found.is_file() && found.len() > 0) {
        return Ok(());
    }
    let first = |path: &Path| -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(100).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    // If a file cannot be read, SQLite reports the error.
    let (Ok(header), Ok(first)) = (first(path), first(&journal)) else { return Ok(()) };
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

/// Returns the path of the log of the vault at `path`. SQLite stores it beside the target of a symbolic link.
pub(super) fn log_of(path: &Path) -> PathBuf {
    sibling_path(&real(path), "-wal")
}

/// Returns `path` with `ending` appended to its file name.
pub(super) fn sibling_path(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Whether there is a non-empty log, without which the file is not the whole vault.
fn has_log(path: &Path) -> bool {
    std::fs::metadata(log_of(path)).is_ok_and(|log| log.len() > 0)
}

/// Whether a process has created the log and the memory that processes share, and may be using them.
fn has_shared_log(path: &Path) -> bool {
    let path = real(path);
    ["-wal", "-shm"].iter().all(|ending| sibling_path(&path, ending).exists())
}

/// Opens a vault that has no log and beside which none can be created: only its file, without any locks. No connection
/// that could change it is open as long as there is no log.
pub(super) fn open_alone(path: &Path) -> rusqlite::Result<Connection> {
    open_by_uri(path, "immutable=1")
}

/// The SQLite VFS that takes no locks.
const WITHOUT_LOCKS: &str = if cfg!(windows) { "vfs=win32-none" } else { "vfs=unix-none" };

/// Opens a vault that has a log, but whose shared memory cannot be created. No other process has created it, or it
/// could be used. Each connection reads the whole log itself, without any locks.
fn open_with_log(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open_by_uri(path, WITHOUT_LOCKS)?;
    // Closing the connection writes nothing: it neither checkpoints nor changes the log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // An exclusive connection needs no shared memory.
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
    Ok(connection)
}

/// Opens the file at `path` read-only, with a parameter of SQLite's URIs.
fn open_by_uri(path: &Path, parameter: &str) -> rusqlite::Result<Connection> {
    let mut uri = b"file:".to_vec();
    for byte in plain(path).as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(*byte),
            _ => uri.extend(format!("%{byte:02X}").bytes()),
        }
    }
    uri.extend(format!("?{parameter}").bytes());
    let uri = String::from_utf8_lossy(&uri).into_owned();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | NO_MUTEX;
    // Sorts large results in memory, because no temporary files can be created.
    SqliteConnectionManager::file(uri)
        .with_flags(flags)
        .with_init(|connection| connection.execute_batch("PRAGMA temp_store = MEMORY"))
        .connect()
}

/// Applies the settings of all connections.
pub(super) fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(64);
    // The table function for lists as parameters.
    array::load_module(connection)?;
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("matches_pattern", 2, flags, |context| {
        let text = |index| Ok::<_, Error>(context.get_raw(index).as_str()?);
        Ok(matches_pattern(text(0)?, text(1)?))
    })?;
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

//! Logs that are synced once for a transaction, and left empty beside the vault.
//!
//! SQLite syncs five times for one transaction of one process: the header of the log, its directory, the frames, all of
//! the log again before the checkpoint, and the file. Two are needed: of the log before the file is written, and of the
//! file before the log is truncated. The header has to be synced on its own only if frames of earlier transactions
//! follow it, and the directory only if the log is new. So the log is not deleted when a vault is closed but truncated,
//! and a transaction that finds it empty is committed without syncing and synced here, before it is acknowledged.
//!
//! What is on disk is recorded in the log's modification time, with the length to which this applies: every write
//! changes the time, and a log that was created by another program has never had it.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Error, MAIN_DB, ffi};

use super::connection::BUSY_TIMEOUT;
use super::error::unconfirmed;
use crate::files::open_vaults;

/// The seconds of the modification time of a log that is on disk: a day in 1970 on which no log was written.
const MARK: Duration = Duration::from_secs(0x72_756e);

/// The unit in which the nanoseconds of the modification time contain the length. Headers and frames are multiples.
const UNIT: u64 = 8;

/// The log of an open vault. SQLite locks other files, so this one can be opened and closed beside it.
struct WalFile {
    path: PathBuf,
}

impl WalFile {
    /// Returns the log of the vault that `connection` can write, if it has one.
    fn of_connection(connection: &Connection) -> Option<Self> {
        if connection.is_readonly(MAIN_DB).unwrap_or(true) {
            return None;
        }
        let vault = connection.path().filter(|path| !path.is_empty())?;
        let path = PathBuf::from(format!("{vault}-wal"));
        path.is_file().then_some(Self { path })
    }

    fn is_empty(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|log| log.len() == 0)
    }

    /// Returns whether all of the log and its name are on disk.
    fn is_on_disk(&self) -> bool {
        fs::metadata(&self.path)
            .is_ok_and(|log| log.modified().is_ok_and(|time| Some(time) == mark_of(log.len())))
    }

    /// Syncs the log, whose name is on disk, and records that.
    fn sync(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        // If another process writes more in the meantime, the length does not match the record.
        let length = file.metadata()?.len();
        file.sync_all()?;
        record(&file, length);
        Ok(())
    }

    /// Records that the log, which is empty, is on disk.
    fn record_empty(&self) {
        let file = OpenOptions::new().write(true).open(&self.path);
        if let Ok(file) = file
            && file.metadata().is_ok_and(|log| log.len() == 0)
        {
            record(&file, 0);
        }
    }
}

/// Returns the modification time of a log of which `length` bytes are on disk.
fn mark_of(length: u64) -> Option<SystemTime> {
    let units = u32::try_from(length / UNIT)
        .ok()
        .filter(|units| *units < 1_000_000_000 && length.is_multiple_of(UNIT))?;
    Some(UNIX_EPOCH + MARK + Duration::from_nanos(units.into()))
}

/// Records the length that is on disk. Without the record, the log is synced once more.
fn record(file: &File, length: u64) {
    if let Some(mark) = mark_of(length) {
        let _ = file.set_times(FileTimes::new().set_modified(mark));
    }
}

/// A transaction that is synced here, in one step, after SQLite has committed it without syncing.
pub(super) struct DeferredSync<'c> {
    connection: &'c Connection,
    log: WalFile,
}

impl<'c> DeferredSync<'c> {
    /// Prepares `connection`, which has no transaction. Returns `None` if the log is not empty, or may be new.
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Option<Self>> {
        let Some(log) = WalFile::of_connection(connection).filter(|log| log.is_empty() && log.is_on_disk())
        else {
            return Ok(None);
        };
        let deferred = Self { connection, log };
        // A checkpoint would write to the file before the log is synced.
        connection.execute_batch("PRAGMA synchronous = OFF")?;
        connection.query_row("PRAGMA wal_autocheckpoint = 0", [], |_| Ok(()))?;
        Ok(Some(deferred))
    }

    /// Returns whether the log is still empty. Must be called in a write transaction, so that it stays so: the frames
    /// of earlier transactions must not follow an unsynced header.
    pub(super) fn is_possible(&self) -> bool {
        self.log.is_empty()
    }

    /// Syncs the committed transaction. If this fails, the transaction cannot be taken back: others may have read it. It is
    /// then not known whether it will survive, and the error says so.
    pub(super) fn finish(self) -> rusqlite::Result<()> {
        let Self { connection, log } = &self;
        log.sync().or_else(|error| {
            restore(connection);
            // What the log could not keep may still be written to the file.
            let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
            match connection.query_row(sql, [], |row| row.get::<_, bool>(0)) {
                Ok(false) => Ok(()),
                _ => Err(unconfirmed(error)),
            }
        })
    }
}

impl Drop for DeferredSync<'_> {
    fn drop(&mut self) {
        restore(self.connection);
    }
}

/// Restores the settings of all other transactions.
fn restore(connection: &Connection) {
    let _ = connection.execute_batch("PRAGMA synchronous = FULL");
    let _ = connection.query_row("PRAGMA wal_autocheckpoint = 1000", [], |_| Ok(()));
}

fn failure(error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ffi::SQLITE_FULL,
        _ => ffi::SQLITE_IOERR_FSYNC,
    };
    Error::SqliteFailure(ffi::Error::new(code), Some(error.to_string()))
}

/// Closes the last connection of a store. If no other process has the vault open, its file contains everything
/// afterwards, and an empty log stays beside it.
pub(super) fn close(connection: Connection) {
    // After an error, SQLite checkpoints the log, or leaves it to the next process if part of this was done.
    let _ = empty_log(&connection);
    drop(connection);
}

fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    let Some(log) = WalFile::of_connection(connection) else { return Ok(()) };
    let stay = || connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop);
    if log.is_empty() {
        return if log.is_on_disk() { stay() } else { Ok(()) };
    }
    if connection.total_changes() == 0 || !is_alone(connection)? {
        return Ok(());
    }
    // From here on no process can open the vault until this connection is closed. Whenever it ends, the log has all
    // that the file lacks.
    stay()?;
    if log.is_on_disk() {
        connection.execute_batch("PRAGMA synchronous = OFF")?;
        checkpoint(connection, "PASSIVE")?;
        let path = connection.path().unwrap_or_default();
        open_vaults::sync(path.as_ref()).map_err(|error| failure(&error))?;
        checkpoint(connection, "TRUNCATE")?;
        // The log had one transaction. If the disk has it again after a power loss, it changes nothing.
        log.record_empty();
    } else {
        // SQLite syncs the log, with its name, and then the file.
        checkpoint(connection, "TRUNCATE")?;
        // The first of several transactions must not come back without the others.
        log.sync().map_err(|error| failure(&error))?;
    }
    Ok(())
}

/// Locks the vault against all other connections until this one is closed. Returns false if there are others.
fn is_alone(connection: &Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(Duration::ZERO)?;
    connection.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))?;
    let locked = connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK");
    if locked.is_err() {
        connection.query_row("PRAGMA locking_mode = NORMAL", [], |_| Ok(()))?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
    }
    Ok(locked.is_ok())
}

/// Copies all frames of the log into the file.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<()> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let (busy, frames, copied): (bool, i64, i64) =
        connection.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if busy || frames != copied {
        return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::sqlite::connection;
    use crate::storage::{ErrorKind, StorageError};

    /// Neither the log can be synced, since its name is gone, nor the file be written, since a reader needs its pages.
    #[test]
    fn a_change_that_could_not_be_synced_may_have_been_stored() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("v");
        connection::create_file(&path).unwrap();
        let connection = connection::connect(&path).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)").unwrap();
        checkpoint(&connection, "TRUNCATE").unwrap();
        let log = WalFile::of_connection(&connection).unwrap();
        log.record_empty();
        let count = |connection: &Connection| -> i64 {
            connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
        };
        let reader = connection::connect(&path).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        assert_eq!(count(&reader), 0);
        let deferred = DeferredSync::prepare(&connection).unwrap().unwrap();
        connection.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        connection.busy_timeout(Duration::ZERO).unwrap();
        let elsewhere = directory.path().join("elsewhere");
        fs::rename(&log.path, &elsewhere).unwrap();
        let error = StorageError::from_sqlite(&path, deferred.finish().unwrap_err());
        fs::rename(&elsewhere, &log.path).unwrap();
        assert_eq!(error.kind(), ErrorKind::Device);
        assert!(error.to_string().contains("; the change may have been stored"), "{error}");
        reader.execute_batch("ROLLBACK").unwrap();
        assert_eq!(count(&reader), 1, "others see it");
    }

    #[test]
    fn a_record_applies_to_one_length() {
        let directory = tempfile::tempdir().unwrap();
        let log = WalFile { path: directory.path().join("v-wal") };
        fs::write(&log.path, "").unwrap();
        assert!(log.is_empty() && !log.is_on_disk());
        log.record_empty();
        assert!(log.is_on_disk());
        fs::write(&log.path, [0; 32]).unwrap();
        assert!(!log.is_on_disk(), "written");
        log.sync().unwrap();
        assert!(log.is_on_disk());
        let file = OpenOptions::new().append(true).open(&log.path).unwrap();
        file.set_len(64).unwrap();
        record(&file, 32);
        assert!(!log.is_on_disk(), "more was written before the record");
    }
}

//! A fair queue for the write lock of a vault.
//!
//! SQLite has one write lock, and waiting writers poll it less often the longer they wait: a process that writes batch
//! after batch takes it each time before the others try again. So a writer that does not get the lock at once waits to
//! become the head of a queue, by locking a file beside the vault; only the head tries to take the write lock. The file
//! exists while a process waits, and a process that has just written finds it and also waits. A killed process holds no
//! lock, and a head that is stopped is overtaken.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Error, ErrorCode, Transaction, TransactionBehavior, ffi};

use super::connection::BUSY_TIMEOUT;

/// Suffix of the name of the queue file, after the name of the vault.
const ENDING: &str = "-queue";

/// Interval at which the head of the queue tries to take the write lock.
const OFTEN: Duration = Duration::from_millis(1);

/// Initial interval at which waiting writers try to become the head. It decreases to [`OFTEN`] the longer they wait.
const SELDOM: Duration = Duration::from_millis(20);

/// Time after which a waiting writer also tries to take the write lock itself: the head may be a stopped process.
const PASSES_BY: Duration = Duration::from_secs(5);

/// The error message if other processes wrote during the whole wait.
pub(super) const OTHERS_WROTE: &str = "other processes were writing during the whole wait";

/// Begins a write transaction. It takes the lock at the beginning, so that it waits for other writers there and never
/// fails halfway.
pub(super) fn begin(connection: &Connection) -> rusqlite::Result<Transaction<'_>> {
    begin_within(connection, BUSY_TIMEOUT)
}

/// Like [`begin`], but waits no longer than `busy_timeout`.
pub(super) fn begin_within(
    connection: &Connection,
    busy_timeout: Duration,
) -> rusqlite::Result<Transaction<'_>> {
    in_turn(connection, busy_timeout, || {
        Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
    })
}

/// Runs `work`, which takes the write lock, when it is this connection's turn.
///
/// # Errors
/// Returns the error of `work`. If the vault is still busy after `busy_timeout`, the message states whether others wrote
/// during the wait.
pub(super) fn in_turn<T>(
    connection: &Connection,
    busy_timeout: Duration,
    mut work: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.busy_timeout(Duration::ZERO)?;
    let outcome = LockWait::new(connection, busy_timeout).wait(&mut work);
    connection.busy_timeout(BUSY_TIMEOUT)?;
    outcome
}

struct LockWait<'c> {
    connection: &'c Connection,
    began: Instant,
    busy_timeout: Duration,
    /// The path of the queue file, or `None` if SQLite does not report the path of the vault.
    queue: Option<PathBuf>,
}

impl<'c> LockWait<'c> {
    fn new(connection: &'c Connection, busy_timeout: Duration) -> Self {
        let queue = connection
            .path()
            .filter(|path| !path.is_empty())
            .map(|path| PathBuf::from(format!("{path}{ENDING}")));
        Self { connection, began: Instant::now(), busy_timeout, queue }
    }

    fn wait<T>(&self, work: &mut impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        // A new writer does not overtake those already waiting.
        let is_first = self.queue.as_ref().is_none_or(|queue| fs::symlink_metadata(queue).is_err());
        if is_first {
            match work() {
                Err(error) if is_busy(&error) => {}
                outcome => return outcome,
            }
        }
        let before = self.version();
        let mut head = None;
        loop {
            let waited = self.began.elapsed();
            head = head.or_else(|| self.queue.as_deref().and_then(LockQueueHead::take));
            let asks = head.is_some() || self.queue.is_none() || waited >= PASSES_BY;
            let outcome = if asks { work() } else { Err(busy(None)) };
            match outcome {
                Err(error) if is_busy(&error) => {}
                outcome => return outcome,
            }
            if waited >= self.busy_timeout {
                // If the file cannot be created or another process is the head, `work` was not attempted yet.
                return match work() {
                    Err(error) if is_busy(&error) => {
                        let has_changed = before.is_some() && before != self.version();
                        Err(busy(has_changed.then(|| OTHERS_WROTE.to_owned())))
                    }
                    outcome => outcome,
                };
            }
            let pause = if head.is_some() { OFTEN } else { pause(waited) };
            thread::sleep(pause.min(self.busy_timeout.saturating_sub(waited)));
        }
    }

    /// Returns a number that changes whenever another connection has written.
    fn version(&self) -> Option<i64> {
        self.connection.query_row("PRAGMA data_version", [], |row| row.get(0)).ok()
    }
}

/// Returns the pause before the next attempt after waiting for `waited`.
fn pause(waited: Duration) -> Duration {
    SELDOM.saturating_sub(waited / 250).max(OFTEN)
}

fn is_busy(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

fn busy(message: Option<String>) -> Error {
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), message)
}

/// The head of the queue, until dropped.
struct LockQueueHead {
    path: PathBuf,
    /// Holds the lock.
    file: File,
}

impl LockQueueHead {
    /// Becomes the head. Returns `None` if another process is the head, or if the file cannot be created.
    fn take(path: &Path) -> Option<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).ok()?;
        file.try_lock().ok()?;
        // The previous head may have removed the file between opening and locking.
        let head = Self { path: path.to_owned(), file };
        if head.is_at_its_path() { Some(head) } else { None }
    }

    #[cfg(unix)]
    fn is_at_its_path(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let identity = |file: fs::Metadata| (file.dev(), file.ino());
        let there = fs::symlink_metadata(&self.path).map(identity);
        there.is_ok_and(|there| self.file.metadata().map(identity).is_ok_and(|own| own == there))
    }

    #[cfg(not(unix))]
    fn is_at_its_path(&self) -> bool {
        self.path.exists()
    }
}

impl Drop for LockQueueHead {
    fn drop(&mut self) {
        // While the file is locked, no other process is the head. If it cannot be removed, the next head reuses it.
        if self.is_at_its_path() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::OpenFlags;

    use super::*;

    fn vault(directory: &tempfile::TempDir) -> [Connection; 2] {
        let path = directory.path().join("v");
        let connect = || Connection::open_with_flags(&path, OpenFlags::default()).unwrap();
        let both = [connect(), connect()];
        both[0].execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)").unwrap();
        both
    }

    #[test]
    fn those_who_wait_longer_ask_more_often() {
        let pauses: Vec<Duration> = (0..60).map(|second| pause(Duration::from_secs(second))).collect();
        assert!(pauses.is_sorted_by(|one, other| one >= other));
        assert_eq!((pauses[0], pauses[59]), (SELDOM, OFTEN));
    }

    #[test]
    fn there_is_one_head_and_no_file_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("v-queue");
        let head = LockQueueHead::take(&path).unwrap();
        assert!(LockQueueHead::take(&path).is_none());
        drop(head);
        assert!(!path.exists());
        // A file left by a killed process is reused.
        File::create(&path).unwrap();
        drop(LockQueueHead::take(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn who_comes_while_others_wait_does_not_go_before_them() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = vault(&directory);
        let queue = directory.path().join("v-queue");
        let head = LockQueueHead::take(&queue).unwrap();
        let attempts = std::cell::Cell::new(0);
        let ask = || {
            attempts.set(attempts.get() + 1);
            Err::<(), _>(busy(None))
        };
        // The write lock is free, but it is the head's turn: `work` is only attempted at the end.
        assert!(is_busy(&in_turn(&one, Duration::from_millis(50), ask).unwrap_err()));
        assert_eq!(attempts.get(), 1);
        drop(head);
        begin(&other).unwrap().commit().unwrap();
        assert!(!queue.exists());
    }

    #[test]
    fn the_error_tells_whether_others_wrote() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = vault(&directory);
        let busy_timeout = Duration::from_millis(20);
        let held = begin(&other).unwrap();
        let message = |error: Error| match error {
            Error::SqliteFailure(_, message) => message,
            error => panic!("{error}"),
        };
        assert_eq!(message(begin_within(&one, busy_timeout).unwrap_err()), None);
        held.commit().unwrap();
        let write = || {
            other.execute("INSERT INTO t VALUES (1)", [])?;
            Err::<(), _>(busy(None))
        };
        let said = message(in_turn(&one, busy_timeout, write).unwrap_err());
        assert_eq!(said.as_deref(), Some(OTHERS_WROTE));
    }
}

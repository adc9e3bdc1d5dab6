//! Waiting for the write lock of a vault, each in turn.
//!
//! SQLite has one lock for who writes, and lets those who wait ask for it again and again, less often the longer they wait: a
//! process that writes batch after batch takes it each time before the others ask. So who does not get the lock at once waits
//! for a place at the head of a queue, which is the lock of a file beside the vault; only the head asks for the write lock. The
//! file exists while a process waits, and a process that has just written finds it and waits too. A process that is killed holds
//! no lock, and one that is stopped at the head is passed by.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Error, ErrorCode, Transaction, TransactionBehavior, ffi};

use super::pool::BUSY_TIMEOUT;

/// How the name of the queue's file goes on after that of the vault.
const ENDING: &str = "-queue";

/// How often the head of the queue asks for the write lock.
const OFTEN: Duration = Duration::from_millis(1);

/// How often those ask for the head that have just come. The longer they wait, the more often they ask, down to [`OFTEN`].
const SELDOM: Duration = Duration::from_millis(20);

/// Who has waited this long asks for the write lock itself as well: the head may be a process that is stopped.
const PASSES_BY: Duration = Duration::from_secs(5);

/// The message of the error that says that others wrote all the time.
pub(super) const OTHERS_WROTE: &str = "other processes wrote all the time";

/// Begins a transaction that writes. Taking the lock at the beginning means waiting for others there, never failing half way.
pub(super) fn begin(connection: &Connection) -> rusqlite::Result<Transaction<'_>> {
    begin_within(connection, BUSY_TIMEOUT)
}

/// The same, waiting no longer than `patience`.
pub(super) fn begin_within(connection: &Connection, patience: Duration) -> rusqlite::Result<Transaction<'_>> {
    in_turn(connection, patience, || Transaction::new_unchecked(connection, TransactionBehavior::Immediate))
}

/// Does `work`, which takes the write lock, as soon as it is this connection's turn.
///
/// # Errors
/// Returns what `work` returns. If that is that the vault is busy until `patience` is over, the message tells whether others
/// wrote meanwhile.
pub(super) fn in_turn<T>(
    connection: &Connection,
    patience: Duration,
    mut work: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.busy_timeout(Duration::ZERO)?;
    let outcome = Waiting::new(connection, patience).wait(&mut work);
    connection.busy_timeout(BUSY_TIMEOUT)?;
    outcome
}

struct Waiting<'c> {
    connection: &'c Connection,
    began: Instant,
    patience: Duration,
    /// Where the file of the queue is; nothing if SQLite does not tell where the vault is.
    queue: Option<PathBuf>,
}

impl<'c> Waiting<'c> {
    fn new(connection: &'c Connection, patience: Duration) -> Self {
        let queue = connection
            .path()
            .filter(|path| !path.is_empty())
            .map(|path| PathBuf::from(format!("{path}{ENDING}")));
        Self { connection, began: Instant::now(), patience, queue }
    }

    fn wait<T>(&self, work: &mut impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        // Who comes while others wait does not go before them.
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
            head = head.or_else(|| self.queue.as_deref().and_then(Head::take));
            let asks = head.is_some() || self.queue.is_none() || waited >= PASSES_BY;
            let outcome = if asks { work() } else { Err(busy(None)) };
            match outcome {
                Err(error) if is_busy(&error) => {}
                outcome => return outcome,
            }
            if waited >= self.patience {
                // Where no file can be made, or another process has the head, nothing was asked for so far.
                return match work() {
                    Err(error) if is_busy(&error) => {
                        let has_changed = before.is_some() && before != self.version();
                        Err(busy(has_changed.then(|| OTHERS_WROTE.to_owned())))
                    }
                    outcome => outcome,
                };
            }
            let pause = if head.is_some() { OFTEN } else { pause(waited) };
            thread::sleep(pause.min(self.patience.saturating_sub(waited)));
        }
    }

    /// Changes whenever another connection has written.
    fn version(&self) -> Option<i64> {
        self.connection.query_row("PRAGMA data_version", [], |row| row.get(0)).ok()
    }
}

/// How long to wait between two questions after so long a time.
fn pause(waited: Duration) -> Duration {
    SELDOM.saturating_sub(waited / 250).max(OFTEN)
}

fn is_busy(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

fn busy(message: Option<String>) -> Error {
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), message)
}

/// The head of the queue, as long as this is there.
struct Head {
    path: PathBuf,
    /// Has the lock.
    file: File,
}

impl Head {
    /// `None` if another process is the head, or if the file cannot be created.
    fn take(path: &Path) -> Option<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).ok()?;
        file.try_lock().ok()?;
        // The last head may have removed it between the two.
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

impl Drop for Head {
    fn drop(&mut self) {
        // While it is locked, no other process is the head. If it cannot be removed, the next one finds it and takes it.
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
        let head = Head::take(&path).unwrap();
        assert!(Head::take(&path).is_none());
        drop(head);
        assert!(!path.exists());
        // What a process that was killed leaves is taken.
        File::create(&path).unwrap();
        drop(Head::take(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn who_comes_while_others_wait_does_not_go_before_them() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = vault(&directory);
        let queue = directory.path().join("v-queue");
        let head = Head::take(&queue).unwrap();
        let asked = std::cell::Cell::new(0);
        let ask = || {
            asked.set(asked.get() + 1);
            Err::<(), _>(busy(None))
        };
        // The write lock is free, but it is the head's turn: it is asked for at the end only.
        assert!(is_busy(&in_turn(&one, Duration::from_millis(50), ask).unwrap_err()));
        assert_eq!(asked.get(), 1);
        drop(head);
        begin(&other).unwrap().commit().unwrap();
        assert!(!queue.exists());
    }

    #[test]
    fn the_error_tells_whether_others_wrote() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = vault(&directory);
        let patience = Duration::from_millis(20);
        let held = begin(&other).unwrap();
        let message = |error: Error| match error {
            Error::SqliteFailure(_, message) => message,
            error => panic!("{error}"),
        };
        assert_eq!(message(begin_within(&one, patience).unwrap_err()), None);
        held.commit().unwrap();
        let write = || {
            other.execute("INSERT INTO t VALUES (1)", [])?;
            Err::<(), _>(busy(None))
        };
        let said = message(in_turn(&one, patience, write).unwrap_err());
        assert_eq!(said.as_deref(), Some(OTHERS_WROTE));
    }
}

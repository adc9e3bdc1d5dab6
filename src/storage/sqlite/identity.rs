//! The file of a vault: its creation, complete or not at all, and its identity: it must be the same one whenever a
//! connection is used and a transaction is committed.
//!
//! Another program can remove or replace the file, overwrite it with another vault, or give it a second name. What was then
//! committed would be lost, or mixed with the other vault, and what was read would be of both. So the file is examined
//! first, as it is on the disk: SQLite itself trusts its cache and its log.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, OptionalExtension};

use super::connection::{self, sibling_path};
use super::schema;
use crate::digest::Digest;
use crate::files::{self, ReplacePolicy, StagingDir};
use crate::storage::{CreationPolicy, Result, StorageError};

/// The file of an open vault.
#[derive(Debug)]
pub(super) struct VaultFile {
    path: PathBuf,
    known: Mutex<KnownFile>,
}

/// What the file was when it was last examined.
#[derive(Debug)]
struct KnownFile {
    stamp: Option<VaultFileStamp>,
    journal: KnownJournal,
    /// Whether another vault was written into the file.
    is_overwritten: bool,
    /// The device and the number of the log of the opened file. Another vault at the path may have one of its own.
    log: Option<(u64, u64)>,
}

#[derive(Debug)]
enum KnownJournal {
    Unexamined,
    /// The vault is damaged: only the identity of the file is checked.
    Unreadable,
    Read(Option<JournalEnds>),
}

/// The number and the chain of a journal entry, which identify a vault and its history until then.
type RecordedPosition = (i64, Digest);

/// The first and the last entry of a journal.
#[derive(Clone, Copy, Debug)]
struct JournalEnds {
    first: RecordedPosition,
    last: RecordedPosition,
}

/// The metadata of a file that changes with every write, and whenever another file takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VaultFileStamp {
    /// The device and the number of the file there, and how many names it has.
    identity: (u64, u64, u64),
    length: u64,
    modified: Option<SystemTime>,
}

impl VaultFileStamp {
    fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(Self { identity: identity(&file), length: file.len(), modified: file.modified().ok() })
    }

    /// Returns the device and the number of the file.
    fn file(self) -> (u64, u64) {
        (self.identity.0, self.identity.1)
    }
}

#[cfg(unix)]
fn identity(file: &fs::Metadata) -> (u64, u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (file.dev(), file.ino(), file.nlink())
}

/// Other systems do not let a file be replaced that is open.
#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> (u64, u64, u64) {
    (0, 0, 0)
}

impl KnownFile {
    fn is_other_file(&self, present: Option<VaultFileStamp>) -> bool {
        let opened = self.stamp.map(VaultFileStamp::file);
        present
            .map(VaultFileStamp::file)
            .is_some_and(|present| opened.is_some_and(|opened| opened != present))
    }
}

impl VaultFile {
    pub(super) fn new(path: &Path) -> Self {
        let path = connection::real(path);
        let stamp = VaultFileStamp::of(&path);
        let known = KnownFile { stamp, journal: KnownJournal::Unexamined, is_overwritten: false, log: None };
        Self { path, known: Mutex::new(known) }
    }

    /// Returns whether another vault was written into the file, as far as it was examined, or another file took its place.
    /// The log then belongs to the vault that was there.
    pub(super) fn is_replaced(&self) -> bool {
        let known = self.known.lock();
        known.is_overwritten || known.is_other_file(VaultFileStamp::of(&self.path))
    }

    /// Examines the file, and returns whether it contains another vault, or another file took its place. A removed file, or
    /// one with a second name, can still be read.
    pub(super) fn is_another_vault(&self) -> bool {
        let mut known = self.known.lock();
        let stamp = VaultFileStamp::of(&self.path);
        if stamp.is_none() || stamp == known.stamp {
            return known.is_overwritten;
        }
        known.is_other_file(stamp) || {
            let is_same = self.is_unchanged(&mut known, stamp);
            // While it is damaged or another program writes to it, it is not known to be another vault.
            !is_same && known.is_overwritten
        }
    }

    /// Renames the log of the vault that was at the path, if it is still there, so that SQLite does not copy it into the
    /// other one.
    pub(super) fn set_log_aside(&self) -> std::io::Result<()> {
        let known = self.known.lock();
        if known.log.is_none() || self.log() != known.log {
            return Ok(());
        }
        let free =
            (1_u32..).map(|number| connection::sibling_path(&self.path, &format!(".replaced-wal-{number}")));
        let Some(free) = free.into_iter().find(|path| !path.exists()) else { return Ok(()) };
        fs::rename(connection::log_of(&self.path), free)?;
        fs::remove_file(connection::sibling_path(&self.path, "-shm"))
    }

    /// Makes `connection` roll a transaction back instead of committing it if the file is not the same any more.
    pub(super) fn guard(self: &Arc<Self>, connection: &Connection) -> rusqlite::Result<()> {
        let file = Arc::clone(self);
        connection.commit_hook(Some(move || !file.is_same()))
    }

    /// Returns the device and the number of the log at the path.
    fn log(&self) -> Option<(u64, u64)> {
        VaultFileStamp::of(&connection::log_of(&self.path)).map(VaultFileStamp::file)
    }

    /// Reads the ends of the journal, unless some are known, and looks at the log. `connection` has no transaction.
    pub(super) fn learn(&self, connection: &Connection) {
        let mut known = self.known.lock();
        let is_needed = match known.journal {
            KnownJournal::Unexamined => true,
            // Another vault may have been written into the file.
            KnownJournal::Read(None) => VaultFileStamp::of(&self.path) == known.stamp,
            KnownJournal::Unreadable | KnownJournal::Read(Some(_)) => false,
        };
        if is_needed {
            known.journal = match JournalEnds::read(connection) {
                Ok(ends) => KnownJournal::Read(ends),
                Err(_) => KnownJournal::Unreadable,
            };
        }
        // SQLite keeps its log open for as long as a connection is.
        if known.log.is_none() && !known.is_other_file(VaultFileStamp::of(&self.path)) {
            known.log = self.log();
        }
    }

    /// Returns whether the path still leads to the file that was opened, and whether that contains the same vault.
    fn is_same(&self) -> bool {
        let mut known = self.known.lock();
        let stamp = VaultFileStamp::of(&self.path);
        if stamp == known.stamp {
            return true;
        }
        if stamp.map(|stamp| stamp.identity) != known.stamp.map(|stamp| stamp.identity) {
            return false;
        }
        self.is_unchanged(&mut known, stamp)
    }

    /// Returns whether the file, which was written to, contains the same vault.
    fn is_unchanged(&self, known: &mut KnownFile, stamp: Option<VaultFileStamp>) -> bool {
        // SQLite has copied frames of the log into the file, or another program has written to it.
        if let KnownJournal::Read(ends) = known.journal {
            match self.examine(ends) {
                Ok(ends) => known.journal = KnownJournal::Read(ends),
                Err(error) => {
                    known.is_overwritten = matches!(error, Error::QueryReturnedNoRows);
                    return false;
                }
            }
        }
        // A second name of the file is none of what may change.
        let identity = known.stamp.map(|known| known.identity);
        known.stamp = stamp.zip(identity).map(|(stamp, identity)| VaultFileStamp { identity, ..stamp });
        true
    }

    /// Returns the ends of the journal in the file as it is on the disk.
    ///
    /// # Errors
    /// Returns `QueryReturnedNoRows` if this is the journal of another vault than `known`, and another error if the file
    /// cannot be read.
    fn examine(&self, known: Option<JournalEnds>) -> rusqlite::Result<Option<JournalEnds>> {
        let alone = self.examine_alone(known);
        if let Ok((ends, true)) = alone {
            return Ok(ends);
        }
        // The entries that are not in the file are still in the log.
        let is_logged = fs::metadata(connection::log_of(&self.path)).is_ok_and(|log| log.len() > 0);
        let ends = match alone {
            // While others read, SQLite does not copy pages that have been changed again since: without the log, the file is
            // then in no state that it ever had.
            Err(error) if is_logged && error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => None,
            alone => alone?.0,
        };
        let vault = connection::open(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let are_in_vault = |ends: Option<JournalEnds>| ends.map_or(Ok(true), |ends| ends.are_in(&vault));
        if (ends.is_none() || is_logged) && are_in_vault(ends)? && are_in_vault(known)? {
            return Ok(known.or(ends));
        }
        Err(Error::QueryReturnedNoRows)
    }

    /// Returns the ends of the journal in the file without its log, and whether it is the known one.
    fn examine_alone(&self, known: Option<JournalEnds>) -> rusqlite::Result<(Option<JournalEnds>, bool)> {
        let file = connection::open_alone(&self.path)?;
        let ends = JournalEnds::read(&file)?;
        let Some(known) = known else { return Ok((ends, false)) };
        // A repair can restore the last entry.
        let is_later = ends.is_some_and(|ends| ends.last.0 >= known.last.0);
        Ok((ends, has(&file, known.last)? || is_later && has(&file, known.first)?))
    }
}

impl JournalEnds {
    /// Reads the ends of a journal. Returns `None` if it is empty or was not created yet.
    fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let end = |order: &str| {
            let sql = format!("SELECT seq, chain FROM journal ORDER BY seq {order} LIMIT 1");
            connection.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        };
        let ends = || Ok(end("ASC")?.zip(end("DESC")?).map(|(first, last)| Self { first, last }));
        match ends() {
            Err(error) if is_missing_table(&error) => Ok(None),
            ends => ends,
        }
    }

    fn are_in(self, connection: &Connection) -> rusqlite::Result<bool> {
        Ok(has(connection, self.first)? && has(connection, self.last)?)
    }
}

fn is_missing_table(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::Unknown)
}

fn has(connection: &Connection, (seq, chain): RecordedPosition) -> rusqlite::Result<bool> {
    let found = connection.query_row("SELECT chain FROM journal WHERE seq = ?1", [seq], |row| row.get(0));
    Ok(found.optional()? == Some(chain))
}

/// Creates an empty vault at `path` that only its owner can read and write, and its missing parent directories, unless
/// there is a file. It has another name until all of it is on disk, so that a creation that fails or is interrupted leaves
/// no part of it. Its name is on disk when this returns.
pub(super) fn create(path: &Path, creation: CreationPolicy) -> Result<()> {
    if path.as_os_str().is_empty() {
        return Err(connection::empty_path());
    }
    let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
    if exists(path) {
        // What is there becomes a vault when it is opened, or is the reason for an error.
        return connection::create_file(path);
    }
    let directory = files::parent(path);
    files::create_dir_all(directory).map_err(|source| StorageError::io(directory, source))?;
    connection::expect_files_beside(&connection::real(directory).join(path.file_name().unwrap_or_default()))?;
    if ["-journal", "-wal"].iter().any(|ending| exists(&sibling_path(path, ending))) {
        // They become part of the vault when it is opened, or are the reason for an error.
        return connection::create_file(path);
    }
    let failed = |source| StorageError::io(path, source);
    // The error would contain the name of the staging directory.
    let staging = StagingDir::new_in(directory).map_err(|error| failed(error.kind().into()))?;
    let staged = staging.path("vault");
    connection::create_private(&staged).map_err(failed)?;
    fill(&staged, creation).map_err(|error| StorageError::from_sqlite_named(&staged, path, error))?;
    File::open(&staged).and_then(|file| file.sync_all()).map_err(failed)?;
    match files::place(&staging, &staged, path, ReplacePolicy::Never) {
        // Another process has created it in the meantime.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        placed => placed.map_err(failed)?,
    }
    files::sync_ancestors(directory).map_err(|source| StorageError::io(directory, source))
}

fn fill(staged: &Path, creation: CreationPolicy) -> rusqlite::Result<()> {
    let mut connection = connection::connect(staged)?;
    schema::create_alone(&mut connection, creation)?;
    connection.close().map_err(|(_, error)| error)
}

/// Returns whether the file at `path` is what an interrupted creation in an empty file leaves: a database with one page,
/// which has no tables, and without a log.
pub(super) fn is_unfinished(path: &Path) -> bool {
    let header = || {
        let mut header = [0; 100];
        File::open(path)?.read_exact(&mut header)?;
        std::io::Result::Ok((header, fs::metadata(path)?.len()))
    };
    let Ok((header, length)) = header() else { return false };
    let number = |at: usize| header.get(at..).and_then(|rest| rest.first_chunk::<4>()).copied();
    let page =
        header.get(16..18).map_or(0, |size| size.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)));
    let is_log_empty = ["-wal", "-journal"]
        .iter()
        .all(|ending| fs::metadata(sibling_path(path, ending)).map_or(true, |log| log.len() == 0));
    let [version, application] = [60, 68].map(number);
    header.starts_with(b"SQLite format 3\0")
        && length == page
        && (version, application) == (Some([0; 4]), Some([0; 4]))
        && is_log_empty
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Others read while the log is copied into the file, so that pages that change again are left out.
    #[test]
    fn a_file_whose_log_was_copied_in_part_is_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("v");
        create(&path, CreationPolicy::New).unwrap();
        let (writer, reader) = (connection::connect(&path).unwrap(), connection::connect(&path).unwrap());
        let entry = "INSERT INTO journal (seq, at, entry, chain) VALUES (1, 0, '{}', zeroblob(32))";
        writer.execute_batch(entry).unwrap();
        writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let file = VaultFile::new(&path);
        file.learn(&writer);
        writer.execute_batch(schema::SEARCH).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        reader.query_row("SELECT count(*) FROM search_state", [], |_| Ok(())).unwrap();
        writer.execute_batch("INSERT INTO search_text_data VALUES (1000, zeroblob(100000))").unwrap();
        writer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
        let alone = connection::open_alone(&path).unwrap();
        JournalEnds::read(&alone).unwrap_err();
        assert!(file.is_same() && !file.is_another_vault());
    }
}

//! A vault file: opening it, what all access to it goes through, and changes to existing content, in one transaction with
//! the queries that they depend on.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension};

use super::connection::{self, BUSY_TIMEOUT, secure_delete};
use super::dictionaries::DecompressionDictionaryCache;
use super::journal::SqliteJournalWriter;
use super::payload::{PayloadReader, PayloadRow};
use super::pool::{ConnectionPool, SqlitePooledConnection};
use super::read::SqliteSnapshot;
use super::rows::beginning;
use super::{identity, mention_index, schema, wal};
use crate::artifact::is_manifest;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::files::Registration;
use crate::storage::interface::LogDamage;
use crate::storage::sql::seal;
use crate::storage::{Actor, CreationPolicy, Head, Result, StorageError};

/// A vault file.
///
/// Several processes and threads can use one vault concurrently. Writers wait for each other; readers never wait.
pub struct Store {
    pub(super) path: PathBuf,
    pub(super) pool: ConnectionPool,
    pub(super) readers: DecompressionDictionaryCache,
    pub(super) actor: Option<Actor>,
    /// The payloads that were re-encoded to prepare a removal, until the removal.
    pub(super) heirs: Mutex<BaseReplacements>,
    /// The damage to the write-ahead log found when the vault was opened.
    pub(super) log_damage: Option<Box<LogDamage>>,
    /// Set once the file exists. Must be the last field: the vault is open while the others are dropped.
    pub(super) created: OnceLock<Registration>,
}

impl Store {
    /// Opens the vault at `path`, or creates it, readable by its owner only, as `creation` says. If neither the vault nor its
    /// directory can be written, it is opened read-only. Until a vault is created that is only created when it is needed,
    /// reading from it returns [`Missing`](crate::storage::ErrorKind::Missing); an empty file becomes a vault at once.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be opened or created: [`Missing`](crate::storage::ErrorKind::Missing),
    /// [`Exists`](crate::storage::ErrorKind::Exists), [`NotAVault`](crate::storage::ErrorKind::NotAVault),
    /// [`Newer`](crate::storage::ErrorKind::Newer), [`Older`](crate::storage::ErrorKind::Older) or
    /// [`Incomplete`](crate::storage::ErrorKind::Incomplete), for example.
    pub fn open(path: &Path, creation: CreationPolicy) -> Result<Self> {
        match (creation, std::fs::symlink_metadata(path)) {
            (CreationPolicy::New, Ok(file))
                if !file.is_file() || file.len() > 0 && !identity::is_unfinished(path) =>
            {
                return Err(StorageError::exists(path));
            }
            (CreationPolicy::WhenNeeded, Err(_)) => return Ok(Self::new(path)),
            // What is there may be what a process left that was killed while it created the vault.
            (CreationPolicy::Never | CreationPolicy::WhenNeeded, _) => {}
            (CreationPolicy::New | CreationPolicy::IfMissing | CreationPolicy::ForCopy, _) => {
                identity::create(path, creation)?;
            }
        }
        let (registration, log_damage) = Self::inspect_files(path)?;
        let store = Self { log_damage, created: OnceLock::from(registration), ..Self::new(path) };
        schema::prepare(&mut *store.pool.lease()?, path, creation)?;
        Ok(store)
    }

    /// Returns whether the vault's file exists.
    #[must_use]
    pub fn is_created(&self) -> bool {
        self.created.get().is_some()
    }

    pub(super) fn create_now(&self) -> Result<()> {
        if !self.is_created() {
            identity::create(&self.path, CreationPolicy::IfMissing)?;
            let (registration, _) = Self::inspect_files(&self.path)?;
            schema::prepare(&mut *self.pool.lease()?, &self.path, CreationPolicy::IfMissing)?;
            self.created.get_or_init(|| registration);
        }
        Ok(())
    }

    /// Returns the store of a vault that is not created yet.
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            pool: ConnectionPool::new(path),
            readers: DecompressionDictionaryCache::default(),
            actor: None,
            heirs: Mutex::default(),
            log_damage: None,
            created: OnceLock::new(),
        }
    }

    /// Checks the files of the vault at `path` before SQLite opens them, unless this process already has it open.
    fn inspect_files(path: &Path) -> Result<(Registration, Option<Box<LogDamage>>)> {
        let look = |real: &Path| {
            connection::expect_file(path)?;
            connection::expect_files_beside(real)?;
            connection::expect_no_rollback_journal(real)
                .map_err(|error| StorageError::from_sqlite(path, error))?;
            wal::detect_damage(real)
        };
        let (registration, damage) = Registration::after(path, look)?;
        Ok((registration, damage.flatten().map(Box::new)))
    }

    /// Returns the path of the vault.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a change to the vault's content that overwrites what it deletes, after waiting for other writers to finish.
    pub(crate) fn edit(&self, at: DateTime<Utc>) -> Result<WriteTransaction<'_>> {
        let edit = self.change(at, BUSY_TIMEOUT)?;
        edit.overwrite_deleted()?;
        Ok(edit)
    }

    /// Begins a change to the vault's content, after waiting for other writers to finish, no longer than `busy_timeout`.
    pub(super) fn change(&self, at: DateTime<Utc>, busy_timeout: Duration) -> Result<WriteTransaction<'_>> {
        self.begin(busy_timeout, |connection| SqliteJournalWriter::open(connection, self.actor.as_ref(), at))
    }

    pub(super) fn begin(
        &self,
        busy_timeout: Duration,
        open: impl FnOnce(&Connection) -> rusqlite::Result<SqliteJournalWriter>,
    ) -> Result<WriteTransaction<'_>> {
        let snapshot =
            SqliteSnapshot::begin(self.connection()?, &self.readers, &self.path, Some(busy_timeout))?;
        WriteTransaction::begin(snapshot, &self.heirs, open)
    }

    /// Checkpoints the write-ahead log into the vault's file and truncates the log, so that it no longer contains
    /// removed content. Returns false if readers still use the log after a few seconds.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn empty_log(&self) -> Result<bool> {
        connection::empty_log(&*self.connection()?)
            .map_err(|error| StorageError::from_sqlite(&self.path, error))
    }

    /// Returns the bytes of the preferred capture of the document with this core hash, if the fast path applies; it
    /// does not if its captures have different signature states. Returns `None` otherwise: a snapshot returns the
    /// bytes or the reason why there are none.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn document(&self, core: CoreHash) -> Result<Option<Vec<u8>>> {
        document(&*self.connection()?, &self.readers, core)
            .map_err(|error| StorageError::from_sqlite(&self.path, error))
    }

    /// Returns a snapshot of the current state. It does not change while it is held, whatever others write.
    pub(crate) fn snapshot(&self) -> Result<SqliteSnapshot<'_>> {
        SqliteSnapshot::begin(self.connection()?, &self.readers, &self.path, None)
    }

    pub(super) fn connection(&self) -> Result<SqlitePooledConnection<'static>> {
        if !self.is_created() {
            return Err(StorageError::missing(&self.path));
        }
        self.pool.lease()
    }
}

/// Returns the verified bytes of the preferred capture of a document with one statement. Returns `None` if the fast path does not apply:
/// the artifact is missing, is a directory or is stored as a delta, its captures have different signature states, or it
/// is damaged. The general path reports which.
fn document(
    connection: &Connection,
    readers: &DecompressionDictionaryCache,
    core: CoreHash,
) -> rusqlite::Result<Option<Vec<u8>>> {
    let found = connection
        .prepare_cached(
            "SELECT b.size, p.encoding, p.base, p.dictionary, p.digests, p.bytes, b.digest, c.seal
               FROM artifact a JOIN kind k ON k.id = a.kind AND k.member IS NOT NULL
               JOIN capture c ON c.id = (
                 SELECT CASE WHEN min(coalesce(s.state, '')) = max(coalesce(s.state, '')) THEN min(f.id) END
                   FROM capture f LEFT JOIN signature s ON s.capture = f.id WHERE f.artifact = a.id)
               JOIN blob b ON b.id = c.blob JOIN payload p ON p.blob = b.id
              WHERE substr(a.core, 1, 8) = ?1 AND a.core = ?2",
        )?
        .query_row((beginning(&core.0), core.0.as_bytes()), |row| {
            let digest: Digest = row.get(6)?;
            let sealed = row.get_ref(7)?.as_blob()? == seal(core, CaptureHash(digest)).as_slice();
            Ok((PayloadRow::from_row(row, BlobHash(digest))?, sealed))
        })
        .optional()?;
    Ok(match found {
        Some((row, true)) if row.is_whole() => {
            let bytes = PayloadReader { connection, readers }.bytes_of(row).ok();
            bytes.filter(|bytes| !is_manifest(core, bytes))
        }
        _ => None,
    })
}

/// The new delta bases, by the bases that they replace.
#[derive(Debug, Default)]
pub(crate) struct BaseReplacements(pub(super) HashMap<i64, i64>);

/// The remains of removed rows, until the end of the transaction.
#[derive(Default)]
pub(super) struct RemovalRemains {
    /// Blobs that may have become unreferenced.
    pub(super) orphans: BTreeSet<i64>,
    /// Entries of removed captures that are still in the mention index, where they do no harm.
    pub(super) unlisted: Vec<mention_index::MentionIndexEntry>,
}

impl RemovalRemains {
    pub(super) fn add(&mut self, others: Self) {
        self.orphans.extend(others.orphans);
        self.unlisted.extend(others.unlisted);
    }
}

/// A write transaction. There is no other writer while it exists; readers see the previous state. Nothing is changed
/// before [`WriteTransaction::commit`], and nothing at all if that is not called.
pub(crate) struct WriteTransaction<'s> {
    pub(super) snapshot: SqliteSnapshot<'s>,
    pub(super) journal: SqliteJournalWriter,
    pub(super) remains: RemovalRemains,
    /// The payloads that were re-encoded to prepare removals.
    pub(super) heirs: &'s Mutex<BaseReplacements>,
    /// Whether artifacts were removed.
    pub(super) removes: bool,
}

impl<'s> WriteTransaction<'s> {
    /// Begins a change. `open` returns the writer of its entries.
    pub(super) fn begin(
        snapshot: SqliteSnapshot<'s>,
        heirs: &'s Mutex<BaseReplacements>,
        open: impl FnOnce(&Connection) -> rusqlite::Result<SqliteJournalWriter>,
    ) -> Result<Self> {
        let journal = open(snapshot.connection()).map_err(|error| snapshot.failed(error))?;
        Ok(Self { snapshot, journal, remains: RemovalRemains::default(), heirs, removes: false })
    }

    /// Overwrites content that is deleted from now on. Additions are faster without it.
    pub(super) fn overwrite_deleted(&self) -> Result<()> {
        secure_delete(self.connection(), true).map_err(|error| self.snapshot.failed(error))
    }

    /// Commits the changes. When this returns, they are on disk. Returns the last journal entry.
    ///
    /// # Errors
    /// Returns an error if the changes cannot be written; then nothing was changed.
    pub(crate) fn commit(mut self) -> Result<Head> {
        // Removes all entries together, because removed captures have many digests in common.
        let unlisted = std::mem::take(&mut self.remains.unlisted);
        mention_index::remove(self.connection(), unlisted).map_err(|error| self.snapshot.failed(error))?;
        self.sweep()?;
        let commit = || self.connection().prepare_cached("COMMIT")?.execute([]);
        commit().map_err(|error| self.snapshot.failed(error))?;
        if self.removes {
            *self.heirs.lock() = BaseReplacements::default();
        }
        Ok(self.journal.head())
    }

    pub(super) fn connection(&self) -> &Connection {
        self.snapshot.connection()
    }
}

impl Drop for WriteTransaction<'_> {
    fn drop(&mut self) {
        // Additions are faster without it. If this fails, they are slower.
        let _ = secure_delete(self.connection(), false);
    }
}

//! One SQLite file: blobs, artifacts, what they are found by, and the journal.
//!
//! The store takes only [`Admitted`] artifacts and knows no formats. It is the only user of
//! the database crates. What goes in with one call of [`Store::put`] goes in as a whole or not at all, and is on the
//! disk when the call returns; what comes out is hashed again.

mod actor;
mod backup;
pub mod check;
mod compress;
mod cut;
mod derived;
mod dictionaries;
mod edit;
mod error;
mod fetch;
mod journal;
mod lists;
mod marks;
mod mend;
mod mentions;
mod notes;
mod packed;
mod payload;
mod place;
mod pool;
mod read;
mod reclaim;
mod recode;
mod reindex;
mod release;
mod remove;
mod rows;
mod schema;
mod search;
mod segments;
mod siblings;
mod signatures;
mod sql;
mod stated;
mod stats;
mod times;
mod tombstones;
mod varint;
mod write;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use chrono::{DateTime, Utc};
use rusqlite::Connection;

pub use actor::{Actor, ActorError};
pub use backup::{Backup, BackupError, BackupOptions, BackupProgress};
use check::Inspection;
pub use edit::Edit;
pub use error::{PayloadDefect, StoreError};
pub use marks::{MAX_TAG_BYTES, is_tag};
pub use mend::{Mended, Restored};
pub use notes::{MAX_NOTE_BYTES, is_note};
pub use payload::Prepared;
pub use read::{Head, JournalCheck, JournalDefect, JournalQuery, Snapshot};
pub use reclaim::{Erasure, Reclaimable, Reclaimed, Remnant};
pub use reindex::{Readmitted, Reindexed};
pub use release::Heirs;
pub use remove::{Removed, SharedFile};
pub use rows::{
    ArtifactId, ArtifactRow, CaptureRow, DigestEdge, FileRow, JournalRow, KindId, MemberRow, MentionRow,
    NameMention, NoteRow, PinRow, Reference, RoleCount, StatedEdge, StoredMember, TagRow, Tombstone,
};
pub use schema::VERSION as SCHEMA_VERSION;
pub use search::{
    CapturePassages, FoundPassage, Grouping, Matcher, SearchComparison, SearchDifferences, SearchIndex,
    SearchableCapture, Term, Terms,
};
pub use sql::{Computed, Reader, Rows, RowsOf, Saved, SqlError, Statement, View};
pub use stated::{MAX_RELATION_BYTES, StatedLink, is_relation};
pub use stats::{Dated, Day, Extremes, KindStats, Sized, Stats, Storage};
pub use times::{Chronology, TimeBasis};
pub use tombstones::RemovedPolicy;
pub use write::{Put, PutOutcome};

use dictionaries::{Dictionaries, Readers};
use pool::{Lease, Pool};
use schema::CreatePolicy;
use write::Putting;

use crate::artifact::Admitted;
use crate::clock;
use crate::digest::CoreHash;

/// What every function of the store returns.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A vault's file.
///
/// Many processes and threads may use one vault at once. Writers wait for each other; readers wait for nobody.
pub struct Store {
    path: PathBuf,
    pool: Pool,
    readers: Readers,
    actor: Option<Actor>,
    /// Done once the file is there.
    created: OnceLock<()>,
}

/// What upgrading a vault did and what is left to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The schema version that it had.
    pub from: i64,
    /// The copy of the vault as it was, if its schema was changed.
    pub copy: Option<PathBuf>,
    /// Whether what is derived from the artifacts has to be derived again.
    pub is_outdated: bool,
}

/// Makes artifacts ready to be stored in one vault: compresses them with what documents of their kind have in common.
pub struct Preparer {
    dictionaries: Dictionaries,
    policy: RemovedPolicy,
}

impl Preparer {
    fn new(dictionaries: Dictionaries) -> Self {
        Self { dictionaries, policy: RemovedPolicy::default() }
    }

    /// The same, with what happens to artifacts that were removed before. Unless this is said, they are refused.
    #[must_use]
    pub fn with_policy(self, policy: RemovedPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Makes `admitted` ready. Needs no database, so that threads can do it beside the one that writes.
    #[must_use]
    pub fn prepare(&self, admitted: Admitted) -> Prepared {
        Prepared::new(admitted, &self.dictionaries)
    }
}

impl Store {
    /// Opens the vault at `path`. Where nothing can be written to the vault or beside it, it can be read.
    ///
    /// # Errors
    /// Returns [`StoreError::Missing`] if there is no file, [`StoreError::NotAVault`] if it is something else,
    /// [`StoreError::Older`] or [`StoreError::Newer`] if another version of this program wrote it, and another error if the
    /// file cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        Self::prepare(path, CreatePolicy::Open)
    }

    /// Creates a vault at `path`, readable by its owner only.
    ///
    /// # Errors
    /// Returns [`StoreError::Exists`] if there is a file already, unless it is empty, and another error if the file cannot be
    /// written.
    pub fn create(path: &Path) -> Result<Self> {
        if std::fs::symlink_metadata(path).is_ok_and(|file| file.len() > 0 || !file.is_file()) {
            return Err(StoreError::Exists { path: path.to_owned() });
        }
        Self::open_or_create(path)
    }

    /// Gives the vault at `path` the current schema, if it has an older one, after a copy of it was kept beside it. What is
    /// derived from artifacts has to be derived again afterwards, with [`Store::reindex`] and [`Store::finish_reindex`].
    ///
    /// # Errors
    /// As for [`Store::open`], but for [`StoreError::Older`].
    pub fn upgrade(path: &Path) -> Result<(Self, Upgrade)> {
        pool::expect_file(path)?;
        let from = schema::version(path)?;
        let store = Self::prepare(path, CreatePolicy::Upgrade)?;
        let copy = (from < i64::from(SCHEMA_VERSION)).then(|| schema::copy_path(path, from));
        let is_outdated =
            matches!(derived::expect_current(&*store.connection()?, path), Err(StoreError::Older { .. }));
        Ok((store, Upgrade { from, copy, is_outdated }))
    }

    /// Opens the vault at `path`, and creates it if there is none, readable by its owner only.
    ///
    /// # Errors
    /// As for [`Store::open`], but for [`StoreError::Missing`].
    pub fn open_or_create(path: &Path) -> Result<Self> {
        pool::create_file(path)?;
        Self::prepare(path, CreatePolicy::Create)
    }

    /// The vault that will be at `path` as soon as something is stored in it: nothing is created before. Until then,
    /// whatever else is asked of it gives [`StoreError::Missing`].
    ///
    /// # Errors
    /// As for [`Store::open`] if there is a file already.
    pub fn create_when_needed(path: &Path) -> Result<Self> {
        if std::fs::symlink_metadata(path).is_ok() {
            return Self::open(path);
        }
        Ok(Self {
            path: path.to_owned(),
            pool: Pool::new(path, None),
            readers: Readers::default(),
            actor: None,
            created: OnceLock::new(),
        })
    }

    /// Whether the vault's file was created, or was there.
    #[must_use]
    pub fn is_created(&self) -> bool {
        self.created.get().is_some()
    }

    fn create_now(&self) -> Result<()> {
        if !self.is_created() {
            pool::create_file(&self.path)?;
            drop(schema::open(&self.path, CreatePolicy::Create)?);
            self.created.get_or_init(|| ());
        }
        Ok(())
    }

    fn prepare(path: &Path, policy: CreatePolicy) -> Result<Self> {
        pool::expect_file(path)?;
        let connection = schema::open(path, policy)?;
        Ok(Self::of(path, connection))
    }

    fn of(path: &Path, connection: Connection) -> Self {
        let pool = Pool::new(path, Some(connection));
        let created = OnceLock::from(());
        Self { path: path.to_owned(), pool, readers: Readers::default(), actor: None, created }
    }

    /// The same vault, where the journal says of everything that is done from now on that `actor` did it.
    #[must_use]
    pub fn acting_as(self, actor: Actor) -> Self {
        Self { actor: Some(actor), ..self }
    }

    /// Where the vault is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the newest artifact: about how many there are.
    ///
    /// # Errors
    /// What the database says.
    pub fn last_artifact(&self) -> Result<u64> {
        if !self.is_created() {
            return Ok(0);
        }
        let connection = self.connection()?;
        let last = connection.prepare_cached("SELECT coalesce(max(id), 0) FROM artifact");
        last.and_then(|mut last| last.query_row([], |row| row.get(0)))
            .map_err(|error| StoreError::of(&self.path, error))
    }

    /// What makes artifacts ready to be stored here.
    ///
    /// # Errors
    /// What the database says.
    pub fn preparer(&self) -> Result<Preparer> {
        if !self.is_created() {
            return Ok(Preparer::new(Dictionaries::default()));
        }
        Dictionaries::of(&*self.connection()?)
            .map(Preparer::new)
            .map_err(|error| StoreError::of(&self.path, error))
    }

    /// Stores `batch` in one transaction. When this returns, all of it is on the disk; if it fails, none of it is in
    /// the vault. The outcomes are in the order of the batch; with [`RemovedPolicy::RefuseAndStop`] the first refusal is the
    /// last of them.
    ///
    /// # Errors
    /// What the system says: a full disk, another writer that does not finish, a damaged file.
    pub fn put<'p>(
        &self,
        batch: impl IntoIterator<Item = &'p Prepared>,
        preparer: &Preparer,
        at: DateTime<Utc>,
    ) -> Result<Vec<Put>> {
        let mut batch = batch.into_iter().peekable();
        if batch.peek().is_none() {
            return Ok(Vec::new());
        }
        self.create_now()?;
        let mut connection = self.connection()?;
        write::put(&mut connection, batch, &self.putting(preparer, at))
            .map_err(|error| StoreError::of(&self.path, error))
    }

    /// Stores one artifact, like [`Store::put`].
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn put_one(&self, artifact: &Prepared, preparer: &Preparer, at: DateTime<Utc>) -> Result<Put> {
        self.create_now()?;
        let mut connection = self.connection()?;
        write::put_one(&mut connection, artifact, &self.putting(preparer, at))
            .map_err(|error| StoreError::of(&self.path, error))
    }

    /// Begins a change of what is in the vault, and waits until nobody else writes.
    ///
    /// # Errors
    /// What the system says.
    pub fn edit(&self, at: DateTime<Utc>) -> Result<Edit<'_>> {
        let look = |connection| Snapshot::begin(connection, &self.readers, &self.path, true);
        Edit::begin(self.connection()?, look, self.actor.as_ref(), at, &self.path)
    }

    /// Moves what was written from the write-ahead log into the vault's file and empties the log, so that nothing remains
    /// there of what was removed. Gives false if readers, after a few seconds, still use the log.
    ///
    /// # Errors
    /// What the system says.
    pub fn empty_log(&self) -> Result<bool> {
        pool::empty_log(&*self.connection()?).map_err(|error| StoreError::of(&self.path, error))
    }

    /// The bytes of the preferred capture of the document with this core hash, if that is quickly told: not if its captures
    /// differ in what is known of their signatures. If not, nothing: a [`Snapshot`] tells the bytes or why there are none.
    ///
    /// # Errors
    /// What the system says.
    pub fn document(&self, core: CoreHash) -> Result<Option<Vec<u8>>> {
        fetch::document(&*self.connection()?, &self.readers, core)
            .map_err(|error| StoreError::of(&self.path, error))
    }

    /// The vault as it is now. It does not change while it is held, whatever others write.
    ///
    /// # Errors
    /// What the system says.
    pub fn snapshot(&self) -> Result<Snapshot<'_>> {
        Snapshot::begin(self.connection()?, &self.readers, &self.path, false)
    }

    /// What tells which parts of a text match what is searched for.
    ///
    /// # Errors
    /// What the database says.
    pub fn matcher(&self) -> Result<Matcher> {
        Matcher::of(&self.path)
    }

    fn putting<'s>(&'s self, preparer: &'s Preparer, at: DateTime<Utc>) -> Putting<'s> {
        let Preparer { dictionaries, policy } = preparer;
        Putting { dictionaries, actor: self.actor.as_ref(), at, policy: *policy }
    }

    /// The vault as it is now, to be checked. Unlike a snapshot, it can be had of a vault that is damaged.
    ///
    /// # Errors
    /// What the system says.
    pub fn inspect(&self) -> Result<Inspection<'_>> {
        Inspection::begin(self.connection()?, &self.path)
    }

    /// Makes everything that the artifacts of `batch` are found by anew, in one transaction. Says of each, in their order,
    /// what became of it.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn reindex(&self, batch: &[Readmitted]) -> Result<Vec<Reindexed>> {
        let mut connection = self.connection()?;
        reindex::artifacts(&mut connection, batch, self.actor.as_ref(), clock::now())
            .map_err(|error| StoreError::of(&self.path, error))
    }

    /// Ends what [`Store::reindex`] did: makes the index of mentions anew, and journals how many artifacts there were and
    /// how many of them were not admitted.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn finish_reindex(&self, artifacts: u64, not_admitted: u64) -> Result<()> {
        let mut connection = self.connection()?;
        reindex::finish(&mut connection, artifacts, not_admitted, self.actor.as_ref(), clock::now())
            .map_err(|error| StoreError::of(&self.path, error))
    }

    fn connection(&self) -> Result<Lease<'_>> {
        if !self.is_created() {
            return Err(StoreError::Missing { path: self.path.clone() });
        }
        self.pool.lease()
    }
}

//! The public API of a vault: kinds, store and queries behind one handle. Operations are in files of their own.

pub mod add;
pub mod agents;
pub mod annotate;
pub mod annotations;
pub mod answers;
pub mod api;
pub mod audit;
pub mod backup;
pub mod bundle;
pub mod columns;
pub mod copy;
pub mod details;
pub mod diff;
pub mod facets;
pub mod find;
pub mod forget;
pub mod forks;
pub mod fsck;
pub mod journal;
pub mod links;
pub mod list;
pub mod maintenance;
mod merging;
pub mod near;
mod openapi;
pub mod path;
pub mod prices;
pub(crate) mod query;
pub mod recordings;
pub mod remove;
pub mod replay;
pub mod resolve;
pub mod retention;
pub mod rules;
pub mod run_stats;
pub mod search;
pub mod show;
pub mod sql;
pub mod stats;
pub mod tombstones;
mod unequal_runs;
pub mod unfinished;
pub mod unresolved;
pub mod verify;
pub mod view;
pub mod wire;

pub use add::AddError;
pub use annotations::PinnedArtifact;
pub use query::{ContainedArtifact, HashTarget, Link, LinkOrigin, LinkTarget};
pub use remove::{ReferencedArtifact, RemoveError};
pub use resolve::{LocatedCapture, LookupError};
pub use search::SearchIndexUpdate;

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::storage::memory::MemoryStorage;
use crate::storage::{
    self, Actor, Capability, CreationPolicy, LogDamage, OpenedStorage, Snapshot, Storage, StorageError,
};

/// A vault.
///
/// ```
/// use runvault::Vault;
/// use runvault::intake::ExamineOptions;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let directory = tempfile::tempdir()?;
/// let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
/// let document = std::fs::read("examples/session.json")?;
/// let stored = vault.add_document(document.clone(), &ExamineOptions::default())?;
/// let located = vault.locate(&stored.core.0.into())?;
/// assert_eq!(vault.read(&located)?, document);
/// # Ok(())
/// # }
/// ```
pub struct Vault {
    pub(super) storage: Box<dyn Storage>,
    /// The path of the file, if there is one.
    pub(super) path: PathBuf,
}

impl Vault {
    /// Opens the vault at `address`: a path, or `postgres://USER@HOST/DATABASE?schema=NAME` for one in a PostgreSQL
    /// database. `sqlite:` before a path makes it a path, whatever it begins with.
    ///
    /// # Errors
    /// Returns [`Missing`](crate::storage::ErrorKind::Missing) if there is no vault,
    /// [`Connection`](crate::storage::ErrorKind::Connection) if the server of a database cannot be reached or refuses the
    /// connection; otherwise the same as [`Store::open`](crate::storage::Store::open).
    pub fn open(address: &Path) -> Result<Self, StorageError> {
        storage::open(address, CreationPolicy::Never).map(Self::from_opened)
    }

    /// Opens the vault at `address`, or prepares one that is created there when the first artifact is stored. In a
    /// database or an empty file, it is created at once.
    ///
    /// # Errors
    /// Same as [`Vault::open`], except that the vault need not exist.
    pub fn create_when_needed(address: &Path) -> Result<Self, StorageError> {
        storage::open(address, CreationPolicy::WhenNeeded).map(Self::from_opened)
    }

    /// Opens the vault at `address` to copy another vault into it, and creates it if it does not exist. It may be an
    /// incomplete copy, which all other ways of opening it reject.
    ///
    /// # Errors
    /// Same as [`Vault::open_or_create`].
    pub fn open_for_copy(address: &Path) -> Result<Self, StorageError> {
        storage::open(address, CreationPolicy::ForCopy).map(Self::from_opened)
    }

    /// Returns the path of the file at `address`, or `None` if it is the address of a database.
    #[must_use]
    pub fn file_of(address: &Path) -> Option<&Path> {
        storage::file_of(address)
    }

    /// Returns `address` in the form in which it may be shown: without a password.
    #[must_use]
    pub fn shown_address(address: &Path) -> PathBuf {
        storage::shown_address(address)
    }

    /// Returns the directory beside the file of the vault at `address` with the calls of runs that are not finished, or `None`
    /// if it is the address of a database.
    #[must_use]
    pub fn recordings_beside(address: &Path) -> Option<PathBuf> {
        let mut name = Self::file_of(address)?.as_os_str().to_owned();
        name.push("-gateway");
        Some(PathBuf::from(name))
    }

    /// Returns whether the vault's file exists.
    #[must_use]
    pub fn is_created(&self) -> bool {
        self.storage.is_created()
    }

    /// Creates a vault at `address`. A database must exist; its schema is created if it does not.
    ///
    /// # Errors
    /// Returns [`Exists`](crate::storage::ErrorKind::Exists) if there is a vault; otherwise the same as [`Vault::open`].
    pub fn create(address: &Path) -> Result<Self, StorageError> {
        storage::open(address, CreationPolicy::New).map(Self::from_opened)
    }

    /// Creates an empty vault in memory, which is lost when it is dropped. Operations that need a file, such as SQL
    /// queries and backups, return an error of the kind [`ErrorKind::Unsupported`](crate::storage::ErrorKind::Unsupported).
    ///
    /// ```
    /// use runvault::Vault;
    /// use runvault::intake::ExamineOptions;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vault = Vault::in_memory();
    /// let document = std::fs::read("examples/session.json")?;
    /// let stored = vault.add_document(document.clone(), &ExamineOptions::default())?;
    /// assert_eq!(vault.get(&stored.core.0.into())?, document);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn in_memory() -> Self {
        Self { storage: Box::new(MemoryStorage::new()), path: PathBuf::new() }
    }

    /// Opens the vault at `address`, and creates it if it does not exist.
    ///
    /// # Errors
    /// Same as [`Vault::open`], except that the vault need not exist.
    pub fn open_or_create(address: &Path) -> Result<Self, StorageError> {
        storage::open(address, CreationPolicy::IfMissing).map(Self::from_opened)
    }

    /// Returns the same vault with `actor` as the author of all further journal entries.
    ///
    /// ```
    /// # use runvault::{Vault, storage::Actor};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("runs.vault");
    /// let vault = Vault::open_or_create(&path)?.acting_as(Actor::new("nightly build")?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn acting_as(self, actor: Actor) -> Self {
        let Self { mut storage, path } = self;
        storage.set_actor(actor);
        Self { storage, path }
    }

    /// Returns the path of the vault, or its address without a password; empty if it is in memory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the damage to the write-ahead log found when this vault was opened, or `None` if it contained everything
    /// that was committed. The changes in the damaged part are missing from the vault.
    #[must_use]
    pub fn log_damage(&self) -> Option<&LogDamage> {
        self.storage.log_damage()
    }

    /// Returns a snapshot of the vault, for several queries that must be consistent with each other.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StorageError> {
        self.storage.snapshot()
    }

    /// Returns the engine of this vault, for what no operation does.
    #[must_use]
    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Returns whether the engine of this vault can do what `capability` names. Operations that need it return an error of
    /// the kind [`Unsupported`](crate::storage::ErrorKind::Unsupported) otherwise.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        self.storage.has(capability)
    }

    /// Returns the time of the last journal entry, or `None` if the journal is empty.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn last_entry_at(&self) -> Result<Option<DateTime<Utc>>, StorageError> {
        self.snapshot()?.last_entry_at()
    }

    /// Sets the function that is called, on another thread, when this process has waited for 5 seconds for a server or for
    /// another writer, with what it waits for, such as `an answer of the server at postgresql://db/runs`. The text contains
    /// no password. Only the first call in a process has an effect.
    pub fn set_wait_observer(observer: impl Fn(&str) + Send + Sync + 'static) {
        storage::set_wait_observer(observer);
    }

    fn from_opened(opened: OpenedStorage) -> Self {
        Self { storage: opened.storage, path: opened.name }
    }
}

/// Returns the maximum number of items that a request asks for; unlimited if it states none.
pub(super) fn limit_of(limit: Option<u64>) -> usize {
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

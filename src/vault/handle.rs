//! The handle of a vault: opening, and what operations run on. Operations themselves are in files of their own.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::storage::memory::MemoryStorage;
use crate::storage::{Actor, LogDamage, Snapshot, Storage, StorageError, Store};

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
    /// Opens the vault at `path`.
    ///
    /// # Errors
    /// Returns [`Missing`](crate::storage::ErrorKind::Missing) if there is no vault; otherwise the same as [`Store::open`].
    pub fn open(path: &Path) -> Result<Self, StorageError> {
        Store::open(path).map(Self::from_file)
    }

    /// Opens the vault at `path`, or prepares one that is created there when the first artifact is stored.
    ///
    /// # Errors
    /// Same as [`Store::create_when_needed`].
    pub fn create_when_needed(path: &Path) -> Result<Self, StorageError> {
        Store::create_when_needed(path).map(Self::from_file)
    }

    /// Returns whether the vault's file exists.
    #[must_use]
    pub fn is_created(&self) -> bool {
        self.storage.is_created()
    }

    /// Creates a vault at `path`.
    ///
    /// # Errors
    /// Same as [`Store::create`].
    pub fn create(path: &Path) -> Result<Self, StorageError> {
        Store::create(path).map(Self::from_file)
    }

    /// Creates an empty vault in memory, which is lost when it is dropped. Operations that need a file, such as SQL
    /// queries, backups and the search index, return an error of the kind [`ErrorKind::Unsupported`].
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

    /// Opens the vault at `path`, and creates it if it does not exist.
    ///
    /// # Errors
    /// Same as [`Store::open_or_create`].
    pub fn open_or_create(path: &Path) -> Result<Self, StorageError> {
        Store::open_or_create(path).map(Self::from_file)
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

    /// Returns the path of the vault; empty if it is in memory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the damage to the write-ahead log found when this vault was opened, or `None` if it contained everything
    /// that was committed. [`Vault::repair`] recovers the remaining content of the log.
    #[must_use]
    pub fn log_damage(&self) -> Option<&LogDamage> {
        self.storage.maintenance().log_damage()
    }

    /// Returns a snapshot of the vault, for several queries that must be consistent with each other.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StorageError> {
        self.storage.snapshot()
    }

    /// Returns the time of the last journal entry, or `None` if the journal is empty.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn last_entry_at(&self) -> Result<Option<DateTime<Utc>>, StorageError> {
        self.snapshot()?.last_entry_at()
    }

    fn from_file(store: Store) -> Self {
        let path = store.path().to_owned();
        Self { storage: Box::new(store), path }
    }
}

//! The public API of a vault: kinds, store and queries behind one handle.

pub mod add;
pub mod annotate;
mod annotations;
pub mod answers;
pub mod api;
pub mod audit;
pub mod backup;
pub mod bundle;
pub mod captures;
pub mod days;
pub mod details;
pub mod diff;
pub mod digests;
pub mod erasure;
pub mod find;
pub mod forget;
pub mod forks;
pub mod forks_of;
pub mod fsck;
pub mod journal;
pub mod journal_check;
pub mod links;
pub mod list;
pub mod note;
mod openapi;
pub mod path;
pub mod pins;
pub mod query;
pub mod reclaim;
pub mod recordings;
mod removal;
pub mod remove;
pub mod replay;
pub mod resolve;
pub mod retention;
pub mod rules;
pub mod search;
pub mod show;
pub mod sql;
pub mod stats;
pub mod tags;
pub mod tombstones;
pub mod unresolved;
pub mod verify;
pub mod view;

pub use annotations::{PinnedArtifact, TaggedArtifact, tags};
pub use removal::{Referenced, RemoveError};
pub use search::CaughtUp;

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::artifact::{KeyRing, Kind};
use crate::clock;
use crate::digest::{CoreHash, Digest, DigestPrefix, PrefixResolution};
use crate::formats::{self, Session};
use crate::intake::{self, ExamineOptions, Inputs};
use crate::json::reader::Limits;
use crate::storage::check::Repair;
use crate::storage::memory::MemoryStorage;
use crate::storage::{
    self, Actor, ArtifactRecord, Capability, CaptureRecord, ErrorKind, LogDamage, Put, PutOptions,
    PutOutcome, RemovedPolicy, Snapshot, Storage, StorageError, Store, StoredMember, Tombstone, Upgrade,
};
use crate::validation::{Report, Violation};
use crate::vault::add::{Monitor, Summary};
use crate::vault::bundle::{Bundle, Imported};
use crate::vault::query::HashTarget;
use crate::vault::resolve::MentionedHash;
use crate::vault::sql::{Reader, SqlError};

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
    storage: Box<dyn Storage>,
    /// The path of the file, if there is one.
    path: PathBuf,
}

/// The result of a lookup: an artifact and one of its captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// The capture that the hash identifies, or the artifact's preferred one: the one of the lowest [`preference`](crate::storage::preference).
    pub capture: CaptureRecord,
}

/// The result of upgrading a vault.
#[derive(Debug)]
pub struct Upgraded {
    /// The changes to its file.
    pub upgrade: Upgrade,
    /// The report of rebuilding the derived data, if that was necessary.
    pub report: Option<fsck::Report>,
}

/// The reason that a lookup failed.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// No hash in the vault begins with the prefix.
    #[error("nothing in the vault has a hash that begins with {0}")]
    NotFound(DigestPrefix),
    /// The artifact or capture with this hash was removed.
    #[error("{0}")]
    Removed(Box<Tombstone>),
    /// No artifact has this tag.
    #[error("there is no tag {0} in the vault")]
    NoSuchTag(String),
    /// No artifact has this tag, and no run has this id.
    #[error("no tag or run in the vault has the name {0}")]
    NoSuchName(String),
    /// Several artifacts have this run id.
    #[error("{name} is ambiguous: {count} artifacts have this run id; give a hash")]
    AmbiguousName {
        /// The run id.
        name: String,
        /// The number of artifacts.
        count: u64,
        /// The first of them, newest first.
        candidates: Vec<ArtifactRecord>,
    },
    /// No artifact has a hash that begins with the prefix, but artifacts mention one.
    #[error("{:.12} is not the hash of an artifact, but {} it", .0.digest, resolve::mentioning(.0))]
    Mentioned(Box<MentionedHash>),
    /// No artifact has a hash that begins with the prefix, but artifacts mention several.
    #[error(
        "no artifact has a hash that begins with {prefix}, but artifacts mention {} hashes that do; give more digits",
        candidates.len()
    )]
    AmbiguousMention {
        /// The prefix.
        prefix: DigestPrefix,
        /// The mentioned hashes that begin with it, in order.
        candidates: Vec<Digest>,
    },
    /// The vault has too few artifacts.
    #[error("there is no latest~{back}: the vault has {count} artifact{}", if *count == 1 { "" } else { "s" })]
    LatestOutOfRange {
        /// The requested position, counted back from the latest artifact.
        back: u64,
        /// The number of artifacts.
        count: u64,
    },
    /// Several hashes begin with the prefix.
    #[error("{}", ambiguity(prefix, candidates))]
    Ambiguous {
        /// The prefix.
        prefix: DigestPrefix,
        /// The hashes that begin with it, in order.
        candidates: Vec<HashTarget>,
    },
    /// The artifact has no such capture.
    #[error("{core} has no capture whose hash begins with {capture}")]
    CaptureNotFound {
        /// The artifact.
        core: CoreHash,
        /// The prefix of the capture's hash.
        capture: DigestPrefix,
    },
    /// The artifact is not of the requested kind.
    #[error("{core} is {}, not {}", formats::noun(found), formats::noun(wanted))]
    KindMismatch {
        /// The artifact.
        core: CoreHash,
        /// The requested kind.
        wanted: &'static str,
        /// Its kind.
        found: String,
    },
    /// The artifact records no run.
    #[error(
        "{core} is {}, not a run; contracts are audited against run packs, traces or export packs",
        formats::noun(kind)
    )]
    NotARun {
        /// The artifact.
        core: CoreHash,
        /// Its kind.
        kind: String,
    },
    /// The artifact has several files, but one document was requested.
    #[error("{core} is {}, which has several files", formats::noun(kind))]
    SeveralMembers {
        /// The artifact.
        core: CoreHash,
        /// Its kind.
        kind: String,
    },
    /// The artifact itself records no responses.
    #[error("{core} is {}, which records no responses itself", formats::noun(kind))]
    NoRecording {
        /// The artifact.
        core: CoreHash,
        /// Its kind.
        kind: String,
    },
    /// The stored document is intact, but this program cannot interpret it.
    #[error("the document of {core} cannot be read by this version of runvault: {message}")]
    Unreadable {
        /// The artifact.
        core: CoreHash,
        /// The cause.
        message: String,
    },
    /// A store error: the vault cannot be read or written.
    #[error(transparent)]
    Store(#[from] StorageError),
}

/// The reason that a document was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// It violates rules.
    #[error("the document was rejected: {}", first_of(.0))]
    Rejected(Report),
    /// A store error: the vault cannot be read or written.
    #[error(transparent)]
    Store(#[from] StorageError),
}

/// Describes the ambiguity of `prefix`.
fn ambiguity(prefix: &DigestPrefix, candidates: &[HashTarget]) -> String {
    let count = candidates.len();
    if is_one_hash(candidates) {
        return format!(
            "{prefix} is ambiguous: {count} artifacts of different kinds have a capture with this hash; give the core hash \
             of one"
        );
    }
    format!("{prefix} is ambiguous: {count} hashes begin with it; give more digits")
}

/// Returns whether all `candidates` are captures with the same hash, and so with the same bytes.
fn is_one_hash(candidates: &[HashTarget]) -> bool {
    candidates.windows(2).all(|pair| match pair {
        [one, next] => one.digest() == next.digest(),
        _ => false,
    })
}

fn first_of(report: &Report) -> String {
    let Some(Violation { rule_id, path, message, .. }) = report.violations().first() else {
        return String::new();
    };
    format!(
        "{path}: {message} (rule {rule_id}); {} violations in total",
        report.violations().len() + report.omitted()
    )
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

    /// Upgrades the vault at `path` to the current schema: keeps a copy of it, migrates it, and rebuilds everything
    /// that is derived from the artifacts' bytes. A current vault is not changed. The upgrade can be interrupted at any
    /// time; the next call continues it.
    ///
    /// # Errors
    /// Same as [`Store::upgrade`].
    pub fn upgrade(path: &Path, monitor: &mut dyn fsck::Monitor) -> Result<Upgraded, StorageError> {
        let (store, upgrade) = Store::upgrade(path)?;
        let report = if upgrade.is_outdated {
            Some(fsck::reindex(&store, &KeyRing::default(), monitor)?)
        } else {
            None
        };
        Ok(Upgraded { upgrade, report })
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

    /// Adds one document. It is durable when this function returns. A continuation of a document in the vault is joined
    /// with that document and added as one.
    ///
    /// # Errors
    /// Returns [`AddError::Rejected`] with all violations, also if the artifact was removed before, and
    /// [`AddError::Store`] if the vault cannot be read or written.
    pub fn add_document(&self, document: Vec<u8>, options: &ExamineOptions) -> Result<Put, AddError> {
        let admitted = match intake::examine_document(document, "", options) {
            Ok(admitted) => admitted,
            Err(rejection) => add::joined(&*self.storage, rejection, options)?
                .map_err(|rejection| AddError::Rejected(rejection.report))?,
        };
        let policy = if options.allow_removed { RemovedPolicy::TakeBack } else { RemovedPolicy::Refuse };
        let prepared = self.storage.preparer()?.prepare(admitted);
        let options = PutOptions { policy, at: clock::now(), patience: storage::PATIENCE };
        let put = self.storage.put(&[&prepared], &options)?.pop();
        // One outcome for each artifact.
        let put = put.ok_or_else(|| StorageError::new(ErrorKind::Database, "the outcome is missing"))?;
        match &put.outcome {
            PutOutcome::Refused(tombstones) => Err(AddError::Rejected(add::removed(put.core, tombstones))),
            PutOutcome::KindConflict(conflict) => {
                Err(AddError::Rejected(add::conflicting(put.core, conflict)))
            }
            _ => Ok(put),
        }
    }

    /// Adds every artifact in `inputs`; an invalid one does not stop the others.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written. Everything already reported to the monitor is stored.
    pub fn add(
        &self,
        inputs: Inputs,
        options: &ExamineOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Summary, StorageError> {
        self.add_items(inputs, options, monitor)
    }

    /// Like [`Vault::add`], for items from another source, such as [`PollingWatcher`](intake::PollingWatcher).
    ///
    /// # Errors
    /// Same as [`Vault::add`].
    pub fn add_items(
        &self,
        items: impl Iterator<Item = add::Found> + Send,
        options: &ExamineOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Summary, StorageError> {
        add::add(&*self.storage, items, options, monitor)
    }

    /// Adds the contents of a bundle, verified like all other artifacts, and its manual links.
    ///
    /// ```
    /// # use runvault::{Vault, vault::bundle, vault::add::{Examined, Monitor}, intake::{ExamineOptions, SourceError}};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # struct Silent;
    /// # impl Monitor for Silent {
    /// #     fn examined(&mut self, _: &Examined) {}
    /// #     fn unreadable(&mut self, _: &SourceError) {}
    /// # }
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let snapshot = vault.snapshot()?;
    /// let mut packed = Vec::new();
    /// bundle::write(&*snapshot, &snapshot.all_artifacts(None)?, &mut packed)?;
    ///
    /// let other = Vault::open_or_create(&directory.path().join("other.vault"))?;
    /// let options = ExamineOptions::default();
    /// let bundle = bundle::read(packed.as_slice(), "runs.rvz", options.admit.limits.bytes)?;
    /// let imported = other.import(&bundle, &options, &mut Silent)?;
    /// assert_eq!(imported.summary.added, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written. Everything already reported to the monitor is stored.
    pub fn import(
        &self,
        bundle: &Bundle,
        options: &ExamineOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Imported, StorageError> {
        self.import_until(bundle, options, &|| false, monitor)
    }

    /// Imports like [`Vault::import`], until `is_stopped` returns true. It is called before each capture, by any thread.
    /// What was stored until then stays; importing the bundle again continues.
    ///
    /// # Errors
    /// Same as [`Vault::import`].
    pub fn import_until(
        &self,
        bundle: &Bundle,
        options: &ExamineOptions,
        is_stopped: &(dyn Fn() -> bool + Sync),
        monitor: &mut dyn Monitor,
    ) -> Result<Imported, StorageError> {
        bundle::add(&*self.storage, bundle, options, is_stopped, monitor)
    }

    /// Returns a snapshot of the vault, for several queries that must be consistent with each other.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StorageError> {
        self.storage.snapshot()
    }

    /// Returns an SQL reader of a snapshot of the vault. [`sql::views`] lists the available views.
    ///
    /// ```
    /// # use runvault::{Vault, artifact::Cell, intake::ExamineOptions};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let reader = vault.sql()?;
    /// let model = ("model", Cell::Text("triage-large-2".to_owned()));
    /// let mut responses = reader.prepare(
    ///     "SELECT i.response_content FROM sessions s JOIN interactions i USING (artifact)
    ///       WHERE s.model_id = :model AND i.i = 1",
    ///     &[model],
    /// )?;
    /// for row in responses.rows() {
    ///     assert_eq!(row?, [Cell::Text("bug".to_owned())]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn sql(&self) -> Result<Box<Reader<'_>>, SqlError> {
        self.storage.expect(Capability::Sql)?;
        sql::reader(self.storage.sql()?)
    }

    /// Checks the vault: the file, every stored byte, every artifact against the rules and the index, and the journal.
    ///
    /// # Errors
    /// Returns an error if the check could not run. Damage is a finding, not an error.
    pub fn fsck(
        &self,
        options: &fsck::Options,
        monitor: &mut dyn fsck::Monitor,
    ) -> Result<fsck::Report, StorageError> {
        self.storage.expect(Capability::Check)?;
        fsck::check(&*self.storage, options, monitor)
    }

    /// Repairs the findings of a check as far as that is unambiguous, with bytes from `from`: other vaults, and
    /// directories of files and archives. Signatures of artifacts that are added or indexed again are checked with
    /// `keys`. Returns the repairs made; run another check for what remains.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn repair(
        &self,
        report: &fsck::Report,
        from: &[PathBuf],
        keys: &KeyRing,
        monitor: &mut dyn fsck::Monitor,
    ) -> Result<Vec<Repair>, StorageError> {
        self.storage.expect(Capability::Repair)?;
        fsck::repair(&*self.storage, report, from, keys, monitor)
    }

    /// Rebuilds all indexes from the artifacts' bytes, and checks signatures with `keys`; earlier results of signatures
    /// for which there is no key are kept. An interrupted rebuild leaves a vault that answers correctly. The report
    /// lists the artifacts that would no longer be admitted; they are not changed.
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn reindex(
        &self,
        keys: &KeyRing,
        monitor: &mut dyn fsck::Monitor,
    ) -> Result<fsck::Report, StorageError> {
        self.storage.expect(Capability::Reindex)?;
        fsck::reindex(&*self.storage, keys, monitor)
    }

    /// Resolves `prefix` to an artifact by its core hash, or to a capture by its own hash.
    ///
    /// # Errors
    /// Returns [`LookupError::NotFound`], [`LookupError::Ambiguous`], [`LookupError::Removed`] if the artifact was
    /// removed, and [`LookupError::Store`] if the vault cannot be read.
    pub fn locate(&self, prefix: &DigestPrefix) -> Result<Located, LookupError> {
        locate(&*self.snapshot()?, prefix)
    }

    /// Like [`Vault::locate`], in an existing snapshot of this vault.
    ///
    /// # Errors
    /// Same as [`Vault::locate`].
    pub fn locate_in(&self, snapshot: &dyn Snapshot, prefix: &DigestPrefix) -> Result<Located, LookupError> {
        locate(snapshot, prefix)
    }

    /// Returns another capture of a located artifact.
    ///
    /// # Errors
    /// Returns [`LookupError::CaptureNotFound`] if no capture of the artifact has the prefix, [`LookupError::Ambiguous`]
    /// if several have it, and [`LookupError::Store`] if the vault cannot be read.
    pub fn capture_of(&self, located: &Located, prefix: &DigestPrefix) -> Result<Located, LookupError> {
        let snapshot = self.snapshot()?;
        snapshot.expect_artifact(located.artifact.core)?;
        let captures = snapshot.captures_of(located.artifact.core)?.into_iter();
        match captures.filter(|capture| prefix.matches(&capture.capture.0)).collect() {
            PrefixResolution::None => {
                Err(LookupError::CaptureNotFound { core: located.artifact.core, capture: *prefix })
            }
            PrefixResolution::One(capture) => Ok(Located { artifact: located.artifact.clone(), capture }),
            PrefixResolution::Ambiguous(captures) => {
                let target = |row: &CaptureRecord| HashTarget::Capture(located.artifact.core, row.capture);
                let candidates = captures.iter().map(target).collect();
                Err(LookupError::Ambiguous { prefix: *prefix, candidates })
            }
        }
    }

    /// Returns the exact bytes that `prefix` identifies, hashed again: those of a document's preferred capture, or of a
    /// capture. A full core hash is the fastest way to read them.
    ///
    /// # Errors
    /// Same as [`Vault::locate`] and [`Vault::read`].
    pub fn get(&self, prefix: &DigestPrefix) -> Result<Vec<u8>, LookupError> {
        match self.get_quickly(prefix)? {
            Some(bytes) => Ok(bytes),
            None => self.read(&self.locate_bytes(prefix)?),
        }
    }

    /// Like [`Vault::locate`], but resolves a hash shared by captures of several artifacts, which have the same bytes,
    /// to the capture with the smallest core hash.
    ///
    /// # Errors
    /// Same as [`Vault::locate`].
    pub fn locate_bytes(&self, prefix: &DigestPrefix) -> Result<Located, LookupError> {
        resolve::locate_bytes(&*self.snapshot()?, prefix)
    }

    /// Like [`Vault::get`], if `prefix` is the full core hash of a document whose captures have the same signature
    /// state. Otherwise, or if the document is missing or damaged, returns `None`; locate and read it for the reason.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn get_quickly(&self, prefix: &DigestPrefix) -> Result<Option<Vec<u8>>, StorageError> {
        prefix.whole().map_or(Ok(None), |digest| self.storage.document(CoreHash(digest)))
    }

    /// Returns the exact bytes of a capture of a document, hashed again.
    ///
    /// # Errors
    /// Returns [`LookupError::SeveralMembers`] if the artifact has several files, [`Damaged`](crate::storage::ErrorKind::Damaged) if the bytes
    /// are not those that were stored, and another [`StorageError`] if the vault cannot be read.
    pub fn read(&self, located: &Located) -> Result<Vec<u8>, LookupError> {
        document(&*self.snapshot()?, located)
    }

    /// Returns the files of a capture by name, hashed again.
    ///
    /// # Errors
    /// Returns [`Damaged`](crate::storage::ErrorKind::Damaged) if the bytes are not those that were stored, and another error if the vault
    /// cannot be read.
    pub fn members(&self, located: &Located) -> Result<Vec<StoredMember>, StorageError> {
        self.snapshot()?.read_members(located.artifact.core, located.capture.capture)
    }

    /// Returns the canonical bytes whose SHA-256 is the core hash.
    ///
    /// # Errors
    /// Same as [`Vault::read`]; also returns [`LookupError::Unreadable`] if the kind is not supported.
    pub fn read_core(&self, located: &Located) -> Result<Vec<u8>, LookupError> {
        core_of(&*self.snapshot()?, located)
    }

    /// Returns the recorded session with this `ModelIOHash` as typed data.
    ///
    /// ```
    /// # use runvault::{Vault, intake::ExamineOptions};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let hash = "sha256:4df877dec7f41a5df08a2e176ed2fd872cfdbda8ab3a83d6d5059a60c4df49f7".parse()?;
    /// let session = vault.session(hash)?;
    /// assert_eq!(session.interactions[1].response_content, "bug");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`LookupError::KindMismatch`] if the hash is not that of a session; otherwise the same as [`Vault::locate`]
    /// and [`Vault::read`].
    pub fn session(&self, model_io_hash: CoreHash) -> Result<Session, LookupError> {
        let located = self.locate(&model_io_hash.0.into())?;
        expect_kind(&located.artifact, formats::SESSIONS)?;
        let core = &located.artifact.core;
        let unreadable = |message: String| LookupError::Unreadable { core: *core, message };
        Session::read(&self.read(&located)?, &Limits::most())
            .map_err(|error| unreadable(error.to_string()))?
            .ok_or_else(|| unreadable("it is not a session".to_owned()))
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

/// The number of artifacts or journal entries that are read at a time.
const PAGE: usize = 1_000;

fn locate(snapshot: &dyn Snapshot, prefix: &DigestPrefix) -> Result<Located, LookupError> {
    let target = match query::resolve(snapshot, prefix)? {
        PrefixResolution::None => {
            let tombstone = snapshot.resolve(prefix, 1)?.tombstones.into_iter().next();
            let removed = tombstone.map(|tombstone| LookupError::Removed(Box::new(tombstone)));
            return Err(removed.unwrap_or(LookupError::NotFound(*prefix)));
        }
        PrefixResolution::Ambiguous(candidates) => {
            return Err(LookupError::Ambiguous { prefix: *prefix, candidates });
        }
        PrefixResolution::One(target) => target,
    };
    located(snapshot, target)?.ok_or(LookupError::NotFound(*prefix))
}

fn located(snapshot: &dyn Snapshot, target: HashTarget) -> Result<Option<Located>, LookupError> {
    let found = match target {
        HashTarget::Artifact(core) => match snapshot.artifact(core)? {
            Some(artifact) => snapshot.preferred_capture(core)?.zip(Some(artifact)),
            None => None,
        },
        HashTarget::Capture(core, capture) => match snapshot.capture(core, capture)? {
            Some(capture) => Some((capture, snapshot.expect_artifact(core)?)),
            None => None,
        },
    };
    Ok(found.map(|(capture, artifact)| Located { artifact, capture }))
}

/// Returns the exact bytes of a capture of a document, hashed again.
fn document(snapshot: &dyn Snapshot, located: &Located) -> Result<Vec<u8>, LookupError> {
    let ArtifactRecord { core, kind, .. } = &located.artifact;
    let several = LookupError::SeveralMembers { core: *core, kind: kind.clone() };
    if formats::named(kind).is_some_and(Kind::is_of_directories) {
        return Err(several);
    }
    let mut members = snapshot.read_members(*core, located.capture.capture)?;
    match (members.pop(), members.is_empty()) {
        (Some(only), true) => Ok(only.bytes),
        _ => Err(several),
    }
}

/// Returns the canonical bytes whose SHA-256 is the core hash of a located artifact.
fn core_of(snapshot: &dyn Snapshot, located: &Located) -> Result<Vec<u8>, LookupError> {
    let ArtifactRecord { core, kind, .. } = &located.artifact;
    let unreadable = |message: String| LookupError::Unreadable { core: *core, message };
    let members = snapshot.read_members(*core, located.capture.capture)?;
    let kind = formats::named(kind).ok_or_else(|| unreadable(format!("it does not know the kind {kind}")))?;
    let mut text = Vec::new();
    kind.write_core(&StoredMember::borrowed(&members), &Limits::most(), &mut text)
        .map_err(|error| unreadable(error.to_string()))?;
    match Digest::from_content(&text) {
        digest if digest == core.0 => Ok(text),
        other => Err(unreadable(format!("its core has the hash {other}"))),
    }
}

fn expect_kind(artifact: &ArtifactRecord, wanted: Kind) -> Result<(), LookupError> {
    if artifact.kind == wanted.name() {
        return Ok(());
    }
    let (core, found) = (artifact.core, artifact.kind.clone());
    Err(LookupError::KindMismatch { core, wanted: wanted.name(), found })
}

//! A vault as its users see it: kinds, store and queries behind one handle.

mod audit;
mod recordings;
mod removal;
mod search;
mod verification;

pub use removal::{Forgetting, Referenced, Removal, RemoveError, RemoveOptions};
pub use search::CaughtUp;

use std::path::{Path, PathBuf};

use crate::artifact::{KeyRing, Kind};
use crate::bundle::{self, Bundle, Imported};
use crate::canonical::reader::Limits;
use crate::clock;
use crate::digest::{CaptureHash, CoreHash, Digest, DigestPrefix, PrefixResolution};
use crate::fsck;
use crate::ingest::{self, Monitor, Summary};
use crate::kinds::{self, model_io};
use crate::query::{self, Extension, Graph, HashTarget, Hit, Link, Query, Walk};
use crate::source::{self, ExamineOptions, Inputs};
use crate::sql::{self, Reader, SqlError};
use crate::store::check::JournalInspection;
use crate::store::{
    Actor, ArtifactRow, Backup, BackupError, BackupOptions, BackupProgress, CaptureRow, JournalCheck,
    LogDamage, Mended, NoteRow, PinRow, Put, PutOutcome, RemovedPolicy, RoleCount, Snapshot, Stats, Store,
    StoreError, StoredMember, TagRow, TimeBasis, Tombstone, Upgrade,
};
use crate::verify::{Report, Violation};

pub use recordings::Wanted;
pub use verification::CheckedCapture;

/// One archive.
///
/// ```
/// use runvault::Vault;
/// use runvault::source::ExamineOptions;
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
    store: Store,
}

/// An artifact that was looked for, and the byte form of it that was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The artifact.
    pub artifact: ArtifactRow,
    /// The capture that the hash stands for, or the one that stands for the artifact:
    /// [`Snapshot::preferred_capture`].
    pub capture: CaptureRow,
}

/// All that a vault knows of an artifact.
#[derive(Clone, Debug)]
pub struct Description {
    /// The artifact.
    pub artifact: ArtifactRow,
    /// Its attributes, sorted by name and value.
    pub attributes: Vec<(String, String)>,
    /// How many digests it mentions, by role.
    pub mentions: Vec<RoleCount>,
    /// Its captures in the order in which they were added.
    pub captures: Vec<CaptureRow>,
    /// The one that stands for it: [`Snapshot::preferred_capture`].
    pub preferred: CaptureHash,
    /// Its links.
    pub links: Vec<Link>,
    /// The longest artifacts that extend it.
    pub extended_by: Vec<Extension>,
    /// Its tags, by name.
    pub tags: Vec<TagRow>,
    /// Its note, if it has one.
    pub note: Option<NoteRow>,
    /// Its pin, if it has one.
    pub pin: Option<PinRow>,
}

/// What upgrading a vault did.
#[derive(Debug)]
pub struct Upgraded {
    /// What was done to its file.
    pub upgrade: Upgrade,
    /// What deriving everything again reports, if that was needed.
    pub report: Option<fsck::Report>,
}

/// Why something could not be looked up.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// Nothing in the vault begins with the prefix.
    #[error("nothing in the vault has a hash that begins with {0}")]
    NotFound(DigestPrefix),
    /// What the hash stood for was removed.
    #[error("{0}")]
    Removed(Box<Tombstone>),
    /// Nothing has this tag.
    #[error("nothing in the vault is tagged {0}")]
    NoSuchTag(String),
    /// There are not so many artifacts.
    #[error("there is no latest~{back}: the vault has {count} artifact{}", if *count == 1 { "" } else { "s" })]
    NotSoMany {
        /// How many before the latest.
        back: u64,
        /// How many there are.
        count: u64,
    },
    /// Several things do.
    #[error("{}", ambiguity(prefix, candidates))]
    Ambiguous {
        /// The prefix.
        prefix: DigestPrefix,
        /// What begins with it, by hash.
        candidates: Vec<HashTarget>,
    },
    /// The artifact has no such capture.
    #[error("{core} has no capture whose hash begins with {capture}")]
    NotItsCapture {
        /// The artifact.
        core: CoreHash,
        /// The prefix of the capture's hash.
        capture: DigestPrefix,
    },
    /// The artifact is of another kind than asked for.
    #[error("{core} is not a {wanted}, it is a {found}")]
    OtherKind {
        /// The artifact.
        core: CoreHash,
        /// The kind asked for.
        wanted: &'static str,
        /// Its kind.
        found: String,
    },
    /// The artifact records no run.
    #[error("{core} is a {kind}, not a run; a contract is audited against a run pack, a trace or a pack")]
    NotARun {
        /// The artifact.
        core: CoreHash,
        /// Its kind.
        kind: String,
    },
    /// The artifact has several files, and one document was asked for.
    #[error("{core} is a {kind}, which has several files")]
    SeveralMembers {
        /// The artifact.
        core: CoreHash,
        /// Its kind.
        kind: String,
    },
    /// The artifact records no responses itself.
    #[error("{core} is a {kind}, which records no responses itself")]
    NoRecording {
        /// The artifact.
        core: CoreHash,
        /// Its kind.
        kind: String,
    },
    /// The stored document cannot be understood by this program, though its bytes are intact.
    #[error("the document of {core} cannot be read by this runvault: {message}")]
    Unreadable {
        /// The artifact.
        core: CoreHash,
        /// The cause.
        message: String,
    },
    /// What the store says.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a document was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// It breaks rules.
    #[error("the document was rejected: {}", first_of(.0))]
    Rejected(Report),
    /// What the store says.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is ambiguous about `prefix`.
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

/// Whether all `candidates` are captures with one hash, and so with the same bytes.
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
        "{path}: {message} (rule {rule_id}); {} violations in all",
        report.violations().len() + report.omitted()
    )
}

impl Vault {
    /// Opens the vault at `path`.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is none; otherwise as [`Store::open`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Store::open(path).map(|store| Self { store })
    }

    /// The vault that will be at `path` as soon as an artifact is stored in it, or the one that is there.
    ///
    /// # Errors
    /// As [`Store::create_when_needed`].
    pub fn create_when_needed(path: &Path) -> Result<Self, StoreError> {
        Store::create_when_needed(path).map(|store| Self { store })
    }

    /// Whether the vault's file was created, or was there.
    #[must_use]
    pub fn is_created(&self) -> bool {
        self.store.is_created()
    }

    /// Creates a vault at `path`.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        Store::create(path).map(|store| Self { store })
    }

    /// Makes the vault at `path`, which an older version of this program wrote, one that this version can use: gives it the
    /// current schema, after a copy of it was kept, and derives everything that artifacts are found by from their bytes.
    /// A vault that is current stays as it is. Interrupting this does no harm; it goes on where it ended.
    ///
    /// # Errors
    /// As [`Store::upgrade`].
    pub fn upgrade(path: &Path, monitor: &mut dyn fsck::Monitor) -> Result<Upgraded, StoreError> {
        let (store, upgrade) = Store::upgrade(path)?;
        let report = if upgrade.is_outdated {
            Some(fsck::reindex(&store, &KeyRing::default(), monitor)?)
        } else {
            None
        };
        Ok(Upgraded { upgrade, report })
    }

    /// Opens the vault at `path`, and creates it if there is none.
    ///
    /// # Errors
    /// As [`Store::open_or_create`].
    pub fn open_or_create(path: &Path) -> Result<Self, StoreError> {
        Store::open_or_create(path).map(|store| Self { store })
    }

    /// The same vault, where the journal says of everything that is done from now on that `actor` did it.
    ///
    /// ```
    /// # use runvault::{Vault, store::Actor};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("runs.vault");
    /// let vault = Vault::open_or_create(&path)?.acting_as(Actor::new("nightly build")?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn acting_as(self, actor: Actor) -> Self {
        Self { store: self.store.acting_as(actor) }
    }

    /// Where the vault is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// What was wrong with the write-ahead log when this vault was opened; nothing if it had all that was committed.
    /// [`Vault::repair`] takes what the log still has.
    #[must_use]
    pub fn log_damage(&self) -> Option<&LogDamage> {
        self.store.log_damage()
    }

    /// The copies of damaged write-ahead logs beside the vault, those included that a repair is done with. They have what was
    /// removed from the vault since.
    ///
    /// # Errors
    /// Returns an error if the directory of the vault cannot be read.
    pub fn log_copies(&self) -> Result<Vec<PathBuf>, StoreError> {
        self.store.log_copies()
    }

    /// Adds one document. When this returns, it is on the disk. One that is the rest of a document in the vault is added
    /// together with that, as one.
    ///
    /// # Errors
    /// [`AddError::Rejected`] with all violations, also if it was removed before; or what the store says.
    pub fn add_document(&self, document: Vec<u8>, options: &ExamineOptions) -> Result<Put, AddError> {
        let admitted = match source::examine_document(document, "", options) {
            Ok(admitted) => admitted,
            Err(rejection) => ingest::joined(&self.store, rejection, options)?
                .map_err(|rejection| AddError::Rejected(rejection.report))?,
        };
        let policy = if options.allow_removed { RemovedPolicy::TakeBack } else { RemovedPolicy::Refuse };
        let preparer = self.store.preparer()?.with_policy(policy);
        let put = self.store.put_one(&preparer.prepare(admitted), &preparer, clock::now())?;
        match &put.outcome {
            PutOutcome::Refused(tombstones) => Err(AddError::Rejected(ingest::removed(put.core, tombstones))),
            _ => Ok(put),
        }
    }

    /// Adds everything in `inputs` that is an artifact; bad ones do not stop the others.
    ///
    /// # Errors
    /// What the store says. Everything that the monitor was told of before is in the vault.
    pub fn add(
        &self,
        inputs: Inputs,
        options: &ExamineOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Summary, StoreError> {
        self.add_items(inputs, options, monitor)
    }

    /// The same for what somebody else found, such as [`Settling`](source::Settling).
    ///
    /// # Errors
    /// As [`Vault::add`].
    pub fn add_items(
        &self,
        items: impl Iterator<Item = ingest::Found> + Send,
        options: &ExamineOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Summary, StoreError> {
        ingest::add(&self.store, items, options, monitor)
    }

    /// Adds everything in a bundle, verified like anything that is added, and states its links.
    ///
    /// ```
    /// # use runvault::{Vault, bundle, ingest::{Examined, Monitor}, source::{ExamineOptions, SourceError}};
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
    /// bundle::write(&snapshot, &snapshot.artifacts(None)?, &mut packed)?;
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
    /// What the store says. Everything that the monitor was told of before is in the vault.
    pub fn import(
        &self,
        bundle: &Bundle,
        options: &ExamineOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Imported, StoreError> {
        bundle::add(&self.store, bundle, options, monitor)
    }

    /// Copies the vault, as it is now, to the file `path`, and checks the copy. Others may read and write meanwhile.
    ///
    /// ```
    /// # use runvault::{Vault, source::ExamineOptions, store::BackupOptions};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let path = directory.path().join("copy.vault");
    /// let backup = vault.backup(&path, &BackupOptions::default(), &mut |_| {})?;
    /// assert_eq!((backup.artifacts, backup.journal.seq), (1, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Store::backup`].
    pub fn backup(
        &self,
        path: &Path,
        options: &BackupOptions,
        watch: &mut dyn FnMut(BackupProgress),
    ) -> Result<Backup, BackupError> {
        self.store.backup(path, options, watch)
    }

    /// The vault as it is now, for several questions that must have consistent answers.
    ///
    /// # Errors
    /// What the store says.
    pub fn snapshot(&self) -> Result<Snapshot<'_>, StoreError> {
        self.store.snapshot()
    }

    /// The vault as it is now, for questions in SQL. [`sql::views`] tells what there is to ask for.
    ///
    /// ```
    /// # use runvault::{Vault, artifact::Cell, source::ExamineOptions};
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
    /// What the store says.
    pub fn sql(&self) -> Result<Reader<'_>, SqlError> {
        sql::reader(&self.store)
    }

    /// Checks the vault: the file, every stored byte, every artifact against the rules and the index, and the journal.
    ///
    /// # Errors
    /// If nobody could look. What is damaged is a finding, not an error.
    pub fn fsck(
        &self,
        options: &fsck::Options,
        monitor: &mut dyn fsck::Monitor,
    ) -> Result<fsck::Report, StoreError> {
        fsck::check(&self.store, options, monitor)
    }

    /// Mends what a check found, as far as that needs no guessing, with bytes from `from`: other vaults, and directories
    /// of files and archives. Signatures of what is added or indexed again are checked with `keys`. Gives what was done. What
    /// is left is what another check finds.
    ///
    /// # Errors
    /// What the store says.
    pub fn repair(
        &self,
        report: &fsck::Report,
        from: &[PathBuf],
        keys: &KeyRing,
        monitor: &mut dyn fsck::Monitor,
    ) -> Result<Vec<Mended>, StoreError> {
        fsck::repair(&self.store, report, from, keys, monitor)
    }

    /// Makes everything that artifacts are found by anew from their bytes, and checks signatures with `keys`; what an earlier
    /// check gave of those that no key is for stays as it is. Whoever interrupts it leaves a vault that
    /// answers right. The report has what would not be admitted any more; that stays as it was.
    ///
    /// # Errors
    /// What the store says.
    pub fn reindex(
        &self,
        keys: &KeyRing,
        monitor: &mut dyn fsck::Monitor,
    ) -> Result<fsck::Report, StoreError> {
        fsck::reindex(&self.store, keys, monitor)
    }

    /// What `prefix` stands for: an artifact by its core hash, or a capture by its own.
    ///
    /// # Errors
    /// [`LookupError::NotFound`], [`LookupError::Ambiguous`], or what the store says.
    pub fn locate(&self, prefix: &DigestPrefix) -> Result<Located, LookupError> {
        locate(&self.snapshot()?, prefix)
    }

    /// The artifact with this tag, and its preferred capture.
    ///
    /// # Errors
    /// [`LookupError::NoSuchTag`], or what the store says.
    pub fn tagged(&self, name: &str) -> Result<Located, LookupError> {
        let artifact = self.snapshot()?.tagged(name)?;
        let artifact = artifact.ok_or_else(|| LookupError::NoSuchTag(name.to_owned()))?;
        self.locate(&artifact.core.0.into())
    }

    /// The artifact that arrived last, and its preferred capture; or the one that arrived so many before that one.
    ///
    /// ```
    /// # use runvault::{Vault, source::ExamineOptions};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// let options = ExamineOptions::default();
    /// let session = vault.add_document(std::fs::read("examples/session.json")?, &options)?;
    /// let run = vault.add_document(std::fs::read("examples/run.rpk")?, &options)?;
    /// assert_eq!(vault.latest(0)?.artifact.core, run.core);
    /// assert_eq!(vault.latest(1)?.artifact.core, session.core);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`LookupError::NotSoMany`], or what the store says.
    pub fn latest(&self, back: u64) -> Result<Located, LookupError> {
        let snapshot = self.snapshot()?;
        let Some(artifact) = snapshot.latest(back)? else {
            return Err(LookupError::NotSoMany { back, count: snapshot.artifact_count()? });
        };
        locate(&snapshot, &artifact.core.0.into())
    }

    /// How much the vault has, of what, and how it grew by one of the times of artifacts. Reads no document.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn stats(&self, by: TimeBasis) -> Result<Stats, StoreError> {
        self.snapshot()?.stats(by)
    }

    /// Whether the journal is what it was: computes its chain anew, and looks for the entry whose chain value is `since`,
    /// such as a head that was written down elsewhere.
    ///
    /// # Errors
    /// What the store says.
    pub fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck, StoreError> {
        self.snapshot()?.check_journal(since)
    }

    /// The same, and compares what the vault has of artifacts, captures, tags, notes, pins, stated links and tombstones
    /// with the journal, in both directions. No stored bytes are read.
    ///
    /// # Errors
    /// If nobody could look. What is damaged is a finding, not an error.
    pub fn check_catalog(&self, since: Option<Digest>) -> Result<JournalInspection, StoreError> {
        self.store.inspect()?.journal(since)
    }

    /// The same in a snapshot of this vault that was taken before.
    ///
    /// # Errors
    /// As [`Vault::locate`].
    pub fn locate_in(&self, snapshot: &Snapshot<'_>, prefix: &DigestPrefix) -> Result<Located, LookupError> {
        locate(snapshot, prefix)
    }

    /// Another capture of what was located.
    ///
    /// # Errors
    /// [`LookupError::NotItsCapture`], [`LookupError::Ambiguous`], or what the store says.
    pub fn capture_of(&self, located: &Located, prefix: &DigestPrefix) -> Result<Located, LookupError> {
        let captures = self.snapshot()?.captures(located.artifact.id)?.into_iter();
        match captures.filter(|capture| prefix.matches(&capture.capture.0)).collect() {
            PrefixResolution::None => {
                Err(LookupError::NotItsCapture { core: located.artifact.core, capture: *prefix })
            }
            PrefixResolution::One(capture) => Ok(Located { artifact: located.artifact.clone(), capture }),
            PrefixResolution::Ambiguous(captures) => {
                let target = |row: &CaptureRow| HashTarget::Capture(located.artifact.core, row.capture);
                let candidates = captures.iter().map(target).collect();
                Err(LookupError::Ambiguous { prefix: *prefix, candidates })
            }
        }
    }

    /// The exact bytes of what `prefix` stands for, hashed again: of the preferred capture of a document, or of a capture.
    /// With a whole core hash this is the shortest way to them.
    ///
    /// # Errors
    /// As [`Vault::locate`] and [`Vault::read`].
    pub fn get(&self, prefix: &DigestPrefix) -> Result<Vec<u8>, LookupError> {
        match self.get_quickly(prefix)? {
            Some(bytes) => Ok(bytes),
            None => self.read(&self.locate_bytes(prefix)?),
        }
    }

    /// As [`Vault::locate`], but the hash of captures of several artifacts, which have the same bytes, stands for the one with
    /// the smallest core hash.
    ///
    /// # Errors
    /// As [`Vault::locate`].
    pub fn locate_bytes(&self, prefix: &DigestPrefix) -> Result<Located, LookupError> {
        let snapshot = self.snapshot()?;
        match locate(&snapshot, prefix) {
            Err(LookupError::Ambiguous { candidates, .. }) if is_one_hash(&candidates) => {
                let first = candidates.first().copied().ok_or(LookupError::NotFound(*prefix))?;
                located(&snapshot, first)?.ok_or(LookupError::NotFound(*prefix))
            }
            outcome => outcome,
        }
    }

    /// The same if `prefix` is the whole core hash of a document whose captures do not differ in what is known of their
    /// signatures. If not, or if the document is not there or damaged, nothing: locating and reading it says what it is.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn get_quickly(&self, prefix: &DigestPrefix) -> Result<Option<Vec<u8>>, StoreError> {
        prefix.whole().map_or(Ok(None), |digest| self.store.document(CoreHash(digest)))
    }

    /// The exact bytes of a capture of one document, hashed again.
    ///
    /// # Errors
    /// [`LookupError::SeveralMembers`] if it is a directory, [`StoreError::Damaged`] if the bytes are not those that were
    /// stored, or what the store says.
    pub fn read(&self, located: &Located) -> Result<Vec<u8>, LookupError> {
        let ArtifactRow { core, kind, .. } = &located.artifact;
        let several = LookupError::SeveralMembers { core: *core, kind: kind.clone() };
        if kinds::named(kind).is_some_and(Kind::is_of_directories) {
            return Err(several);
        }
        let mut members = self.members(located)?;
        match (members.pop(), members.is_empty()) {
            (Some(only), true) => Ok(only.bytes),
            _ => Err(several),
        }
    }

    /// The files of a capture in the order of their names, hashed again.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the bytes are not those that were stored, or what the store says.
    pub fn members(&self, located: &Located) -> Result<Vec<StoredMember>, StoreError> {
        self.snapshot()?.members(located.artifact.core, located.capture.capture)
    }

    /// The canonical bytes whose SHA-256 is the core hash.
    ///
    /// # Errors
    /// As [`Vault::read`]; [`LookupError::Unreadable`] if this program does not know the kind.
    pub fn read_core(&self, located: &Located) -> Result<Vec<u8>, LookupError> {
        core_of(&self.snapshot()?, located)
    }

    /// The recorded session with this `ModelIOHash`, as typed data.
    ///
    /// ```
    /// # use runvault::{Vault, source::ExamineOptions};
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
    /// [`LookupError::OtherKind`] if the hash is that of something else, and as [`Vault::locate`] and [`Vault::read`].
    pub fn session(&self, model_io_hash: CoreHash) -> Result<model_io::Session, LookupError> {
        let located = self.locate(&model_io_hash.0.into())?;
        expect_kind(&located.artifact, Kind::of::<model_io::ModelIo>())?;
        let core = &located.artifact.core;
        let unreadable = |message: String| LookupError::Unreadable { core: *core, message };
        model_io::Session::read(&self.read(&located)?, &Limits::most())
            .map_err(|error| unreadable(error.to_string()))?
            .ok_or_else(|| unreadable("it is no session".to_owned()))
    }

    /// The artifacts that match `query`.
    ///
    /// ```
    /// # use runvault::{Vault, digest::Digest, query::{Filter, Query}, source::ExamineOptions};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let prompt = Digest::of(b"Summarise ticket 4711 in one sentence.");
    /// let asked = Filter::Mention { group: Some("prompt"), digest: prompt };
    /// let hits = vault.find(&Query { filters: vec![asked], ..Query::default() })?;
    /// assert_eq!(hits.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the store says.
    pub fn find(&self, query: &Query) -> Result<Vec<Hit>, StoreError> {
        query::find(&self.snapshot()?, query)
    }

    /// The links of an artifact in both directions.
    ///
    /// # Errors
    /// What the store says.
    pub fn links(&self, artifact: &ArtifactRow) -> Result<Vec<Link>, StoreError> {
        query::links(&self.snapshot()?, artifact)
    }

    /// Everything that is linked to an artifact within the reach of `walk`.
    ///
    /// # Errors
    /// What the store says.
    pub fn walk(&self, artifact: &ArtifactRow, walk: &Walk) -> Result<Graph, StoreError> {
        query::walk(&self.snapshot()?, artifact, walk)
    }

    /// What an artifact says at its interaction, step or record `index`, as it is written there; nothing if its kind has
    /// no such parts.
    ///
    /// # Errors
    /// As [`Vault::read`].
    pub fn quote(&self, artifact: &ArtifactRow, index: usize) -> Result<Option<String>, LookupError> {
        let Some(kind) = kinds::named(&artifact.kind) else { return Ok(None) };
        let document = self.read(&self.locate(&artifact.core.0.into())?)?;
        Ok(kind.quote(&document, index))
    }

    /// All that the vault knows of what `prefix` stands for.
    ///
    /// # Errors
    /// As [`Vault::locate`].
    pub fn describe(&self, prefix: &DigestPrefix) -> Result<Description, LookupError> {
        let snapshot = self.snapshot()?;
        let artifact = locate(&snapshot, prefix)?.artifact;
        let preferred =
            snapshot.preferred_capture(artifact.id)?.ok_or(LookupError::NotFound(*prefix))?.capture;
        let links = query::links(&snapshot, &artifact)?;
        Ok(Description {
            extended_by: match kinds::named(&artifact.kind).and_then(Kind::versions) {
                Some(versions) => query::longest_extensions(&snapshot, &artifact, &links, versions)?,
                None => Vec::new(),
            },
            attributes: snapshot.attributes(artifact.id)?,
            mentions: snapshot.role_counts(artifact.id)?,
            captures: snapshot.captures(artifact.id)?,
            preferred,
            links,
            tags: snapshot.tags(Some(artifact.id))?,
            note: snapshot.note_of(artifact.id)?,
            pin: snapshot.pin_of(artifact.id)?,
            artifact,
        })
    }
}

fn locate(snapshot: &Snapshot<'_>, prefix: &DigestPrefix) -> Result<Located, LookupError> {
    let target = match query::resolve(snapshot, prefix)? {
        PrefixResolution::None => {
            let tombstone = snapshot.tombstones(prefix)?.into_iter().next();
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

fn located(snapshot: &Snapshot<'_>, target: HashTarget) -> Result<Option<Located>, LookupError> {
    let found = match target {
        HashTarget::Artifact(core) => match snapshot.artifact(core)? {
            Some(artifact) => snapshot.preferred_capture(artifact.id)?.zip(Some(artifact)),
            None => None,
        },
        HashTarget::Capture(core, capture) => match snapshot.capture(core, capture)? {
            Some(capture) => Some((capture.clone(), snapshot.artifact_by_id(capture.artifact)?)),
            None => None,
        },
    };
    Ok(found.map(|(capture, artifact)| Located { artifact, capture }))
}

/// The canonical bytes whose SHA-256 is the core hash of what was located.
fn core_of(snapshot: &Snapshot<'_>, located: &Located) -> Result<Vec<u8>, LookupError> {
    let ArtifactRow { core, kind, .. } = &located.artifact;
    let unreadable = |message: String| LookupError::Unreadable { core: *core, message };
    let members = snapshot.members(*core, located.capture.capture)?;
    let kind = kinds::named(kind).ok_or_else(|| unreadable(format!("it does not know the kind {kind}")))?;
    let mut text = Vec::new();
    kind.write_core(&StoredMember::borrowed(&members), &Limits::most(), &mut text)
        .map_err(|error| unreadable(error.to_string()))?;
    match Digest::of(&text) {
        digest if digest == core.0 => Ok(text),
        other => Err(unreadable(format!("its core has the hash {other}"))),
    }
}

fn expect_kind(artifact: &ArtifactRow, wanted: Kind) -> Result<(), LookupError> {
    if artifact.kind == wanted.name() {
        return Ok(());
    }
    let (core, found) = (artifact.core, artifact.kind.clone());
    Err(LookupError::OtherKind { core, wanted: wanted.name(), found })
}

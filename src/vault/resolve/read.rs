//! Reading of located artifacts, hashed again.

use super::error::LookupError;
use super::lookup::{LocatedCapture, locate, locate_bytes};
use crate::artifact::{Admitted, Kind, Member, parse_manifest};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest, DigestPrefix};
use crate::formats::{self, Session};
use crate::storage::check::JournalReplay;
use crate::storage::{
    ArtifactRecord, Capability, CaptureTarget, Snapshot, StorageError, StoredMember, preference,
};
use crate::vault::{Vault, fsck};

/// Intact bytes that were found by their hash, although the catalog of the vault is damaged or does not name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredFiles {
    /// The artifact that they were proven to be, and its kind. `None` if the bytes themselves have the hash, and no
    /// artifact is known to consist of them.
    pub artifact: Option<(CoreHash, Kind)>,
    /// The files. The only one of a document has no name.
    pub files: Vec<StoredMember>,
}

/// The hashes by which bytes are requested.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestedHashes<'p> {
    /// The hash of the artifact or of a capture, or a prefix of it; `None` if it is requested by another name.
    pub artifact: Option<&'p DigestPrefix>,
    /// The hash of one of its captures, if that is requested.
    pub capture: Option<&'p DigestPrefix>,
    /// Whether the canonical core is requested.
    pub is_core: bool,
}

impl Vault {
    /// Finds intact bytes by a full hash without trusting the catalog: those of the artifact with this core hash, of a
    /// capture, or of any file. What is found was hashed, and an artifact was verified again. Returns `None` if there are
    /// none, if what had the hash was removed, and if the engine of this vault cannot be checked.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn recover(&self, digest: Digest) -> Result<Option<RecoveredFiles>, StorageError> {
        if !self.has(Capability::Check) || self.was_removed(digest)? {
            return Ok(None);
        }
        let inspection = self.storage.inspect()?;
        let catalog = inspection.recorded_with(digest)?;
        let recorded = catalog.captures_with(digest).into_iter();
        let mut recorded: Vec<_> = recorded.map(|(target, kind)| (target, Some(kind))).collect();
        // A seal says which artifact a capture belongs to if the journal does not.
        for capture in inspection.sealed(CoreHash(digest))? {
            let target = CaptureTarget { capture, artifact: CoreHash(digest) };
            if !recorded.iter().any(|(known, _)| *known == target) {
                recorded.push((target, None));
            }
        }
        let is_core = recorded.iter().any(|(target, _)| target.artifact.0 == digest);
        if is_core {
            // A core hash stands for the preferred capture, and for no other byte form if that is damaged.
            recorded.retain(|(target, _)| target.artifact.0 == digest);
            if recorded.len() > 1 {
                // States of signatures are proven by the chain only.
                let replay = inspection.replay(None, &mut Vec::new())?.filter(JournalReplay::is_proven);
                let signature = |target| replay.as_ref().and_then(|replay| replay.catalog.signature(target));
                recorded.sort_by_key(|(target, _)| preference(signature(*target).as_ref()));
                recorded.truncate(1);
            }
        }
        for (target, kind) in recorded {
            if let Some(admitted) = fsck::admit_target(&*inspection, target, kind)? {
                return Ok(Some(RecoveredFiles::from_admitted(&admitted)));
            }
        }
        if is_core {
            return Ok(None);
        }
        let Some(bytes) = inspection.bytes_of(BlobHash(digest))? else { return Ok(None) };
        if parse_manifest(&bytes).is_none() {
            let files = vec![StoredMember { name: String::new(), bytes }];
            return Ok(Some(RecoveredFiles { artifact: None, files }));
        }
        // The bytes are those of a manifest, which stands for the directory.
        let directory = fsck::admit_directory(&*inspection, CaptureHash(digest))?;
        Ok(directory.as_ref().map(RecoveredFiles::from_admitted))
    }

    /// Returns `found`, or if that is an error, what `take` makes of intact bytes that have a hash by which they were
    /// requested, although the catalog does not lead to them.
    ///
    /// # Errors
    /// Returns the error of `found` if there are none, and another one if the vault cannot be read.
    pub fn or_recovered<T>(
        &self,
        found: Result<T, LookupError>,
        requested: &RequestedHashes<'_>,
        take: impl FnOnce(RecoveredFiles) -> Option<T>,
    ) -> Result<T, LookupError> {
        match found {
            Err(error) if may_be_recovered(&error) => {
                self.recover_requested(requested)?.and_then(take).ok_or(error)
            }
            found => found,
        }
    }

    /// Finds intact bytes by the full hashes by which they were requested, as [`Vault::recover`] does.
    ///
    /// # Errors
    /// Same as [`Vault::recover`].
    pub fn recover_requested(
        &self,
        requested: &RequestedHashes<'_>,
    ) -> Result<Option<RecoveredFiles>, StorageError> {
        let whole = |prefix: Option<&DigestPrefix>| prefix.and_then(DigestPrefix::whole);
        if let (Some(core), Some(capture)) = (whole(requested.artifact), whole(requested.capture)) {
            let target = CaptureTarget { capture: CaptureHash(capture), artifact: CoreHash(core) };
            return self.recover_capture(target);
        }
        let Some(digest) = whole(requested.capture.or(requested.artifact)) else { return Ok(None) };
        let recovered = self.recover(digest)?;
        let is_of = |core: CoreHash| requested.artifact.is_some_and(|prefix| prefix.matches(&core.0));
        // A capture hash does not say which artifact is meant if several have the same bytes.
        let needs_core = requested.is_core || requested.capture.is_some();
        Ok(recovered
            .filter(|recovered| !needs_core || recovered.artifact.is_some_and(|(core, _)| is_of(core))))
    }

    /// Finds the intact bytes of a capture, which prove that it is one of the artifact.
    fn recover_capture(&self, target: CaptureTarget) -> Result<Option<RecoveredFiles>, StorageError> {
        let is_removed = self.was_removed(target.artifact.0)? || self.was_removed(target.capture.0)?;
        if is_removed || !self.has(Capability::Check) {
            return Ok(None);
        }
        let inspection = self.storage.inspect()?;
        let admitted = fsck::admit_target(&*inspection, target, None)?;
        Ok(admitted.as_ref().map(RecoveredFiles::from_admitted))
    }

    fn was_removed(&self, digest: Digest) -> Result<bool, StorageError> {
        match self.snapshot().and_then(|snapshot| snapshot.resolve(&DigestPrefix::from(digest), 1)) {
            Err(error) if error.is_of_damage() => Ok(false),
            resolved => resolved.map(|found| !found.tombstones.is_empty()),
        }
    }
}

impl RecoveredFiles {
    fn from_admitted(admitted: &Admitted) -> Self {
        let is_directory = admitted.kind().is_of_directories();
        let file = |member: &Member| StoredMember {
            name: if is_directory { member.name().to_owned() } else { String::new() },
            bytes: member.bytes().to_vec(),
        };
        let files = admitted.members().iter().map(file).collect();
        Self { artifact: Some((admitted.core(), admitted.kind())), files }
    }

    /// Returns the bytes of the only file.
    #[must_use]
    pub fn into_document(mut self) -> Option<Vec<u8>> {
        let is_directory = self.artifact.is_some_and(|(_, kind)| kind.is_of_directories());
        let only = self.files.pop().filter(|_| !is_directory && self.files.is_empty())?;
        Some(only.bytes)
    }

    /// Returns the bytes of the file `name`.
    #[must_use]
    pub fn into_member(self, name: &str) -> Option<Vec<u8>> {
        self.files.into_iter().find(|file| file.name == name).map(|file| file.bytes)
    }

    /// Returns the canonical bytes whose SHA-256 is the core hash of the artifact; `None` if it is not known.
    #[must_use]
    pub fn core(&self) -> Option<Vec<u8>> {
        let (core, kind) = self.artifact?;
        let mut text = Vec::new();
        kind.write_core(&StoredMember::borrowed(&self.files), &mut text).ok()?;
        (Digest::from_content(&text) == core.0).then_some(text)
    }
}

/// Returns whether bytes that cannot be looked up or read for this reason may be found without the catalog.
fn may_be_recovered(error: &LookupError) -> bool {
    match error {
        LookupError::Removed(_) => false,
        LookupError::Store(error) => !error.is_transient(),
        _ => true,
    }
}

impl Vault {
    /// Returns the exact bytes that `prefix` identifies, hashed again: those of a document's preferred capture, or of a
    /// capture. A full core hash is the fastest way to read them. With a full hash, bytes that the catalog does not lead to
    /// are also found, as by [`Vault::recover`].
    ///
    /// # Errors
    /// Same as [`Vault::locate`] and [`Vault::read`].
    pub fn get(&self, prefix: &DigestPrefix) -> Result<Vec<u8>, LookupError> {
        if let Some(bytes) = self.get_quickly(prefix)? {
            return Ok(bytes);
        }
        let found = || {
            let snapshot = self.snapshot()?;
            document(&*snapshot, &locate_bytes(&*snapshot, prefix)?)
        };
        let requested = RequestedHashes { artifact: Some(prefix), ..RequestedHashes::default() };
        self.or_recovered(found(), &requested, RecoveredFiles::into_document)
    }

    /// Like [`Vault::get`], if `prefix` is the full core hash of a document whose captures have the same signature
    /// state. Otherwise, or if the document is missing or damaged, returns `None`; locate and read it for the reason.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn get_quickly(&self, prefix: &DigestPrefix) -> Result<Option<Vec<u8>>, StorageError> {
        match prefix.whole().map(|digest| self.storage.document(CoreHash(digest))) {
            None => Ok(None),
            Some(Err(error)) if error.is_of_damage() => Ok(None),
            Some(document) => document,
        }
    }

    /// Returns the exact bytes of a capture of a document, hashed again.
    ///
    /// # Errors
    /// Returns [`LookupError::SeveralMembers`] if the artifact has several files, [`Damaged`](crate::storage::ErrorKind::Damaged) if the bytes
    /// are not those that were stored, and another [`StorageError`] if the vault cannot be read.
    pub fn read(&self, located: &LocatedCapture) -> Result<Vec<u8>, LookupError> {
        document(&*self.snapshot()?, located)
    }

    /// Returns the files of a capture by name, hashed again.
    ///
    /// # Errors
    /// Returns [`Damaged`](crate::storage::ErrorKind::Damaged) if the bytes are not those that were stored, and another error if the vault
    /// cannot be read.
    pub fn members(&self, located: &LocatedCapture) -> Result<Vec<StoredMember>, StorageError> {
        self.snapshot()?.read_members(located.artifact.core, located.capture.capture)
    }

    /// Returns the canonical bytes whose SHA-256 is the core hash.
    ///
    /// # Errors
    /// Same as [`Vault::read`]; also returns [`LookupError::Unreadable`] if the kind is not supported.
    pub fn read_core(&self, located: &LocatedCapture) -> Result<Vec<u8>, LookupError> {
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
        let snapshot = self.snapshot()?;
        let located = locate(&*snapshot, &model_io_hash.0.into())?;
        expect_kind(&located.artifact, formats::SESSIONS)?;
        let core = &located.artifact.core;
        let unreadable = |message: String| LookupError::Unreadable { core: *core, message };
        Session::read(&document(&*snapshot, &located)?)
            .map_err(|error| unreadable(error.to_string()))?
            .ok_or_else(|| unreadable("it is not a session".to_owned()))
    }
}

/// Returns the exact bytes of a capture of a document, hashed again.
pub(in crate::vault) fn document(
    snapshot: &dyn Snapshot,
    located: &LocatedCapture,
) -> Result<Vec<u8>, LookupError> {
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
pub(in crate::vault) fn core_of(
    snapshot: &dyn Snapshot,
    located: &LocatedCapture,
) -> Result<Vec<u8>, LookupError> {
    let ArtifactRecord { core, kind, .. } = &located.artifact;
    let members = snapshot.read_members(*core, located.capture.capture)?;
    let unknown =
        || LookupError::Unreadable { core: *core, message: format!("it does not know the kind {kind}") };
    core_of_members(*core, formats::named(kind).ok_or_else(unknown)?, &members)
}

/// Returns the canonical bytes whose SHA-256 is the core hash of an artifact with these files.
pub(in crate::vault) fn core_of_members(
    core: CoreHash,
    kind: Kind,
    members: &[StoredMember],
) -> Result<Vec<u8>, LookupError> {
    let unreadable = |message: String| LookupError::Unreadable { core, message };
    let mut text = Vec::new();
    kind.write_core(&StoredMember::borrowed(members), &mut text)
        .map_err(|error| unreadable(error.to_string()))?;
    match Digest::from_content(&text) {
        digest if digest == core.0 => Ok(text),
        other => Err(unreadable(format!("its core has the hash {other}"))),
    }
}

/// Returns an error unless the artifact is of the kind `expected`.
pub(in crate::vault) fn expect_kind(artifact: &ArtifactRecord, expected: Kind) -> Result<(), LookupError> {
    if artifact.kind == expected.name() {
        return Ok(());
    }
    let (core, found) = (artifact.core, artifact.kind.clone());
    Err(LookupError::KindMismatch { core, expected: expected.name(), found })
}

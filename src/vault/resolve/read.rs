//! Reading of located artifacts, hashed again.

use super::error::LookupError;
use super::locate::{LocatedCapture, locate, locate_bytes};
use super::recover::{RecoveredFiles, RequestedHashes};
use crate::artifact::Kind;
use crate::digest::{CoreHash, Digest, DigestPrefix};
use crate::formats::{self, Session};
use crate::json::reader::Limits;
use crate::storage::{ArtifactRecord, Snapshot, StorageError, StoredMember};
use crate::vault::handle::Vault;

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
        Session::read(&document(&*snapshot, &located)?, &Limits::most())
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

/// Returns an error unless the artifact is of the kind `expected`.
pub(in crate::vault) fn expect_kind(artifact: &ArtifactRecord, expected: Kind) -> Result<(), LookupError> {
    if artifact.kind == expected.name() {
        return Ok(());
    }
    let (core, found) = (artifact.core, artifact.kind.clone());
    Err(LookupError::KindMismatch { core, expected: expected.name(), found })
}

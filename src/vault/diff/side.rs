//! The artifacts that are compared.

use crate::artifact::{Admitted, Kind, Part};
use crate::digest::{CaptureHash, CoreHash};
use crate::formats;
use crate::json::reader::Limits;
use crate::storage::{ErrorKind, Snapshot, StorageError, StoredMember};
use crate::vault::handle::Vault;
use crate::vault::resolve::LookupError;

/// An artifact with its files, stored or not.
#[derive(Debug)]
pub struct Side {
    name: String,
    name_bytes: Option<String>,
    kind: Kind,
    core: CoreHash,
    capture: Option<CaptureHash>,
    members: Vec<StoredMember>,
}

impl Side {
    /// Reads a capture of a stored artifact, or its preferred one.
    ///
    /// # Errors
    /// Returns [`LookupError::Unreadable`] if the kind is not supported, and [`LookupError::Store`] if the bytes cannot be
    /// read: of the kind [`Gone`](ErrorKind::Gone) if the artifact or the capture is not in the vault.
    pub fn stored(
        vault: &Vault,
        artifact: CoreHash,
        capture: Option<CaptureHash>,
    ) -> Result<Self, LookupError> {
        Self::read(&*vault.snapshot()?, artifact, capture)
    }

    /// Returns an artifact that is not stored.
    #[must_use]
    pub fn admitted(admitted: &Admitted) -> Self {
        let members = admitted.members().iter();
        let members = members
            .map(|member| StoredMember { name: member.name().to_owned(), bytes: member.bytes().to_vec() });
        let (kind, core) = (admitted.kind(), admitted.core());
        Self {
            name: core.to_string(),
            name_bytes: None,
            kind,
            core,
            capture: None,
            members: members.collect(),
        }
    }

    pub(super) fn read(
        snapshot: &dyn Snapshot,
        core: CoreHash,
        capture: Option<CaptureHash>,
    ) -> Result<Self, LookupError> {
        let artifact = snapshot.expect_artifact(core)?;
        let kind = formats::named(&artifact.kind).ok_or_else(|| LookupError::Unreadable {
            core,
            message: format!("it does not know the kind {}", artifact.kind),
        })?;
        let record = match capture {
            Some(capture) => snapshot.capture(core, capture)?,
            None => snapshot.preferred_capture(core)?,
        };
        let missing = || match capture {
            Some(capture) => StorageError::new(ErrorKind::Gone, format!("{core} has no capture {capture}")),
            None => StorageError::gone(core),
        };
        let capture = record.ok_or_else(missing)?.capture;
        let members = snapshot.read_members(core, capture)?;
        let name = core.to_string();
        Ok(Self { name, name_bytes: None, kind, core, capture: Some(capture), members })
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the core hash.
    #[must_use]
    pub fn core(&self) -> CoreHash {
        self.core
    }

    /// Returns the hash of the capture; `None` if it is not stored.
    #[must_use]
    pub fn capture(&self) -> Option<CaptureHash> {
        self.capture
    }

    /// Returns the artifact with this name in answers, and the bytes of the name if it is a path that is not UTF-8. By
    /// default, the name is the core hash.
    #[must_use]
    pub fn named(self, name: String, name_bytes: Option<String>) -> Self {
        Self { name, name_bytes, ..self }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn name_bytes(&self) -> Option<&str> {
        self.name_bytes.as_deref()
    }

    /// Returns the parts. The artifact was within the limits when it was admitted.
    pub(super) fn parts(&self) -> Result<Vec<Part<'_>>, LookupError> {
        let limits =
            Limits { bytes: u64::MAX, depth: Limits::MAX_DEPTH, values: usize::MAX, entries: usize::MAX };
        self.kind
            .parts(&StoredMember::borrowed(&self.members), &limits)
            .map_err(|error| LookupError::Unreadable { core: self.core, message: error.to_string() })
    }
}

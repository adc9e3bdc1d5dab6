use super::{Completeness, Draft, Kind, Signature};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::verify::Report;

/// A named file of an artifact, as it was received.
#[derive(Debug)]
pub struct Member {
    name: &'static str,
    blob: BlobHash,
    bytes: Vec<u8>,
}

impl Member {
    pub(super) fn new(name: &'static str, bytes: Vec<u8>) -> Self {
        Self { name, blob: BlobHash(Digest::of(&bytes)), bytes }
    }

    /// Its name within the artifact.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name
    }

    /// The digest of its bytes.
    #[must_use]
    pub fn blob(&self) -> BlobHash {
        self.blob
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A verified artifact: proof that no rule of severity error is broken. Only [`Kind::admit`] and
/// [`Kind::admit_directory`] make one.
#[derive(Debug)]
pub struct Admitted {
    pub(super) kind: Kind,
    pub(super) capture: CaptureHash,
    pub(super) members: Vec<Member>,
    pub(super) draft: Draft,
    pub(super) report: Report,
}

impl Admitted {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its core hash: which artifact it is.
    #[must_use]
    pub fn core(&self) -> CoreHash {
        self.draft.core
    }

    /// Its capture hash: which byte form of the artifact it is.
    #[must_use]
    pub fn capture(&self) -> CaptureHash {
        self.capture
    }

    /// Its files.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The size of its files in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.members.iter().map(|member| member.bytes.len() as u64).sum()
    }

    /// What it can be found by. Mentions, attributes and names are sorted, each listed once.
    #[must_use]
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Whether the file that it was read from may still grow.
    #[must_use]
    pub fn completeness(&self) -> Completeness {
        self.draft.completeness
    }

    /// The artifacts that are part of it.
    #[must_use]
    pub fn embedded(&self) -> &[Admitted] {
        &self.draft.embedded
    }

    /// Parts with the artifacts that are part of it.
    #[must_use]
    pub fn take_embedded(&mut self) -> Vec<Admitted> {
        std::mem::take(&mut self.draft.embedded)
    }

    /// What is known of its signature; nothing if it has none.
    #[must_use]
    pub fn signature(&self) -> Option<&Signature> {
        self.draft.signature.as_ref()
    }

    /// Its warnings.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl AsRef<Admitted> for Admitted {
    fn as_ref(&self) -> &Admitted {
        self
    }
}

//! The files of artifacts.

use crate::digest::{BlobHash, Digest};

/// A named file of an artifact.
#[derive(Clone, Copy, Debug)]
pub struct MemberBytes<'m> {
    /// Its name within the artifact.
    pub name: &'m str,
    /// Its bytes.
    pub bytes: &'m [u8],
}

impl<'m> MemberBytes<'m> {
    /// Returns the bytes of the only one of `members`; none if there are several.
    #[must_use]
    pub fn only(members: &[Self]) -> &'m [u8] {
        if let [only] = members { only.bytes } else { &[] }
    }
}

/// A named file of an artifact, as it was received.
#[derive(Debug)]
pub struct Member {
    name: &'static str,
    blob: BlobHash,
    bytes: Vec<u8>,
}

impl Member {
    pub(super) fn new(name: &'static str, bytes: Vec<u8>) -> Self {
        let blob = BlobHash(Digest::from_content(&bytes));
        Self::hashed(name, bytes, blob)
    }

    /// Creates the member whose digest was already computed from its bytes.
    pub(super) fn hashed(name: &'static str, bytes: Vec<u8>, blob: BlobHash) -> Self {
        Self { name, blob, bytes }
    }

    /// Its name within the artifact.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name
    }

    /// Returns the digest of its bytes.
    #[must_use]
    pub fn blob(&self) -> BlobHash {
        self.blob
    }

    /// Returns its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

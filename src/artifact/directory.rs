use std::collections::BTreeMap;

use crate::digest::{BlobHash, CaptureHash, Digest};
use crate::json::canonical::rfc8785;

/// A function that returns the beginning of a file in a directory by its name, or no bytes if it cannot be read.
pub type HeadReader<'p> = dyn FnMut(&str) -> Vec<u8> + 'p;

/// The contents of a directory or archive, one level deep.
#[derive(Debug, Default)]
pub struct Directory {
    /// The entries. In an archive, several entries may have the same name.
    pub entries: Vec<DirectoryEntry>,
}

/// An entry of a directory.
#[derive(Debug)]
pub struct DirectoryEntry {
    /// Its name. Names in archives are untrusted.
    pub name: String,
    /// Its type and content.
    pub content: EntryContent,
}

/// The type and content of a directory entry.
#[derive(Debug)]
pub enum EntryContent {
    /// A file with a member name, and its bytes.
    File(Vec<u8>),
    /// A file with another name. It was not opened.
    Unexpected,
    /// A link. It was not followed.
    Link,
    /// A directory, device or pipe. It was not opened.
    Other,
}

impl DirectoryEntry {
    /// Returns the bytes of a file that was read.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.content {
            EntryContent::File(bytes) => Some(bytes),
            EntryContent::Unexpected | EntryContent::Link | EntryContent::Other => None,
        }
    }
}

impl Directory {
    /// Returns the entry with this name, the first if there are several.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&DirectoryEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

/// Returns the hash of one byte form of a directory: the digest of the RFC 8785 text of an object that maps each file
/// name to the digest of the file.
pub(super) fn capture_hash<'m>(files: impl Iterator<Item = (&'m str, BlobHash)>) -> CaptureHash {
    let digests: BTreeMap<&str, BlobHash> = files.collect();
    let texts = digests.into_iter().map(|(name, digest)| (name, digest.to_string()));
    CaptureHash(Digest::from_content(&rfc8785::object_of_texts(texts)))
}

/// Returns whether `capture` is the capture hash of an artifact with these files, given by name and blob hash: the
/// digest of the only file of a document, or that of a directory.
#[must_use]
pub fn is_capture_of(capture: CaptureHash, files: &[(&str, BlobHash)]) -> bool {
    let is_document = matches!(files, [(_, only)] if only.0 == capture.0);
    is_document || capture_hash(files.iter().copied()) == capture
}

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

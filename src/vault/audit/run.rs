//! The audited run, and the documents that it refers to.

use crate::artifact::{Kind, MemberBytes, MentionedContent};
use crate::digest::Digest;
use crate::json::reader::ReadError;

/// A run to be audited.
#[derive(Clone, Copy, Debug)]
pub struct AuditedRun<'r> {
    /// Its kind.
    pub kind: Kind,
    /// Its files.
    pub members: &'r [MemberBytes<'r>],
    /// The digests that identify its files, by name. A file can have several.
    pub digests: &'r [(String, Digest)],
    /// The digests that it states of contents outside it.
    pub declared_digests: &'r [DeclaredDigest],
}

/// A digest that a run states of a content outside it, such as a state.
#[derive(Clone, Debug)]
pub struct DeclaredDigest {
    /// The digest.
    pub digest: Digest,
    /// Its location as text, such as `record 6`.
    pub place: String,
    /// The content.
    pub content: MentionedContent,
}

/// Bytes from the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedContent {
    /// Their description.
    pub name: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The reason that a run could not be audited.
#[derive(Debug, thiserror::Error)]
pub enum AuditError<E> {
    /// A file of the run is intact, but this program cannot interpret it.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The bytes could not be read from the vault.
    #[error("bytes cannot be read from the vault")]
    Vault(#[source] E),
}

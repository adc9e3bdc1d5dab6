//! The content of a payload, as it is before compression and after decompression.

use std::borrow::Cow;

use super::compress::{self, FrameDependency};
use super::digest_stripping::{self, StrippedText};
use super::error::PayloadDefect;
use crate::digest::{BlobHash, Digest};

/// The content of a payload: text, and the digests that were stripped from it.
#[derive(Default, PartialEq, Eq)]
pub(super) struct PayloadContent {
    pub(super) text: Vec<u8>,
    pub(super) digests: Vec<u8>,
}

impl PayloadContent {
    /// Creates the content of bytes that are not stored yet. Returns `None` if they cannot be stripped and are not
    /// UTF-8.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        match digest_stripping::strip(bytes) {
            Some(stripped) => Some(stripped.into()),
            None if std::str::from_utf8(bytes).is_ok() => {
                Some(Self { text: bytes.to_vec(), digests: Vec::new() })
            }
            None => None,
        }
    }

    /// Returns the bytes of `blob`, up to `limit`, after checking their hash.
    pub(super) fn bytes(
        &self,
        blob: BlobHash,
        limit: usize,
        is_cut: bool,
    ) -> Result<Cow<'_, [u8]>, PayloadDefect> {
        let bytes = if is_cut {
            let digests = as_digests(&self.digests);
            let bytes = digests.and_then(|digests| digest_stripping::restore(&self.text, &digests, limit));
            Cow::Owned(bytes.ok_or_else(|| defect(blob, "its digests do not match its text"))?)
        } else {
            Cow::Borrowed(self.text.as_slice())
        };
        let actual = BlobHash(Digest::from_content(&bytes));
        if actual == blob { Ok(bytes) } else { Err(PayloadDefect::Hash { blob, actual }) }
    }

    /// Returns the stripped digests.
    pub(super) fn digests(&self) -> impl Iterator<Item = Digest> {
        let (digests, _) = self.digests.as_chunks::<32>();
        digests.iter().map(|bytes| Digest::from_bytes(*bytes))
    }

    /// Returns the deltas of `digests` and `text` against this content, if they can be decompressed again.
    pub(super) fn delta(&self, digests: &[u8], text: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let make = |ours: &[u8], theirs: &[u8]| {
            let frame = compress::difference(ours, theirs)?;
            let again = compress::decompress(&frame, FrameDependency::Base(theirs), ours.len()).ok()?;
            (again == ours).then_some(frame)
        };
        Some((make(digests, &self.digests)?, make(text, &self.text)?))
    }
}

impl From<StrippedText> for PayloadContent {
    fn from(StrippedText { text, digests }: StrippedText) -> Self {
        Self { text, digests: as_bytes(&digests) }
    }
}

/// Concatenates digests.
pub(super) fn as_bytes(digests: &[Digest]) -> Vec<u8> {
    digests.iter().flat_map(Digest::as_bytes).copied().collect()
}

/// Splits concatenated digests; returns `None` if bytes are left over.
pub(super) fn as_digests(bytes: &[u8]) -> Option<Vec<Digest>> {
    let (digests, rest) = bytes.as_chunks::<32>();
    rest.is_empty().then(|| digests.iter().map(|bytes| Digest::from_bytes(*bytes)).collect())
}

/// Returns the error that a payload cannot be decoded.
pub(super) fn defect(blob: BlobHash, message: &str) -> PayloadDefect {
    PayloadDefect::Compression { blob, message: message.to_owned() }
}

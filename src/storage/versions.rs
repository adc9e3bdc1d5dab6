//! Versions of documents that grow: of a document that is added as it grows, only the longest version takes room.

use crate::artifact::{Admitted, Attribute};
use crate::digest::{BlobHash, Digest};

/// Number of artifacts of a run, the newest ones, among which the version is looked for that a document begins with.
pub(super) const NEWEST: i64 = 16;

/// A document that is stored whole.
pub(super) struct StoredVersion<T> {
    pub(super) size: u64,
    pub(super) blob: BlobHash,
    /// By what the engine knows it.
    pub(super) key: T,
}

/// Returns the attribute that all versions of a document have with the same value, if documents of its kind grow.
pub(super) fn run_attribute(admitted: &Admitted) -> Option<&Attribute> {
    let versions = admitted.kind().info().versions.filter(|_| admitted.manifest().is_none())?;
    admitted.draft().attributes.iter().find(|attribute| attribute.name == versions.attribute)
}

/// Returns the longest of `stored` that is shorter than `document` and with whose bytes it begins.
pub(super) fn longest_beginning<T>(document: &[u8], mut stored: Vec<StoredVersion<T>>) -> Option<T> {
    stored.sort_by_key(|version| std::cmp::Reverse(version.size));
    let begins = |version: &StoredVersion<T>| {
        let size = usize::try_from(version.size).ok().filter(|size| *size < document.len());
        let beginning = size.and_then(|size| document.get(..size));
        beginning.is_some_and(|beginning| Digest::from_content(beginning) == version.blob.0)
    };
    stored.into_iter().find(begins).map(|version| version.key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_version_that_a_document_begins_with_is_found() {
        let stored = |texts: &[&str]| -> Vec<StoredVersion<usize>> {
            let version = |(key, text): (usize, &&str)| StoredVersion {
                size: text.len() as u64,
                blob: BlobHash(Digest::from_content(text.as_bytes())),
                key,
            };
            texts.iter().enumerate().map(version).collect()
        };
        let longest = |texts: &[&str]| longest_beginning(b"one\ntwo\nthree\n", stored(texts));
        assert_eq!(longest(&["one\n", "one\ntwo\n", "one\nother\n"]), Some(1));
        assert_eq!(longest(&["two\n", "one\ntwo\nthree\n", "one\ntwo\nthree\nfour\n"]), None);
        assert_eq!(longest(&[]), None);
    }
}

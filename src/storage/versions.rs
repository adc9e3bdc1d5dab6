//! Versions of documents that grow: of a document that is added as it grows, only the longest version takes room.

use crate::artifact::{Admitted, Attribute};
use crate::digest::{BlobHash, Digest};

/// Number of artifacts of a run, the newest ones, among which other versions of a document are looked for.
pub(super) const NEWEST: i64 = 16;

/// Number of longer versions that are read to find one that begins with a document. Usually there is one; a transcript that was
/// rewritten is another.
const MOST_READ: usize = 2;

/// A document that is stored whole.
pub(super) struct StoredVersion<T> {
    pub(super) size: u64,
    pub(super) blob: BlobHash,
    /// By what the engine knows it.
    pub(super) key: T,
}

/// The documents of a run that are stored whole, the longest first.
pub(super) struct StoredVersions<T>(Vec<StoredVersion<T>>);

/// Returns the attribute that all versions of a document have with the same value, if documents of its kind grow.
pub(super) fn run_attribute(admitted: &Admitted) -> Option<&Attribute> {
    let versions = admitted.kind().info().versions.filter(|_| admitted.manifest().is_none())?;
    admitted.draft().attributes.iter().find(|attribute| attribute.name == versions.attribute)
}

impl<T: Copy> StoredVersions<T> {
    pub(super) fn new(mut versions: Vec<StoredVersion<T>>) -> Self {
        versions.sort_by_key(|version| std::cmp::Reverse(version.size));
        Self(versions)
    }

    /// Returns the longest one that is shorter than `document` and with whose bytes it begins.
    pub(super) fn longest_beginning(&self, document: &[u8]) -> Option<T> {
        let begins = |version: &&StoredVersion<T>| {
            let size = usize::try_from(version.size).ok().filter(|size| *size < document.len());
            let beginning = size.and_then(|size| document.get(..size));
            beginning.is_some_and(|beginning| Digest::from_content(beginning) == version.blob.0)
        };
        self.0.iter().find(begins).map(|version| version.key)
    }

    /// Returns those that are longer than `document` and may begin with it, which only their bytes tell.
    pub(super) fn longer(&self, document: &[u8]) -> impl Iterator<Item = T> {
        let size = document.len() as u64;
        self.0
            .iter()
            .take_while(move |version| version.size > size)
            .take(MOST_READ)
            .map(|version| version.key)
    }
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
        let document = b"one\ntwo\nthree\n";
        let longest = |texts: &[&str]| StoredVersions::new(stored(texts)).longest_beginning(document);
        assert_eq!(longest(&["one\n", "one\ntwo\n", "one\nother\n"]), Some(1));
        assert_eq!(longest(&["two\n", "one\ntwo\nthree\n", "one\ntwo\nthree\nfour\n"]), None);
        assert_eq!(longest(&[]), None);
        let longer = |texts: &[&str]| StoredVersions::new(stored(texts)).longer(document).collect::<Vec<_>>();
        let texts = ["one\ntwo\nthree\n", "one\n", "one\ntwo\nthree\nfour\n", "one\ntwo\nthree\n4\n"];
        assert_eq!(longer(&texts), [2, 3]);
        assert_eq!(longer(&texts[..2]), [0; 0]);
    }
}

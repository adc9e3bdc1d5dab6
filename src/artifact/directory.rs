use std::collections::BTreeMap;

use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::json::Value;
use crate::json::canonical::rfc8785;
use crate::json::reader::{self, Limits};

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

/// Returns the manifest of one byte form of a directory: the RFC 8785 text of an object that maps each file name to the
/// digest of the file. Its digest is the capture hash, and the capture is stored as this text and the files.
#[must_use]
pub fn manifest_of<'m>(files: impl IntoIterator<Item = (&'m str, BlobHash)>) -> Vec<u8> {
    let digests: BTreeMap<&str, BlobHash> = files.into_iter().collect();
    rfc8785::object_of_texts(digests.into_iter().map(|(name, digest)| (name, digest.to_string())))
}

/// Returns the names and blob hashes of the files in a manifest, sorted by name. Returns `None` for every text that
/// [`manifest_of`] does not return for files with valid names.
#[must_use]
pub fn parse_manifest(text: &[u8]) -> Option<Vec<(String, BlobHash)>> {
    // Few documents begin and end like one, so that most are not parsed for this.
    let (_, last) = text.split_last_chunk::<LAST_FILE>()?;
    last.starts_with(FILE).then_some(())?;
    let names = text.strip_prefix(b"{\"")?;
    let (name, first) = names.split_at_checked(names.windows(2).position(|two| two == b"\":")? + 1)?;
    (first.starts_with(FILE) || name.contains(&b'\\')).then_some(())?;
    let value = reader::read(text, &Limits::most()).ok()?;
    let file = |(name, digest): (&str, &Value<'_>)| {
        let digest = digest.as_str()?.parse().ok()?;
        is_file_name(name).then(|| (name.to_owned(), BlobHash(digest)))
    };
    let mut files = value.as_object()?.iter().map(file).collect::<Option<Vec<_>>>()?;
    files.sort_unstable();
    let is_canonical = manifest_of(files.iter().map(|(name, digest)| (name.as_str(), *digest))) == text;
    (is_canonical && !files.is_empty()).then_some(files)
}

/// What follows the names in a manifest.
const FILE: &[u8] = b":\"sha256:";

/// The length of the end of a manifest, after the name of the last file.
const LAST_FILE: usize = ":\"sha256:\"}".len() + 64;

/// Returns whether `bytes`, which are recorded as a document of an artifact, are the manifest of a directory, which is never
/// returned as a document. An artifact of any bytes can have those of a manifest; then they have its core hash.
#[must_use]
pub fn is_manifest(core: CoreHash, bytes: &[u8]) -> bool {
    parse_manifest(bytes).is_some() && Digest::from_content(bytes) != core.0
}

/// Returns whether a file in a directory can have this name.
fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0'])
}

/// Returns whether `capture` is the capture hash of an artifact with these files, given by name and blob hash: the
/// digest of the only file of a document, or that of the manifest of a directory.
#[must_use]
pub fn is_capture_of(capture: CaptureHash, files: &[(&str, BlobHash)]) -> bool {
    let is_document = matches!(files, [(_, only)] if only.0 == capture.0);
    is_document || Digest::from_content(&manifest_of(files.iter().copied())) == capture.0
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digest(text: &str) -> BlobHash {
        BlobHash(Digest::from_content(text.as_bytes()))
    }

    #[test]
    fn only_the_canonical_text_is_a_manifest() {
        let (one, other) = (digest("1"), digest("2"));
        let text = String::from_utf8(manifest_of([("b", other), ("a", one)])).unwrap();
        assert_eq!(text, format!(r#"{{"a":"{one}","b":"{other}"}}"#));
        let files = [("a".to_owned(), one), ("b".to_owned(), other)];
        assert_eq!(parse_manifest(text.as_bytes()).unwrap(), files);
        for damaged in [
            String::new(),
            "{}".to_owned(),
            format!("[{text}]"),
            format!("{text}\n"),
            text.replace(':', ": "),
            text.replace("sha256:", ""),
            text.replace("sha256:", "sha512:"),
            text.to_uppercase(),
            text.replace('a', "\\u0061"),
            format!(r#"{{"b":"{other}","a":"{one}"}}"#),
            format!(r#"{{"a":"{one}","a":"{one}"}}"#),
            format!(r#"{{"a":"{one}","b":1}}"#),
            format!(r#"{{"a":1,"b":"{one}"}}"#),
        ] {
            assert_eq!(parse_manifest(damaged.as_bytes()), None, "{damaged}");
        }
        for name in [":", "\":", ":\"sha256:"] {
            assert_eq!(parse_manifest(&manifest_of([(name, one)])).unwrap(), [(name.to_owned(), one)]);
        }
        for name in ["", ".", "..", "a/b", "a\\b", "a\0"] {
            assert_eq!(parse_manifest(&manifest_of([(name, one)])), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn manifests_come_back(files in proptest::collection::btree_map("[^/\\\\\0.]{1,9}", ".{0,3}", 1..9)) {
            let files: BTreeMap<String, BlobHash> =
                files.into_iter().map(|(name, text)| (name, digest(&text))).collect();
            let named: Vec<(&str, BlobHash)> = files.iter().map(|(name, blob)| (name.as_str(), *blob)).collect();
            let text = manifest_of(named.iter().copied());
            prop_assert!(is_capture_of(CaptureHash(Digest::from_content(&text)), &named));
            prop_assert_eq!(parse_manifest(&text).unwrap(), Vec::from_iter(files));
        }

        #[test]
        fn whatever_is_parsed_is_canonical(text: Vec<u8>, at: prop::sample::Index, byte: u8) {
            prop_assert_eq!(parse_manifest(&text), None);
            let mut text = manifest_of([("a", digest("1")), ("b", digest("2"))]);
            let at = at.index(text.len());
            text[at] = byte;
            if let Some(files) = parse_manifest(&text) {
                prop_assert_eq!(manifest_of(files.iter().map(|(name, blob)| (name.as_str(), *blob))), text);
            }
        }
    }
}

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{AdmitOptions, Draft, EventVisitor, Part, Passage, Table};
use crate::canonical::reader::{Limits, ReadError};
use crate::canonical::rfc8785;
use crate::digest::{BlobHash, CaptureHash, Digest};
use crate::verify::{Findings, RuleInfo, Violation};

/// A kind whose artifacts are directories of named files, as its folder defines it.
pub trait ArtifactDirectory: 'static {
    /// The kind's name, such as `pack`.
    const NAME: &'static str;
    /// What people call its artifacts, such as `packs`.
    const PLURAL: &'static str;
    /// The names that its files may have. No others are read.
    const MEMBERS: &'static [&'static str];
    /// The rule that what is no directory, or cannot be read as one, breaks.
    const UNREADABLE: RuleInfo;
    /// The relation in which an artifact of this kind stands to everything that states its core hash.
    const STATED_BY: Option<&'static str> = None;
    /// The names of the attributes that its artifacts may have, sorted.
    const ATTRIBUTES: &'static [&'static str];
    /// Whether artifacts of this kind record runs, so that contracts can be held against them.
    const IS_RUN: bool = false;
    /// What its artifacts contain, as tables.
    const TABLES: &'static [Table] = &[];

    /// The rules, in the order of the documentation.
    fn rules() -> Vec<RuleInfo>;

    /// Whether a directory with entries of these names is meant to be of this kind, valid or not.
    fn recognises(names: &[&str], peek: &mut Peek<'_>) -> bool;

    /// Whether a file of this name that begins with `head` has what only files of this kind's artifacts have.
    fn recognises_member(name: &str, head: &[u8]) -> bool;

    /// The violation that such a file is where it stands in no artifact.
    fn incomplete(name: &str) -> Violation;

    /// Applies every rule to `directory` and describes it. Gives nothing if it cannot be described, and then `findings`
    /// has an error that says why.
    fn examine(directory: &Directory, options: &AdmitOptions, findings: &mut Findings) -> Option<Draft>;

    /// Writes the canonical bytes whose SHA-256 is the core hash of an admitted directory of `members`.
    ///
    /// # Errors
    /// Those of `out`; members that were not admitted are invalid data.
    fn write_core(members: &[MemberBytes<'_>], limits: &Limits, out: &mut dyn Write) -> io::Result<()>;

    /// Gives `visit` what an admitted directory of `members` recorded of a run, in order.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    fn run_events(
        members: &[MemberBytes<'_>],
        limits: &Limits,
        visit: &mut EventVisitor<'_>,
    ) -> Result<(), ReadError> {
        let _ = (members, limits, visit);
        Ok(())
    }

    /// What an admitted directory of `members` is compared by: causes before what follows from them.
    ///
    /// # Errors
    /// What keeps a member from being read.
    fn parts<'d>(members: &[MemberBytes<'d>], limits: &Limits) -> Result<Vec<Part<'d>>, ReadError>;

    /// The texts of an admitted directory of `members` that people search, but for those of artifacts that are part of it.
    ///
    /// # Errors
    /// What keeps a member from being read.
    fn passages(members: &[MemberBytes<'_>], limits: &Limits) -> Result<Vec<Passage>, ReadError>;
}

/// Gives the beginning of the file with a name in a directory, or nothing if it cannot be read.
pub type Peek<'p> = dyn FnMut(&str) -> Vec<u8> + 'p;

/// A directory or archive that was read: what it contains, one level deep.
#[derive(Debug, Default)]
pub struct Directory {
    /// What is in it. In an archive, several entries may have the same name.
    pub entries: Vec<Entry>,
}

/// Something in a directory.
#[derive(Debug)]
pub struct Entry {
    /// Its name. Those of archives may be whatever somebody wrote there.
    pub name: String,
    /// What it is.
    pub content: EntryContent,
}

/// What an entry of a directory is.
#[derive(Debug)]
pub enum EntryContent {
    /// A file whose name is that of a member, with its bytes.
    File(Vec<u8>),
    /// A file of another name. It was not opened.
    Stranger,
    /// A link. It was not followed.
    Link,
    /// A directory, device or pipe. It was not opened.
    Other,
}

impl Entry {
    /// The bytes, if it is a file that was read.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.content {
            EntryContent::File(bytes) => Some(bytes),
            EntryContent::Stranger | EntryContent::Link | EntryContent::Other => None,
        }
    }
}

impl Directory {
    /// The entry with this name; the first if there are several.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

/// A named file of an artifact.
#[derive(Clone, Copy, Debug)]
pub struct MemberBytes<'m> {
    /// Its name within the artifact.
    pub name: &'m str,
    /// Its bytes.
    pub bytes: &'m [u8],
}

/// The identity of one exact form of a directory: the digest of the RFC 8785 text of an object that has the digest of
/// each file under its name.
pub(super) fn capture_hash<'m>(files: impl Iterator<Item = (&'m str, BlobHash)>) -> CaptureHash {
    let digests: BTreeMap<&str, BlobHash> = files.collect();
    let texts = digests.into_iter().map(|(name, digest)| (name, digest.to_string()));
    CaptureHash(Digest::of(&rfc8785::object_of_texts(texts)))
}

/// Whether `capture` is the hash of an artifact of these files, given by name and blob hash: the digest of the only file
/// of a document, or that of a directory.
#[must_use]
pub fn is_capture_of(capture: CaptureHash, files: &[(&str, BlobHash)]) -> bool {
    let is_document = matches!(files, [(_, only)] if only.0 == capture.0);
    is_document || capture_hash(files.iter().copied()) == capture
}

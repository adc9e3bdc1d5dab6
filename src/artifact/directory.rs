use std::collections::BTreeMap;
use std::io::{self, Write};

use super::member::MemberBytes;
use super::{
    AdmitOptions, ArtifactView, AttributeInfo, Draft, EventVisitor, Field, Part, Passage, StepVisitor, Table,
};
use crate::digest::{BlobHash, CaptureHash, Digest};
use crate::json::canonical::rfc8785;
use crate::json::reader::{Limits, ReadError};
use crate::validation::{Findings, RuleInfo, Violation};

/// A kind whose artifacts are directories of named files, as defined in its folder.
pub trait ArtifactDirectory: 'static {
    /// The kind's name, such as `pack`.
    const NAME: &'static str;
    /// The noun for one of its artifacts, such as `export pack`.
    const NOUN: &'static str;
    /// The plural noun for its artifacts, such as `packs`, which is also the name of their SQL view.
    const PLURAL: &'static str;
    /// The file names that its artifacts can contain. Other files are not read.
    const MEMBERS: &'static [&'static str];
    /// The rule that is broken by anything that is not a directory or cannot be read as one.
    const UNREADABLE: RuleInfo;
    /// The relation of an artifact of this kind to every artifact that states its core hash.
    const INVERSE_RELATION: Option<&'static str> = None;
    /// The names of the attributes that its artifacts can have, sorted.
    const ATTRIBUTES: &'static [AttributeInfo];
    /// Whether artifacts of this kind record runs, so that they can be audited against contracts.
    const IS_RUN: bool = false;
    /// The searchable fields that only its artifacts have.
    const FIELDS: &'static [Field] = &[];
    /// The SQL view of its artifacts.
    const VIEW: ArtifactView;
    /// The SQL tables of its contents.
    const TABLES: &'static [Table] = &[];
    /// The noun for a step of the transcript of an artifact, such as `file`.
    const STEP_NOUN: &'static str;

    /// Returns the rules, in the order of the documentation.
    fn rules() -> Vec<RuleInfo>;

    /// Returns whether a directory with entries of these names is intended to be of this kind, valid or not.
    fn recognizes(names: &[&str], peek: &mut HeadReader<'_>) -> bool;

    /// Returns whether a file with this name that begins with `head` has features that only files of this kind's
    /// artifacts have.
    fn recognizes_member(name: &str, head: &[u8]) -> bool;

    /// Returns the violation for such a file outside an artifact.
    fn incomplete(name: &str) -> Violation;

    /// Applies every rule to `directory` and describes it. Returns `None` if it cannot be described; `findings` then
    /// contains an error that says why.
    fn examine(directory: &Directory, options: &AdmitOptions, findings: &mut Findings) -> Option<Draft>;

    /// Writes the canonical bytes whose SHA-256 is the core hash of an admitted directory of `members`.
    ///
    /// # Errors
    /// Returns an error if `out` cannot be written to, and one of kind `InvalidData` if the members were not admitted.
    fn write_core(members: &[MemberBytes<'_>], limits: &Limits, out: &mut dyn Write) -> io::Result<()>;

    /// Calls `visit` with the run events recorded in an admitted directory of `members`, in order.
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

    /// Returns the parts by which an admitted directory of `members` is compared: causes before their consequences.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    fn parts<'d>(members: &[MemberBytes<'d>], limits: &Limits) -> Result<Vec<Part<'d>>, ReadError>;

    /// Returns the searchable texts of an admitted directory of `members`, without those of embedded artifacts.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    fn passages(members: &[MemberBytes<'_>], limits: &Limits) -> Result<Vec<Passage>, ReadError>;

    /// Calls `visit` with the steps of the transcript of an admitted directory of `members`, in reading order.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    fn transcript(
        members: &[MemberBytes<'_>],
        limits: &Limits,
        visit: &mut StepVisitor<'_>,
    ) -> Result<(), ReadError>;
}

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

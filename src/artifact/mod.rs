//! The interface between artifact kinds and the rest of the program.
//!
//! A kind implements [`Artifact`] in its own folder. All other code holds a [`Kind`], which has names and rules and
//! admits documents, but cannot be matched on. Only [`Kind::admit`] and [`Kind::admit_directory`] create [`Admitted`]
//! values, and only those can be stored: nothing unverified is stored.

pub mod attribute;
mod directory;
pub mod document;
mod draft;
mod exchange;
mod kind;
mod mention;
mod part;
mod signature;
mod table;
mod timestamp;
mod transcript;

use std::io::{self, Write};
use std::panic::RefUnwindSafe;

use crate::digest::{CoreHash, Digest};
use crate::json::Value;
use crate::json::reader::{Limits, MemberNames, ReadError};
use crate::secrets::SecretPolicy;
use crate::validation::{Findings, Report, RuleInfo, Violation};

pub use attribute::{Attribute, AttributeInfo, ValueType};
pub use directory::{
    Directory, DirectoryEntry, EntryContent, HeadReader, Member, MemberBytes, is_capture_of, is_manifest,
    manifest_of, parse_manifest,
};
pub use document::{SupportedMajors, is_semver};
pub use draft::{Admitted, Completeness, Draft, NameHandle};
pub use exchange::{
    Arguments, CallNames, EventVisitor, Exchange, Playback, RecordedRequest, RepeatedElements,
    RequestVisitor, Responder, RunCall, RunCallResult, RunEvent,
};
pub use kind::{Kind, KindInfo};
pub use mention::{
    ArtifactLocation, FileReference, Mention, MentionedContent, REFERENCE, REFERS_TO, Relation, Role, group,
    relation,
};
pub use part::{Field, Part, PartContent, PartKind, Passage, PassageCollector, differ, same_place, words_of};
pub use signature::{
    KeyError, KeyRing, MAX_KEY_BYTES, MAX_KEY_ID_BYTES, Signature, SignatureName, SignaturePolicy,
    SignatureState, SigningKey,
};
pub use table::{ArtifactView, Cell, Column, ColumnType, ForeignKey, Table, TableRow};
pub use timestamp::{CREATED_AT, FINISHED_AT, MissingOffset, Timestamp, parse_timestamp, timestamp_text};
pub use transcript::{BodyContent, BodyRole, StepBody, StepClass, StepVisitor, TranscriptStep};

/// A kind of artifact, as defined in its folder. Its artifacts are single documents, or directories of named files if
/// it declares a [rule for them](KindInfo::directory_rule).
pub trait Artifact: Send + Sync + RefUnwindSafe + 'static {
    /// Returns the declarations.
    fn info(&self) -> &'static KindInfo;

    /// Returns the rules, in the order of the documentation.
    fn rules(&self) -> Vec<RuleInfo>;

    /// Returns whether `text` is intended to be a document of this kind, valid or not. `names` are the member names of
    /// its root object as far as they can be read.
    fn recognizes(&self, text: &str, names: &mut MemberNames<'_>) -> Option<Recognition> {
        let _ = (text, names);
        None
    }

    /// Returns whether a directory with entries of these names is intended to be of this kind, valid or not.
    fn recognizes_directory(&self, names: &[&str], peek: &mut HeadReader<'_>) -> bool {
        let _ = (names, peek);
        false
    }

    /// Returns the violation for a file outside a directory, if its name and its beginning `head` are those of a file
    /// that only directories of this kind have.
    fn orphan(&self, name: &str, head: &[u8]) -> Option<Violation> {
        let _ = (name, head);
        None
    }

    /// Applies every rule to `document` and describes it. Returns `None` if the document cannot be described;
    /// `findings` then contains an error that says why.
    fn examine(&self, document: &[u8], options: &AdmitOptions, findings: &mut Findings) -> Option<Draft> {
        let _ = (document, options, findings);
        None
    }

    /// Applies every rule to `directory` and describes it, as [`examine`](Self::examine) does for a document.
    fn examine_directory(
        &self,
        directory: &Directory,
        options: &AdmitOptions,
        findings: &mut Findings,
    ) -> Option<Draft> {
        let _ = (directory, options, findings);
        None
    }

    /// Returns the documents of this kind that `document` implies, if it is in another form, verified by the rules of that
    /// form. The document itself is then kept as an artifact of any bytes.
    fn derive(&self, document: &[u8], limits: &Limits) -> Option<Result<Vec<Vec<u8>>, Report>> {
        let _ = (document, limits);
        None
    }

    /// Writes the canonical bytes whose SHA-256 is the core hash of an admitted artifact of these `members`.
    ///
    /// # Errors
    /// Returns an error if `out` cannot be written to, and one of kind `InvalidData` if the members were not admitted.
    fn write_core(&self, members: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()>;

    /// Returns what `document` continues if it is only the rest of a longer document of this kind. Only its beginning
    /// is examined.
    #[must_use]
    fn continues(&self, document: &[u8], limits: &Limits) -> Option<PredecessorReference> {
        let _ = (document, limits);
        None
    }

    /// Appends a document that [continues](Self::continues) another one to the part of the admitted `beginning` that
    /// precedes it. Returns `None` if there is no such part.
    #[must_use]
    fn join(&self, beginning: &[u8], rest: &PredecessorReference, document: &[u8]) -> Option<JoinedDocument> {
        let _ = (beginning, rest, document);
        None
    }

    /// Calls `visit` with the run events recorded in an admitted artifact of these `members`, in order.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    fn run_events(&self, members: &[MemberBytes<'_>], visit: &mut EventVisitor<'_>) -> Result<(), ReadError> {
        let _ = (members, visit);
        Ok(())
    }

    /// Returns the responses recorded in an admitted `document`, in order.
    ///
    /// # Errors
    /// Returns an error if the document cannot be read.
    fn exchanges(&self, document: &[u8]) -> Result<Vec<Exchange>, ReadError> {
        let _ = document;
        Ok(Vec::new())
    }

    /// Calls `visit` with the requests of models in an admitted `document`, each complete, also if the document states
    /// it as a difference from another one.
    ///
    /// # Errors
    /// Returns an error if the document cannot be read.
    fn requests(&self, document: &[u8], visit: &mut RequestVisitor<'_>) -> Result<(), ReadError> {
        let _ = (document, visit);
        Ok(())
    }

    /// Calls `visit` with what [`Artifact::requests`] does, in an admitted document that was parsed.
    fn requests_in(&self, document: &Value<'_>, visit: &mut RequestVisitor<'_>) {
        let _ = (document, visit);
    }

    /// Returns the core hash of an admitted document that was parsed; `None` if the kind does not compute it from that.
    #[must_use]
    fn core_of(&self, document: &Value<'_>) -> Option<CoreHash> {
        let _ = document;
        None
    }

    /// Returns what an admitted `document` was made from and what follows from that, if the format demands that equal inputs
    /// have equal records.
    fn reproducible(&self, document: &[u8]) -> Option<ReproducibleRun> {
        let _ = document;
        None
    }

    /// Returns the verbatim text of the interaction, step or record `index` of an admitted `document`, or `None` if the
    /// kind has no such parts.
    #[must_use]
    fn quote(&self, document: &[u8], index: usize) -> Option<String> {
        let _ = (document, index);
        None
    }

    /// Returns the parts by which an admitted artifact of these `members` is compared: those of a document in its order,
    /// those of files with causes before their consequences.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    fn parts<'d>(&self, members: &[MemberBytes<'d>]) -> Result<Vec<Part<'d>>, ReadError>;

    /// Returns the searchable texts of an admitted artifact of these `members`, without those of embedded artifacts, in
    /// order.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    fn passages(&self, members: &[MemberBytes<'_>]) -> Result<Vec<Passage>, ReadError>;

    /// Calls `visit` with the steps of the transcript of an admitted artifact of these `members`, in reading order.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    fn transcript(&self, members: &[MemberBytes<'_>], visit: &mut StepVisitor<'_>) -> Result<(), ReadError>;
}

/// A run in a format that demands that equal inputs have equal records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReproducibleRun {
    /// The digest of the inputs.
    pub inputs: Digest,
    /// The records, in order.
    pub records: Vec<ReproducibleRecord>,
}

/// A record of such a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReproducibleRecord {
    /// The digest of the record.
    pub record: Digest,
    /// The digest of what follows from the inputs: without the name of the run, and what depends on it.
    pub content: Digest,
}

/// How a longer version of a document is detected.
#[derive(Clone, Copy, Debug)]
pub struct SuccessorCriteria {
    /// The relation of the longer document to the shorter one.
    pub relation: &'static str,
    /// The attribute that has the same value in both.
    pub attribute: &'static str,
    /// The attribute that is the number of parts of a document, and the noun for one of them.
    pub length: (&'static str, &'static str),
    /// Whether each part of a document states the hash of the part before it.
    pub states_predecessors: bool,
}

/// A document that is the rest of a longer one.
#[derive(Clone, Debug)]
pub struct PredecessorReference {
    /// The core hash of the document that it continues.
    pub after: Digest,
    /// The group of the roles under which longer documents mention that hash.
    pub group: &'static str,
    /// What the digest identifies, such as `record`.
    pub what: &'static str,
    /// The rule that such a document breaks if its predecessor is unknown.
    pub rule: RuleInfo,
    /// The path of the digest in the document.
    pub path: String,
}

/// A document that was joined from its beginning and its rest.
#[derive(Debug)]
pub struct JoinedDocument {
    /// The bytes.
    pub document: Vec<u8>,
    /// The number of lines before those of the rest.
    pub lines: usize,
}

/// How certain it is that a document is intended to be of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recognition {
    /// It has features that no other document has.
    Surely,
    /// It has words that other documents may also contain: sufficient for a document that was named explicitly, not for
    /// one that was found in a directory.
    Perhaps,
}

impl Recognition {
    /// Returns [`Surely`](Self::Surely) if `surely`, else [`Perhaps`](Self::Perhaps) if `perhaps`.
    #[must_use]
    pub fn from_flags(surely: bool, perhaps: bool) -> Option<Self> {
        match (surely, perhaps) {
            (true, _) => Some(Self::Surely),
            (false, true) => Some(Self::Perhaps),
            (false, false) => None,
        }
    }
}

/// The options of admission.
#[derive(Clone, Debug, Default)]
pub struct AdmitOptions {
    /// The limits for documents.
    pub limits: Limits,
    /// The keys that signatures are checked with; signatures without a matching key are not checked.
    pub signing_keys: KeyRing,
    /// Which signatures are rejected.
    pub signature_policy: SignaturePolicy,
    /// What is done about what looks like a key or a card number.
    pub secrets: SecretPolicy,
    /// Whether the document is only read as JSON. Otherwise, documents of a kind that has another notation are read in
    /// the one that they are in.
    pub json_only: bool,
}

/// Converts the error of reading a document again into an I/O error, for [`Artifact::write_core`].
pub(crate) fn unreadable(error: ReadError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

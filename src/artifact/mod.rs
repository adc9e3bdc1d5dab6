//! The interface between artifact kinds and the rest of the program.
//!
//! A kind implements [`Artifact`], or [`ArtifactDirectory`] if its artifacts consist of several files, in its own
//! folder. All other code holds a [`Kind`], which has names and rules and admits documents, but cannot be matched on.
//! Only [`Kind::admit`] and [`Kind::admit_directory`] create [`Admitted`] values, and only those can be stored: nothing
//! unverified is stored.

mod admitted;
pub mod attribute;
mod directory;
pub mod document;
mod exchange;
mod file_reference;
mod kind;
mod mention;
mod part;
mod passage;
mod run_event;
mod signature;
mod stated_content;
mod table;
mod timestamp;
mod transcript;
mod value_budget;
mod version;

use std::io::{self, Write};

use chrono::{DateTime, Utc};

use crate::digest::{CoreHash, Digest};
use crate::json::Value;
use crate::json::reader::{Limits, MemberNames, ReadError};
use crate::validation::{Findings, RuleInfo};

pub use admitted::{Admitted, Member};
pub use attribute::{Attribute, AttributeInfo, ValueType};
pub use directory::{ArtifactDirectory, Directory, Entry, EntryContent, MemberBytes, Peek, is_capture_of};
pub use exchange::{Arguments, Exchange, Playback, Responder};
pub use file_reference::FileReference;
pub use kind::Kind;
pub use mention::{Mention, Place, REFERENCE, REFERS_TO, Relation, Role, group, relation};
pub use part::{Content, Part, PartKind, differ, same_place};
pub use passage::{Field, Passage, Passages, words_of};
pub use run_event::{Answer, Call, CallNames, EventVisitor, RunEvent};
pub use signature::{
    KeyError, KeyRing, MAX_KEY_BYTES, MAX_KEY_ID_BYTES, Signature, SignaturePolicy, SignatureState,
    SigningKey,
};
pub use stated_content::StatedContent;
pub use table::{ArtifactView, Cell, Cells, Column, ColumnType, Reference, Table};
pub use timestamp::{CREATED_AT, MissingOffset, parse_timestamp, timestamp_text};
pub use transcript::{BodyContent, BodyRole, StepBody, StepClass, StepVisitor, TranscriptStep};
pub use version::{KnownMajors, is_semver};

/// A kind of artifact, as defined in its folder.
pub trait Artifact: 'static {
    /// The kind's name, such as `model_io`.
    const NAME: &'static str;
    /// The noun for one of its artifacts, such as `session`.
    const NOUN: &'static str;
    /// The plural noun for its artifacts, such as `sessions`, which is also the name of their SQL view.
    const PLURAL: &'static str;
    /// The member name of an artifact that is a single file.
    const MEMBER: &'static str;
    /// File names defined by the format: whole names, or `*` and a suffix.
    const FILE_NAMES: &'static [&'static str];
    /// The relation of an artifact of this kind to every artifact that states its core hash.
    const STATED_BY: Option<&'static str> = None;
    /// The attributes that its artifacts can have, sorted by name.
    const ATTRIBUTES: &'static [AttributeInfo];
    /// Whether artifacts of this kind record runs, so that they can be audited against contracts.
    const IS_RUN: bool = false;
    /// How a longer version of a document is detected, if documents are written incrementally: then a document may also
    /// [continue](Self::continues) another.
    const VERSIONS: Option<Versions> = None;
    /// Whether its artifacts can be signed.
    const CAN_BE_SIGNED: bool = false;
    /// How recorded responses are replayed, if artifacts of this kind record any.
    const PLAYBACK: Option<Playback> = None;
    /// Whether any bytes are an artifact of this kind, whose core hash is their digest. Documents are of such a kind
    /// only on request: they are not recognised by their content.
    const TAKES_ANY_BYTES: bool = false;
    /// The searchable fields that only its artifacts have.
    const FIELDS: &'static [Field] = &[];
    /// The SQL view of its artifacts.
    const VIEW: ArtifactView;
    /// The contents whose digests its artifacts state, and which a vault can have as artifacts of their own.
    const CONTENTS: &'static [StatedContent] = &[];
    /// The SQL tables of its contents.
    const TABLES: &'static [Table] = &[];
    /// The noun for a step of the transcript of an artifact, such as `interaction`.
    const STEP_NOUN: &'static str;
    /// Whether transcripts contain the texts of the prompts that artifacts mention. Otherwise they have only digests.
    const RECORDS_PROMPTS: bool = false;

    /// Returns the rules, in the order of the documentation.
    fn rules() -> Vec<RuleInfo>;

    /// Returns whether `text` is intended to be of this kind, valid or not. `names` are the member names of its root
    /// object as far as they can be read.
    fn recognises(text: &str, names: &mut MemberNames<'_>) -> Option<Recognition>;

    /// Applies every rule to `document` and describes it. Returns `None` if the document cannot be described;
    /// `findings` then contains an error that says why.
    fn examine(document: &[u8], options: &AdmitOptions, findings: &mut Findings) -> Option<Draft>;

    /// Writes the canonical bytes whose SHA-256 is the core hash of an admitted `document`.
    ///
    /// # Errors
    /// Returns an error if `out` cannot be written to, and one of kind `InvalidData` if the document was not admitted.
    fn write_core(document: &[u8], limits: &Limits, out: &mut dyn Write) -> io::Result<()>;

    /// Returns what `document` continues if it is only the rest of a longer document of this kind. Only its beginning
    /// is examined.
    #[must_use]
    fn continues(document: &[u8], limits: &Limits) -> Option<Rest> {
        let _ = (document, limits);
        None
    }

    /// Appends a document that [continues](Self::continues) another one to the part of the admitted `beginning` that
    /// precedes it. Returns `None` if there is no such part.
    #[must_use]
    fn join(beginning: &[u8], rest: &Rest, document: &[u8], limits: &Limits) -> Option<Joined> {
        let _ = (beginning, rest, document, limits);
        None
    }

    /// Calls `visit` with the run events recorded in an admitted `document`, in order.
    ///
    /// # Errors
    /// Returns an error if the document cannot be read.
    fn run_events(document: &[u8], limits: &Limits, visit: &mut EventVisitor<'_>) -> Result<(), ReadError> {
        let _ = (document, limits, visit);
        Ok(())
    }

    /// Returns the responses recorded in an admitted `document`, in order.
    ///
    /// # Errors
    /// Returns an error if the document cannot be read.
    fn exchanges(document: &[u8], limits: &Limits) -> Result<Vec<Exchange>, ReadError> {
        let _ = (document, limits);
        Ok(Vec::new())
    }

    /// Returns the verbatim text of the interaction, step or record `index` of an admitted `document`, or `None` if the
    /// kind has no such parts.
    #[must_use]
    fn quote(document: &[u8], index: usize) -> Option<String> {
        let _ = (document, index);
        None
    }

    /// Returns the parts by which an admitted `document` is compared, in document order.
    ///
    /// # Errors
    /// Returns an error if the document cannot be read.
    fn parts<'d>(document: &'d [u8], limits: &Limits) -> Result<Vec<Part<'d>>, ReadError>;

    /// Returns the searchable texts of an admitted `document`, in document order.
    ///
    /// # Errors
    /// Returns an error if the document cannot be read.
    fn passages(document: &[u8], limits: &Limits) -> Result<Vec<Passage>, ReadError>;

    /// Calls `visit` with the steps of the transcript of an admitted `document`, in document order.
    ///
    /// # Errors
    /// Returns an error if the document cannot be read.
    fn transcript(document: &[u8], limits: &Limits, visit: &mut StepVisitor<'_>) -> Result<(), ReadError>;
}

/// How a longer version of a document is detected.
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    /// The relation of the longer document to the shorter one.
    pub relation: &'static str,
    /// The attribute that has the same value in both.
    pub attribute: &'static str,
    /// The attribute that is the number of parts of a document, and the noun for one of them.
    pub length: (&'static str, &'static str),
}

/// A document that is the rest of a longer one.
#[derive(Clone, Debug)]
pub struct Rest {
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
pub struct Joined {
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
}

/// A name in a namespace, written `namespace:name`, such as `run:run-123`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameHandle(String);

impl NameHandle {
    /// Creates the handle `namespace:name`.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self(format!("{namespace}:{name}"))
    }

    /// Returns the handle as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether the file that a document was read from may still be appended to by the program that writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completeness {
    /// It is complete: documents of the kind are written once, or it ends with the end marker of the kind.
    #[default]
    Complete,
    /// It is valid as it is, but documents of its kind are valid at many points while they are written.
    MayGrow,
}

/// The description of a document by its kind: its identity and indexed data.
#[derive(Debug)]
pub struct Draft {
    /// The core hash.
    pub core: CoreHash,
    /// The digests that the document states or implies.
    pub mentions: Vec<Mention>,
    /// The attributes.
    pub attributes: Vec<Attribute>,
    /// The names by which other artifacts may refer to this one.
    pub identified_by: Vec<NameHandle>,
    /// The names by which this artifact refers to others.
    pub refers_to: Vec<(Relation, NameHandle)>,
    /// The result of checking its signature, if it has one.
    pub signature: Option<Signature>,
    /// Artifacts that are contained in it and are stored with it, each as a separate artifact.
    pub embedded: Vec<Admitted>,
    /// The files that it refers to by path and digest.
    pub files: Vec<FileReference>,
    /// Whether its file may still grow.
    pub completeness: Completeness,
    /// The total size of the pointers in `mentions` in bytes.
    pointer_bytes: usize,
}

impl Draft {
    /// Creates a draft with only the core hash.
    #[must_use]
    pub fn new(core: CoreHash) -> Self {
        Self {
            core,
            mentions: Vec::new(),
            attributes: Vec::new(),
            identified_by: Vec::new(),
            refers_to: Vec::new(),
            signature: None,
            embedded: Vec::new(),
            files: Vec::new(),
            completeness: Completeness::Complete,
            pointer_bytes: 0,
        }
    }

    /// Adds a [`REFERENCE`] for every string and member name in `value` that is exactly `sha256:` and 64 lowercase hex
    /// digits, and the [files](FileReference) whose paths are beside such digests. `prefix` is prepended to the pointers. Locations that match one of `indexed`, in which `*` matches any
    /// one token, are skipped: the kind indexes them under a role of their own.
    pub fn collect_references(&mut self, value: &Value<'_>, prefix: &str, indexed: &[&str]) {
        mention::collect_references(value, prefix, indexed, self);
    }

    /// Adds an attribute.
    pub fn attribute(&mut self, name: &'static str, value: impl Into<String>) {
        self.attributes.push(Attribute { name, value: value.into(), number: None });
    }

    /// Adds an attribute of a type that has an order, if there is a number.
    pub fn number(&mut self, info: AttributeInfo, number: impl Into<Option<i64>>) {
        if let Some(value) = number.into().and_then(|number| info.values.value(number)) {
            self.attribute(info.name, value);
        }
    }

    /// Adds an attribute that is a number of items.
    pub fn count(&mut self, info: AttributeInfo, items: usize) {
        self.number(info, i64::try_from(items).ok());
    }

    /// Adds an attribute that is a time, if there is one.
    pub fn time(&mut self, info: AttributeInfo, time: Option<DateTime<Utc>>) {
        self.number(info, time.map(|time| time.timestamp_millis()));
    }

    /// Adds the attribute [`AttributeInfo::CREATED_AT`] with the first text in `stated` that is a point in time, and
    /// returns that time, if there is one.
    pub fn state_creation<'t>(
        &mut self,
        stated: impl IntoIterator<Item = Option<&'t str>>,
        missing_offset: MissingOffset,
    ) -> Option<DateTime<Utc>> {
        let mut times = stated.into_iter().flatten();
        let time = times.find_map(|text| parse_timestamp(text, missing_offset));
        self.time(AttributeInfo::CREATED_AT, time);
        time
    }

    /// Adds the attributes [`AttributeInfo::FINISHED_AT`], if the end is a point in time, and
    /// [`AttributeInfo::DURATION_MS`], if the beginning is another before it.
    pub fn state_end(
        &mut self,
        begun: Option<DateTime<Utc>>,
        ended: Option<&str>,
        missing_offset: MissingOffset,
    ) {
        let Some(ended) = ended.and_then(|text| parse_timestamp(text, missing_offset)) else { return };
        self.time(AttributeInfo::FINISHED_AT, Some(ended));
        let duration = begun.map(|begun| ended.signed_duration_since(begun).num_milliseconds());
        self.number(AttributeInfo::DURATION_MS, duration.filter(|duration| *duration >= 0));
    }

    /// Adds the attributes of tokens that are known, and of their sum, if both are.
    pub fn tokens(&mut self, input: Option<i64>, output: Option<i64>) {
        self.number(AttributeInfo::TOKENS_INPUT, input);
        self.number(AttributeInfo::TOKENS_OUTPUT, output);
        let both = input.zip(output).map(|(input, output)| input.saturating_add(output));
        self.number(AttributeInfo::TOKENS, both);
    }

    /// Sorts and deduplicates the indexed data, and computes the numbers of attributes by their declared types.
    fn make_sets(&mut self, declared: &[AttributeInfo]) {
        for attribute in &mut self.attributes {
            let info = declared.iter().find(|info| info.name == attribute.name);
            attribute.number = info.and_then(|info| info.values.number(&attribute.value));
        }
        self.mentions.sort_unstable();
        self.mentions.dedup();
        self.attributes.sort_unstable();
        self.attributes.dedup();
        self.identified_by.sort_unstable();
        self.identified_by.dedup();
        self.files.sort_unstable();
        self.files.dedup();
    }
}

/// Converts the error of reading a document again into an I/O error, for [`Artifact::write_core`].
pub(crate) fn unreadable(error: ReadError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

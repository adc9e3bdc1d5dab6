//! What an artifact is to the rest of the program, whatever its kind.
//!
//! A kind implements [`Artifact`], or [`ArtifactDirectory`] if its artifacts are of several files, in its own folder.
//! Everybody else holds a [`Kind`], which can tell names, print rules and admit documents, but not be matched on. Only
//! [`Kind::admit`] and [`Kind::admit_directory`] make [`Admitted`] values, and only those can be stored: nothing
//! unverified gets in.

mod admitted;
mod directory;
pub mod document;
mod exchange;
mod kind;
mod mention;
mod part;
mod passage;
mod run_event;
mod signature;
mod table;
mod timestamp;
mod value_budget;
mod version;

use std::io::{self, Write};

use crate::canonical::Value;
use crate::canonical::reader::{Limits, MemberNames, ReadError};
use crate::digest::{CoreHash, Digest};
use crate::verify::{Findings, RuleInfo};

pub use admitted::{Admitted, Member};
pub use directory::{ArtifactDirectory, Directory, Entry, EntryContent, MemberBytes, Peek, is_capture_of};
pub use exchange::{Arguments, Exchange, Playback, Responder};
pub use kind::Kind;
pub use mention::{Mention, Place, REFERENCE, Relation, Role};
pub use part::{Content, Part, PartSort, differ, same_place};
pub use passage::{Field, Passage, Passages, words_of};
pub use run_event::{Answer, Call, CallNames, EventVisitor, RunEvent};
pub use signature::{
    KeyError, KeyRing, MAX_KEY_BYTES, MAX_KEY_ID_BYTES, Signature, SignaturePolicy, SignatureState,
    SigningKey,
};
pub use table::{Cell, Cells, Column, ColumnSort, Table};
pub use timestamp::{CREATED_AT, MissingOffset, parse_timestamp, timestamp_text};
pub use version::{KnownMajors, is_semver};

/// A kind of artifact, as its folder defines it.
pub trait Artifact: 'static {
    /// The kind's name, such as `model_io`.
    const NAME: &'static str;
    /// What people call its artifacts, such as `sessions`.
    const PLURAL: &'static str;
    /// The name of the one member of an artifact of one file.
    const MEMBER: &'static str;
    /// File names that the format gives: whole names, or `*` and an ending.
    const FILE_NAMES: &'static [&'static str];
    /// The relation in which an artifact of this kind stands to everything that states its core hash.
    const STATED_BY: Option<&'static str> = None;
    /// The names of the attributes that its artifacts may have, sorted.
    const ATTRIBUTES: &'static [&'static str];
    /// Whether artifacts of this kind record runs, so that contracts can be held against them.
    const IS_RUN: bool = false;
    /// How one of its documents is seen to be a longer version of another, if they are written part by part: then one may
    /// also [continue](Self::continues) another.
    const VERSIONS: Option<Versions> = None;
    /// Whether its artifacts may carry signatures.
    const CAN_BE_SIGNED: bool = false;
    /// How the responses that artifacts of this kind record are played back, if they record any.
    const PLAYBACK: Option<Playback> = None;
    /// What its artifacts contain, as tables.
    const TABLES: &'static [Table] = &[];

    /// The rules, in the order of the documentation.
    fn rules() -> Vec<RuleInfo>;

    /// Whether `text` is meant to be of this kind, valid or not. `names` are the names of its root object's members as
    /// far as they can be read.
    fn recognises(text: &str, names: &mut MemberNames<'_>) -> Option<Recognition>;

    /// Applies every rule to `document` and describes it. Gives nothing if the document cannot be described, and then
    /// `findings` has an error that says why.
    fn examine(document: &[u8], options: &AdmitOptions, findings: &mut Findings) -> Option<Draft>;

    /// Writes the canonical bytes whose SHA-256 is the core hash of an admitted `document`.
    ///
    /// # Errors
    /// Those of `out`; a document that was not admitted is invalid data.
    fn write_core(document: &[u8], limits: &Limits, out: &mut dyn Write) -> io::Result<()>;

    /// What `document` continues, if it is the rest of a longer document of this kind and no whole one. Nothing but its
    /// beginning is looked at.
    #[must_use]
    fn continues(document: &[u8], limits: &Limits) -> Option<Rest> {
        let _ = (document, limits);
        None
    }

    /// Puts a document that [continues](Self::continues) another one after the part of the admitted `beginning` that goes
    /// before it; nothing if there is no such part.
    #[must_use]
    fn join(beginning: &[u8], rest: &Rest, document: &[u8], limits: &Limits) -> Option<Joined> {
        let _ = (beginning, rest, document, limits);
        None
    }

    /// Gives `visit` what an admitted `document` recorded of a run, in order.
    ///
    /// # Errors
    /// Returns an error if the document cannot be read.
    fn run_events(document: &[u8], limits: &Limits, visit: &mut EventVisitor<'_>) -> Result<(), ReadError> {
        let _ = (document, limits, visit);
        Ok(())
    }

    /// The responses that an admitted `document` recorded, in order.
    ///
    /// # Errors
    /// What keeps the document from being read.
    fn exchanges(document: &[u8], limits: &Limits) -> Result<Vec<Exchange>, ReadError> {
        let _ = (document, limits);
        Ok(Vec::new())
    }

    /// What an admitted `document` says at the interaction, step or record `index`, as it is written there; nothing if the
    /// kind has no such parts.
    #[must_use]
    fn quote(document: &[u8], index: usize) -> Option<String> {
        let _ = (document, index);
        None
    }

    /// What an admitted `document` is compared by, in its order.
    ///
    /// # Errors
    /// What keeps the document from being read.
    fn parts<'d>(document: &'d [u8], limits: &Limits) -> Result<Vec<Part<'d>>, ReadError>;

    /// The texts of an admitted `document` that people search, in its order.
    ///
    /// # Errors
    /// What keeps the document from being read.
    fn passages(document: &[u8], limits: &Limits) -> Result<Vec<Passage>, ReadError>;
}

/// How one document of a kind is seen to be a longer version of another.
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    /// The relation of the longer one to the other.
    pub relation: &'static str,
    /// The attribute that has the same value in both.
    pub attribute: &'static str,
}

/// What a document says that is the rest of a longer one.
#[derive(Clone, Debug)]
pub struct Rest {
    /// What it continues: the core hash of the document up to there.
    pub after: Digest,
    /// The group of roles in which longer documents mention that.
    pub group: &'static str,
    /// What the digest is that of, such as `record`.
    pub what: &'static str,
    /// The rule that such a document breaks where its beginning is not known.
    pub rule: RuleInfo,
    /// Where in the document the digest stands.
    pub path: String,
}

/// A document that was put together of a beginning and a rest.
#[derive(Debug)]
pub struct Joined {
    /// The bytes.
    pub document: Vec<u8>,
    /// How many lines are before those of the rest.
    pub lines: usize,
}

/// How sure it is that a document is meant to be of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recognition {
    /// It has what no other document has.
    Surely,
    /// It has words that other documents may have as well: enough for a document that somebody named, not for one that
    /// was found in a directory.
    Perhaps,
}

impl Recognition {
    /// Surely if `surely`, else perhaps if `perhaps`.
    #[must_use]
    pub fn of(surely: bool, perhaps: bool) -> Option<Self> {
        match (surely, perhaps) {
            (true, _) => Some(Self::Surely),
            (false, true) => Some(Self::Perhaps),
            (false, false) => None,
        }
    }
}

/// What the checks need to know beside the document.
#[derive(Clone, Debug, Default)]
pub struct AdmitOptions {
    /// How large documents may be.
    pub limits: Limits,
    /// The keys that signatures are checked with; those that no key is for are not checked.
    pub signing_keys: KeyRing,
    /// What is rejected for its signature.
    pub signature_policy: SignaturePolicy,
}

/// A named string of an artifact worth querying. A name may have several values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attribute {
    /// The name, such as `model_id`.
    pub name: &'static str,
    /// The value.
    pub value: String,
}

/// A handle that is a name in a namespace, written `namespace:name`, such as `run:run-123`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameHandle(String);

impl NameHandle {
    /// The handle `namespace:name`.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self(format!("{namespace}:{name}"))
    }

    /// The handle as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether more may be added to the file that a document was read from, by the program that writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completeness {
    /// It is whole: the kind has documents that are written once, or it ends with what ends documents of its kind.
    #[default]
    Complete,
    /// It is valid as it is, and documents of its kind are valid at many points while they are written.
    MayGrow,
}

/// What a kind says of a document: its identity and what it can be found by.
#[derive(Debug)]
pub struct Draft {
    /// The core hash.
    pub core: CoreHash,
    /// Digests that the document states or implies.
    pub mentions: Vec<Mention>,
    /// Named strings.
    pub attributes: Vec<Attribute>,
    /// Names by which others may refer to the artifact.
    pub identified_by: Vec<NameHandle>,
    /// Names by which the artifact refers to others.
    pub refers_to: Vec<(Relation, NameHandle)>,
    /// What is known of its signature, if it has one.
    pub signature: Option<Signature>,
    /// Artifacts that are part of it and are stored with it, each as an artifact of its own.
    pub embedded: Vec<Admitted>,
    /// Whether its file may still grow.
    pub completeness: Completeness,
    /// The bytes of the pointers in `mentions`.
    pointer_bytes: usize,
}

impl Draft {
    /// A draft that says nothing but the core hash.
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
            completeness: Completeness::Complete,
            pointer_bytes: 0,
        }
    }

    /// Adds a [`REFERENCE`] for every string and member name in `value` that is `sha256:` and 64 lowercase hex digits,
    /// and nothing else. `prefix` goes before the pointers. Places that match one of `indexed`, in which `*` stands for
    /// any one token, are passed over: the kind has indexed them under a role of their own.
    pub fn collect_references(&mut self, value: &Value<'_>, prefix: &str, indexed: &[&str]) {
        mention::collect_references(value, prefix, indexed, self);
    }

    /// Adds an attribute.
    pub fn attribute(&mut self, name: &'static str, value: impl Into<String>) {
        self.attributes.push(Attribute { name, value: value.into() });
    }

    /// Adds the attribute [`CREATED_AT`] with the first of the texts in `stated` that is a point in time, if there is one.
    pub fn state_creation<'t>(
        &mut self,
        stated: impl IntoIterator<Item = Option<&'t str>>,
        missing_offset: MissingOffset,
    ) {
        let mut times = stated.into_iter().flatten();
        if let Some(time) = times.find_map(|text| parse_timestamp(text, missing_offset)) {
            self.attribute(CREATED_AT, timestamp_text(time));
        }
    }

    /// What is indexed is a set: the same fact found twice is one fact.
    fn make_sets(&mut self) {
        self.mentions.sort_unstable();
        self.mentions.dedup();
        self.attributes.sort_unstable();
        self.attributes.dedup();
        self.identified_by.sort_unstable();
        self.identified_by.dedup();
    }
}

/// Turns the failure to read a document again into an I/O error, for [`Artifact::write_core`].
pub(crate) fn unreadable(error: ReadError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

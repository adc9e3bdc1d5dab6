//! What an artifact is to the rest of the program, whatever its kind.
//!
//! A kind implements [`Artifact`] in its own folder. Everybody else holds a [`Kind`], which can tell names, print rules
//! and admit documents, but not be matched on. Only [`Kind::admit`] makes [`Admitted`] values, and only those can be
//! stored: nothing unverified gets in.

pub mod document;
mod mention;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use crate::canonical::Value;
use crate::canonical::reader::{Limits, ReadError};
use crate::canonical::replaykit;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::verify::{Findings, Report, RuleInfo};

pub use mention::{Mention, Place, REFERENCE, Relation, Role};

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

    /// Whether artifacts of this kind record runs, so that contracts can be held against them.
    const IS_RUN: bool = false;

    /// The rules, in the order of the documentation.
    fn rules() -> Vec<RuleInfo>;

    /// Whether `text` is meant to be of this kind, valid or not. `names` are the names of its root object's members as
    /// far as they could be read.
    fn recognises(text: &str, names: &[Cow<'_, str>]) -> Option<Recognition>;

    /// Applies every rule to `document` and describes it. Gives nothing if the document cannot be described, and then
    /// `findings` has an error that says why.
    fn examine(document: &[u8], options: &AdmitOptions, findings: &mut Findings) -> Option<Draft>;

    /// Writes the canonical bytes whose SHA-256 is the core hash of an admitted `document`.
    ///
    /// # Errors
    /// Those of `out`; a document that was not admitted is invalid data.
    fn write_core(document: &[u8], limits: &Limits, out: &mut dyn Write) -> io::Result<()>;

    /// What an admitted `document` recorded as results, in order.
    #[must_use]
    fn results<'d>(document: &'d [u8], limits: &Limits) -> Vec<RunResult<'d>> {
        let _ = (document, limits);
        Vec::new()
    }

    /// What an admitted `document` says at the interaction, step or record `index`, as it is written there; nothing if the
    /// kind has no such parts.
    #[must_use]
    fn quote(document: &[u8], index: usize) -> Option<String> {
        let _ = (document, index);
        None
    }
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
    /// The key that rpk signatures are checked with; without one they are not.
    pub signing_key: Option<SigningKey>,
    /// Refuse rpk documents that carry no signature.
    pub require_signature: bool,
}

/// A key for HMAC signatures.
#[derive(Clone)]
pub struct SigningKey(String);

/// A signing key must have characters other than white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signing key is empty")]
pub struct EmptyKey;

impl SigningKey {
    /// The key given by `text`; surrounding white space is not part of it.
    ///
    /// # Errors
    /// [`EmptyKey`] if nothing else is left.
    pub fn new(text: &str) -> Result<Self, EmptyKey> {
        match replaykit::strip(text) {
            "" => Err(EmptyKey),
            key => Ok(Self(key.to_owned())),
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Keys are not for printing.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
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

/// A result that a run recorded.
#[derive(Clone, Debug)]
pub struct RunResult<'d> {
    /// Where in the run, in words, such as `step 6`.
    pub place: String,
    /// The result.
    pub value: Value<'d>,
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
}

/// A kind of artifact as the rest of the program sees it.
#[derive(Clone, Copy)]
pub struct Kind(&'static KindTable);

struct KindTable {
    name: &'static str,
    plural: &'static str,
    member: &'static str,
    file_names: &'static [&'static str],
    stated_by: Option<&'static str>,
    rules: fn() -> Vec<RuleInfo>,
    recognises: fn(&str, &[Cow<'_, str>]) -> Option<Recognition>,
    examine: fn(&[u8], &AdmitOptions, &mut Findings) -> Option<Draft>,
    write_core: fn(&[u8], &Limits, &mut dyn Write) -> io::Result<()>,
    is_run: bool,
    results: for<'d> fn(&'d [u8], &Limits) -> Vec<RunResult<'d>>,
    quote: fn(&[u8], usize) -> Option<String>,
}

impl Kind {
    /// The handle of the kind `K`.
    #[must_use]
    pub const fn of<K: Artifact>() -> Self {
        Self(
            &const {
                KindTable {
                    name: K::NAME,
                    plural: K::PLURAL,
                    member: K::MEMBER,
                    file_names: K::FILE_NAMES,
                    stated_by: K::STATED_BY,
                    rules: K::rules,
                    recognises: K::recognises,
                    examine: K::examine,
                    write_core: K::write_core,
                    is_run: K::IS_RUN,
                    results: K::results,
                    quote: K::quote,
                }
            },
        )
    }

    /// The name, such as `model_io`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// What people call its artifacts, such as `sessions`.
    #[must_use]
    pub fn plural(self) -> &'static str {
        self.0.plural
    }

    /// The relation in which it stands to everything that states its core hash, if it has a name of its own.
    #[must_use]
    pub fn stated_by(self) -> Option<&'static str> {
        self.0.stated_by
    }

    /// The rules, without those of all documents.
    #[must_use]
    pub fn rules(self) -> Vec<RuleInfo> {
        (self.0.rules)()
    }

    /// Whether the format gives its files such names.
    #[must_use]
    pub fn owns_file_name(self, file_name: &str) -> bool {
        self.0.file_names.iter().any(|pattern| match pattern.strip_prefix('*') {
            Some(ending) => file_name.len() > ending.len() && file_name.ends_with(ending),
            None => file_name == *pattern,
        })
    }

    /// Whether `text` is meant to be of this kind, valid or not. `names` are the names of its root object's members as
    /// far as they could be read.
    #[must_use]
    pub fn recognises(self, text: &str, names: &[Cow<'_, str>]) -> Option<Recognition> {
        (self.0.recognises)(text, names)
    }

    /// Parses `document`, canonicalizes it and applies every rule.
    ///
    /// # Errors
    /// The report, if a rule of severity error is broken. Nothing else is an error: admission does no I/O.
    pub fn admit(self, document: Vec<u8>, options: &AdmitOptions) -> Result<Admitted, Report> {
        let mut findings = Findings::default();
        let draft = (self.0.examine)(&document, options, &mut findings);
        if draft.as_ref().is_some_and(|draft| draft.pointer_bytes > mention::MAX_POINTER_BYTES) {
            document::report_pointers(&mut findings);
        }
        let report = findings.into_report();
        match draft {
            Some(mut draft) if report.is_acceptable() => {
                // What is indexed is a set: the same fact found twice is one fact.
                draft.mentions.sort_unstable();
                draft.mentions.dedup();
                draft.attributes.sort_unstable();
                draft.attributes.dedup();
                draft.identified_by.sort_unstable();
                draft.identified_by.dedup();
                let digest = Digest::of(&document);
                let member = Member { name: self.0.member, blob: BlobHash(digest), bytes: document };
                Ok(Admitted {
                    kind: self,
                    capture: CaptureHash(digest),
                    members: vec![member],
                    draft,
                    report,
                })
            }
            _ => Err(report),
        }
    }

    /// Writes the canonical bytes whose SHA-256 is the core hash of an admitted `document`.
    ///
    /// # Errors
    /// Those of `out`; a document that was not admitted is invalid data.
    pub fn write_core(self, document: &[u8], limits: &Limits, out: &mut dyn Write) -> io::Result<()> {
        (self.0.write_core)(document, limits, out)
    }

    /// Whether artifacts of this kind record runs, so that contracts can be held against them.
    #[must_use]
    pub fn is_run(self) -> bool {
        self.0.is_run
    }

    /// What an admitted `document` recorded as results, in order.
    #[must_use]
    pub fn results<'d>(self, document: &'d [u8], limits: &Limits) -> Vec<RunResult<'d>> {
        (self.0.results)(document, limits)
    }

    /// What an admitted `document` says at the interaction, step or record `index`, as it is written there; nothing if the
    /// kind has no such parts.
    #[must_use]
    pub fn quote(self, document: &[u8], index: usize) -> Option<String> {
        (self.0.quote)(document, index)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kind {}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
    /// Its name within the artifact.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name
    }

    /// The digest of its bytes.
    #[must_use]
    pub fn blob(&self) -> BlobHash {
        self.blob
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A verified artifact: proof that no rule of severity error is broken. Only [`Kind::admit`] makes one.
#[derive(Debug)]
pub struct Admitted {
    kind: Kind,
    capture: CaptureHash,
    members: Vec<Member>,
    draft: Draft,
    report: Report,
}

impl Admitted {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its core hash: which artifact it is.
    #[must_use]
    pub fn core(&self) -> CoreHash {
        self.draft.core
    }

    /// Its capture hash: which byte form of the artifact it is.
    #[must_use]
    pub fn capture(&self) -> CaptureHash {
        self.capture
    }

    /// Its files.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The size of its files in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.members.iter().map(|member| member.bytes.len() as u64).sum()
    }

    /// What it can be found by. Mentions, attributes and names are sorted, each listed once.
    #[must_use]
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Its warnings.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl AsRef<Admitted> for Admitted {
    fn as_ref(&self) -> &Admitted {
        self
    }
}

/// Turns the failure to read a document again into an I/O error, for [`Artifact::write_core`].
pub(crate) fn unreadable(error: ReadError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

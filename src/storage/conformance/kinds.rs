//! Kinds of artifacts for the tests of engines. A document is a list of lines, each of which states one thing that an
//! engine stores: a mention, an attribute, a name. So a test states exactly what it needs, and nothing else.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::artifact::{
    AdmitOptions, Admitted, Artifact, ArtifactView, AttributeInfo, Directory, DirectoryEntry, Draft,
    EntryContent, Kind, KindInfo, MemberBytes, Mention, NameHandle, Part, Passage, Relation, Role, Signature,
    SignaturePolicy, SignatureState, StepVisitor,
};
use crate::digest::{CoreHash, Digest};
use crate::json::reader::ReadError;
use crate::validation::{Findings, RuleInfo, Severity};

const EXTENDS: Relation = Relation { name: "extends", dangles: false };
const NAMES: Relation = Relation { name: "names", dangles: true };
const HINTS: Relation = Relation { name: "hints", dangles: false };

/// Every role that a document can use.
static ROLES: [Role; 6] = [
    Role { name: "prompt", group: "prompt", unit: "step", relation: None },
    Role { name: "response", group: "response", unit: "step", relation: None },
    Role { name: "final_response", group: "response", unit: "step", relation: None },
    Role { name: "history", group: "history", unit: "record", relation: Some(EXTENDS) },
    Role {
        name: "reference",
        group: "reference",
        unit: "",
        relation: Some(Relation { name: "references", dangles: true }),
    },
    Role {
        name: "part",
        group: "part",
        unit: "",
        relation: Some(Relation { name: "contains", dangles: false }),
    },
];

const ATTRIBUTES: [AttributeInfo; 6] = [
    AttributeInfo::CREATED_AT,
    AttributeInfo::FINISHED_AT,
    AttributeInfo::text("id", "an id"),
    AttributeInfo::text("model", "a model"),
    AttributeInfo::TOKENS,
    AttributeInfo::ERRORS,
];

const RULE: RuleInfo = RuleInfo { id: "T1", severity: Severity::Error, summary: "", why: "" };

/// A kind of documents.
pub(super) fn note() -> Kind {
    static KIND: SuiteKind = SuiteKind(&NOTE);
    Kind::new(&KIND)
}

/// Another kind of documents. Its artifacts are reported by those that state their core hash.
pub(super) fn sheet() -> Kind {
    static KIND: SuiteKind = SuiteKind(&SHEET);
    Kind::new(&KIND)
}

/// A kind of directories. What the file `index` contains describes them; a file `part` is an artifact of its own.
pub(super) fn folder() -> Kind {
    static KIND: SuiteKind = SuiteKind(&FOLDER);
    Kind::new(&KIND)
}

/// A document to be.
#[derive(Clone, Default)]
pub(super) struct TestDocument(String);

impl TestDocument {
    /// Creates a document. Documents of one kind with the same `core` are captures of one artifact.
    pub(super) fn new(core: &str) -> Self {
        Self(format!("core {core}\n"))
    }

    /// Creates a document whose core hash does not depend on the kind.
    pub(super) fn of_any_kind(core: &str) -> Self {
        Self(format!("core-of-any-kind {core}\n"))
    }

    fn with(mut self, line: std::fmt::Arguments<'_>) -> Self {
        let _ = writeln!(self.0, "{line}");
        self
    }

    /// Adds a line that has no meaning, so that the bytes differ.
    pub(super) fn remark(self, text: &str) -> Self {
        self.with(format_args!("remark {text}"))
    }

    pub(super) fn mention(self, role: &str, index: usize, digest: Digest) -> Self {
        self.with(format_args!("mention {role} {index} {digest}"))
    }

    pub(super) fn attribute(self, name: &str, value: &str) -> Self {
        self.with(format_args!("attribute {name} {value}"))
    }

    pub(super) fn named(self, name: &str) -> Self {
        self.with(format_args!("named {name}"))
    }

    /// Refers to a name, by a relation that requires an artifact with the name.
    pub(super) fn names(self, name: &str) -> Self {
        self.with(format_args!("names {name}"))
    }

    /// Refers to a name, by a relation that does not require an artifact with the name.
    pub(super) fn hints(self, name: &str) -> Self {
        self.with(format_args!("hints {name}"))
    }

    pub(super) fn signed(self, state: SignatureState, key: &str) -> Self {
        self.with(format_args!("signed {} {key}", state.name()))
    }

    /// Adds a signature whose state depends on how it is checked.
    pub(super) fn checked(self, key: &str) -> Self {
        self.with(format_args!("checked {key}"))
    }

    /// Admits it as a note, with this result of checking its signature.
    pub(super) fn admit_with_signature(&self, state: SignatureState) -> Admitted {
        let signature_policy = match state {
            SignatureState::Unchecked => SignaturePolicy::RejectWrong,
            SignatureState::Verified => SignaturePolicy::Require,
            SignatureState::Wrong => SignaturePolicy::Record,
        };
        note().admit(self.bytes(), &AdmitOptions { signature_policy, ..AdmitOptions::default() }).unwrap()
    }

    pub(super) fn warned(self, message: &str) -> Self {
        self.with(format_args!("warned {message}"))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.clone().into_bytes()
    }

    /// Admits it. The same bytes can be admitted as several kinds.
    pub(super) fn admit(&self, kind: Kind) -> Admitted {
        kind.admit(self.bytes(), &AdmitOptions::default()).unwrap()
    }

    /// Admits a directory with this file `index`, a file `part`, and a file `shared` with the bytes `shared`.
    pub(super) fn admit_folder(&self, part: Option<&Self>, shared: Option<&str>) -> Admitted {
        let entry =
            |name: &str, bytes| DirectoryEntry { name: name.to_owned(), content: EntryContent::File(bytes) };
        let mut entries = vec![entry("index", self.bytes())];
        entries.extend(part.map(|part| entry("part", part.bytes())));
        entries.extend(shared.map(|text| entry("shared", text.as_bytes().to_vec())));
        folder().admit_directory(Directory { entries }, &AdmitOptions::default()).unwrap()
    }
}

/// Returns the core hash of the documents of a kind with this core.
pub(super) fn core(kind: Kind, core: &str) -> CoreHash {
    CoreHash(Digest::from_content(format!("{} {core}", kind.name()).as_bytes()))
}

fn describe(kind: &str, document: &[u8], options: &AdmitOptions, findings: &mut Findings) -> Option<Draft> {
    let text = std::str::from_utf8(document).ok()?;
    let core = match text.lines().next()?.split_once(' ')? {
        ("core", name) => format!("{kind} {name}"),
        (_, name) => name.to_owned(),
    };
    let mut draft = Draft::new(CoreHash(Digest::from_content(core.as_bytes())));
    for line in text.lines().skip(1) {
        let (what, rest) = line.split_once(' ')?;
        match what {
            "mention" => draft.mentions.push(mention(rest)?),
            "attribute" => {
                let (name, value) = rest.split_once(' ')?;
                draft.attribute(ATTRIBUTES.into_iter().find(|known| known.name == name)?.name, value);
            }
            "named" => draft.identified_by.push(NameHandle::new("test", rest)),
            "names" => draft.refers_to.push((NAMES, NameHandle::new("test", rest))),
            "hints" => draft.refers_to.push((HINTS, NameHandle::new("test", rest))),
            "signed" => {
                let (state, key) = rest.split_once(' ')?;
                let key_id = (!key.is_empty()).then(|| key.to_owned());
                draft.signature = Some(Signature { state: SignatureState::named(state)?, key_id });
            }
            "checked" => {
                let state = match options.signature_policy {
                    SignaturePolicy::RejectWrong => SignatureState::Unchecked,
                    SignaturePolicy::Require => SignatureState::Verified,
                    SignaturePolicy::Record => SignatureState::Wrong,
                };
                draft.signature = Some(Signature { state, key_id: Some(rest.to_owned()) });
            }
            "warned" => findings.for_rule(RULE).warn("", rest),
            _ => {}
        }
    }
    Some(draft)
}

fn mention(text: &str) -> Option<Mention> {
    let mut words = text.split(' ');
    let role = words.next()?;
    let role = ROLES.iter().find(|known| known.name == role)?;
    let index = words.next()?.parse().ok()?;
    Some(Mention::at(role, index, words.next()?.parse().ok()?))
}

/// What the kinds declare alike. The view has no columns but those of all artifacts.
const COMMON: KindInfo = KindInfo {
    attributes: &ATTRIBUTES,
    view: ArtifactView { about: "an artifact of the suite", named_by: None, columns: &[] },
    ..KindInfo::NONE
};

static NOTE: KindInfo =
    KindInfo { name: "note", noun: "note", plural: "notes", members: &["document"], ..COMMON };

static SHEET: KindInfo = KindInfo {
    name: "sheet",
    noun: "sheet",
    plural: "sheets",
    members: &["document"],
    inverse_relation: Some("reported-by"),
    ..COMMON
};

static FOLDER: KindInfo = KindInfo {
    name: "folder",
    noun: "folder",
    plural: "folders",
    members: &["index", "part", "shared"],
    directory_rule: Some(RULE),
    ..COMMON
};

/// A kind of documents of the suite, or of directories if it has a rule about them.
struct SuiteKind(&'static KindInfo);

impl Artifact for SuiteKind {
    fn info(&self) -> &'static KindInfo {
        self.0
    }

    fn rules(&self) -> Vec<RuleInfo> {
        vec![RULE]
    }

    fn examine(&self, document: &[u8], options: &AdmitOptions, findings: &mut Findings) -> Option<Draft> {
        describe(self.0.name, document, options, findings)
    }

    fn examine_directory(
        &self,
        directory: &Directory,
        options: &AdmitOptions,
        findings: &mut Findings,
    ) -> Option<Draft> {
        let mut draft = describe(self.0.name, directory.entry("index")?.bytes()?, options, findings)?;
        if let Some(part) = directory.entry("part").and_then(DirectoryEntry::bytes) {
            let part = note().admit(part.to_vec(), options).ok()?;
            draft.mentions.push(Mention::at(ROLES.last()?, 0, part.core().0));
            draft.embedded.push(part);
        }
        Some(draft)
    }

    fn write_core(&self, members: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
        members.iter().try_for_each(|member| out.write_all(member.bytes))
    }

    fn parts<'d>(&self, _: &[MemberBytes<'d>]) -> Result<Vec<Part<'d>>, ReadError> {
        Ok(Vec::new())
    }

    fn passages(&self, _: &[MemberBytes<'_>]) -> Result<Vec<Passage>, ReadError> {
        Ok(Vec::new())
    }

    fn transcript(&self, _: &[MemberBytes<'_>], _: &mut StepVisitor<'_>) -> Result<(), ReadError> {
        Ok(())
    }
}

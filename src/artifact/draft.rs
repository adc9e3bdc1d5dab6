//! The identity and the indexed data of a document, as its kind derives them.

use chrono::{DateTime, Utc};

use super::Kind;
use super::attribute::{Attribute, AttributeInfo};
use super::directory::Member;
use super::mention::{ArtifactLocation, FileReference, Mention, REFERENCE, Relation};
use super::signature::Signature;
use super::timestamp::{MissingOffset, parse_timestamp};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::json::Value;
use crate::json::pointer::{self, Token};
use crate::secrets::SecretMatch;
use crate::validation::Report;

/// Maximum total size of the pointers to digests in one document, in bytes. They are copied into the index, so that a
/// long name above many digests would otherwise make a small document large.
pub(super) const MAX_POINTER_BYTES: usize = 16 << 20;

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
    pub(super) pointer_bytes: usize,
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

    /// Adds the attribute [`AttributeInfo::CREATED_AT`] with the first text in `candidates` that is a point in time, and
    /// returns that time, if there is one.
    pub fn state_creation<'t>(
        &mut self,
        candidates: impl IntoIterator<Item = Option<&'t str>>,
        missing_offset: MissingOffset,
    ) -> Option<DateTime<Utc>> {
        let mut times = candidates.into_iter().flatten();
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
    pub(super) fn make_sets(&mut self, declared: &[AttributeInfo]) {
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

/// A verified artifact: proof that it breaks no rule of severity error. Only [`Kind::admit`] and
/// [`Kind::admit_directory`] create one.
#[derive(Debug)]
pub struct Admitted {
    pub(super) kind: Kind,
    pub(super) capture: CaptureHash,
    pub(super) members: Vec<Member>,
    /// The manifest of a directory.
    pub(super) manifest: Option<Member>,
    pub(super) draft: Draft,
    pub(super) report: Report,
    pub(super) secrets: Vec<SecretMatch>,
    /// Whether it was made of a document in another form.
    pub(super) is_derived: bool,
}

impl Admitted {
    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns its core hash, which identifies the artifact.
    #[must_use]
    pub fn core(&self) -> CoreHash {
        self.draft.core
    }

    /// Returns its capture hash, which identifies its byte form.
    #[must_use]
    pub fn capture(&self) -> CaptureHash {
        self.capture
    }

    /// Returns its files.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the manifest of a directory, whose digest is the capture hash. It has no name.
    #[must_use]
    pub fn manifest(&self) -> Option<&Member> {
        self.manifest.as_ref()
    }

    /// Returns its files and its manifest: all of its bytes that are stored.
    pub fn stored(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().chain(&self.manifest)
    }

    /// Returns the total size of its files in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.members.iter().map(|member| member.bytes().len() as u64).sum()
    }

    /// Returns its indexed data. Mentions, attributes and names are sorted and unique.
    #[must_use]
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Returns whether the file that it was read from may still grow.
    #[must_use]
    pub fn completeness(&self) -> Completeness {
        self.draft.completeness
    }

    /// Returns the artifacts that are contained in it.
    #[must_use]
    pub fn embedded(&self) -> &[Admitted] {
        &self.draft.embedded
    }

    /// Adds artifacts that are to be stored with it.
    pub(crate) fn attach(&mut self, artifacts: Vec<Admitted>) {
        self.draft.embedded.extend(artifacts);
    }

    /// Marks it as made of `original`, which is stored with it, and in which its secrets are.
    pub(crate) fn derived_from(mut self, original: Admitted) -> Self {
        self.is_derived = true;
        self.secrets = original.secrets().to_vec();
        self.attach(vec![original]);
        self
    }

    /// Returns whether it was made of a document in another form, so that it does not have the bytes that were read.
    #[must_use]
    pub fn is_derived(&self) -> bool {
        self.is_derived
    }

    /// Adds what looks like a secret in an artifact that is stored with it.
    pub(crate) fn add_secrets(&mut self, secrets: Vec<SecretMatch>) {
        self.secrets.extend(secrets);
    }

    /// Removes and returns the artifacts that are contained in it.
    #[must_use]
    pub fn take_embedded(&mut self) -> Vec<Admitted> {
        std::mem::take(&mut self.draft.embedded)
    }

    /// Returns the result of checking its signature, or `None` if it is not signed.
    #[must_use]
    pub fn signature(&self) -> Option<&Signature> {
        self.draft.signature.as_ref()
    }

    /// Returns what looks like a secret in it, if that was to be reported ([`SecretPolicy`](crate::secrets::SecretPolicy)).
    /// The places in artifacts of several files begin with the name of the file.
    #[must_use]
    pub fn secrets(&self) -> &[SecretMatch] {
        &self.secrets
    }

    /// Returns its report, which contains only warnings.
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

impl Draft {
    /// Adds a [`REFERENCE`] for every string and member name in `value` that is exactly `sha256:` and 64 lowercase hex
    /// digits, and the [files](FileReference) whose paths are beside such digests. `prefix` is prepended to the pointers.
    /// Locations that match one of `indexed`, in which `*` matches any one token, are skipped: the kind indexes them under
    /// a role of their own.
    pub fn collect_references(&mut self, value: &Value<'_>, prefix: &str, indexed: &[&str]) {
        let mut collector = ReferenceCollector { prefix, indexed, tokens: Vec::new(), draft: self };
        collector.visit(value);
    }
}

struct ReferenceCollector<'v, 'c> {
    prefix: &'c str,
    indexed: &'c [&'c str],
    tokens: Vec<Token<'v>>,
    draft: &'c mut Draft,
}

impl<'v> ReferenceCollector<'v, '_> {
    fn visit(&mut self, value: &'v Value<'_>) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.tokens.push(Token::Index(index));
                    self.visit(element);
                    self.tokens.pop();
                }
            }
            Value::Object(object) => {
                FileReference::collect(object, &mut self.draft.files);
                for (name, member) in object.iter() {
                    self.tokens.push(Token::Name(name));
                    self.text(name);
                    self.visit(member);
                    self.tokens.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str) {
        // The document will be rejected: nothing more is recorded, and no more pointers are built.
        if self.draft.pointer_bytes > MAX_POINTER_BYTES {
            return;
        }
        let Some(digest) = Digest::parse_prefixed(text) else {
            return;
        };
        if !self.indexed.iter().any(|pattern| matches(pattern, &self.tokens)) {
            let at = pointer::format(&self.tokens);
            let place = ArtifactLocation::Pointer(format!("{}{at}", self.prefix));
            self.draft.pointer_bytes += at.len();
            self.draft.mentions.push(Mention { role: &REFERENCE, place, digest });
        }
    }
}

/// Returns whether `tokens` match a `pattern` of names that need no escapes.
fn matches(pattern: &str, tokens: &[Token<'_>]) -> bool {
    let rest = tokens.iter().try_fold(pattern, |rest, token| {
        let rest = rest.strip_prefix('/')?;
        match token {
            Token::Name(name) => rest.strip_prefix('*').or_else(|| rest.strip_prefix(name)),
            Token::Index(_) => rest.strip_prefix('*'),
        }
    });
    // A name that contains a slash could have matched two tokens at once.
    rest == Some("") && pattern.bytes().filter(|byte| *byte == b'/').count() == tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    #[test]
    fn references_are_whole_strings_and_names_outside_indexed_places() {
        let digest = Digest::from_content(b"x");
        let text = format!(
            r#"{{"steps": [{{"hash": "{digest}", "note": "{digest}"}}], "steps/*": {{"hash": "{digest}"}}, "{digest}": 1,
                "a/b": " {digest}", "bare": "{}", "c~": ["{digest}"]}}"#,
            digest.hex()
        );
        let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let mut draft = Draft::new(CoreHash(digest));
        draft.collect_references(&value, "line 2 ", &["/steps/*/hash"]);
        let places: Vec<String> = draft.mentions.iter().map(|mention| mention.place.to_string()).collect();
        assert_eq!(
            places,
            [
                "line 2 /steps/0/note".to_owned(),
                "line 2 /steps~1*/hash".to_owned(),
                format!("line 2 /{digest}"),
                "line 2 /c~0/0".to_owned()
            ]
        );
    }
}

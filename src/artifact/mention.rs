use std::fmt;

use super::Draft;

use crate::canonical::Value;
use crate::canonical::pointer::{self, Token};
use crate::digest::Digest;

/// A typed edge from an artifact that mentions a handle to the artifact that the handle identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relation {
    /// The name, such as `derived-from`.
    pub name: &'static str,
    /// Whether the mention promises that the other artifact exists somewhere, so that a missing one is worth showing.
    pub dangles: bool,
}

/// In which capacity an artifact mentions a digest. Kinds declare their roles as constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Role {
    /// The name, such as `state_after`.
    pub name: &'static str,
    /// What is asked for when roles do not matter in detail, such as `state`.
    pub group: &'static str,
    /// What the place counts, such as `step`; empty where it is a JSON Pointer.
    pub unit: &'static str,
    /// How the artifact relates to the one that the digest identifies, if it does.
    pub relation: Option<Relation>,
}

/// The role of digests that a document states without the format giving them a meaning.
pub const REFERENCE: Role = Role {
    name: "reference",
    group: "reference",
    unit: "",
    relation: Some(Relation { name: "references", dangles: true }),
};

/// Where in an artifact something stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The number of the interaction, step or record, from 0.
    Index(u32),
    /// A JSON Pointer; in JSON Lines, `line 7` and a pointer into it.
    Pointer(String),
}

/// What members are called that have digests of things which are no artifacts of any kind: one of these words in the name of
/// the member, between `_`, `-`, `.` or a change of case, is enough.
const OF_NO_KIND: &[&str] = &[
    "args",
    "arguments",
    "build",
    "code",
    "commit",
    "config",
    "configuration",
    "content",
    "environment",
    "env",
    "evidence",
    "file",
    "image",
    "input",
    "inputs",
    "intent",
    "key",
    "lockfile",
    "nonce",
    "output",
    "outputs",
    "patch",
    "payload",
    "policy",
    "prompt",
    "proposal",
    "request",
    "response",
    "schema",
    "schemas",
    "signature",
    "spec",
    "state",
    "template",
    "tool",
    "tools",
    "tree",
];

impl Place {
    /// Whether what stands here is named as the digest of something that no kind of artifact is: a schema, a proposal, a
    /// prompt. The name is that of the innermost member. What has no such name may be of an artifact.
    #[must_use]
    pub fn is_of_no_kind(&self) -> bool {
        let Self::Pointer(pointer) = self else { return false };
        // A pointer begins with what comes before its first slash, such as the name of a file.
        let Some((_, tokens)) = pointer.split_once('/') else { return false };
        let is_name = |token: &&str| !token.bytes().all(|byte| byte.is_ascii_digit());
        let Some(name) = tokens.rsplit('/').find(is_name) else { return false };
        words(name).any(|word| OF_NO_KIND.contains(&word.as_str()))
    }
}

/// The words of a name like `schema_hash` or `schemaHash`, in lower case.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for character in name.chars() {
        let begins = character.is_uppercase() && before.is_lowercase();
        if !character.is_alphanumeric() || begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character.is_alphanumeric()) {
            word.extend(character.to_lowercase());
        }
        before = character;
    }
    words.into_iter()
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Pointer(pointer) => f.write_str(pointer),
        }
    }
}

/// A digest that an artifact states or implies, with its role and place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mention {
    /// In which capacity.
    pub role: &'static Role,
    /// Where.
    pub place: Place,
    /// The digest.
    pub digest: Digest,
}

impl Mention {
    /// A mention at the interaction, step or record `index`. No document within the limits has more than `u32` counts.
    #[must_use]
    pub fn at(role: &'static Role, index: usize, digest: Digest) -> Self {
        Self { role, place: Place::Index(u32::try_from(index).unwrap_or(u32::MAX)), digest }
    }
}

/// Pointers to digests may have so many bytes in one document. They are copied into the index, so a long name above many
/// digests would otherwise make a small document large.
pub(super) const MAX_POINTER_BYTES: usize = 16 << 20;

/// See [`Draft::collect_references`].
pub(super) fn collect_references(value: &Value<'_>, prefix: &str, indexed: &[&str], draft: &mut Draft) {
    let mut collector = Collector { prefix, indexed, tokens: Vec::new(), draft };
    collector.visit(value);
}

struct Collector<'v, 'c> {
    prefix: &'c str,
    indexed: &'c [&'c str],
    tokens: Vec<Token<'v>>,
    draft: &'c mut Draft,
}

impl<'v> Collector<'v, '_> {
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
        // The document will be refused: nothing more is kept of it, and no more pointers are made.
        if self.draft.pointer_bytes > MAX_POINTER_BYTES {
            return;
        }
        let Some(digest) = Digest::stated(text) else {
            return;
        };
        if !self.indexed.iter().any(|pattern| matches(pattern, &self.tokens)) {
            let at = pointer::of(&self.tokens);
            let place = Place::Pointer(format!("{}{at}", self.prefix));
            self.draft.pointer_bytes += at.len();
            self.draft.mentions.push(Mention { role: &REFERENCE, place, digest });
        }
    }
}

/// Whether `tokens` match a `pattern` of names that need no escapes.
fn matches(pattern: &str, tokens: &[Token<'_>]) -> bool {
    let rest = tokens.iter().try_fold(pattern, |rest, token| {
        let rest = rest.strip_prefix('/')?;
        match token {
            Token::Name(name) => rest.strip_prefix('*').or_else(|| rest.strip_prefix(name)),
            Token::Index(_) => rest.strip_prefix('*'),
        }
    });
    // A name with a slash could have taken two steps at once.
    rest == Some("") && pattern.bytes().filter(|byte| *byte == b'/').count() == tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_what_no_kind_stores_are_told_by_their_names() {
        let place = |pointer: &str| Place::Pointer(pointer.to_owned()).is_of_no_kind();
        for pointer in [
            "/schema_hash",
            "/io/0/schemaDigest",
            "patch.json /source_proposal_hash",
            "/prompts/3/prompt",
            "/spec/1",
        ] {
            assert!(place(pointer), "{pointer}");
        }
        for pointer in
            ["/metadata/contract", "/metadata/model_io_hash", "/parent", "/schema/session", "/3", "", "x"]
        {
            assert!(!place(pointer), "{pointer}");
        }
        assert!(!Place::Index(3).is_of_no_kind());
    }
    use crate::canonical::reader::{self, Limits};
    use crate::digest::CoreHash;

    #[test]
    fn references_are_whole_strings_and_names_outside_indexed_places() {
        let digest = Digest::of(b"x");
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

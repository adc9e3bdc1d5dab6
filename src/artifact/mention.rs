use std::fmt;

use crate::digest::Digest;
use crate::json::{Object, Value};

/// A typed edge from an artifact that mentions a handle to the artifact that the handle identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relation {
    /// The name, such as `derived-from`.
    pub name: &'static str,
    /// Whether a mention implies that the other artifact exists, so that a missing one is worth reporting.
    pub dangles: bool,
}

impl Relation {
    /// An artifact records the run that it names.
    pub const RECORDS_RUN: Self = Self { name: "records-run", dangles: true };
}

/// The role in which an artifact mentions a digest. Kinds declare their roles as constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Role {
    /// The name, such as `state_after`.
    pub name: &'static str,
    /// The group used in queries that do not distinguish between roles, such as `state`.
    pub group: &'static str,
    /// The unit of the location, such as `step`; empty if it is a JSON Pointer.
    pub unit: &'static str,
    /// The relation of the artifact to the one that the digest identifies, if there is one.
    pub relation: Option<Relation>,
}

/// Groups of roles that queries use: a vocabulary that all kinds share, so that no query names a kind. A kind takes part
/// in what a query does by declaring a role of the group: in the comparison of histories by [`RECORD`](group::RECORD) or
/// [`STEP`](group::STEP), in replays by [`PROMPT`](group::PROMPT) and [`RESPONSE`](group::RESPONSE). A group that no query
/// but the filter of mentions uses is declared by its kind alone.
pub mod group {
    /// Prompts of models.
    pub const PROMPT: &str = "prompt";
    /// Responses of models and tools.
    pub const RESPONSE: &str = "response";
    /// Records of a history that begins with a header.
    pub const RECORD: &str = "record";
    /// Steps of a history that has a name.
    pub const STEP: &str = "step";
    /// Files of an artifact.
    pub const MEMBER: &str = "member";
    /// The part of a run before this one.
    pub const PART: &str = "part";
    /// The document that a run was made from, at its first record.
    pub const INPUTS: &str = "problem_spec";
}

/// Relations that are more than one kind's own.
pub mod relation {
    /// The relation to artifacts whose bytes are part of the artifact.
    pub const CONTAINS: &str = "contains";
    /// The relation of a run to a recording with one of its exchanges. Neither names the other.
    pub const REPLAYS: &str = "replays";
    /// The relation of a part of a run to the part before it.
    pub const CONTINUES: &str = "continues";
    /// The relation of a part of a run with a name of its own to the first part, whose name is that of the run.
    pub const PART_OF: &str = "part-of";
    /// The relation between two histories of one run.
    pub const FORKS: &str = "forks";
    /// The relation to artifacts whose core hash the artifact states.
    pub const REFERENCES: &str = "references";
}

/// The relation to contents that an artifact identifies by their digest, which are in the vault only if they were added
/// as artifacts of their own.
pub const REFERS_TO: Relation = Relation { name: relation::REFERENCES, dangles: false };

/// The role of digests that have no meaning defined by the format.
pub const REFERENCE: Role = Role {
    name: "reference",
    group: "reference",
    unit: "",
    relation: Some(Relation { name: relation::REFERENCES, dangles: true }),
};

/// A location in an artifact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArtifactLocation {
    /// The number of the interaction, step or record, from 0.
    Index(u32),
    /// A JSON Pointer; in JSON Lines, `line 7` and a pointer into it.
    Pointer(String),
}

/// Words in the names of members whose digests do not identify an artifact of a kind with a format. One of these words,
/// delimited by `_`, `-`, `.` or a change of case, is sufficient.
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

impl ArtifactLocation {
    /// Returns whether the name of the innermost member shows that the digest identifies something that no format
    /// defines: a schema, a proposal, a prompt. It can be in a vault, but is usually not expected to be. Without such a
    /// name it may identify an artifact of any kind.
    #[must_use]
    pub fn is_of_no_kind(&self) -> bool {
        let Self::Pointer(pointer) = self else { return false };
        // The part before the first slash is not a token but, for example, a file name.
        let Some((_, tokens)) = pointer.split_once('/') else { return false };
        let is_name = |token: &&str| !token.bytes().all(|byte| byte.is_ascii_digit());
        let Some(name) = tokens.rsplit('/').find(is_name) else { return false };
        words(name).any(|word| OF_NO_KIND.contains(&word.as_str()))
    }
}

/// Returns the words of a name like `schema_hash` or `schemaHash`, in lower case.
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

impl fmt::Display for ArtifactLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Pointer(pointer) => f.write_str(pointer),
        }
    }
}

/// A digest that an artifact states or implies, with its role and location.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mention {
    /// The role.
    pub role: &'static Role,
    /// The location.
    pub place: ArtifactLocation,
    /// The digest.
    pub digest: Digest,
}

impl Mention {
    /// Creates a mention at the interaction, step or record `index`. No document within the limits has more than `u32`
    /// can count.
    #[must_use]
    pub fn at(role: &'static Role, index: usize, digest: Digest) -> Self {
        Self { role, place: ArtifactLocation::Index(u32::try_from(index).unwrap_or(u32::MAX)), digest }
    }
}

/// A content whose digest artifacts of a kind state, such as a state. Kinds declare their contents as constants.
#[derive(Clone, Copy, Debug)]
pub struct MentionedContent {
    /// The group of the roles under which artifacts mention the digest.
    pub group: &'static str,
    /// The noun for it, such as `reasoning state`.
    pub noun: &'static str,
    /// Returns why bytes with the digest are not such a content as the format defines it, as the end of a sentence that
    /// begins with their name; `None` if they are.
    pub defect: fn(&[u8]) -> Option<String>,
}

/// Names of members that contain the path of a file whose digest is in the same object.
const PATHS: [&str; 6] = ["path", "file", "file_path", "filename", "name", "schema"];

/// Maximum length of a path in bytes, and maximum number of its components.
const MAX_PATH: usize = 4096;
const MAX_COMPONENTS: usize = 32;

/// Maximum number of references of one artifact: each costs an attempt to open a file.
const MAX_REFERENCES: usize = 256;

/// A file that an artifact identifies by its digest, and whose path it states in the same object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileReference {
    path: String,
    /// The digest of its bytes.
    pub digest: Digest,
}

impl FileReference {
    /// Creates the reference to the file at `path`, or returns `None` unless it is a relative path that does not lead out
    /// of the directory it is relative to.
    #[must_use]
    pub fn new(path: &str, digest: Digest) -> Option<Self> {
        let is_plain = !path.is_empty() && path.len() <= MAX_PATH && !path.contains(['\\', '\0', ':']);
        let is_inside = |part: &str| !matches!(part, "" | "." | "..");
        let parts = || path.split('/');
        (is_plain && parts().all(is_inside) && parts().count() <= MAX_COMPONENTS)
            .then(|| Self { path: path.to_owned(), digest })
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Iterates over the components of the path: names, neither empty nor `.` or `..`.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.path.split('/')
    }

    /// Adds the references of one object, without those of the objects in it.
    pub(super) fn collect(object: &Object<'_>, references: &mut Vec<Self>) {
        if references.len() >= MAX_REFERENCES {
            return;
        }
        // An object may have any number of digests: the paths are looked up once.
        let paths: Vec<&str> = PATHS.into_iter().filter_map(|name| path_in(object, name)).collect();
        if paths.is_empty() {
            return;
        }
        let digest = |(_, value): (&str, &Value<'_>)| value.as_str().and_then(Digest::parse_prefixed);
        let all =
            object.iter().filter_map(digest).flat_map(|digest| paths.iter().map(move |path| (path, digest)));
        let valid = all.filter_map(|(path, digest)| Self::new(path, digest));
        references.extend(valid.take(MAX_REFERENCES.saturating_sub(references.len())));
    }
}

/// Returns the path in the member `name`. What is only called a name is one if it looks like a file name: steps and
/// tools have names too.
fn path_in<'o>(object: &'o Object<'_>, name: &str) -> Option<&'o str> {
    let path = object.get(name)?.as_str()?;
    (name != "name" || path.contains(['.', '/'])).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    #[test]
    fn digests_of_what_no_kind_stores_are_told_by_their_names() {
        let place = |pointer: &str| ArtifactLocation::Pointer(pointer.to_owned()).is_of_no_kind();
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
        assert!(!ArtifactLocation::Index(3).is_of_no_kind());
    }

    #[test]
    fn only_paths_that_stay_inside_are_references() {
        let digest = Digest::from_content(b"x");
        for path in ["a", "a/b.json", "a b/..c", "…"] {
            assert!(FileReference::new(path, digest).is_some(), "{path}");
        }
        let deep = "a/".repeat(MAX_COMPONENTS) + "b";
        let escaping =
            ["", "/etc/passwd", "../a", "a/../../b", "a//b", "./a", "a/", "C:/a", r"a\..\b", "a\0b", &deep];
        for path in escaping {
            assert!(FileReference::new(path, digest).is_none(), "{path}");
        }
    }

    #[test]
    fn the_path_and_the_digest_are_in_one_object() {
        let digest = Digest::from_content(b"x");
        let text = format!(
            r#"{{"path": "a", "sha256": "{digest}", "file": 1, "name": "b.c", "filename": "d", "in": {{"path": "c"}}, "bare": "{}"}}"#,
            digest.hex()
        );
        let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let mut references = Vec::new();
        FileReference::collect(value.as_object().unwrap(), &mut references);
        let expected = ["a", "d", "b.c"].map(|path| FileReference::new(path, digest).unwrap());
        assert_eq!(references, expected);
    }
}

//! The audited run, and the documents that it refers to.

use std::collections::{HashMap, HashSet};

use crate::artifact::{Kind, MemberBytes, MentionedContent};
use crate::digest::Digest;
use crate::json::reader::{self, Limits, ReadError};
use crate::json::{Object, Value, pointer};

/// A run to be audited.
#[derive(Clone, Copy, Debug)]
pub struct AuditedRun<'r> {
    /// Its kind.
    pub kind: Kind,
    /// Its files.
    pub members: &'r [MemberBytes<'r>],
    /// The digests that identify its files, by name. A file can have several.
    pub digests: &'r [(String, Digest)],
    /// The digests that it states of contents outside it.
    pub declared_digests: &'r [DeclaredDigest],
}

/// A digest that a run states of a content outside it, such as a state.
#[derive(Clone, Debug)]
pub struct DeclaredDigest {
    /// The digest.
    pub digest: Digest,
    /// Its location as text, such as `record 6`.
    pub place: String,
    /// The content.
    pub content: MentionedContent,
}

/// Bytes from the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedContent {
    /// Their description.
    pub name: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The reason that a run could not be audited.
#[derive(Debug, thiserror::Error)]
pub enum AuditError<E> {
    /// A file of the run is intact, but this program cannot interpret it.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The bytes could not be read from the vault.
    #[error("bytes cannot be read from the vault")]
    Vault(#[source] E),
}

/// Returns a description of the bytes with each digest in `requested`. Digests without known bytes are omitted.
pub(super) fn resolve_digests<E>(
    requested: &HashSet<Digest>,
    run: &AuditedRun<'_>,
    held: &mut dyn FnMut(Digest) -> Result<Option<ResolvedContent>, E>,
) -> Result<HashMap<Digest, String>, AuditError<E>> {
    let mut known = HashMap::new();
    let mut sorted: Vec<Digest> = requested.iter().copied().collect();
    sorted.sort_unstable();
    for digest in &sorted {
        if let Some(held) = held(*digest).map_err(AuditError::Vault)? {
            // The digest of empty content proves nothing.
            if !held.bytes.is_empty() {
                known.insert(*digest, held.name);
            }
        }
    }
    for (name, digest) in run.digests.iter().filter(|(_, digest)| requested.contains(digest)) {
        known.entry(*digest).or_insert_with(|| format!("the file {name} of the run"));
    }
    if sorted.iter().any(|digest| !known.contains_key(digest)) {
        let mut texts = TextDigestSearch { requested, known: &mut known };
        for member in run.members {
            texts.add_member(member.name, member.bytes, run.members.len() > 1)?;
        }
    }
    Ok(known)
}

struct TextDigestSearch<'w> {
    requested: &'w HashSet<Digest>,
    known: &'w mut HashMap<Digest, String>,
}

impl TextDigestSearch<'_> {
    /// Searches the texts of one file: a JSON document, or one per line.
    fn add_member(&mut self, name: &str, bytes: &[u8], is_one_of_several: bool) -> Result<(), ReadError> {
        let within = if is_one_of_several { format!("{name} ") } else { String::new() };
        if let Ok(value) = reader::read_keeping_overflow(bytes, &Limits::most()) {
            self.visit(&value, &within, &mut String::new());
            return Ok(());
        }
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if !line.trim_ascii().is_empty() {
                let value = reader::read_keeping_overflow(line, &Limits::most())?;
                self.visit(&value, &format!("{within}line {} ", index + 1), &mut String::new());
            }
        }
        Ok(())
    }

    fn visit(&mut self, value: &Value<'_>, within: &str, at: &mut String) {
        match value {
            Value::String(text) if !text.is_empty() => {
                let digest = Digest::from_content(text.as_bytes());
                if self.requested.contains(&digest) {
                    self.known
                        .entry(digest)
                        .or_insert_with(|| format!("the text at {within}{at} of the run"));
                }
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    let length = at.len();
                    pointer::push_index(at, index);
                    self.visit(element, within, at);
                    at.truncate(length);
                }
            }
            Value::Object(object) => {
                for (name, member) in Object::iter(object) {
                    let length = at.len();
                    pointer::push(at, name);
                    self.visit(member, within, at);
                    at.truncate(length);
                }
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

//! Resolution of digests to bytes in the vault, and to texts and files of a run.

use std::collections::{HashMap, HashSet};

use super::run::{AuditError, AuditedRun, ResolvedContent};
use crate::digest::Digest;
use crate::json::reader::{self, Limits, ReadError};
use crate::json::{Object, Value, pointer};

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

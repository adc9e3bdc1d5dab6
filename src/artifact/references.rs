//! Collection of the digests that a document states anywhere.

use super::draft::{Draft, MAX_POINTER_BYTES};
use super::mention::{ArtifactLocation, FileReference, Mention, REFERENCE};
use crate::digest::Digest;
use crate::json::Value;
use crate::json::pointer::{self, Token};

impl Draft {
    /// Adds a [`REFERENCE`] for every string and member name in `value` that is exactly `sha256:` and 64 lowercase hex
    /// digits, and the [files](FileReference) whose paths are beside such digests. `prefix` is prepended to the pointers. Locations that match one of `indexed`, in which `*` matches any
    /// one token, are skipped: the kind indexes them under a role of their own.
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
    use crate::digest::CoreHash;
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

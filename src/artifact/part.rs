//! The parts of a document, by which it is compared, and its text in fields, which is searched.

use std::borrow::Cow;

use super::mention::ArtifactLocation;
use crate::digest::Digest;
use crate::json::pointer::{PointerPattern, Token};
use crate::json::reader::{self, Limits};
use crate::json::{Object, Value};

/// A unit of comparison between two artifacts of a kind: an interaction, a step, a record, an effect, a file.
#[derive(Clone, Debug)]
pub struct Part<'d> {
    /// Its human-readable label, such as `interaction 3`. It may quote the artifact.
    pub label: String,
    /// The digest of the content without ephemeral values: parts with the same identity are equal.
    pub identity: Digest,
    /// Keys that align two parts that differ, the more specific one first.
    pub keys: [Digest; 2],
    /// The content.
    pub content: PartContent<'d>,
    /// The comparison functions.
    pub sort: &'static PartKind,
    /// Whether it describes the circumstances of a run, such as its environment, and not what happened in it.
    pub is_circumstance: bool,
}

/// The content of a part, parsed or still to be parsed: a long trace need not be in memory as values.
#[derive(Clone, Debug)]
pub enum PartContent<'d> {
    /// A value.
    Value(Value<'d>),
    /// The text of a value, which was parsed without error before.
    Text(&'d [u8]),
}

/// A kind of part, with its comparison functions.
#[derive(Debug)]
pub struct PartKind {
    /// Returns whether the value at a location of the content varies between identical runs or follows from the
    /// position.
    pub is_ephemeral: fn(&[Token<'_>]) -> bool,
    /// Returns the canonical text of a value in the profile of the kind, or `None` if it has none.
    pub canonical: fn(&Value<'_>) -> Option<Vec<u8>>,
    /// Describes the difference between two aligned parts, given the names of the members that differ.
    pub describe: fn(one: &Value<'_>, other: &Value<'_>, names: &[&str]) -> String,
}

impl<'d> Part<'d> {
    /// Creates a part of this kind, whose identity is that of the non-ephemeral content of `value`.
    #[must_use]
    pub fn new(label: String, keys: [Digest; 2], value: Value<'d>, sort: &'static PartKind) -> Self {
        let identity = sort.identity(&value);
        Self { label, identity, keys, content: PartContent::Value(value), sort, is_circumstance: false }
    }

    /// Returns the part without the values at these places.
    #[must_use]
    pub fn without(self, ignored: &[PointerPattern]) -> Self {
        if ignored.is_empty() {
            return self;
        }
        let mut value = match self.content {
            PartContent::Value(value) => value,
            PartContent::Text(_) => self.value().into_owned(),
        };
        for pattern in ignored {
            value.clear(pattern);
        }
        Self { identity: self.sort.identity(&value), content: PartContent::Value(value), ..self }
    }

    /// The content.
    #[must_use]
    pub fn value(&self) -> Cow<'_, Value<'d>> {
        match &self.content {
            PartContent::Value(value) => Cow::Borrowed(value),
            PartContent::Text(text) => {
                let limits = Limits { bytes: u64::MAX, depth: Limits::MAX_DEPTH, ..Limits::default() };
                Cow::Owned(reader::read_keeping_overflow(text, &limits).unwrap_or(Value::Null))
            }
        }
    }
}

impl PartKind {
    /// Returns the digest of the canonical text of `value` without ephemeral content.
    #[must_use]
    pub fn identity(&self, value: &Value<'_>) -> Digest {
        self.digest(&self.lasting(value))
    }

    /// Returns the digest of the canonical text of `value`.
    #[must_use]
    pub fn digest(&self, value: &Value<'_>) -> Digest {
        // A value without a canonical form is in no core and is identified by its debug representation.
        Digest::from_content(&(self.canonical)(value).unwrap_or_else(|| format!("{value:?}").into_bytes()))
    }

    /// Returns whether the member `name` is equal in both values.
    #[must_use]
    pub fn is_same(&self, name: &str, one: &Value<'_>, other: &Value<'_>) -> bool {
        let held = |value: &Value<'_>| {
            // How a value is normalized depends only on the name of the member that directly holds it.
            let held =
                Value::Object(Object::from_members(vec![(Cow::Owned(name.to_owned()), value.clone())]));
            self.digest(&held)
        };
        one == other || held(one) == held(other)
    }

    /// Returns `value` without ephemeral content.
    #[must_use]
    pub fn lasting<'d>(&self, value: &Value<'d>) -> Value<'d> {
        self.lasting_at(value, &mut Vec::new()).unwrap_or(Value::Null)
    }

    /// Returns `value` without ephemeral content, or `None` if the value itself is ephemeral.
    fn lasting_at<'v, 'd>(&self, value: &'v Value<'d>, at: &mut Vec<Token<'v>>) -> Option<Value<'d>> {
        if (self.is_ephemeral)(at) {
            return None;
        }
        Some(match value {
            Value::Array(elements) => {
                let elements = elements.iter().enumerate();
                let lasting = elements.filter_map(|(index, element)| {
                    at.push(Token::Index(index));
                    let lasting = self.lasting_at(element, at);
                    at.pop();
                    lasting
                });
                Value::Array(lasting.collect())
            }
            Value::Object(object) => {
                let lasting = object.iter().filter_map(|(name, member)| {
                    at.push(Token::Name(name));
                    let lasting = self.lasting_at(member, at);
                    at.pop();
                    Some((Cow::Owned(name.to_owned()), lasting?))
                });
                Value::Object(Object::from_members(lasting.collect()))
            }
            other => other.clone(),
        })
    }
}

/// Returns the text that the members `names` differ.
#[must_use]
pub fn differ(names: &[&str]) -> String {
    match names {
        [] => "it is different".to_owned(),
        [only] => format!("{only} differs"),
        names => format!("{} differ", names.join(", ")),
    }
}

/// Returns the digest that aligns parts: that of `words`, each with its length, so that different lists cannot collide.
#[must_use]
pub fn same_place(words: &[&str]) -> Digest {
    let words: Vec<String> = words.iter().map(|word| format!("{}:{word}", word.len())).collect();
    Digest::from_content(words.concat().as_bytes())
}

/// A searchable text of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The field that it belongs to.
    pub field: Field,
    /// The unit of the location, such as `step`; empty if it is a pointer.
    pub unit: &'static str,
    /// The location.
    pub place: ArtifactLocation,
    /// The text.
    pub text: String,
}

/// A field of passages, such as the responses of models. Kinds declare the fields that only they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field(&'static str);

impl Field {
    /// The response of a model.
    pub const RESPONSE: Self = Self("response");
    /// The prompt of a model.
    pub const PROMPT: Self = Self("prompt");
    /// The name of a tool and its arguments.
    pub const TOOL: Self = Self("tool");
    /// The output of a tool or a step, including errors.
    pub const OUTPUT: Self = Self("output");
    /// The name and description of a step.
    pub const STEP: Self = Self("step");

    /// The fields that several kinds have.
    pub const SHARED: [Self; 5] = [Self::RESPONSE, Self::PROMPT, Self::TOOL, Self::OUTPUT, Self::STEP];

    /// Creates a field of one kind. The name consists of lowercase letters, and is a column of the search index.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Returns the name, such as `response`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0
    }
}

/// A collector of the passages of an artifact, in document order.
#[derive(Default)]
pub struct PassageCollector {
    gathered: Vec<Passage>,
}

impl PassageCollector {
    /// Adds a text at the interaction, step or record `index`, unless it is blank.
    pub fn add_at(&mut self, field: Field, unit: &'static str, index: usize, text: impl Into<String>) {
        let place = ArtifactLocation::Index(u32::try_from(index).unwrap_or(u32::MAX));
        self.add(Passage { field, unit, place, text: text.into() });
    }

    /// Adds a text at a JSON Pointer, unless it is blank.
    pub fn add_pointer(&mut self, field: Field, pointer: String, text: impl Into<String>) {
        self.add(Passage { field, unit: "", place: ArtifactLocation::Pointer(pointer), text: text.into() });
    }

    fn add(&mut self, passage: Passage) {
        if passage.text.contains(|character: char| !character.is_whitespace()) {
            self.gathered.push(passage);
        }
    }

    /// Returns the collected passages.
    #[must_use]
    pub fn into_vec(self) -> Vec<Passage> {
        self.gathered
    }
}

/// Returns the words in `value` as readable text: one line for each string and number, prefixed by the name of its
/// member. Digests are omitted: they are indexed as mentions.
#[must_use]
pub fn words_of(value: &Value<'_>) -> String {
    let mut words = String::new();
    write_words(value, "", &mut words);
    words.truncate(words.trim_end().len());
    words
}

fn write_words(value: &Value<'_>, name: &str, words: &mut String) {
    match value {
        Value::String(text) => write_line(text, name, words),
        Value::Number(number) => write_line(number.literal(), name, words),
        Value::Bool(truth) => write_line(if *truth { "true" } else { "false" }, name, words),
        Value::Array(elements) => elements.iter().for_each(|element| write_words(element, name, words)),
        Value::Object(object) => object.iter().for_each(|(name, member)| write_words(member, name, words)),
        Value::Null => {}
    }
}

fn write_line(text: &str, name: &str, words: &mut String) {
    if Digest::parse_either(text).is_some() {
        return;
    }
    if !name.is_empty() {
        words.push_str(name);
        words.push_str(": ");
    }
    words.push_str(text);
    words.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    #[test]
    fn words_are_lines_with_their_names_and_without_digests() {
        let digest = Digest::from_content(b"x");
        let text = format!(
            r#"{{"tool": "lookup", "args": {{"city": "Paris\nFrance", "days": [1, 2.50], "dry": true, "none": null}},
                "seen": "{digest}", "bare": "{}", "empty": {{}}}}"#,
            digest.hex()
        );
        let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(words_of(&value), "tool: lookup\ncity: Paris\nFrance\ndays: 1\ndays: 2.50\ndry: true");
        assert_eq!(words_of(&Value::String("only a text ".into())), "only a text");
    }

    #[test]
    fn blank_texts_are_no_passages() {
        let mut passages = PassageCollector::default();
        passages.add_at(Field::RESPONSE, "interaction", 0, " \n\t");
        passages.add_pointer(Field::new("pack"), "run.json".to_owned(), "");
        assert_eq!(passages.into_vec(), []);
    }
}

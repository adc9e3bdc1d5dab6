use std::borrow::Cow;

use crate::digest::Digest;
use crate::json::pointer::Token;
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
        Self { label, identity, keys, content: PartContent::Value(value), sort }
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

use std::borrow::Cow;

use crate::canonical::pointer::Token;
use crate::canonical::reader::{self, Limits};
use crate::canonical::{Object, Value};
use crate::digest::Digest;

/// What two artifacts of a kind are compared by: an interaction, a step, a record, an effect, a file.
#[derive(Clone, Debug)]
pub struct Part<'d> {
    /// What people call it, such as `interaction 3`. It may quote the artifact.
    pub label: String,
    /// Parts with the same identity are the same, whatever is ephemeral in them.
    pub identity: Digest,
    /// What makes two parts the same place of their artifacts, though they differ; the narrower notion first.
    pub keys: [Digest; 2],
    /// What it says.
    pub content: Content<'d>,
    /// How to compare it.
    pub sort: &'static PartSort,
}

/// What a part says, read or still to be read: a long trace need not be in memory as values.
#[derive(Clone, Debug)]
pub enum Content<'d> {
    /// A value.
    Value(Value<'d>),
    /// The text of one, which was read without error before.
    Text(&'d [u8]),
}

/// How parts of one sort are compared.
#[derive(Debug)]
pub struct PartSort {
    /// Whether what stands at a place of the content varies between identical runs, or is given by the position.
    pub is_ephemeral: fn(&[Token<'_>]) -> bool,
    /// The canonical text of a value in the profile of the kind; nothing if it has none.
    pub canonical: fn(&Value<'_>) -> Option<Vec<u8>>,
    /// Says of two parts in the same place what is different, given the names of the members that are.
    pub tell: fn(one: &Value<'_>, other: &Value<'_>, names: &[&str]) -> String,
}

impl<'d> Part<'d> {
    /// A part of this sort, whose identity is that of what is not ephemeral in `value`.
    #[must_use]
    pub fn new(label: String, keys: [Digest; 2], value: Value<'d>, sort: &'static PartSort) -> Self {
        let identity = sort.identity(&value);
        Self { label, identity, keys, content: Content::Value(value), sort }
    }

    /// What it says.
    #[must_use]
    pub fn value(&self) -> Cow<'_, Value<'d>> {
        match &self.content {
            Content::Value(value) => Cow::Borrowed(value),
            Content::Text(text) => {
                let limits = Limits { bytes: u64::MAX, depth: Limits::MAX_DEPTH, ..Limits::default() };
                Cow::Owned(reader::read_keeping_overflow(text, &limits).unwrap_or(Value::Null))
            }
        }
    }
}

impl PartSort {
    /// The digest of the canonical text of what is not ephemeral in `value`.
    #[must_use]
    pub fn identity(&self, value: &Value<'_>) -> Digest {
        self.digest(&self.lasting(value))
    }

    /// The digest of the canonical text of `value`.
    #[must_use]
    pub fn digest(&self, value: &Value<'_>) -> Digest {
        // What has no canonical form, and is in no core, is known by its spelling.
        Digest::of(&(self.canonical)(value).unwrap_or_else(|| format!("{value:?}").into_bytes()))
    }

    /// Whether the member `name` means the same with either value.
    #[must_use]
    pub fn is_same(&self, name: &str, one: &Value<'_>, other: &Value<'_>) -> bool {
        let held = |value: &Value<'_>| {
            // Only the name of the member that directly holds a value says how it is normalised.
            let held =
                Value::Object(Object::from_members(vec![(Cow::Owned(name.to_owned()), value.clone())]));
            self.digest(&held)
        };
        one == other || held(one) == held(other)
    }

    /// `value` without what is ephemeral in it.
    #[must_use]
    pub fn lasting<'d>(&self, value: &Value<'d>) -> Value<'d> {
        self.lasting_at(value, &mut Vec::new()).unwrap_or(Value::Null)
    }

    /// `value` without what is ephemeral; nothing if it is so itself.
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

/// Says that the members `names` are different.
#[must_use]
pub fn differ(names: &[&str]) -> String {
    match names {
        [] => "it is different".to_owned(),
        [only] => format!("{only} differs"),
        names => format!("{} differ", names.join(", ")),
    }
}

/// The digest that stands for the same place: that of `words`, each with its length, so that no two lists are confused.
#[must_use]
pub fn same_place(words: &[&str]) -> Digest {
    let words: Vec<String> = words.iter().map(|word| format!("{}:{word}", word.len())).collect();
    Digest::of(words.concat().as_bytes())
}

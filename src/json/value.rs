use std::borrow::Cow;

use super::Number;
use super::pointer::{self, PointerPattern};

/// A JSON value as written: members in the order of the text, numbers as their literals.
///
/// Strings without escapes borrow from the text.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as its literal.
    Number(Number<'a>),
    /// A string, unescaped.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Value<'a>>),
    /// An object.
    Object(Object<'a>),
}

impl<'a> Value<'a> {
    /// Returns the text if this is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text if this is a non-empty string.
    #[must_use]
    pub fn as_non_empty_str(&self) -> Option<&str> {
        self.as_str().filter(|text| !text.is_empty())
    }

    /// Returns the elements if this is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value<'a>]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// Returns the members if this is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the number if this is one.
    #[must_use]
    pub fn as_number(&self) -> Option<&Number<'a>> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the member `name` if this is an object that contains it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.as_object()?.get(name)
    }

    /// Returns a copy that borrows from no text.
    pub(crate) fn to_owned_value(&self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Number(number) => Value::Number(Number::from_literal(number.literal().to_owned())),
            Self::String(text) => Value::String(Cow::Owned(text.clone().into_owned())),
            Self::Array(elements) => Value::Array(elements.iter().map(Value::to_owned_value).collect()),
            Self::Object(object) => {
                let members = object.members.iter();
                let owned =
                    members.map(|(name, value)| (Cow::Owned(name.to_string()), value.to_owned_value()));
                Value::Object(Object { members: owned.collect() })
            }
        }
    }

    /// Returns a value that borrows from no text. What is owned already is not copied.
    pub(crate) fn into_owned_value(self) -> Value<'static> {
        match self {
            Self::String(text) => Value::String(Cow::Owned(text.into_owned())),
            Self::Array(elements) => {
                Value::Array(elements.into_iter().map(Value::into_owned_value).collect())
            }
            Self::Object(object) => {
                let members = object.members.into_iter();
                let owned =
                    members.map(|(name, value)| (Cow::Owned(name.into_owned()), value.into_owned_value()));
                Value::Object(Object { members: owned.collect() })
            }
            other => other.to_owned_value(),
        }
    }

    /// Removes and returns the value at the path `names`, leaving `null`. Returns `None` if there is none.
    pub(crate) fn take(&mut self, names: &[&str]) -> Option<Value<'a>> {
        let mut value = self;
        for name in names {
            let Self::Object(object) = value else { return None };
            value = object.members.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)?;
        }
        Some(std::mem::replace(value, Self::Null))
    }

    /// Returns the value at a JSON Pointer.
    pub(crate) fn at_pointer(&self, pointer: &str) -> Option<&Value<'a>> {
        pointer::tokens(pointer).try_fold(self, |value, token| match value {
            Self::Array(elements) => elements.get(token.parse::<usize>().ok()?),
            Self::Object(object) => object.get(&token),
            _ => None,
        })
    }

    /// Returns the value at a JSON Pointer, to be changed.
    pub(crate) fn at_pointer_mut(&mut self, pointer: &str) -> Option<&mut Value<'a>> {
        pointer::tokens(pointer).try_fold(self, |value, token| match value {
            Self::Array(elements) => elements.get_mut(token.parse::<usize>().ok()?),
            Self::Object(object) => {
                object.members.iter_mut().find(|(key, _)| *key == token).map(|(_, value)| value)
            }
            _ => None,
        })
    }

    /// Replaces the values at the places of a pattern by `null`.
    pub(crate) fn clear(&mut self, pattern: &PointerPattern) {
        self.clear_at(pattern.tokens());
    }

    fn clear_at(&mut self, tokens: &[String]) {
        let Some((token, rest)) = tokens.split_first() else {
            *self = Self::Null;
            return;
        };
        let is_at = |name: &str| token == "*" || token == name;
        match self {
            Self::Array(elements) => {
                let elements = elements.iter_mut().enumerate();
                elements
                    .filter(|(index, _)| is_at(&index.to_string()))
                    .for_each(|(_, element)| element.clear_at(rest));
            }
            Self::Object(object) => {
                let members = object.members.iter_mut().filter(|(name, _)| is_at(name));
                members.for_each(|(_, member)| member.clear_at(rest));
            }
            _ => {}
        }
    }

    /// Returns whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns the name of the JSON type for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(text) if text.is_empty() => "an empty string",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// The members of a JSON object in the order of the text. Names are unique.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object<'a> {
    members: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Object<'a> {
    /// Creates an object. The caller guarantees that names are unique.
    pub(crate) fn from_members(members: Vec<(Cow<'a, str>, Value<'a>)>) -> Self {
        Self { members }
    }

    /// Adds a member. The caller guarantees that there is none of this name.
    pub(crate) fn push(&mut self, name: Cow<'a, str>, value: Value<'a>) {
        self.members.push((name, value));
    }

    /// Returns the members, in their order.
    pub(crate) fn into_members(self) -> Vec<(Cow<'a, str>, Value<'a>)> {
        self.members
    }

    /// Returns the member `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns whether there is a member `name`, even if it is `null`.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns all members in the order of the text.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value<'a>)> {
        self.members.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// Returns all members in the order of their names' code points, which is the order of their UTF-8 bytes.
    #[must_use]
    pub(super) fn by_code_point(&self) -> Vec<(&str, &Value<'a>)> {
        let mut members: Vec<_> = self.iter().collect();
        members.sort_unstable_by_key(|(key, _)| *key);
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::compact;
    use crate::json::reader::{self, Limits};

    #[test]
    fn values_at_a_pattern_are_cleared() {
        let text = br#"{"a": [{"id": 1, "b": 2}, {"id": 3}], "id": 4}"#;
        let cleared = |pattern: &str| {
            let mut value = reader::read(text, &Limits::default()).unwrap();
            value.clear(&PointerPattern::parse(pattern).unwrap());
            compact::text(&value)
        };
        assert_eq!(cleared("/a/*/id"), r#"{"a":[{"id":null,"b":2},{"id":null}],"id":4}"#);
        assert_eq!(cleared("/a/1"), r#"{"a":[{"id":1,"b":2},null],"id":4}"#);
        assert_eq!(cleared("id"), r#"{"a":[{"id":1,"b":2},{"id":3}],"id":null}"#);
        assert_eq!(cleared("/none/id"), compact::text(&reader::read(text, &Limits::default()).unwrap()));
        assert_eq!(PointerPattern::parse("a/b").or(PointerPattern::parse("/~2")), None);
    }
}

//! Short forms for making JSON values and for reading their members.

use std::borrow::Cow;

use super::{Number, Object, Value};

/// Returns a string.
pub(crate) fn text<'v>(text: impl Into<Cow<'v, str>>) -> Value<'v> {
    Value::String(text.into())
}

/// Returns a number.
pub(crate) fn integer(number: u64) -> Value<'static> {
    Value::Number(Number::from_literal(number.to_string()))
}

/// Returns an object. The caller guarantees that names are unique.
pub(crate) fn object<'v, 'n: 'v>(members: impl IntoIterator<Item = (&'n str, Value<'v>)>) -> Value<'v> {
    let members = members.into_iter().map(|(name, value)| (Cow::Borrowed(name), value));
    Value::Object(Object::from_members(members.collect()))
}

/// Returns the text that is a member.
pub(crate) fn word<'v>(value: &'v Value<'_>, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

/// Returns the value at a path of member names and array indexes.
pub(crate) fn at<'v, 'a>(value: &'v Value<'a>, path: &[&str]) -> Option<&'v Value<'a>> {
    path.iter().try_fold(value, |value, name| match value {
        Value::Array(elements) => elements.get(name.parse::<usize>().ok()?),
        _ => value.get(name),
    })
}

//! The arguments of a tool call.

use std::borrow::Cow;

use crate::json::reader::{self, Limits};
use crate::json::{Object, Value};

/// Members that contain only the arguments, in order of precedence.
const MEMBERS: [&str; 6] = ["arguments", "params", "parameters", "payload", "body", "input"];

/// Members that describe the call and are not sent with it.
const DESCRIPTIONS: [&str; 15] = [
    "call_id",
    "effect",
    "headers",
    "io_ref",
    "method",
    "mode",
    "name",
    "ref",
    "request_id",
    "target",
    "tool",
    "tool_call_id",
    "tool_name",
    "type",
    "url",
];

/// Returns the arguments in the `input` of a `tool.request`: a member that is known to contain them, with JSON in a
/// string parsed; else the members that do not describe the call. Returns `None` if they are not recorded, or have no
/// names.
pub(super) fn arguments<'v, 'd>(input: &'v Value<'d>) -> Option<Cow<'v, Value<'d>>> {
    let Some(object) = input.as_object() else {
        return (!input.is_null()).then_some(Cow::Borrowed(input));
    };
    if object.contains("kwargs") || object.contains("args") {
        return by_keyword(object);
    }
    if let Some(member) = MEMBERS.iter().find_map(|name| object.get(name).filter(|value| !value.is_null())) {
        return Some(read(member));
    }
    let rest = object.iter().filter(|(name, _)| !DESCRIPTIONS.contains(name));
    let rest: Vec<_> = rest.map(|(name, value)| (Cow::Owned(name.to_owned()), value.clone())).collect();
    (!rest.is_empty()).then(|| Cow::Owned(Value::Object(Object::from_members(rest))))
}

/// Returns `kwargs`, or, if there are none, a single positional argument. Positional arguments have no names that a
/// schema could describe.
fn by_keyword<'v, 'd>(object: &'v Object<'d>) -> Option<Cow<'v, Value<'d>>> {
    let named = object
        .get("kwargs")
        .filter(|kwargs| kwargs.as_object().is_some_and(|kwargs| kwargs.iter().len() > 0));
    match (named, object.get("args").and_then(Value::as_array).unwrap_or_default()) {
        (Some(named), []) => Some(Cow::Borrowed(named)),
        (None, [only]) => Some(Cow::Borrowed(only)),
        _ => None,
    }
}

/// Returns `value`, or the JSON that it contains.
fn read<'v, 'd>(value: &'v Value<'d>) -> Cow<'v, Value<'d>> {
    let text = value.as_str().filter(|text| text.trim_start().starts_with(['{', '[']));
    let limits = Limits { bytes: u64::MAX, ..Limits::default() };
    let json = text.and_then(|text| reader::read(text.as_bytes(), &limits).ok());
    json.map_or(Cow::Borrowed(value), |json| Cow::Owned(json.to_owned_value()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::compact;

    #[test]
    fn arguments_are_found_in_every_shape_that_recorders_write() {
        for (input, expected) in [
            (r#"{"tool": "t", "arguments": {"a": 1}}"#, Some(r#"{"a":1}"#)),
            (r#"{"tool": "t", "arguments": "{\"a\": 1}"}"#, Some(r#"{"a":1}"#)),
            (r#"{"tool": "t", "arguments": "ls -l"}"#, Some(r#""ls -l""#)),
            (r#"{"tool": "t", "arguments": "{broken"}"#, Some(r#""{broken""#)),
            (r#"{"tool": "t", "args": [], "kwargs": {"a": 1}}"#, Some(r#"{"a":1}"#)),
            (r#"{"tool": "t", "args": [{"a": 1}], "kwargs": {}}"#, Some(r#"{"a":1}"#)),
            (r#"{"tool": "t", "args": [1, 2], "kwargs": {}}"#, None),
            (r#"{"tool": "t", "args": [1], "kwargs": {"a": 1}}"#, None),
            (r#"{"method": "POST", "url": "u", "headers": {}, "body": {"a": 1}}"#, Some(r#"{"a":1}"#)),
            (r#"{"tool": "t", "a": 1, "call_id": "c"}"#, Some(r#"{"a":1}"#)),
            (r#"{"tool": "t"}"#, None),
            (r#""text""#, Some(r#""text""#)),
            ("null", None),
        ] {
            let value = reader::read(input.as_bytes(), &Limits::default()).unwrap();
            assert_eq!(arguments(&value).as_deref().map(compact::text).as_deref(), expected, "{input}");
        }
    }
}

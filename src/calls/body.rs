//! The strings in the body of a response: those of a JSON document, or of the events or lines of a stream.

use std::borrow::Cow;

use crate::json::reader::{self, Limits};
use crate::json::{Object, Value};

/// The members with which events say to which part of an answer they belong.
const INDEXES: [&str; 4] = ["index", "output_index", "content_index", "item_id"];

/// The members that all events of a stream repeat. Their values are not parts of a longer text.
const REPEATED: [&str; 12] = [
    "created_at",
    "finish_reason",
    "id",
    "item_id",
    "model",
    "modelVersion",
    "obfuscation",
    "object",
    "responseId",
    "role",
    "system_fingerprint",
    "type",
];

/// A part of a body: all of it, or a line of a stream.
pub(crate) struct BodyPart<'b> {
    /// The text before its data, such as `data: `.
    pub(crate) before: &'b str,
    pub(crate) text: &'b str,
    pub(crate) data: PartData<'b>,
    /// The end of the line.
    pub(crate) after: &'b str,
}

/// The data of a part.
pub(crate) enum PartData<'b> {
    Json(Value<'b>),
    /// The text of an event that is not JSON.
    Text,
    /// A line that has no data, or the body of a response that is not JSON.
    Other,
    /// It begins as JSON and is not: its strings cannot be read.
    Unreadable,
}

/// A string in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodyString {
    /// The location, which is the same in all events that continue a text.
    pub(crate) location: String,
    /// The name of the innermost member that contains it.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl BodyString {
    /// Returns whether it can be a part of a longer text.
    pub(crate) fn is_continued(&self) -> bool {
        !REPEATED.contains(&self.name.as_str())
    }
}

/// Returns the parts of a body: one if it is a JSON document, otherwise its lines.
pub(crate) fn parts(body: &str) -> Vec<BodyPart<'_>> {
    let whole = |data| vec![BodyPart { before: "", text: body, data, after: "" }];
    if let Some(value) = read(body) {
        return whole(PartData::Json(value));
    }
    let first = body.trim_start().lines().next().unwrap_or_default();
    if begins_as_json(first) && read(first).is_none() {
        return whole(PartData::Unreadable);
    }
    body.split_inclusive(['\n', '\r']).map(line).collect()
}

fn line(line: &str) -> BodyPart<'_> {
    let content = line.trim_end_matches(['\n', '\r']);
    let (content, after) = line.split_at(content.len());
    let text = content.strip_prefix("data:");
    let is_data = text.is_some();
    let text = text.map_or(content, |text| text.strip_prefix(' ').unwrap_or(text));
    let before = content.strip_suffix(text).unwrap_or_default();
    let data = match read(text) {
        Some(value) => PartData::Json(value),
        None if text.trim() == "[DONE]" => PartData::Other,
        None if begins_as_json(text) => PartData::Unreadable,
        None if is_data => PartData::Text,
        None => PartData::Other,
    };
    BodyPart { before, text, data, after }
}

fn begins_as_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

fn read(text: &str) -> Option<Value<'_>> {
    let value = reader::read(text.trim().as_bytes(), &Limits::most()).ok()?;
    // A number can be a part of a text that is not JSON.
    matches!(value, Value::Object(_) | Value::Array(_) | Value::String(_)).then_some(value)
}

/// Returns the strings of the parts, in their order.
pub(crate) fn strings(parts: &[BodyPart<'_>]) -> Vec<BodyString> {
    let mut found = Vec::new();
    for part in parts {
        match &part.data {
            PartData::Json(value) => {
                let mut add = |location: &str, name: &str, text: &str| {
                    found.push(string(location, name, text));
                    text.to_owned()
                };
                mapped(value, &mut add);
            }
            PartData::Text => found.push(string("data", "data", part.text)),
            PartData::Other | PartData::Unreadable => {}
        }
    }
    found
}

fn string(location: &str, name: &str, text: &str) -> BodyString {
    BodyString { location: location.to_owned(), name: name.to_owned(), text: text.to_owned() }
}

/// A function of the location of a string, the name of the member that contains it, and its text.
type StringMap<'m> = dyn FnMut(&str, &str, &str) -> String + 'm;

/// Returns a value in which each string is replaced by what `map` returns for it, in the order of [`strings`].
pub(crate) fn mapped(value: &Value<'_>, map: &mut StringMap<'_>) -> Value<'static> {
    match value {
        // Gemini sends events as an array, of which each element continues the text of the one before.
        Value::Array(events) => Value::Array(events.iter().map(|event| inside(event, "", "", map)).collect()),
        _ => inside(value, "", "", map),
    }
}

fn inside(value: &Value<'_>, location: &str, name: &str, map: &mut StringMap<'_>) -> Value<'static> {
    match value {
        Value::String(text) => Value::String(Cow::Owned(map(location, name, text))),
        Value::Array(elements) => {
            let elements = elements.iter().enumerate().map(|(position, element)| {
                let position = if index(element).is_empty() { position.to_string() } else { String::new() };
                inside(element, &format!("{location}/{position}"), name, map)
            });
            Value::Array(elements.collect())
        }
        Value::Object(members) => {
            let location = format!("{location}{}", index(value));
            let members = members.iter().map(|(name, member)| {
                let member = inside(member, &format!("{location}/{name}"), name, map);
                (Cow::Owned(name.to_owned()), member)
            });
            Value::Object(Object::from_members(members.collect()))
        }
        other => other.to_owned_value(),
    }
}

/// Returns the indexes that an object states; empty if there are none.
fn index(value: &Value<'_>) -> String {
    let stated = INDEXES.iter().filter_map(|name| match value.get(name)? {
        Value::Number(number) => Some(format!("#{}", number.literal())),
        Value::String(text) => Some(format!("#{text}")),
        _ => None,
    });
    stated.collect()
}

/// Returns the texts of a body with escapes decoded and the parts of streams put together, one text for each location.
pub(crate) fn joined(body: &str) -> Vec<String> {
    let strings = strings(&parts(body));
    groups(&strings, |string| &string.location)
        .into_iter()
        .map(|group| {
            let texts = group.iter().filter_map(|index| strings.get(*index));
            let is_continued = texts.clone().next().is_some_and(BodyString::is_continued);
            let texts: Vec<&str> = texts.map(|string| string.text.as_str()).collect();
            texts.join(if is_continued { "" } else { "\n" })
        })
        .collect()
}

/// Returns the positions of the strings that have the same key, in the order of the first of each.
pub(crate) fn groups(strings: &[BodyString], key: impl Fn(&BodyString) -> &String) -> Vec<Vec<usize>> {
    let mut numbers = std::collections::HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (position, string) in strings.iter().enumerate() {
        let number = *numbers.entry(key(string)).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.push(position),
            None => groups.push(vec![position]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_texts_are_put_together() {
        let stream = "event: a\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\\u00e4\"}},{\"index\":1,\"delta\":{\"content\":\"x\"}}]}\r\n\r\n\
                      data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"y\"}}]}\n\n\
                      data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\n\ndata: [DONE]\n\n";
        assert_eq!(joined(stream), ["a\u{e4}b", "xy"]);
        assert_eq!(joined("data: a \ndata: b\n"), ["a b"]);
        assert_eq!(joined(r#"{"a":["x\/y","z"]}"#), ["x/y", "z"]);
        assert_eq!(joined(r#"[{"t":"x"},{"t":"y"}]"#), ["xy"]);
        assert_eq!(joined("{\"m\":\"a\"}\n{\"m\":\"b\"}\n"), ["ab"]);
        assert_eq!(joined("text"), [""; 0]);
    }

    #[test]
    fn a_document_that_is_broken_off_is_not_readable() {
        for body in ["{\"a\":\"b", "[\n {\"a\"", "{\n \"a\": 1,\n"] {
            assert!(matches!(parts(body)[..], [BodyPart { data: PartData::Unreadable, .. }]), "{body}");
        }
        let stream = parts("data: {\"a\":1}\n\ndata: {\"a");
        assert!(matches!(stream[2].data, PartData::Unreadable));
        let text: String = stream.iter().flat_map(|part| [part.before, part.text, part.after]).collect();
        assert_eq!(text, "data: {\"a\":1}\n\ndata: {\"a");
    }
}

//! Paths of key fields and nonces in the payload of a request, in the notations that contracts use.

use crate::json::Value;

/// Maximum number of dots in a name that are read as a part of the name of a member.
const MAX_SPLITS: usize = 16;

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathSegment {
    /// A member of an object.
    Name(String),
    /// A member of an object, or an element of a list: a reference token of a JSON Pointer.
    Token(String),
    /// An element of a list.
    Index(usize),
    /// Every element of a list.
    Every,
}

/// A path to a member of a payload: a JSON Pointer (`/a/0/b`), a `JSONPath` (`$.a[0].b`, `$['a']`), the same without `$`, or
/// names with dots between them (`a.b`). As names may contain all these characters, a member of the whole name comes
/// first, and a dot may also be part of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPath {
    text: String,
    /// The steps, unless the text has names and dots only, or cannot be read as a path.
    segments: Option<Vec<PathSegment>>,
}

impl KeyPath {
    /// Reads a path.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let segments = match text.strip_prefix('#').unwrap_or(text).strip_prefix('/') {
            Some(pointer) => Some(pointer.split('/').map(token).collect()),
            None if text.starts_with('$') => json_path(text),
            None if text.contains('[') => json_path(&format!("$.{text}")),
            None => None,
        };
        Self { text: text.to_owned(), segments }
    }

    /// Returns the path as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether it is an expression of a kind that is not evaluated, such as one with a filter.
    pub(super) fn is_unreadable(&self) -> bool {
        self.segments.is_none() && (self.text.starts_with('$') || self.text.contains('['))
    }

    pub(super) fn segments(&self) -> Option<&[PathSegment]> {
        self.segments.as_deref()
    }

    /// Returns the maximum number of comparisons with each member of a payload.
    #[must_use]
    pub fn work(&self) -> u64 {
        let dots = self.text.bytes().filter(|byte| *byte == b'.').take(MAX_SPLITS);
        2 + dots.count() as u64
    }

    /// Returns the values in `payload` at this path; empty if one of them is missing.
    #[must_use]
    pub fn values<'v, 'd>(&self, payload: &'v Value<'d>) -> Vec<&'v Value<'d>> {
        let by_name = named(payload, &self.text).map(|value| vec![value]);
        let by_steps = || self.segments.as_deref().and_then(|segments| stepped(payload, segments));
        by_name.or_else(by_steps).unwrap_or_default()
    }
}

/// Returns the ways to split a name at a dot into a name and the rest, and at last the whole name, without a rest.
pub(super) fn splits(name: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let at_dots = name.match_indices('.').filter_map(|(at, _)| Some((name.get(..at)?, name.get(at + 1..))));
    at_dots.chain([(name, None)])
}

/// Returns the member of this name, or the one that names with dots between them lead to.
fn named<'v, 'd>(value: &'v Value<'d>, name: &str) -> Option<&'v Value<'d>> {
    if let Some(whole) = value.get(name) {
        return Some(whole);
    }
    splits(name).take(MAX_SPLITS).find_map(|(outer, inner)| named(member(value, outer)?, inner?))
}

/// Returns the member of an object, or the element of a list, that a name or a number stands for.
fn member<'v, 'd>(value: &'v Value<'d>, token: &str) -> Option<&'v Value<'d>> {
    match value.as_array() {
        Some(elements) => elements.get(index_of(token)?),
        None => value.get(token),
    }
}

fn stepped<'v, 'd>(value: &'v Value<'d>, segments: &[PathSegment]) -> Option<Vec<&'v Value<'d>>> {
    let Some((first, rest)) = segments.split_first() else { return Some(vec![value]) };
    let next = match first {
        PathSegment::Name(name) => value.get(name),
        PathSegment::Token(token) => member(value, token),
        PathSegment::Index(index) => value.as_array().and_then(|elements| elements.get(*index)),
        PathSegment::Every => {
            let elements = value.as_array().filter(|elements| !elements.is_empty())?;
            let found: Option<Vec<Vec<_>>> = elements.iter().map(|element| stepped(element, rest)).collect();
            return Some(found?.concat());
        }
    };
    stepped(next?, rest)
}

/// Returns the index that a reference token is, which has no leading zero.
pub(super) fn index_of(token: &str) -> Option<usize> {
    let is_number = token.bytes().all(|byte| byte.is_ascii_digit());
    let is_canonical = token == "0" || !token.starts_with('0');
    token.parse().ok().filter(|_| is_number && is_canonical)
}

fn token(text: &str) -> PathSegment {
    PathSegment::Token(text.replace("~1", "/").replace("~0", "~"))
}

/// Reads a `JSONPath` of names, indexes and wildcards; `None` for other expressions.
fn json_path(text: &str) -> Option<Vec<PathSegment>> {
    let mut segments = Vec::new();
    let mut rest = text.strip_prefix('$')?;
    while !rest.is_empty() {
        if let Some(bracket) = rest.strip_prefix('[') {
            let (segment, after) = in_brackets(bracket)?;
            segments.push(segment);
            rest = after;
        } else {
            let name = rest.strip_prefix('.')?;
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, after) = name.split_at_checked(end)?;
            match name {
                "" => return None,
                "*" => segments.push(PathSegment::Every),
                name => segments.push(PathSegment::Name(name.to_owned())),
            }
            rest = after;
        }
    }
    Some(segments)
}

/// Reads what follows an opening bracket, and returns the text after the closing one.
fn in_brackets(text: &str) -> Option<(PathSegment, &str)> {
    for quote in ['\'', '"'] {
        if let Some(quoted) = text.strip_prefix(quote) {
            let (name, after) = quoted.split_once(quote)?;
            return Some((PathSegment::Name(name.to_owned()), after.strip_prefix(']')?));
        }
    }
    let (index, after) = text.split_once(']')?;
    let segment = match index {
        "" | "*" => PathSegment::Every,
        index => PathSegment::Index(index_of(index)?),
    };
    Some((segment, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::compact;
    use crate::json::reader::{self, Limits};

    #[test]
    fn paths_lead_to_values_in_every_notation() {
        let payload = r#"{"id": 1, "a.b": {"c": 2}, "spec": {"name": 3, "/x": 4}, "items": [{"id": 5}, {"id": 6}], "$x": 7}"#;
        let payload = reader::read(payload.as_bytes(), &Limits::default()).unwrap();
        for (path, expected) in [
            ("id", "1"),
            ("/id", "1"),
            ("#/id", "1"),
            ("$.id", "1"),
            ("$['id']", "1"),
            ("a.b.c", "2"),
            ("/a.b/c", "2"),
            ("$['a.b'].c", "2"),
            ("spec.name", "3"),
            ("/spec/~1x", "4"),
            ("items[0].id", "5"),
            ("items.1.id", "6"),
            ("/items/1/id", "6"),
            ("$.items[*].id", "5,6"),
            ("items[].id", "5,6"),
            ("$x", "7"),
            ("items[2].id", ""),
            ("items[01].id", ""),
            ("$..id", ""),
            ("$.items[?(@.id)]", ""),
            ("items[0", ""),
            ("/id/", ""),
            ("ID", ""),
            ("", ""),
        ] {
            let found: Vec<String> =
                KeyPath::new(path).values(&payload).into_iter().map(compact::text).collect();
            assert_eq!(found.join(","), expected, "{path}");
        }
    }
}

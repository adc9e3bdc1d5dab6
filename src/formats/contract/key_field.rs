//! Key fields in the schema of a request.

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

use super::key_path::{KeyPath, PathSegment, index_of, splits};
use crate::json::{Object, Value};

/// Maximum number of comparisons for one contract. Dots can be interpreted in enough ways that a malicious contract of
/// a few megabytes could occupy the reader for hours; what exceeds the limit is not checked.
const MAX_COMPARISONS: usize = 20_000_000;

/// Maximum number of schemas within each other, through references.
const MAX_DEPTH: usize = 200;

/// Maximum memory of a compiled pattern, in bytes, and its cost in comparisons.
const MAX_PATTERN_BYTES: usize = 256 << 10;
const PATTERN_COST: usize = 1_000;

/// Whether a schema has a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Presence {
    /// The schema says nothing about its members.
    Silent,
    /// It lists its members, and the field is not among them.
    No,
    /// It cannot be decided.
    Unknown,
    Yes,
}

use Presence::{No, Silent, Unknown, Yes};

/// The rest of a path.
#[derive(Clone, Copy)]
enum PathRest<'p> {
    /// Names with dots between them, each of which may also be part of a name.
    Dotted(&'p str),
    Segments(&'p [PathSegment]),
}

impl PathRest<'_> {
    /// Returns a number that differs from those of all other parts of the same path.
    fn length(self) -> usize {
        match self {
            Self::Dotted(text) => text.len(),
            Self::Segments(segments) => segments.len(),
        }
    }
}

/// Lookup of the key fields of one contract.
pub(super) struct KeyFields {
    comparisons_left: usize,
    /// The patterns of property names; `None` for those that cannot be matched here.
    patterns: HashMap<String, Option<Regex>>,
}

impl Default for KeyFields {
    fn default() -> Self {
        Self { comparisons_left: MAX_COMPARISONS, patterns: HashMap::new() }
    }
}

impl KeyFields {
    /// Returns whether `schema` describes the field at a path: its answer is [`Silent`] or [`Unknown`] if that cannot be
    /// decided.
    pub(super) fn look_up(&mut self, path: &KeyPath, schema: &Value<'_>) -> Presence {
        let readings = [Some(PathRest::Dotted(path.text())), path.segments().map(PathRest::Segments)];
        let found = readings.into_iter().flatten().map(|rest| {
            let mut lookup = SchemaLookup { fields: self, root: schema, known: HashMap::new() };
            lookup.at(schema, rest, 0)
        });
        let found = found.max().unwrap_or(Unknown);
        // Of an expression that cannot be read, it is only known whether a member has it as its name.
        if found == No && path.is_unreadable() { Unknown } else { found }
    }

    /// Counts `cost` comparisons; returns false if too many were made.
    fn spend(&mut self, cost: usize) -> bool {
        let left = self.comparisons_left.checked_sub(cost);
        self.comparisons_left = left.unwrap_or_default();
        left.is_some()
    }

    /// Returns whether a pattern matches a name; `None` if it cannot be matched.
    fn matches(&mut self, pattern: &str, name: &str) -> Option<bool> {
        if !self.spend(pattern.len().saturating_mul(name.len() + 1)) {
            return None;
        }
        if !self.patterns.contains_key(pattern) {
            let compiled = self.spend(PATTERN_COST).then(|| {
                let mut builder = RegexBuilder::new(pattern);
                builder.size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES).build().ok()
            });
            self.patterns.insert(pattern.to_owned(), compiled.flatten());
        }
        self.patterns.get(pattern)?.as_ref().map(|compiled| compiled.is_match(name))
    }
}

/// The lookup of one reading of a path.
struct SchemaLookup<'k, 's, 'd> {
    fields: &'k mut KeyFields,
    root: &'s Value<'d>,
    /// What is known of a schema, by its address, and the rest of the path. A schema that refers to itself adds nothing.
    known: HashMap<(usize, usize), Presence>,
}

impl<'s, 'd> SchemaLookup<'_, 's, 'd> {
    fn at(&mut self, schema: &'s Value<'d>, rest: PathRest<'_>, depth: usize) -> Presence {
        let key = (std::ptr::from_ref(schema).addr(), rest.length());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        if depth > MAX_DEPTH || !self.fields.spend(1) {
            return Unknown;
        }
        self.known.insert(key, Silent);
        let found = self.of_schema(schema, rest, depth + 1);
        self.known.insert(key, found);
        found
    }

    /// Combines what a schema and the schemas that apply at the same place say.
    fn of_schema(&mut self, schema: &'s Value<'d>, rest: PathRest<'_>, depth: usize) -> Presence {
        let mut found = self.own(schema, rest, depth);
        for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let target = schema.get(name).map(|reference| self.target(name, reference));
            found = found.max(match target {
                Some(Some(target)) => self.at(target, rest, depth),
                Some(None) => Unknown,
                None => Silent,
            });
        }
        for schema in schema.get("allOf").and_then(Value::as_array).unwrap_or_default() {
            found = found.max(self.at(schema, rest, depth));
        }
        for name in ["anyOf", "oneOf"] {
            let alternatives = schema.get(name).and_then(Value::as_array).unwrap_or_default();
            found = found.max(self.any_of(alternatives.iter(), rest, depth));
        }
        let conditional = ["then", "else"].into_iter().filter_map(|name| schema.get(name));
        found = found.max(self.any_of(conditional, rest, depth));
        let dependent = schema.get("dependentSchemas").and_then(Value::as_object);
        let dependent = dependent.into_iter().flat_map(Object::iter).map(|(_, schema)| schema);
        found.max(self.any_of(dependent, rest, depth))
    }

    /// Combines alternatives: one that has the field suffices, and one that allows every member leaves it open.
    fn any_of(
        &mut self,
        schemas: impl Iterator<Item = &'s Value<'d>>,
        rest: PathRest<'_>,
        depth: usize,
    ) -> Presence {
        let (mut found, mut is_open) = (Silent, false);
        for schema in schemas {
            let one = self.at(schema, rest, depth);
            is_open |= one == Silent && may_have_members(schema);
            found = found.max(one);
        }
        if found == No && is_open { Unknown } else { found }
    }

    /// Returns what the schema itself says, without the schemas that apply at the same place.
    fn own(&mut self, schema: &'s Value<'d>, rest: PathRest<'_>, depth: usize) -> Presence {
        match rest {
            PathRest::Dotted(field) => splits(field)
                .map(|(outer, inner)| {
                    let inner = inner.map(PathRest::Dotted);
                    let as_name = self.member(schema, outer, inner, depth);
                    match index_of(outer).filter(|_| inner.is_some() && as_name == Silent) {
                        Some(index) => self.element(schema, Some(index), inner, depth),
                        None => as_name,
                    }
                })
                .max()
                .unwrap_or(Silent),
            PathRest::Segments(segments) => {
                let Some((first, rest)) = segments.split_first() else { return Yes };
                let rest = (!rest.is_empty()).then_some(PathRest::Segments(rest));
                match first {
                    PathSegment::Name(name) => self.member(schema, name, rest, depth),
                    PathSegment::Index(index) => self.element(schema, Some(*index), rest, depth),
                    PathSegment::Every => self.element(schema, None, rest, depth),
                    PathSegment::Token(token) => {
                        let as_name = self.member(schema, token, rest, depth);
                        let index = index_of(token);
                        as_name
                            .max(index.map_or(Silent, |index| self.element(schema, Some(index), rest, depth)))
                    }
                }
            }
        }
    }

    fn inner(&mut self, schema: &'s Value<'d>, rest: Option<PathRest<'_>>, depth: usize) -> Presence {
        // What a schema says nothing about may be there.
        rest.map_or(Yes, |rest| match self.at(schema, rest, depth) {
            Silent => Unknown,
            found => found,
        })
    }

    fn member(
        &mut self,
        schema: &'s Value<'d>,
        name: &str,
        rest: Option<PathRest<'_>>,
        depth: usize,
    ) -> Presence {
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array).unwrap_or_default();
        if !self
            .fields
            .spend(properties.map_or(0, |properties| properties.iter().len()) + required.len() + name.len())
        {
            return Unknown;
        }
        let mut found = Silent;
        if let Some(schema) = properties.and_then(|properties| properties.get(name)) {
            found = self.inner(schema, rest, depth);
        }
        for (pattern, schema) in patterns.into_iter().flat_map(Object::iter) {
            found = found.max(match self.fields.matches(pattern, name) {
                Some(true) => self.inner(schema, rest, depth),
                Some(false) => Silent,
                None => Unknown,
            });
        }
        if required.iter().any(|required| required.as_str() == Some(name)) {
            found = found.max(if rest.is_none() { Yes } else { Unknown });
        }
        if found != Silent {
            return found;
        }
        let additional = ["additionalProperties", "unevaluatedProperties"];
        match additional.into_iter().find_map(|name| schema.get(name)) {
            Some(Value::Bool(false)) => No,
            Some(Value::Bool(true)) => Unknown,
            Some(schema @ Value::Object(_)) => self.inner(schema, rest, depth),
            _ if properties.is_some() => No,
            _ => Silent,
        }
    }

    /// Returns whether a schema describes an element of a list, or all of them.
    fn element(
        &mut self,
        schema: &'s Value<'d>,
        index: Option<usize>,
        rest: Option<PathRest<'_>>,
        depth: usize,
    ) -> Presence {
        let items = schema.get("items");
        let listed = schema.get("prefixItems").or(items).and_then(Value::as_array).unwrap_or_default();
        if let Some(schema) = index.and_then(|index| listed.get(index)) {
            return self.inner(schema, rest, depth);
        }
        let others = match items {
            Some(Value::Array(_)) => schema.get("additionalItems"),
            items => items,
        };
        match others.or_else(|| schema.get("unevaluatedItems")) {
            Some(Value::Bool(false)) if index.is_some() => No,
            Some(schema @ Value::Object(_)) => self.inner(schema, rest, depth),
            None if listed.is_empty() => Silent,
            Some(_) | None => Unknown,
        }
    }

    /// Returns the schema that a reference names, if it is in the same document.
    fn target(&mut self, keyword: &str, reference: &Value<'_>) -> Option<&'s Value<'d>> {
        let reference = reference.as_str().filter(|_| keyword == "$ref")?;
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = unescaped(fragment)?;
        let base = match document {
            "" => self.root,
            id if is_identified(self.root, id) => self.root,
            id => self.defined(|schema| is_identified(schema, id))?,
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            return at_pointer(base, &fragment);
        }
        let is_named = |schema: &Value<'_>| {
            schema.get("$anchor").and_then(Value::as_str) == Some(&fragment)
                || is_identified(schema, &format!("#{fragment}"))
        };
        self.defined(is_named)
    }

    /// Returns the first of the schemas that the root defines for which `is_wanted`.
    fn defined(&mut self, is_wanted: impl Fn(&Value<'_>) -> bool) -> Option<&'s Value<'d>> {
        let lists = ["$defs", "definitions"].into_iter().filter_map(|name| self.root.get(name));
        let mut defined = lists.filter_map(Value::as_object).flat_map(Object::iter).map(|(_, schema)| schema);
        let fields = &mut *self.fields;
        defined.find(|schema| fields.spend(1) && is_wanted(schema))
    }
}

fn is_identified(schema: &Value<'_>, id: &str) -> bool {
    ["$id", "id"].into_iter().any(|name| schema.get(name).and_then(Value::as_str) == Some(id))
}

/// Returns whether a schema allows objects or lists.
fn may_have_members(schema: &Value<'_>) -> bool {
    let types = match schema.get("type") {
        _ if *schema == Value::Bool(false) => return false,
        None => return true,
        Some(types) => types.as_array().unwrap_or(std::slice::from_ref(types)),
    };
    types.iter().any(|it| matches!(it.as_str(), Some("object" | "array") | None))
}

fn at_pointer<'s, 'd>(schema: &'s Value<'d>, pointer: &str) -> Option<&'s Value<'d>> {
    pointer.split('/').skip(1).try_fold(schema, |schema, token| {
        let token = token.replace("~1", "/").replace("~0", "~");
        match schema.as_array() {
            Some(elements) => elements.get(index_of(&token)?),
            None => schema.get(&token),
        }
    })
}

/// Returns the text of the fragment of a URI.
fn unescaped(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    fn look_up(schema: &str, field: &str) -> Presence {
        let schema = reader::read(schema.as_bytes(), &Limits::default()).unwrap();
        KeyFields::default().look_up(&KeyPath::new(field), &schema)
    }

    #[test]
    fn dots_lead_inwards_in_every_way_they_can_be_read() {
        let schema = r#"{"properties": {"id": {}, "a.b": {"properties": {"c.d": true}}, "open": {"type": "object"},
            "spec": {"properties": {"name": {"type": "string"}, "": false}}, "x": {"properties": []}}}"#;
        for (field, presence) in [
            ("id", Yes),
            ("a.b", Yes),
            ("a.b.c.d", Yes),
            ("spec.name", Yes),
            ("spec.", Yes),
            ("open.anything.at.all", Unknown),
            ("spec.name.deeper", Unknown),
            ("x.y", Unknown),
            ("id.x", Unknown),
            ("ID", No),
            ("a", No),
            ("a.b.c", No),
            ("spec.other", No),
            (".id", No),
            ("", No),
        ] {
            assert_eq!(look_up(schema, field), presence, "{field}");
        }
        assert_eq!(look_up("{\"type\": \"object\"}", "id"), Silent);
    }

    #[test]
    fn pointers_and_json_paths_are_accepted() {
        let schema = r#"{"properties": {"a": {"properties": {"b": {"type": "string"}}},
            "list": {"type": "array", "items": {"properties": {"id": {}}}},
            "pair": {"prefixItems": [{"properties": {"x": {}}}], "items": false}}}"#;
        for field in [
            "/a/b",
            "$.a.b",
            "$['a']['b']",
            "a.b",
            "#/a/b",
            "list[0].id",
            "$.list[*].id",
            "/list/0/id",
            "list.0.id",
            "list[].id",
            "pair[0].x",
            "/pair/0",
        ] {
            assert_eq!(look_up(schema, field), Yes, "{field}");
        }
        for field in ["/a/c", "$.a.c", "$['c']", "list[0].other", "/list/0/other", "pair[1].x", "pair[0].y"] {
            assert_eq!(look_up(schema, field), No, "{field}");
        }
    }

    #[test]
    fn schemas_that_are_composed_are_resolved() {
        let schema = r##"{"$id": "https://x/s.json", "$defs": {"base": {"properties": {"id": {}}}, "n": {"$anchor": "named",
            "properties": {"by_anchor": {}}}, "a b": {"properties": {"by_escape": {}}}}, "allOf": [{"$ref": "#/$defs/base"},
            {"required": ["needed"]}, {"$ref": "#named"}, {"$ref": "https://x/s.json#/$defs/a%20b"}],
            "oneOf": [{"properties": {"one": {}}}, {"type": "null"}], "patternProperties": {"^x-": {"properties": {"y": {}}}},
            "if": {}, "then": {"properties": {"conditional": {}}}, "properties": {"self": {"$ref": "#"}}}"##;
        for field in [
            "id",
            "needed",
            "by_anchor",
            "by_escape",
            "one",
            "x-any",
            "x-any.y",
            "conditional",
            "self.self.id",
            "self.one",
        ] {
            assert_eq!(look_up(schema, field), Yes, "{field}");
        }
        for field in ["other", "self.other", "/x-any/z", "y"] {
            assert_eq!(look_up(schema, field), No, "{field}");
        }
    }

    #[test]
    fn what_a_schema_leaves_open_is_unknown() {
        for schema in [
            r#"{"$ref": "other.json", "properties": {"a": {}}}"#,
            r##"{"$ref": "#/defs/x"}"##,
            r#"{"oneOf": [{"properties": {"a": {}}}, {"type": "object"}]}"#,
            r#"{"properties": {"a": {}}, "additionalProperties": true}"#,
            r#"{"properties": {"a": {}}, "patternProperties": {"(?=x)": {}}}"#,
        ] {
            assert_eq!(look_up(schema, "id"), Unknown, "{schema}");
        }
        for schema in ["{}", "true", r##"{"$ref": "#"}"##, r#"{"anyOf": [{}, {"type": "object"}]}"#] {
            assert_eq!(look_up(schema, "id"), Silent, "{schema}");
        }
        assert_eq!(look_up(r#"{"additionalProperties": {"type": "string"}}"#, "id"), Yes);
        assert_eq!(look_up(r#"{"additionalProperties": false}"#, "id"), No);
        let required = r#"{"properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}"#;
        assert_eq!((look_up(required, "b"), look_up(required, "id")), (Yes, No));
    }

    #[test]
    fn the_work_is_bounded() {
        assert_eq!(look_up("{\"properties\": {\"a\": {}}}", &".".repeat(1 << 20)), Unknown);
        let all: Vec<String> = (0..60)
            .map(|number| {
                let next = format!("{{\"$ref\": \"#/$defs/d{}\"}}", number + 1);
                format!("\"d{number}\": {{\"allOf\": [{next}, {next}], \"anyOf\": [{next}, {next}]}}")
            })
            .collect();
        let schema =
            format!("{{\"$defs\": {{{}, \"d60\": {{}}}}, \"$ref\": \"#/$defs/d0\"}}", all.join(", "));
        assert_eq!(look_up(&schema, "id"), Silent);
    }
}

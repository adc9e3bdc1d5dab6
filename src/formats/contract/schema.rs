//! IC2: whether inline schemas are valid, at every level. The meaning of keywords is not checked, and unknown ones are
//! allowed: a mapping may also be a descriptor of another type.

use crate::json::reader::excerpt;
use crate::json::{Object, Value, pointer};
use crate::validation::Finder;

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];

type KeywordValueTest = fn(&Value<'_>) -> bool;

/// Keywords and the constraints on their values.
const KEYWORDS: [(&str, &str, KeywordValueTest); 4] = [
    ("type", "a JSON Schema type or a non-empty list of types", is_type),
    ("properties", "an object", |value| value.as_object().is_some()),
    ("required", "a list of strings", |value| all_elements(value, |element| element.as_str().is_some())),
    ("enum", "a list", |value| value.as_array().is_some()),
];

/// Keywords whose value is a schema or a list of schemas.
const SCHEMAS: [&str; 15] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value is an object with schemas as members.
const MAPS_OF_SCHEMAS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Checks the schema at `at` and those nested in it.
pub(super) fn check(schema: &Value<'_>, at: &mut String, found: &mut Finder<'_>) {
    for (name, expected, fits) in KEYWORDS {
        if let Some(value) = schema.get(name).filter(|value| !fits(value)) {
            let is = value.as_non_empty_str().map_or_else(|| value.type_name().to_owned(), excerpt);
            found.add(format!("{at}/{name}"), format!("must be {expected}, is {is}"));
        }
    }
    for (name, value) in schema.as_object().into_iter().flat_map(Object::iter) {
        within(at, name, |at| match value {
            Value::Object(members) if MAPS_OF_SCHEMAS.contains(&name) => {
                for (name, schema) in members.iter() {
                    within(at, name, |at| check_inner(schema, at, found));
                }
            }
            Value::Array(schemas) if SCHEMAS.contains(&name) => {
                for (index, schema) in schemas.iter().enumerate() {
                    let length = at.len();
                    pointer::push_index(at, index);
                    check_inner(schema, at, found);
                    at.truncate(length);
                }
            }
            schema if SCHEMAS.contains(&name) => check_inner(schema, at, found),
            _ => {}
        });
    }
}

fn within(at: &mut String, name: &str, check: impl FnOnce(&mut String)) {
    let length = at.len();
    pointer::push(at, name);
    check(at);
    at.truncate(length);
}

/// Checks a nested schema, which may be `true` or `false`. Anything else that is not an object allows everything in
/// some drafts and nothing in others, so that it is only a warning.
fn check_inner(schema: &Value<'_>, at: &mut String, found: &mut Finder<'_>) {
    match schema {
        Value::Object(_) => check(schema, at, found),
        Value::Bool(_) => {}
        other => {
            found.warn(
                at.as_str(),
                format!("a schema must be an object or a boolean, not {}", other.type_name()),
            );
        }
    }
}

fn is_type(value: &Value<'_>) -> bool {
    let known = |value: &Value<'_>| value.as_str().is_some_and(|name| TYPES.contains(&name));
    known(value) || all_elements(value, known) && value.as_array() != Some(&[])
}

fn all_elements(value: &Value<'_>, fits: impl Fn(&Value<'_>) -> bool) -> bool {
    value.as_array().is_some_and(|elements| elements.iter().all(fits))
}

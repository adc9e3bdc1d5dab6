//! The rule `SCHEMA`: a contract has the required members with the right types.

use std::collections::HashSet;

use crate::json::reader::excerpt;
use crate::json::{Number, Object, Value, pointer};
use crate::validation::Finder;

const REF_KINDS: [&str; 4] = ["artifact", "resource", "service", "environment"];
const MODES: [&str; 3] = ["read", "write", "mutate"];
const IDEMPOTENCY_TYPES: [&str; 3] = ["keyed", "reentrant", "non-idempotent"];
const EVIDENCE_TYPES: [&str; 3] = ["hash", "status", "range"];

/// The greatest integer up to which every integer is exactly representable as a double: 2 to the power of 53, minus 1.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Checks the whole document.
pub(super) fn check(root: &Value<'_>, found: &mut Finder<'_>) {
    if root.as_object().is_none() {
        let message =
            format!("a contract must be an object with io_refs and effects, not {}", root.type_name());
        found.add("", message);
        return;
    }
    let mut declared = HashSet::new();
    for (index, io_ref) in elements(root, "io_refs", found).iter().enumerate() {
        check_ref(io_ref, format!("/io_refs/{index}"), found);
        if let Some(name) = io_ref.get("ref").and_then(Value::as_non_empty_str)
            && !declared.insert(name)
        {
            let message = format!("{} is already declared; every ref must be declared once", excerpt(name));
            found.add(format!("/io_refs/{index}/ref"), message);
        }
    }
    for (index, effect) in elements(root, "effects", found).iter().enumerate() {
        check_effect(effect, format!("/effects/{index}"), found);
    }
    check_numbers(root, found);
}

fn elements<'v>(root: &'v Value<'v>, name: &str, found: &mut Finder<'_>) -> &'v [Value<'v>] {
    let message = match root.get(name) {
        Some(Value::Array(elements)) => return elements,
        Some(other) => format!("must be a list, is {}", other.type_name()),
        None => format!("missing; a contract must have a list of {name}"),
    };
    found.add(format!("/{name}"), message);
    &[]
}

fn check_ref(io_ref: &Value<'_>, at: String, found: &mut Finder<'_>) {
    let Some(mut members) = ContractObjectChecker::new(io_ref, at, found) else {
        return;
    };
    members.required("ref", FILLED, is_filled);
    members.required_choice("kind", &REF_KINDS);
    members.required("schema", "a path or an object", |schema| {
        is_filled(schema) || schema.as_object().is_some()
    });
    members.required("required", "true or false", |required| matches!(required, Value::Bool(_)));
    members.required_choice("mode", &MODES);
}

fn check_effect(effect: &Value<'_>, at: String, found: &mut Finder<'_>) {
    let Some(mut members) = ContractObjectChecker::new(effect, at, found) else {
        return;
    };
    members.required("name", FILLED, is_filled);
    members.required_choice("kind", &["resource"]);
    members.required("target", FILLED, is_filled);
    members.optional("rollback", "a string", is_string);
    if let Some(mut idempotency) = members.inner("idempotency") {
        idempotency.optional_choice("type", &IDEMPOTENCY_TYPES);
        idempotency.optional_strings("key_fields");
    }
    if let Some(mut evidence) = members.inner("evidence") {
        evidence.required_choice("type", &EVIDENCE_TYPES);
        evidence.optional("path", "a string", is_string);
        evidence.optional("metric", "a string", is_string);
    }
}

const FILLED: &str = "a non-empty string";

fn is_filled(value: &Value<'_>) -> bool {
    value.as_non_empty_str().is_some()
}

fn is_string(value: &Value<'_>) -> bool {
    value.as_str().is_some()
}

/// The members of an object in the document, and the destination of violations.
struct ContractObjectChecker<'v, 'f, 'r> {
    object: &'v Value<'v>,
    at: String,
    found: &'f mut Finder<'r>,
}

impl<'v, 'f, 'r> ContractObjectChecker<'v, 'f, 'r> {
    /// Returns the members of `value` at `at`, or reports that it is not an object.
    fn new(value: &'v Value<'v>, at: String, found: &'f mut Finder<'r>) -> Option<Self> {
        if value.as_object().is_none() {
            found.add(at, format!("must be an object, is {}", value.type_name()));
            return None;
        }
        Some(Self { object: value, at, found })
    }

    /// Returns the members of the object `name` if it is present and not null.
    fn inner(&mut self, name: &str) -> Option<ContractObjectChecker<'v, '_, 'r>> {
        let value = self.object.get(name).filter(|value| !value.is_null())?;
        ContractObjectChecker::new(value, format!("{}/{name}", self.at), self.found)
    }

    fn required(&mut self, name: &str, expected: &str, fits: impl Fn(&Value<'_>) -> bool) {
        if self.object.get(name).is_none() {
            self.found.add(format!("{}/{name}", self.at), format!("missing; it must be {expected}"));
        }
        self.optional(name, expected, fits);
    }

    fn optional(&mut self, name: &str, expected: &str, fits: impl Fn(&Value<'_>) -> bool) {
        if let Some(value) = self.object.get(name).filter(|value| !fits(value)) {
            let is = match value.as_non_empty_str() {
                Some(text) => excerpt(text),
                None => value.type_name().to_owned(),
            };
            self.found.add(format!("{}/{name}", self.at), format!("must be {expected}, is {is}"));
        }
    }

    fn required_choice(&mut self, name: &str, choices: &[&str]) {
        self.required(name, &choices.join(" or "), |value| is_one_of(value, choices));
    }

    /// Checks an optional member. Null counts as missing.
    fn optional_choice(&mut self, name: &str, choices: &[&str]) {
        self.optional(name, &choices.join(" or "), |value| value.is_null() || is_one_of(value, choices));
    }

    /// Checks an optional member. Null counts as missing.
    fn optional_strings(&mut self, name: &str) {
        self.optional(name, "a list of strings", |value| value.is_null() || value.as_array().is_some());
        let elements = self.object.get(name).and_then(Value::as_array).unwrap_or_default();
        for (index, element) in elements.iter().enumerate() {
            if !is_string(element) {
                let message = format!("must be a string, is {}", element.type_name());
                self.found.add(format!("{}/{name}/{index}", self.at), message);
            }
        }
    }
}

fn is_one_of(value: &Value<'_>, choices: &[&str]) -> bool {
    value.as_str().is_some_and(|text| choices.contains(&text))
}

fn check_numbers(root: &Value<'_>, found: &mut Finder<'_>) {
    for (name, member) in root.as_object().into_iter().flat_map(Object::iter) {
        let mut numbers = CanonicalNumberChecker {
            hashed: matches!(name, "io_refs" | "effects"),
            at: String::new(),
            found: &mut *found,
        };
        numbers.visit_at(member, |at| pointer::push(at, name));
    }
}

/// A search for numbers without a canonical form.
struct CanonicalNumberChecker<'f, 'r> {
    hashed: bool,
    at: String,
    found: &'f mut Finder<'r>,
}

impl CanonicalNumberChecker<'_, '_> {
    fn visit(&mut self, value: &Value<'_>) {
        match value {
            Value::Number(number) => {
                if let Some(message) = self.objection(number) {
                    self.found.add(self.at.as_str(), message);
                }
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.visit_at(element, |at| pointer::push_index(at, index));
                }
            }
            Value::Object(object) => {
                for (name, member) in object.iter() {
                    self.visit_at(member, |at| pointer::push(at, name));
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }

    fn visit_at(&mut self, value: &Value<'_>, push: impl FnOnce(&mut String)) {
        let length = self.at.len();
        push(&mut self.at);
        self.visit(value);
        self.at.truncate(length);
    }

    fn objection(&self, number: &Number<'_>) -> Option<&'static str> {
        if !number.as_f64().is_finite() {
            return Some("is infinite or NaN and cannot be hashed");
        }
        let exact = number.as_i64().is_some_and(|integer| integer.unsigned_abs() <= MAX_INTEGER);
        (self.hashed && number.is_integer() && !exact)
            .then_some("is an integer beyond 2^53 - 1, which RFC 8785 cannot represent; write it as a string")
    }
}

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
pub(super) fn check_schemas(schema: &Value<'_>, at: &mut String, found: &mut Finder<'_>) {
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
        Value::Object(_) => check_schemas(schema, at, found),
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

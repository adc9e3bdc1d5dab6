//! Schemas in other languages than JSON Schema, which are accepted and not checked.

use crate::json::{Object, Value};

/// Keywords of JSON Schema: an object with none of them is a schema in an unknown language.
const JSON_SCHEMA: [&str; 68] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "discriminator",
    "else",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "id",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
    "xml",
];

/// The types of Avro that are not types of JSON Schema.
const AVRO_PRIMITIVES: [&str; 5] = ["int", "long", "float", "double", "bytes"];

/// The types of JSON Type Definition, and whether JSON Schema has them too.
const JTD_TYPES: [(&str, bool); 11] = [
    ("boolean", true),
    ("string", true),
    ("timestamp", false),
    ("float32", false),
    ("float64", false),
    ("int8", false),
    ("uint8", false),
    ("int16", false),
    ("uint16", false),
    ("int32", false),
    ("uint32", false),
];

/// Returns what a schema is if it is not a JSON Schema, as in "the schema is …".
pub(crate) fn foreign_language(schema: &Value<'_>) -> Option<&'static str> {
    let object = schema.as_object()?;
    if is_avro(schema) {
        return Some("an Avro schema");
    }
    if type_definition(schema) == Some(true) {
        return Some("a JSON Type Definition");
    }
    if is_protobuf(schema) {
        return Some("a protobuf descriptor");
    }
    let mut names = object.iter().map(|(name, _)| name).peekable();
    let is_empty = names.peek().is_none();
    let is_known = is_empty || names.any(|name| JSON_SCHEMA.contains(&name));
    (!is_known).then_some("in an unknown language")
}

fn is_avro(schema: &Value<'_>) -> bool {
    let has_list = |name: &str| schema.get(name).is_some_and(|value| value.as_array().is_some());
    match schema.get("type") {
        Some(Value::String(name)) => match name.as_ref() {
            "record" | "error" => has_list("fields"),
            "enum" => has_list("symbols"),
            "fixed" => schema.get("size").is_some(),
            "map" => schema.get("values").is_some(),
            "array" => schema.get("items").is_some_and(is_avro_type),
            name => AVRO_PRIMITIVES.contains(&name),
        },
        // A type that is a schema, or a union of types.
        Some(value @ Value::Object(_)) => is_avro(value),
        Some(Value::Array(types)) => types.iter().any(|it| it.as_object().is_some() && is_avro(it)),
        _ => false,
    }
}

/// Returns whether the items of a list are described as in Avro: by the name of a type, a union or a schema.
fn is_avro_type(items: &Value<'_>) -> bool {
    match items {
        Value::String(_) => true,
        Value::Array(union) => union.iter().any(is_avro_type),
        other => is_avro(other),
    }
}

/// Returns whether a schema has a member that only JSON Type Definition has; `None` if it is not in this language, which
/// allows no other members than its own.
fn type_definition(schema: &Value<'_>) -> Option<bool> {
    let mut is_certain = false;
    for (name, value) in schema.as_object()?.iter() {
        is_certain |= match name {
            "type" => !JTD_TYPES.iter().find(|(name, _)| value.as_str() == Some(name))?.1,
            "elements" | "values" => type_definition(value).map(|_| true)?,
            "properties" | "definitions" => type_definitions(value)?,
            "optionalProperties" | "mapping" => type_definitions(value).map(|_| true)?,
            "ref" | "discriminator" => value.as_str().map(|_| true)?,
            "enum" => value.as_array().map(|_| false)?,
            "metadata" => value.as_object().map(|_| false)?,
            "nullable" | "additionalProperties" => matches!(value, Value::Bool(_)).then_some(false)?,
            _ => return None,
        };
    }
    Some(is_certain)
}

/// Returns whether one of the members of an object is certainly a type definition; `None` if one is not one.
fn type_definitions(object: &Value<'_>) -> Option<bool> {
    let members: Option<Vec<bool>> =
        object.as_object()?.iter().map(|(_, value)| type_definition(value)).collect();
    Some(members?.contains(&true))
}

fn is_protobuf(schema: &Value<'_>) -> bool {
    let elements = |name: &str| schema.get(name).and_then(Value::as_array).unwrap_or_default();
    let numbered = |name: &str, number: &str| {
        let members = schema.get(name).and_then(Value::as_object).into_iter().flat_map(Object::iter);
        members
            .map(|(_, field)| field)
            .any(|field| field.get(number).is_some_and(|it| it.as_number().is_some()))
    };
    let is_field = |field: &Value<'_>| field.get("number").is_some() && field.get("name").is_some();
    let is_file = |file: &Value<'_>| {
        ["messageType", "message_type", "enumType", "enum_type"].iter().any(|it| file.get(it).is_some())
    };
    is_file(schema)
        || elements("file").iter().any(is_file)
        || elements("field").iter().any(is_field)
        || numbered("fields", "id")
        || schema.get("nested").and_then(Value::as_object).is_some_and(|nested| {
            nested.iter().any(|(_, it)| it.get("fields").is_some() || it.get("nested").is_some())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    fn language(schema: &str) -> Option<&'static str> {
        foreign_language(&reader::read(schema.as_bytes(), &Limits::default()).unwrap())
    }

    #[test]
    fn other_languages_are_recognized_by_what_json_schema_does_not_have() {
        for (schema, expected) in [
            (
                r#"{"type": "record", "name": "T", "fields": [{"name": "id", "type": "long"}]}"#,
                "an Avro schema",
            ),
            (r#"{"type": "enum", "name": "E", "symbols": ["A"]}"#, "an Avro schema"),
            (r#"{"type": "map", "values": "string"}"#, "an Avro schema"),
            (r#"{"type": "array", "items": ["null", "string"]}"#, "an Avro schema"),
            (r#"{"type": "array", "items": {"type": "record", "fields": []}}"#, "an Avro schema"),
            (r#"{"type": "bytes", "logicalType": "decimal"}"#, "an Avro schema"),
            (r#"{"properties": {"id": {"type": "uint32"}}}"#, "a JSON Type Definition"),
            (
                r#"{"properties": {}, "optionalProperties": {"a": {"type": "string"}}}"#,
                "a JSON Type Definition",
            ),
            (r#"{"elements": {"type": "timestamp"}}"#, "a JSON Type Definition"),
            (r#"{"discriminator": "t", "mapping": {"a": {"properties": {}}}}"#, "a JSON Type Definition"),
            (r#"{"ref": "x", "definitions": {"x": {"type": "string"}}}"#, "a JSON Type Definition"),
            (
                r#"{"name": "T", "field": [{"name": "id", "number": 1, "type": "TYPE_INT64"}]}"#,
                "a protobuf descriptor",
            ),
            (
                r#"{"file": [{"name": "t.proto", "messageType": [], "syntax": "proto3"}]}"#,
                "a protobuf descriptor",
            ),
            (r#"{"nested": {"T": {"fields": {"id": {"type": "int64", "id": 1}}}}}"#, "a protobuf descriptor"),
            (r#"{"proto": "message T { int64 id = 1; }"}"#, "in an unknown language"),
        ] {
            assert_eq!(language(schema), Some(expected), "{schema}");
        }
    }

    #[test]
    fn json_schemas_are_not_taken_for_another_language() {
        for schema in [
            "{}",
            "true",
            r#"{"type": "strng"}"#,
            r#"{"type": "record"}"#,
            r#"{"properties": {"type": {"type": "string"}, "fields": {}}}"#,
            r#"{"properties": {"id": {"type": "string"}}}"#,
            r#"{"properties": {"id": {"type": "uint32"}}, "required": ["id"]}"#,
            r#"{"type": "array", "items": {"type": "string"}}"#,
            r#"{"type": "array", "items": [{"type": "string"}]}"#,
            r#"{"type": ["null", "string"]}"#,
            r#"{"enum": ["a"]}"#,
            r#"{"title": "T"}"#,
        ] {
            assert_eq!(language(schema), None, "{schema}");
        }
    }
}

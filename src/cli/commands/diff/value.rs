//! Serialisation of JSON values.

use runvault::json::Value;
use serde::ser::{Serialize, Serializer};

/// A value, for serde. Numbers that neither 64 bits nor a double represent exactly are serialised as strings of their
/// digits.
pub(crate) struct Json<'v>(pub(crate) &'v Value<'v>);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(truth) => serializer.serialize_bool(*truth),
            Value::String(text) => serializer.serialize_str(text),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => serializer.serialize_i64(integer),
                (None, double) if !number.is_integer() && double.is_finite() => {
                    serializer.serialize_f64(double)
                }
                _ => serializer.serialize_str(number.literal()),
            },
            Value::Array(elements) => serializer.collect_seq(elements.iter().map(Json)),
            Value::Object(object) => {
                serializer.collect_map(object.iter().map(|(name, member)| (name, Json(member))))
            }
        }
    }
}

/// Formats a value as one line of JSON, with numbers as written.
pub(super) fn text(value: &Value<'_>) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value<'_>, out: &mut String) {
    let string = |text: &str| serde_json::to_string(text).unwrap_or_default();
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::String(text) => out.push_str(&string(text)),
        Value::Number(number) => out.push_str(number.literal()),
        Value::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write(element, out);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (index, (name, member)) in object.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                out.push_str(&string(name));
                out.push_str(": ");
                write(member, out);
            }
            out.push('}');
        }
    }
}

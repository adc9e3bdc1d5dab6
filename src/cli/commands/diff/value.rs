//! Text of JSON values.

use runvault::json::Value;

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

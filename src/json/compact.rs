//! JSON as written, without white space: members in their order, numbers as their literals. It is never hashed; it is
//! for passing a part of a document to other programs unchanged.

use super::Value;
use super::text::push_string;

/// Returns the text of `value`. Escapes are normalized.
#[must_use]
pub fn text(value: &Value<'_>) -> String {
    let mut out = Vec::new();
    write(value, &mut out);
    // Values consist of text and the separators are ASCII, so nothing is ever replaced.
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn write(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => out.extend_from_slice(number.literal().as_bytes()),
        Value::String(text) => push_string(text, out),
        Value::Array(elements) => {
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(element, out);
            }
            out.push(b']');
        }
        Value::Object(object) => {
            out.push(b'{');
            for (index, (name, member)) in object.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                push_string(name, out);
                out.push(b':');
                write(member, out);
            }
            out.push(b'}');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reader::{self, Limits};
    use super::*;

    fn compacted(text: &str) -> String {
        super::text(&reader::read_keeping_overflow(text.as_bytes(), &Limits::default()).unwrap())
    }

    #[test]
    fn nothing_changes_but_white_space_and_escapes() {
        let text = r#" { "b" : [ 1E2, -0, 1.50, 36893488147419103232, 1e999 ],
            "a": {"\u00e9\/": "\u0000\u2028\"", "": null}, "z": [true, false, {}, []] } "#;
        let expected = concat!(
            r#"{"b":[1E2,-0,1.50,36893488147419103232,1e999],"a":{"é/":"\u0000"#,
            "\u{2028}",
            r#"\"","":null},"z":[true,false,{},[]]}"#
        );
        assert_eq!(compacted(text), expected);
        assert_eq!(compacted(expected), expected);
    }

    proptest! {
        #[test]
        fn strings_come_back(text: String) {
            let written = super::text(&Value::String(text.as_str().into()));
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        }
    }
}

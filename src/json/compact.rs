//! JSON as written, without white space: members in their order, numbers as their literals. It is never hashed; it is
//! for passing a part of a document to other programs unchanged.

use super::Value;
use super::text::push_escaped;

/// Returns the text of `value`. Escapes are normalized.
#[must_use]
pub fn text(value: &Value<'_>) -> String {
    let mut out = Vec::new();
    write(value, &mut |piece| out.extend_from_slice(piece));
    // Values consist of text and the separators are ASCII, so nothing is ever replaced.
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the number of bytes of the text of `value`.
pub(crate) fn len(value: &Value<'_>) -> usize {
    let mut len = 0;
    write(value, &mut |piece| len += piece.len());
    len
}

fn write(value: &Value<'_>, push: &mut impl FnMut(&[u8])) {
    match value {
        Value::Null => push(b"null"),
        Value::Bool(true) => push(b"true"),
        Value::Bool(false) => push(b"false"),
        Value::Number(number) => push(number.literal().as_bytes()),
        Value::String(text) => string(text, push),
        Value::Array(elements) => {
            push(b"[");
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    push(b",");
                }
                write(element, push);
            }
            push(b"]");
        }
        Value::Object(object) => {
            push(b"{");
            for (index, (name, member)) in object.iter().enumerate() {
                if index > 0 {
                    push(b",");
                }
                string(name, push);
                push(b":");
                write(member, push);
            }
            push(b"}");
        }
    }
}

fn string(text: &str, push: &mut impl FnMut(&[u8])) {
    push(b"\"");
    push_escaped(text, &mut *push);
    push(b"\"");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reader::{self, Limits};
    use super::*;

    fn compacted(text: &str) -> String {
        let value = reader::read_keeping_overflow(text.as_bytes(), &Limits::default()).unwrap();
        let text = super::text(&value);
        assert_eq!(len(&value), text.len());
        text
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

//! The profile `json-c14n-v1` of trace records: Python's `json.dumps` with sorted keys, compact, raw UTF-8.
//!
//! Keys are in code point order; strings escape only `"`, `\` and C0 controls; integers are exact, floats are printed
//! as Python prints them. See `docs/formats.md`, "Canonical profiles".

use crate::json::text::push_string;
use crate::json::{Number, Value};

/// The error for a number without a canonical form: it overflows to infinity. The reader rejects such documents, so
/// that only values that were not read can cause it.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is beyond the range of doubles and has no canonical form")]
pub struct NonFiniteNumber(String);

/// The usual maximum size of a record.
const USUAL_BYTES: usize = 2 << 10;

/// Returns the canonical bytes of `value`.
///
/// # Errors
/// Returns [`NonFiniteNumber`] for numbers that overflow.
pub fn to_vec(value: &Value<'_>) -> Result<Vec<u8>, NonFiniteNumber> {
    let mut out = Vec::with_capacity(USUAL_BYTES);
    write(value, &mut out)?;
    Ok(out)
}

/// Returns the canonical bytes of the object `members`, without the member `left_out`.
///
/// # Errors
/// Returns [`NonFiniteNumber`] for numbers that overflow.
pub fn object_without(object: &crate::json::Object<'_>, left_out: &str) -> Result<Vec<u8>, NonFiniteNumber> {
    let mut out = Vec::with_capacity(USUAL_BYTES);
    write_object(object, Some(left_out), &mut out)?;
    Ok(out)
}

fn write(value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), NonFiniteNumber> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => out.extend_from_slice(number_text(number)?.as_bytes()),
        Value::String(text) => push_string(text, out),
        Value::Array(elements) => {
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(element, out)?;
            }
            out.push(b']');
        }
        Value::Object(object) => write_object(object, None, out)?,
    }
    Ok(())
}

fn write_object(
    object: &crate::json::Object<'_>,
    left_out: Option<&str>,
    out: &mut Vec<u8>,
) -> Result<(), NonFiniteNumber> {
    out.push(b'{');
    let members = object.by_code_point().into_iter().filter(|(key, _)| Some(*key) != left_out);
    for (index, (key, member)) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_string(key, out);
        out.push(b':');
        write(member, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn number_text<'n>(number: &'n Number<'_>) -> Result<std::borrow::Cow<'n, str>, NonFiniteNumber> {
    number.python_text(Some).ok_or_else(|| NonFiniteNumber(format!("{number:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::json::reader::{self, Limits};

    #[test]
    fn exact_bytes_and_hash() {
        let text = r#" {"\uE000": "\u007f\u2028é\/", "\ud83d\ude00": [1E2, -0, 1.0, 36893488147419103232],
            "": {"b": "\u001F\b\t\n\f\r\"\\", "a": null}, "z": [true, false, {}, []]} "#;
        let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let canonical = to_vec(&value).unwrap();
        let expected = concat!(
            r#"{"":{"a":null,"b":"\u001f\b\t\n\f\r\"\\"},"z":[true,false,{},[]],"#,
            "\"\u{e000}\":\"\u{7f}\u{2028}é/\",\"😀\":[100.0,0,1.0,36893488147419103232]}"
        );
        assert_eq!(String::from_utf8(canonical.clone()).unwrap(), expected);
        assert_eq!(
            Digest::from_content(&canonical).to_string(),
            "sha256:d60235f3500d635f5cff6e1ca83f27267dcc057c70e3e6e81c09dc7adcf52a31"
        );
        let without_empty_key = object_without(value.as_object().unwrap(), "").unwrap();
        assert!(without_empty_key.starts_with(br#"{"z":"#));
    }
}

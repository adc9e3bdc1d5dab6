//! RFC 8785, the JSON Canonicalization Scheme: keys in UTF-16 order, numbers as ECMAScript prints doubles.
//!
//! The work is done by `serde_json_canonicalizer`. Whoever calls this has made sure that integers which doubles cannot
//! carry are refused or rounded as the format demands.

use std::io::Write;

use serde::ser::{Error, Serialize, SerializeMap, Serializer};

use super::Value;

/// Writes the canonical form of `value` to `out`.
///
/// # Errors
/// Numbers that overflow to infinity have no canonical form; errors of `out` are passed on.
pub fn write<T: Serialize>(value: &T, out: &mut impl Write) -> serde_json::Result<()> {
    serde_json_canonicalizer::to_writer(value, out)
}

/// The canonical bytes of `value`.
///
/// # Errors
/// Numbers that overflow to infinity have no canonical form.
pub fn to_vec<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    serde_json_canonicalizer::to_vec(value)
}

/// Numbers are serialized as doubles, which is all that RFC 8785 knows.
impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(truth) => serializer.serialize_bool(*truth),
            // The serializer below would write an infinite number inside an array as null.
            Value::Number(number) => match number.as_f64() {
                double if double.is_finite() => serializer.serialize_f64(double),
                _ => Err(S::Error::custom("a number overflows to infinity")),
            },
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(elements) => serializer.collect_seq(elements),
            Value::Object(object) => {
                let mut map = serializer.serialize_map(Some(object.iter().len()))?;
                for (key, member) in object.iter() {
                    map.serialize_entry(key, member)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::{self, Limits};
    use super::*;
    use crate::digest::Digest;

    #[test]
    fn exact_bytes_and_hash() {
        let text = r#"{"\uE000": 1e21, "\ud83d\ude00": [1.0, -0.0, 1e-7, 0.000001, 1e16, 9007199254740993.0],
            "a": {"y": "\u007f\u2028\/\u001F", "x": [null, true]}}"#;
        let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let canonical = to_vec(&value).unwrap();
        let expected = concat!(
            "{\"a\":{\"x\":[null,true],\"y\":\"\u{7f}\u{2028}/\\u001f\"},",
            "\"😀\":[1,0,1e-7,0.000001,10000000000000000,9007199254740992],\"\u{e000}\":1e+21}"
        );
        assert_eq!(String::from_utf8(canonical.clone()).unwrap(), expected);
        assert_eq!(
            Digest::of(&canonical).to_string(),
            "sha256:346e2f617abd1923b5231dd2ee8d8293dedab6d90108208e9455311fb23f533a"
        );
    }

    #[test]
    fn infinity_has_no_form() {
        let limits = Limits::default();
        let value = reader::read_keeping_overflow(b"[1e999]", &limits).unwrap();
        assert!(to_vec(&value).is_err());
    }
}

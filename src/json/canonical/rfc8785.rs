//! RFC 8785, the JSON Canonicalization Scheme: keys in UTF-16 order, numbers as ECMAScript prints doubles.
//!
//! There is one writer, for parsed values: they can be sorted in place and are written directly, while
//! `serde_json_canonicalizer` buffers every level of a document until the level is complete. Property tests compare the
//! two. The caller ensures that integers that doubles cannot represent are rejected or rounded as the format requires.

use std::cmp::Ordering;
use std::io::{self, BufWriter, Write};

use crate::digest::{Digest, Hasher};
use crate::json::Value;
use crate::json::text::write_string;

/// The input of serialization: a value, or a structure composed of values.
#[derive(Clone, Debug)]
pub enum CanonicalInput<'v> {
    /// A value.
    Value(&'v Value<'v>),
    /// An array.
    Array(Vec<CanonicalInput<'v>>),
    /// An object. The caller guarantees that names are unique.
    Object(Vec<(&'v str, CanonicalInput<'v>)>),
}

impl<'v> From<&'v Value<'v>> for CanonicalInput<'v> {
    fn from(value: &'v Value<'v>) -> Self {
        Self::Value(value)
    }
}

/// Writes the canonical form of `what` to `out`.
///
/// # Errors
/// Returns an error of kind `InvalidData` for numbers that overflow to infinity, and errors of `out`.
pub fn write<'v>(what: impl Into<CanonicalInput<'v>>, out: &mut impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    write_form(&what.into(), &mut out)?;
    out.flush()
}

/// Returns the digest of the canonical form of `what`, followed by `end`.
///
/// # Errors
/// Returns an error for numbers that overflow to infinity, which have no canonical form.
pub fn digest<'v>(what: impl Into<CanonicalInput<'v>>, end: &[u8]) -> io::Result<Digest> {
    let mut hasher = Hasher::new();
    write(what, &mut hasher)?;
    hasher.update(end);
    Ok(hasher.finish())
}

/// Returns the canonical form of an object whose members are texts. It cannot fail. The caller guarantees that names
/// are unique.
#[must_use]
#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "an incomplete form must not be hashed; none is made"
)]
pub fn object_of_texts<'v>(members: impl IntoIterator<Item = (&'v str, String)>) -> Vec<u8> {
    let members: Vec<(&str, String)> = members.into_iter().collect();
    let mut out = Vec::new();
    write_object(members.iter().map(|(name, text)| (*name, text)), &mut out, |text, out| {
        write_string(text, out)
    })
    .expect("writing to memory cannot fail, and texts contain no numbers");
    out
}

fn write_form(what: &CanonicalInput<'_>, out: &mut impl Write) -> io::Result<()> {
    match what {
        CanonicalInput::Value(value) => write_value::<false>(value, out),
        CanonicalInput::Array(elements) => write_array(elements, out, write_form),
        CanonicalInput::Object(members) => {
            write_object(members.iter().map(|(key, member)| (*key, member)), out, write_form)
        }
    }
}

fn write_value<const DISTINCT: bool>(value: &Value<'_>, out: &mut impl Write) -> io::Result<()> {
    match value {
        Value::Null => out.write_all(b"null"),
        Value::Bool(true) => out.write_all(b"true"),
        Value::Bool(false) => out.write_all(b"false"),
        Value::Number(number) => {
            let text = if DISTINCT { number.distinct_text() } else { number.ecmascript_text() };
            match text {
                Some(text) => out.write_all(text.as_bytes()),
                None => Err(io::Error::new(io::ErrorKind::InvalidData, OVERFLOW)),
            }
        }
        Value::String(text) => write_string(text, out),
        Value::Array(elements) => write_array(elements, out, write_value::<DISTINCT>),
        Value::Object(object) => write_object(object.iter(), out, write_value::<DISTINCT>),
    }
}

const OVERFLOW: &str = "a number overflows to infinity";

fn write_array<T, W: Write>(
    elements: &[T],
    out: &mut W,
    write: impl Fn(&T, &mut W) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(b"[")?;
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        write(element, out)?;
    }
    out.write_all(b"]")
}

fn write_object<'v, T: 'v, W: Write>(
    members: impl Iterator<Item = (&'v str, &'v T)>,
    out: &mut W,
    write: impl Fn(&'v T, &mut W) -> io::Result<()>,
) -> io::Result<()> {
    let mut members: Vec<_> = members.collect();
    members.sort_unstable_by(|(one, _), (other, _)| utf16_order(one, other));
    out.write_all(b"{")?;
    for (index, (key, member)) in members.into_iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        write_string(key, out)?;
        out.write_all(b":")?;
        write(member, out)?;
    }
    out.write_all(b"}")
}

fn utf16_order(one: &str, other: &str) -> Ordering {
    // For ASCII, the order is that of the bytes.
    if one.is_ascii() && other.is_ascii() {
        return one.cmp(other);
    }
    one.encode_utf16().cmp(other.encode_utf16())
}

/// Returns the canonical bytes of `value`.
///
/// # Errors
/// Returns an error for numbers that overflow to infinity.
pub fn to_vec(value: &Value<'_>) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    write_value::<false>(value, &mut out)?;
    Ok(out)
}

/// Returns the canonical bytes of `value`, in which integers beyond 2^53 keep their digits: for values that are compared,
/// so that different integers stay different.
///
/// # Errors
/// Returns an error for numbers that overflow to infinity, other than integers.
pub(crate) fn to_vec_with_distinct_integers(value: &Value<'_>) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    write_value::<true>(value, &mut out)?;
    Ok(out)
}

/// Returns the digest of the bytes that [`to_vec_with_distinct_integers`] returns, which are not in memory together.
///
/// # Errors
/// Returns an error for numbers that overflow to infinity, other than integers.
pub(crate) fn digest_with_distinct_integers(value: &Value<'_>) -> io::Result<Digest> {
    let mut out = BufWriter::new(Hasher::new());
    write_value::<true>(value, &mut out)?;
    Ok(out.into_inner()?.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::json::reader::{self, Limits};
    use proptest::prelude::*;
    use serde::ser::{Error, Serialize, SerializeMap, Serializer};

    /// For the other implementation. Numbers are serialized as doubles, the only numbers in RFC 8785.
    impl Serialize for Value<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self {
                Value::Null => serializer.serialize_unit(),
                Value::Bool(truth) => serializer.serialize_bool(*truth),
                // The serializer below would write an infinite number in an array as null.
                Value::Number(number) => match number.as_f64() {
                    double if double.is_finite() => serializer.serialize_f64(double),
                    _ => Err(S::Error::custom(OVERFLOW)),
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

    fn written(value: &Value<'_>) -> io::Result<Vec<u8>> {
        let mut canonical = Vec::new();
        write(value, &mut canonical).map(|()| canonical)
    }

    #[test]
    fn exact_bytes_and_hash() {
        let text = r#"{"\uE000": 1e21, "\ud83d\ude00": [1.0, -0.0, 1e-7, 0.000001, 1e16, 9007199254740993.0],
            "a": {"y": "\u007f\u2028\/\u001F", "x": [null, true]}}"#;
        let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let canonical = to_vec(&value).unwrap();
        assert_eq!(written(&value).unwrap(), canonical);
        let expected = concat!(
            "{\"a\":{\"x\":[null,true],\"y\":\"\u{7f}\u{2028}/\\u001f\"},",
            "\"😀\":[1,0,1e-7,0.000001,10000000000000000,9007199254740992],\"\u{e000}\":1e+21}"
        );
        assert_eq!(String::from_utf8(canonical.clone()).unwrap(), expected);
        assert_eq!(
            Digest::from_content(&canonical).to_string(),
            "sha256:346e2f617abd1923b5231dd2ee8d8293dedab6d90108208e9455311fb23f533a"
        );
        assert_eq!(digest(&value, b"").unwrap(), Digest::from_content(&canonical));
        assert_eq!(
            digest(&value, b"\n").unwrap(),
            Digest::from_content(&[canonical.as_slice(), b"\n"].concat())
        );
    }

    #[test]
    fn infinity_has_no_form() {
        let limits = Limits::default();
        let value = reader::read_keeping_overflow(b"[1e999]", &limits).unwrap();
        assert!(to_vec(&value).is_err());
        assert_eq!(written(&value).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(digest(&value, b"").unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn forms_are_written_as_the_values_they_stand_for() {
        let text = r#"{"b":[1,{"\uE000":2,"\ud83d\ude00":3}],"a":null}"#;
        let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let list = value.get("b").and_then(Value::as_array).unwrap();
        let form = CanonicalInput::Object(vec![
            ("b", CanonicalInput::Array(list.iter().map(CanonicalInput::Value).collect())),
            ("a", CanonicalInput::Value(&Value::Null)),
        ]);
        let mut canonical = Vec::new();
        write(form, &mut canonical).unwrap();
        assert_eq!(canonical, to_vec(&value).unwrap());
    }

    fn any_value() -> impl Strategy<Value = Value<'static>> {
        let literal = prop_oneof![
            any::<i64>().prop_map(|number| number.to_string()),
            (-1_000_i16..1_000).prop_map(|number| number.to_string()),
            any::<f64>()
                .prop_filter("JSON has no infinities", |double| double.is_finite())
                .prop_map(|double| format!("{double:e}")),
            "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?".prop_map(|literal| literal),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            literal.prop_map(|literal| Value::Number(crate::json::Number::from_literal(literal))),
            any::<String>().prop_map(|text| Value::String(text.into())),
            "[a-z\\\\\"\n\u{1}\u{7f}é]{0,40}".prop_map(|text| Value::String(text.into())),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            let object = prop::collection::hash_map("[a-c\"\u{e000}\u{10000}é]{0,3}", inner.clone(), 0..6);
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(Value::Array),
                object.prop_map(|members| {
                    let members = members.into_iter().map(|(name, member)| (name.into(), member));
                    Value::Object(crate::json::Object::from_members(members.collect()))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn objects_of_texts_are_written_as_typed_data(members: std::collections::BTreeMap<String, String>) {
            let texts = members.iter().map(|(name, text)| (name.as_str(), text.clone()));
            prop_assert_eq!(object_of_texts(texts), serde_json_canonicalizer::to_vec(&members).unwrap());
        }

        #[test]
        fn another_implementation_agrees(value in any_value()) {
            let theirs = serde_json_canonicalizer::to_vec(&value).unwrap();
            prop_assert_eq!(to_vec(&value).unwrap(), theirs.clone());
            prop_assert_eq!(written(&value).unwrap(), theirs);
        }
    }
}

//! The string conversions and comparisons of ECMAScript: the verifiers of two formats are written in it, and their
//! results depend on them.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{Number, Value};

/// The characters that `String.prototype.trim` removes. `char::is_whitespace` differs at U+FEFF and U+0085.
fn is_space(character: char) -> bool {
    matches!(character,
        '\t'..='\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}'
        | '\u{205f}' | '\u{3000}' | '\u{feff}')
}

/// Returns `text` without white space at its ends, like `text.trim()`.
#[must_use]
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Returns the result of `String(value)`, where `None` is `undefined`.
#[must_use]
pub fn text_of<'v>(value: Option<&'v Value<'_>>) -> Cow<'v, str> {
    match value {
        None => Cow::Borrowed("undefined"),
        Some(Value::Null) => Cow::Borrowed("null"),
        Some(Value::Bool(true)) => Cow::Borrowed("true"),
        Some(Value::Bool(false)) => Cow::Borrowed("false"),
        Some(Value::Number(number)) => text_of_number(number),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(Value::Object(_)) => Cow::Borrowed("[object Object]"),
        Some(Value::Array(elements)) => {
            let text = |element: &'v Value<'_>| match element {
                Value::Null => Cow::Borrowed(""),
                other => text_of(Some(other)),
            };
            Cow::Owned(elements.iter().map(text).collect::<Vec<_>>().join(","))
        }
    }
}

fn text_of_number<'n>(number: &'n Number<'_>) -> Cow<'n, str> {
    // Only non-finite doubles have no decimal text, and a literal never represents NaN.
    number.ecmascript_text().unwrap_or_else(|| {
        Cow::Borrowed(if number.literal().starts_with('-') { "-Infinity" } else { "Infinity" })
    })
}

/// Returns whether `one > other`, where `None` is `undefined`.
#[must_use]
pub fn is_greater(one: Option<&Value<'_>>, other: Option<&Value<'_>>) -> bool {
    let (Some(one), Some(other)) = (one, other) else {
        return false;
    };
    match (primitive(one), primitive(other)) {
        (Primitive::Text(one), Primitive::Text(other)) => one.encode_utf16().gt(other.encode_utf16()),
        (one, other) => one.number() > other.number(),
    }
}

/// Returns whether `one === other`. Two arrays or objects are never identical.
#[must_use]
pub fn is_same(one: Option<&Value<'_>>, other: Option<&Value<'_>>) -> bool {
    match (one, other) {
        (None, None) | (Some(Value::Null), Some(Value::Null)) => true,
        (Some(Value::Bool(one)), Some(Value::Bool(other))) => one == other,
        (Some(Value::Number(one)), Some(Value::Number(other))) => {
            one.as_f64().partial_cmp(&other.as_f64()) == Some(Ordering::Equal)
        }
        (Some(Value::String(one)), Some(Value::String(other))) => one == other,
        _ => false,
    }
}

enum Primitive<'v> {
    Text(Cow<'v, str>),
    Number(f64),
}

impl Primitive<'_> {
    fn number(&self) -> f64 {
        match self {
            Self::Text(text) => number(text),
            Self::Number(number) => *number,
        }
    }
}

fn primitive<'v>(value: &'v Value<'_>) -> Primitive<'v> {
    match value {
        Value::Null => Primitive::Number(0.0),
        Value::Bool(truth) => Primitive::Number(f64::from(u8::from(*truth))),
        Value::Number(number) => Primitive::Number(number.as_f64()),
        Value::String(_) | Value::Array(_) | Value::Object(_) => Primitive::Text(text_of(Some(value))),
    }
}

/// Returns the result of `Number(text)`.
fn number(text: &str) -> f64 {
    let text = trim(text);
    match text {
        "" => return 0.0,
        "Infinity" | "+Infinity" => return f64::INFINITY,
        "-Infinity" => return f64::NEG_INFINITY,
        _ => {}
    }
    for (prefixes, base) in [(["0x", "0X"], 16), (["0o", "0O"], 8), (["0b", "0B"], 2)] {
        if let Some(digits) = prefixes.into_iter().find_map(|prefix| text.strip_prefix(prefix)) {
            return in_base(digits, base).unwrap_or(f64::NAN);
        }
    }
    // Rust also parses words such as "nan", which are not numbers here.
    if text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
        text.parse().unwrap_or(f64::NAN)
    } else {
        f64::NAN
    }
}

fn in_base(digits: &str, base: u32) -> Option<f64> {
    let value = |sum: f64, digit: char| Some(sum * f64::from(base) + f64::from(digit.to_digit(base)?));
    if digits.is_empty() { None } else { digits.chars().try_fold(0.0, value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{Limits, read_keeping_overflow};

    fn read(text: &str) -> Value<'_> {
        read_keeping_overflow(text.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn values_become_text_as_in_ecmascript() {
        for (text, expected) in [
            ("null", "null"),
            ("true", "true"),
            ("1e21", "1e+21"),
            ("1e400", "Infinity"),
            ("-1e400", "-Infinity"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("9007199254740993", "9007199254740992"),
            ("[0]", "0"),
            ("[null, [1, \"a\"], {}]", ",1,a,[object Object]"),
        ] {
            assert_eq!(text_of(Some(&read(text))), expected);
        }
        assert_eq!(text_of(None), "undefined");
    }

    #[test]
    fn trimming_removes_what_ecmascript_removes() {
        assert_eq!(trim("\u{feff}\u{a0}\u{2028} a\u{85}\u{1c}\u{3000}\n"), "a\u{85}\u{1c}");
    }

    #[test]
    fn greater_is_that_of_ecmascript() {
        for (one, other, greater) in [
            ("\"b\"", "\"a\"", true),
            ("\"\\uff5e\"", "\"\\ud83d\\ude00\"", true),
            ("\"10\"", "\"9\"", false),
            ("\"10\"", "9", true),
            ("10", "9", true),
            ("\" 0x10 \"", "15.5", true),
            ("\"0x\"", "-1", false),
            ("\"x\"", "1", false),
            ("1", "null", true),
            ("true", "\"\"", true),
            ("[2]", "1", true),
            ("{}", "1", false),
            ("{}", "\"Z\"", true),
            ("[null, 1]", "\",0\"", true),
            ("1e400", "1e308", true),
            ("\"nan\"", "0", false),
        ] {
            assert_eq!(is_greater(Some(&read(one)), Some(&read(other))), greater, "{one:?} {other:?}");
        }
        assert!(!is_greater(None, None));
    }

    #[test]
    fn sameness_looks_at_types() {
        assert!(is_same(Some(&read("1.0")), Some(&read("1"))));
        assert!(is_same(None, None));
        assert!(!is_same(None, Some(&read("null"))));
        assert!(!is_same(Some(&read("\"1\"")), Some(&read("1"))));
        assert!(!is_same(Some(&read("[]")), Some(&read("[]"))));
    }
}

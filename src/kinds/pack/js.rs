//! Comparisons as ECMAScript makes them: the format's verifier is written in it, and its verdicts show.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::canonical::{Number, Value, rfc8785};
use crate::verify::utf16_order;

/// The characters that `String.prototype.trim` removes. `char::is_whitespace` differs at U+FEFF and U+0085.
fn is_space(character: char) -> bool {
    matches!(character,
        '\t'..='\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}'
        | '\u{205f}' | '\u{3000}' | '\u{feff}')
}

/// `text` without white space at its ends.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `one > other`, where nothing stands for `undefined`.
pub(super) fn is_greater(one: Option<&Value<'_>>, other: Option<&Value<'_>>) -> bool {
    let (Some(one), Some(other)) = (one, other) else {
        return false;
    };
    match (primitive(one), primitive(other)) {
        (Primitive::Text(one), Primitive::Text(other)) => utf16_order(&one, &other).is_gt(),
        (one, other) => one.number() > other.number(),
    }
}

/// `one === other`. Two arrays or objects are never the same one.
pub(super) fn is_same(one: Option<&Value<'_>>, other: Option<&Value<'_>>) -> bool {
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
        Value::String(text) => Primitive::Text(Cow::Borrowed(text)),
        Value::Array(_) | Value::Object(_) => Primitive::Text(Cow::Owned(coerced(value))),
    }
}

/// `String(value)`.
fn coerced(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => text.to_string(),
        Value::Object(_) => "[object Object]".to_owned(),
        Value::Array(elements) => {
            let text = |element: &Value<'_>| if element.is_null() { String::new() } else { coerced(element) };
            elements.iter().map(text).collect::<Vec<_>>().join(",")
        }
    }
}

fn number_text(number: &Number<'_>) -> String {
    match number.as_f64() {
        double if double.is_infinite() => format!("{}Infinity", if double < 0.0 { "-" } else { "" }),
        double => String::from_utf8(rfc8785::to_vec(&double).unwrap_or_default()).unwrap_or_default(),
    }
}

/// `Number(text)`.
fn number(text: &str) -> f64 {
    let text = trim(text);
    let in_base = |digits: &str, base: u32| {
        let value = |sum: f64, digit: char| Some(sum * f64::from(base) + f64::from(digit.to_digit(base)?));
        let read = (!digits.is_empty()).then(|| digits.chars().try_fold(0.0, value));
        read.flatten().unwrap_or(f64::NAN)
    };
    match (text, text.get(..2)) {
        ("", _) => 0.0,
        ("Infinity" | "+Infinity", _) => f64::INFINITY,
        ("-Infinity", _) => f64::NEG_INFINITY,
        (_, Some("0x" | "0X")) => in_base(text.get(2..).unwrap_or_default(), 16),
        (_, Some("0o" | "0O")) => in_base(text.get(2..).unwrap_or_default(), 8),
        (_, Some("0b" | "0B")) => in_base(text.get(2..).unwrap_or_default(), 2),
        // Rust reads words such as "nan" as well, which are no numbers here.
        _ if text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) => {
            text.parse().unwrap_or(f64::NAN)
        }
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::reader::{Limits, read_keeping_overflow};

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
            let (one, other) = (one.as_bytes(), other.as_bytes());
            let limits = Limits::default();
            let read = |text| read_keeping_overflow(text, &limits).unwrap();
            assert_eq!(is_greater(Some(&read(one)), Some(&read(other))), greater, "{one:?} {other:?}");
        }
        assert!(!is_greater(None, None));
    }

    #[test]
    fn sameness_looks_at_types() {
        let limits = Limits::default();
        let read = |text: &'static str| read_keeping_overflow(text.as_bytes(), &limits).unwrap();
        assert!(is_same(Some(&read("1.0")), Some(&read("1"))));
        assert!(is_same(None, None));
        assert!(!is_same(None, Some(&read("null"))));
        assert!(!is_same(Some(&read("\"1\"")), Some(&read("1"))));
        assert!(!is_same(Some(&read("[]")), Some(&read("[]"))));
    }
}

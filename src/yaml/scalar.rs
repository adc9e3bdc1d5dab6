//! The nodes of a document, and the core schema of YAML 1.2 (section 10.3): resolution of scalars.

use std::borrow::Cow;
use std::fmt::Write;
use std::rc::Rc;

use crate::json::reader::MAX_NUMBER_DIGITS;
use crate::json::{Object, Value};

/// A completed value. Its measures are those of the copy that every alias expands to.
pub(super) struct YamlNode {
    pub(super) content: YamlContent,
    /// The number of values in it, including itself; keys are not counted.
    pub(super) values: usize,
    /// The total size of its scalars and keys in bytes.
    pub(super) bytes: u64,
    /// The number of levels of collections in it, including itself.
    pub(super) height: usize,
}

pub(super) enum YamlContent {
    Scalar(Value<'static>),
    Sequence(Vec<Rc<YamlNode>>),
    Mapping(Vec<(String, Rc<YamlNode>)>),
}

impl YamlNode {
    pub(super) fn scalar(value: Value<'static>, bytes: usize) -> Self {
        Self { bytes: bytes as u64, content: YamlContent::Scalar(value), values: 1, height: 0 }
    }

    pub(super) fn collection(content: YamlContent) -> Self {
        Self { content, values: 1, bytes: 0, height: 1 }
    }

    pub(super) fn measure(&mut self, child: &YamlNode) {
        self.values += child.values;
        self.bytes += child.bytes;
        self.height = self.height.max(child.height + 1);
    }

    /// Returns the value; nodes shared by aliases are copied. The depth limit bounds the recursion.
    pub(super) fn into_value(node: Rc<Self>) -> Value<'static> {
        let content = match Rc::try_unwrap(node) {
            Ok(node) => node.content,
            Err(shared) => match &shared.content {
                YamlContent::Scalar(value) => return value.clone(),
                YamlContent::Sequence(elements) => YamlContent::Sequence(elements.clone()),
                YamlContent::Mapping(members) => YamlContent::Mapping(members.clone()),
            },
        };
        match content {
            YamlContent::Scalar(value) => value,
            YamlContent::Sequence(elements) => {
                Value::Array(elements.into_iter().map(Self::into_value).collect())
            }
            YamlContent::Mapping(members) => {
                let members = members.into_iter();
                let members = members.map(|(key, value)| (Cow::Owned(key), Self::into_value(value)));
                Value::Object(Object::from_members(members.collect()))
            }
        }
    }
}

/// The form of a plain scalar in the core schema.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PlainScalar<'t> {
    Null,
    Bool(bool),
    /// An integer in some radix.
    Integer {
        negative: bool,
        radix: u32,
        digits: &'t str,
    },
    /// The digits before and after the point, either of which may be missing, and the exponent with its sign.
    Float {
        negative: bool,
        whole: &'t str,
        fraction: &'t str,
        exponent: Option<&'t str>,
    },
    /// An infinity or NaN.
    NotFinite,
    Text,
}

impl<'t> PlainScalar<'t> {
    pub(super) fn parse(text: &'t str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Self::Null,
            "true" | "True" | "TRUE" => return Self::Bool(true),
            "false" | "False" | "FALSE" => return Self::Bool(false),
            ".nan" | ".NaN" | ".NAN" => return Self::NotFinite,
            _ => {}
        }
        Self::in_radix(text).or_else(|| Self::decimal(text)).unwrap_or(Self::Text)
    }

    /// `0o17` or `0x1F`; these have no sign.
    fn in_radix(text: &'t str) -> Option<Self> {
        let (radix, digits) = match text.strip_prefix("0o") {
            Some(digits) => (8, digits),
            None => (16, text.strip_prefix("0x")?),
        };
        let fits = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
        fits.then_some(Self::Integer { negative: false, radix, digits })
    }

    fn decimal(text: &'t str) -> Option<Self> {
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
            return Some(Self::NotFinite);
        }
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let exponent_digits = exponent.map(|exponent| exponent.strip_prefix(['-', '+']).unwrap_or(exponent));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let has_digits = !whole.is_empty() || !fraction.is_empty();
        if !has_digits || !digits(whole) || !digits(fraction) {
            return None;
        }
        if exponent_digits.is_some_and(|exponent| exponent.is_empty() || !digits(exponent)) {
            return None;
        }
        Some(if exponent.is_none() && !mantissa.contains('.') {
            Self::Integer { negative, radix: 10, digits: whole }
        } else {
            Self::Float { negative, whole, fraction, exponent }
        })
    }

    /// Returns whether there are more digits than the limit.
    pub(super) fn is_too_long(&self) -> bool {
        let digits = match self {
            Self::Integer { digits, .. } => digits.len(),
            Self::Float { whole, fraction, exponent, .. } => {
                let exponent = exponent.unwrap_or_default().trim_start_matches(['-', '+']);
                whole.len() + fraction.len() + exponent.len()
            }
            _ => 0,
        };
        digits > MAX_NUMBER_DIGITS
    }

    /// Returns the number as a JSON literal, if it is one. Infinities and NaN become a literal that overflows.
    pub(super) fn literal(&self) -> Option<String> {
        Some(match *self {
            Self::Integer { negative, radix, digits } => {
                let digits =
                    if radix == 10 { significant(digits).to_owned() } else { to_decimal(digits, radix) };
                let sign = if negative && digits != "0" { "-" } else { "" };
                format!("{sign}{digits}")
            }
            Self::Float { negative, whole, fraction, exponent } => {
                let sign = if negative { "-" } else { "" };
                let fraction = if fraction.is_empty() { "0" } else { fraction };
                let exponent = exponent.map(|exponent| format!("e{exponent}")).unwrap_or_default();
                format!("{sign}{}.{fraction}{exponent}", significant(whole))
            }
            Self::NotFinite => "1e999".to_owned(),
            Self::Null | Self::Bool(_) | Self::Text => return None,
        })
    }

    /// Returns the number as a float literal, as the tag `!!float` does for integers.
    pub(super) fn float_literal(&self) -> Option<String> {
        match *self {
            Self::Integer { negative, radix: 10, digits: whole } => {
                Self::Float { negative, whole, fraction: "", exponent: None }.literal()
            }
            Self::Float { .. } | Self::NotFinite => self.literal(),
            _ => None,
        }
    }
}

/// Returns `digits` without leading zeros.
fn significant(digits: &str) -> &str {
    match digits.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    }
}

/// Returns the decimal digits of a number of any size, given by its `digits` in a radix of at most 16.
fn to_decimal(digits: &str, radix: u32) -> String {
    /// Nine decimal digits per limb: with eight source digits at a time, nothing overflows.
    const LIMB: u64 = 1_000_000_000;
    let radix = u64::from(radix);
    let mut limbs: Vec<u64> = Vec::new();
    for chunk in digits.as_bytes().chunks(8) {
        let mut scale = 1;
        let mut carry = 0;
        for digit in chunk {
            let value = char::from(*digit).to_digit(16).unwrap_or(0);
            carry = carry * radix + u64::from(value);
            scale *= radix;
        }
        for limb in &mut limbs {
            let sum = *limb * scale + carry;
            *limb = sum % LIMB;
            carry = sum / LIMB;
        }
        while carry > 0 {
            limbs.push(carry % LIMB);
            carry /= LIMB;
        }
    }
    let mut all = String::with_capacity(limbs.len() * 9);
    for limb in limbs.iter().rev() {
        // Writing to a string cannot fail.
        let _ = write!(all, "{limb:09}");
    }
    significant(&all).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the resolution of a plain scalar, in a short notation.
    fn resolved(text: &str) -> String {
        let form = PlainScalar::parse(text);
        match form {
            PlainScalar::Null => "null".to_owned(),
            PlainScalar::Bool(truth) => truth.to_string(),
            PlainScalar::Integer { .. } => format!("int {}", form.literal().unwrap()),
            PlainScalar::Float { .. } => format!("float {}", form.literal().unwrap()),
            PlainScalar::NotFinite => format!("not finite {}", form.literal().unwrap()),
            PlainScalar::Text => "text".to_owned(),
        }
    }

    #[test]
    fn the_core_schema() {
        for (expected, texts) in [
            ("null", &["", "~", "null", "Null", "NULL"][..]),
            ("true", &["true", "True", "TRUE"]),
            ("false", &["false", "False", "FALSE"]),
            ("int 0", &["0", "-0", "+0", "000", "0o0", "0x0", "0x0000000000000000000"]),
            ("int 777", &["777", "0777", "+777", "0x309", "0o1411"]),
            ("int -19", &["-19", "-019"]),
            ("int 31", &["0x1F", "0x1f", "0o37"]),
            (
                "int 18446744073709551616",
                &["18446744073709551616", "0x10000000000000000", "0o2000000000000000000000"],
            ),
            ("float 0.0", &["0.", ".0", "0.0", "+.0", "00.0"]),
            ("float -0.0", &["-0.", "-.0"]),
            ("float 1.5e+3", &["1.5e+3", "1.5E+3", "+01.5e+3"]),
            ("float 12.0e03", &["12e03", "12.E03", "12.0e03"]),
            ("not finite 1e999", &[".inf", "-.inf", "+.Inf", ".INF", ".nan", ".NaN", ".NAN"]),
        ] {
            for text in texts {
                assert_eq!(resolved(text), expected, "{text}");
            }
        }
        for text in [
            "nULL",
            "~~",
            "tRUE",
            "yes",
            "no",
            "on",
            "off",
            "y",
            "1_000",
            "12:30:45",
            "2026-02-21",
            "0b11",
            "0O17",
            "0X1F",
            "0o8",
            "0xG",
            "0o",
            "0x",
            "-0x1F",
            "+0o7",
            "=",
            "<<",
            ".",
            "-",
            "+",
            "+-1",
            "1e",
            "1e+",
            "e3",
            ".e3",
            "1.2.3",
            "1e2e3",
            "--1",
            ".iNF",
            "+.nan",
            "-.NaN",
            "inf",
            "NaN",
            "Infinity",
            "1 ",
            "٣",
            "1e٣",
            "0x٣",
        ] {
            assert_eq!(resolved(text), "text", "{text}");
        }
    }

    #[test]
    fn a_tagged_float_is_no_integer() {
        let literal = |text| PlainScalar::parse(text).float_literal();
        assert_eq!(literal("9007199254740993").as_deref(), Some("9007199254740993.0"));
        assert_eq!(literal("1e3").as_deref(), Some("1.0e3"));
        assert_eq!(literal("0x1F"), None);
    }

    #[test]
    fn long_numbers_are_converted_exactly_and_counted() {
        // 2 to the power of 400.
        let expected = "2582249878086908589655919172003011874329705792829223512830659356540647622016841194629645353280137\
                        831435903171972747493376";
        assert_eq!(to_decimal(&format!("1{}", "0".repeat(100)), 16), expected);
        assert!(!PlainScalar::parse(&"1".repeat(4_300)).is_too_long());
        for text in [
            "1".repeat(4_301),
            format!("0x{}", "f".repeat(4_301)),
            format!("1.{}", "0".repeat(4_300)),
            format!("1e{}", "0".repeat(4_300)),
        ] {
            assert!(PlainScalar::parse(&text).is_too_long());
        }
    }

    proptest! {
        #[test]
        fn radix_conversion_agrees_with_the_standard_library(number: u128, zeros in 0_usize..4) {
            let zeros = "0".repeat(zeros);
            prop_assert_eq!(to_decimal(&format!("{zeros}{number:x}"), 16), number.to_string());
            prop_assert_eq!(to_decimal(&format!("{zeros}{number:o}"), 8), number.to_string());
        }

        #[test]
        fn floats_read_back_as_the_same_double(text in "[-+]?([0-9]{0,3}\\.[0-9]{1,20}|[0-9]{1,20}\\.?)[eE][-+]?[0-9]{1,3}") {
            let literal = PlainScalar::parse(&text).literal().unwrap();
            // Any JSON reader must be able to parse it.
            let read: f64 = serde_json::from_str(&literal).unwrap_or(f64::INFINITY);
            let expected: f64 = text.parse().unwrap();
            prop_assert_eq!(literal.parse::<f64>().unwrap().to_bits(), expected.to_bits());
            prop_assert!(read.to_bits() == expected.to_bits() || expected.is_infinite());
        }
    }
}

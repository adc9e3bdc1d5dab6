use std::borrow::Cow;

/// Integers with at most this many digits are exact as doubles and are printed in full.
const EXACT_DIGITS: usize = 15;

/// The largest integer up to which all are different as doubles.
const LARGEST_DISTINCT: u64 = 1 << 53;

/// A JSON number, stored as its literal, so that integers of any size are preserved.
#[derive(Clone, Debug, PartialEq)]
pub struct Number<'a> {
    literal: Cow<'a, str>,
}

impl<'a> Number<'a> {
    /// Creates a number. The caller guarantees that `literal` is a JSON number.
    pub(crate) fn from_literal(literal: impl Into<Cow<'a, str>>) -> Self {
        Self { literal: literal.into() }
    }

    /// Returns the number as written.
    #[must_use]
    pub fn literal(&self) -> &str {
        &self.literal
    }

    /// Returns whether the literal has neither fraction nor exponent.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        !self.literal.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
    }

    /// Returns the nearest double, which is infinite if the literal is out of range.
    #[must_use]
    pub fn as_f64(&self) -> f64 {
        self.literal.parse().unwrap_or(f64::NAN)
    }

    /// Returns the value if it is an integer literal that fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.literal.parse().ok()
    }

    /// Returns the nearest double as ECMAScript prints it, or `None` if it is infinite.
    pub(super) fn ecmascript_text(&self) -> Option<Cow<'_, str>> {
        if self.literal.len() <= EXACT_DIGITS && self.is_integer() {
            return Some(self.integer_text());
        }
        let double = Some(self.as_f64()).filter(|double| double.is_finite())?;
        Some(Cow::Owned(ryu_js::Buffer::new().format_finite(double).to_owned()))
    }

    /// Returns the number as ECMAScript prints it, but an integer beyond those that doubles tell apart as written; `None`
    /// if it is an infinite double.
    pub(super) fn distinct_text(&self) -> Option<Cow<'_, str>> {
        let is_distinct = self.as_i64().is_some_and(|integer| integer.unsigned_abs() <= LARGEST_DISTINCT);
        if is_distinct || !self.is_integer() {
            return self.ecmascript_text();
        }
        Some(Cow::Borrowed(&self.literal))
    }

    fn integer_text(&self) -> Cow<'_, str> {
        Cow::Borrowed(if self.literal == "-0" { "0" } else { &self.literal })
    }

    /// Returns the number as Python's `json.dumps` prints it, or `None` if it is an infinite double. Integers are
    /// exact, and `-0` is `0`; anything else is a double, which `adjust` may change first.
    pub(super) fn python_text(&self, adjust: impl Fn(f64) -> Option<f64>) -> Option<Cow<'_, str>> {
        if self.is_integer() {
            return Some(self.integer_text());
        }
        let double = adjust(self.as_f64()).filter(|double| double.is_finite())?;
        python_repr(double).map(Cow::Owned)
    }
}

/// Returns the text of a finite double as Python prints it: the shortest digits that read back as the same double,
/// positional for exponents from -4 up to 15, otherwise scientific with at least two exponent digits. Returns `None`
/// for other doubles.
fn python_repr(double: f64) -> Option<String> {
    // `serde_json` writes the same digits, and within these bounds there is only one notation without an exponent.
    let text = serde_json::to_string(&double).ok()?;
    let is_plain = (1e-4..1e15).contains(&double.abs()) && !text.contains('e');
    if is_plain { Some(text) } else { spelled_out(double) }
}

fn spelled_out(double: f64) -> Option<String> {
    let sign = if double.is_sign_negative() { "-" } else { "" };
    let (digits, exponent) = shortest_digits(double.abs())?;
    let (first, rest) = digits.split_at_checked(1)?;
    if !(-4..16).contains(&exponent) {
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return Some(format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.abs()));
    }
    let Ok(exponent) = usize::try_from(exponent) else {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).ok()?);
        return Some(format!("{sign}0.{zeros}{digits}"));
    };
    let whole = exponent + 1;
    Some(match digits.split_at_checked(whole) {
        Some((whole, fraction)) if !fraction.is_empty() => format!("{sign}{whole}.{fraction}"),
        _ => format!("{sign}{digits:0<whole$}.0"),
    })
}

/// Returns the shortest digits that read back as `double`, which must not be negative, and the exponent of the first
/// one. Returns `None` for infinity and NaN.
///
/// Of two equally short candidates that are equally near, Python and ECMAScript take the even one. `serde_json` does
/// the same, the standard library does not.
fn shortest_digits(double: f64) -> Option<(String, i32)> {
    let text = serde_json::to_string(&double).ok()?;
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    if !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = all.trim_start_matches('0');
    let leading_zeros = i32::try_from(all.len() - digits.len()).ok()?;
    let exponent = exponent.parse::<i32>().ok()? + i32::try_from(whole.len()).ok()? - 1 - leading_zeros;
    Some(match digits.trim_end_matches('0') {
        "" => ("0".to_owned(), 0),
        digits => (digits.to_owned(), exponent),
    })
}

/// Returns `double` rounded to 12 significant decimal digits: rounds its exact value, ties to even, and keeps the sign
/// of zero.
pub(super) fn round_to_12_digits(double: f64) -> Option<f64> {
    format!("{double:.11e}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(literal: &str) -> Option<String> {
        Number::from_literal(literal).python_text(Some).map(Cow::into_owned)
    }

    #[test]
    fn integers_are_exact() {
        for literal in ["0", "-1", "18446744073709551616", "-123456789012345678901234567890"] {
            assert_eq!(text(literal).as_deref(), Some(literal));
        }
        assert_eq!(text("-0").as_deref(), Some("0"));
    }

    #[test]
    fn floats_are_printed_as_python_prints_them() {
        for (literal, expected) in [
            ("1.0", "1.0"),
            ("1E2", "100.0"),
            ("-0.0", "-0.0"),
            ("1e16", "1e+16"),
            ("1e15", "1000000000000000.0"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("1e-5", "1e-05"),
            ("0.0001", "0.0001"),
            ("0.00012345", "0.00012345"),
            ("5e-324", "5e-324"),
            ("1e100", "1e+100"),
            ("1.5e300", "1.5e+300"),
            ("0.30000000000000004", "0.30000000000000004"),
            // Halfway between two texts of the same length: the even digit is chosen.
            ("1.00000762939453125", "1.0000076293945312"),
            ("5.9604644775390625e-07", "5.960464477539062e-07"),
            ("1700000000.00390625", "1700000000.0039062"),
            ("-1462398044996395.25", "-1462398044996395.2"),
            ("0", "0"),
            ("0.0", "0.0"),
            ("0e5", "0.0"),
            ("123456.0", "123456.0"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("2.2250738585072014e-308", "2.2250738585072014e-308"),
        ] {
            assert_eq!(text(literal).as_deref(), Some(expected));
        }
        assert_eq!(text("1e999"), None);
    }

    #[test]
    fn doubles_that_are_no_numbers_have_no_text() {
        for double in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(python_repr(double), None);
            assert_eq!(shortest_digits(double.abs()), None);
        }
    }

    proptest! {
        #[test]
        fn floats_read_back_as_the_same_double(bits: u64) {
            let double = f64::from_bits(bits);
            prop_assume!(double.is_finite());
            let text = python_repr(double).unwrap();
            prop_assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(bits));
        }

        #[test]
        fn both_ways_to_print_floats_agree(mantissa in -1e6_f64..1e6, exponent in -12_i32..12) {
            for double in [mantissa * 10_f64.powi(exponent), mantissa.round() * 10_f64.powi(exponent)] {
                prop_assert_eq!(python_repr(double), spelled_out(double));
            }
        }
    }

    #[test]
    fn rounding_is_of_the_exact_value_with_ties_to_even() {
        for (double, rounded) in [
            (100_000_000_000.5, 100_000_000_000.0),
            (100_000_000_001.5, 100_000_000_002.0),
            (0.1 + 0.2, 0.3),
            (1.234_567_890_125, 1.234_567_890_12),
            (5e-324, 5e-324),
        ] {
            assert!(round_to_12_digits(double).unwrap().total_cmp(&rounded).is_eq(), "{double}");
        }
        assert!(round_to_12_digits(-0.0).unwrap().is_sign_negative());
    }
}

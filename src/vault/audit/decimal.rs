//! Comparison of decimal numbers as written, without conversion to floating point.

use std::cmp::Ordering;

/// Compares two JSON numbers by their exact values.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    let (one, other) = (Decimal::parse(one), Decimal::parse(other));
    match (one.sign(), other.sign()) {
        (1, 1) => one.compare_magnitude(&other),
        (-1, -1) => other.compare_magnitude(&one),
        (one, other) => one.cmp(&other),
    }
}

/// Returns whether a JSON number of at most 64 bits is a multiple of another one, by their exact values.
pub(super) fn is_multiple(number: &str, factor: &str) -> bool {
    let (number, factor) = (Decimal::parse(number), Decimal::parse(factor));
    let (Some((whole, power)), Some((divisor, divisor_power))) = (number.integer(), factor.integer()) else {
        return false;
    };
    // The last digit of an integer is not zero: divided by a power of ten, it is none.
    let Ok(shift) = u64::try_from(power - divisor_power) else { return whole == 0 };
    let divisor = u128::from(divisor);
    let (mut rest, mut power, mut shift) = (u128::from(whole), 10 % divisor, shift);
    while shift > 0 {
        rest = if shift % 2 == 1 { rest % divisor * power } else { rest };
        (power, shift) = (power * power % divisor, shift / 2);
    }
    rest % divisor == 0
}

/// The number `0.d1d2d3… × 10^exponent`, where the first and the last digit are not zero.
struct Decimal {
    is_negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    fn parse(literal: &str) -> Self {
        let (mantissa, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
        let is_negative = mantissa.starts_with('-');
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let whole = whole.trim_start_matches('-');
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let zeros = all.iter().take_while(|digit| **digit == b'0').count();
        let significant = all.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        let digits = all.get(zeros..significant).unwrap_or_default().to_vec();
        let length = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let exponent = parse_exponent(exponent).saturating_add(length(whole.len()) - length(zeros));
        Self { is_negative, digits, exponent }
    }

    /// Returns the integer that its digits are, and the power of ten that it is multiplied with.
    fn integer(&self) -> Option<(u64, i64)> {
        let digits = std::str::from_utf8(&self.digits).ok()?;
        let integer = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        Some((integer, self.exponent - i64::try_from(digits.len()).ok()?))
    }

    fn sign(&self) -> i8 {
        match (self.digits.is_empty(), self.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits))
    }
}

/// Parses an exponent. Exponents beyond 64 bits saturate.
fn parse_exponent(text: &str) -> i64 {
    let digits = text.trim_start_matches(['+', '-']);
    let farthest = i64::MAX / 2;
    let magnitude = digits.parse::<i64>().unwrap_or(farthest).min(farthest);
    if text.starts_with('-') { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn multiples_are_those_of_the_exact_values() {
        for (number, factor, expected) in [
            ("0", "3", true),
            ("4.02", "0.01", true),
            ("-3", "1.5", true),
            ("0.00751", "0.0001", false),
            ("1e308", "0.5", true),
            ("1e308", "0.123456789", false),
            ("1e-300", "1e300", false),
            ("18446744073709551615", "5", true),
            ("18446744073709551615", "18446744073709551614", false),
        ] {
            assert_eq!(is_multiple(number, factor), expected, "{number} {factor}");
        }
    }

    #[test]
    fn numbers_are_compared_by_their_exact_values() {
        for (one, other, order) in [
            ("0", "-0.0", Ordering::Equal),
            ("1e2", "100.00", Ordering::Equal),
            ("0.001e3", "1", Ordering::Equal),
            ("-2", "-1", Ordering::Less),
            ("-1", "0", Ordering::Less),
            ("9", "10", Ordering::Less),
            ("0.1", "0.10000000000000000001", Ordering::Less),
            ("9007199254740993", "9007199254740992", Ordering::Greater),
            ("1e999999999999999999999", "1e400", Ordering::Greater),
            ("1e-999999999999999999999", "0", Ordering::Greater),
            ("-0.5", "-0.25", Ordering::Less),
        ] {
            assert_eq!(compare(one, other), order, "{one} {other}");
            assert_eq!(compare(other, one), order.reverse(), "{other} {one}");
        }
    }

    proptest! {
        #[test]
        fn doubles_have_the_order_of_their_texts(one in -1e9_f64..1e9, other in -1e9_f64..1e9) {
            let (left, right) = (one.to_string(), format!("{other:e}"));
            prop_assert_eq!(Some(compare(&left, &right)), one.partial_cmp(&other));
        }
    }
}

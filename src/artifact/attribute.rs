//! Attributes: named values that are derived from artifacts, and the types of their values.
//!
//! A value is text. If its type has an order, it also has a number: engines order and compare artifacts by that, so that
//! 10 is more than 9 and no engine needs to know what a value means.

use chrono::{DateTime, Utc};

use super::ColumnType::{Number, Real, Text, Time};
use super::{CREATED_AT, Column, ColumnType, FINISHED_AT};
use crate::json::Value;

/// An indexed, named value of an artifact. A name may have several values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attribute {
    /// The name, such as `model_id`.
    pub name: &'static str,
    /// The value.
    pub value: String,
    /// The number by which the value is ordered, if its type has an order. It follows from the value.
    pub number: Option<i64>,
}

/// The declaration of an attribute of a kind. Kinds that declare an attribute of the same name declare the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeInfo {
    /// The name, such as `model_id`.
    pub name: &'static str,
    /// The type of its values.
    pub values: ValueType,
    /// A description of the value.
    pub about: &'static str,
}

impl AttributeInfo {
    /// The creation time that an artifact states.
    pub const CREATED_AT: Self = Self::time(CREATED_AT, "the stated creation time, in UTC");
    /// The time at which what an artifact records ended.
    pub const FINISHED_AT: Self = Self::time(FINISHED_AT, "the stated end time, in UTC");
    /// The time of the first step that states one.
    pub const FIRST_STEP_AT: Self = Self::time("first_step_at", "the earliest stated time of a step, in UTC");
    /// The time of the last step that states one.
    pub const LAST_STEP_AT: Self = Self::time("last_step_at", "the latest stated time of a step, in UTC");
    /// The time from beginning to end.
    pub const DURATION_MS: Self =
        Self::new("duration_ms", ValueType::Duration, "the milliseconds from start to end");
    /// The sum of the durations of its parts.
    pub const LATENCY_MS: Self =
        Self::new("latency_ms", ValueType::Duration, "the total stated latency in milliseconds");
    /// The number of tokens, both input and output.
    pub const TOKENS: Self = Self::count("tokens", "the number of tokens, input and output");
    /// The number of input tokens.
    pub const TOKENS_INPUT: Self = Self::count("tokens_input", "the stated number of input tokens");
    /// The number of output tokens.
    pub const TOKENS_OUTPUT: Self = Self::count("tokens_output", "the stated number of output tokens");
    /// The costs.
    pub const COST_USD: Self = Self::new("cost_usd", ValueType::Amount, "the stated cost in US dollars");
    /// The number of steps that failed.
    pub const ERRORS: Self = Self::count("errors", "the number of steps that failed or are errors");
    /// A tool that was called.
    pub const TOOL: Self = Self::text("tool", "a tool that was called");
    /// The reason for which an answer ended, in the word of the API.
    pub const FINISH_REASON: Self =
        Self::text("finish_reason", "why an answer ended, in the word of the API");
    /// The beginning of the first prompt, in one line.
    pub const FIRST_PROMPT: Self = Self::text("first_prompt", "the beginning of the first prompt");
    /// The beginning of the last answer, in one line.
    pub const LAST_ANSWER: Self = Self::text("last_answer", "the beginning of the last answer");
    /// The beginning of the message of the first error, in one line.
    pub const ERROR: Self = Self::text("error", "the beginning of the message of the first error");
    /// The number of calls of tools.
    pub const TOOL_CALLS: Self = Self::count("tool_calls", "the number of calls of tools");
    /// The operating system.
    pub const OS: Self = Self::text("os", "the operating system");
    /// The versions of the programs that it was recorded with.
    pub const RUNTIME: Self = Self::text("runtime", "a program that it was recorded with, and its version");
    /// The id of a run.
    pub const RUN_ID: Self = Self::text("run_id", "the run's id");
    /// A model.
    pub const MODEL_ID: Self = Self::text("model_id", "the model that answered");

    /// Creates a declaration.
    #[must_use]
    pub const fn new(name: &'static str, values: ValueType, about: &'static str) -> Self {
        Self { name, values, about }
    }

    /// Creates the declaration of an attribute whose values are text without an order.
    #[must_use]
    pub const fn text(name: &'static str, about: &'static str) -> Self {
        Self::new(name, ValueType::Text, about)
    }

    /// Creates the declaration of an attribute whose values are times.
    #[must_use]
    pub const fn time(name: &'static str, about: &'static str) -> Self {
        Self::new(name, ValueType::Time, about)
    }

    /// Creates the declaration of an attribute whose values are counted.
    #[must_use]
    pub const fn count(name: &'static str, about: &'static str) -> Self {
        Self::new(name, ValueType::Count, about)
    }

    /// Returns the column of the attribute in an SQL view.
    #[must_use]
    pub const fn column(self) -> Column {
        Column::new(self.name, self.values.column_type(), self.about)
    }
}

/// The type of the values of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Text, which has no order.
    Text,
    /// A time, in the form of [`timestamp_text`](super::timestamp_text). Its number is in milliseconds since 1970.
    Time,
    /// An integer.
    Count,
    /// A number of milliseconds.
    Duration,
    /// A decimal number with up to six digits after the point. Its number is in millionths.
    Amount,
}

/// Number of digits after the decimal point of an amount.
const DECIMALS: usize = 6;

/// The number that stands for 1 in an amount.
const MILLIONTHS: i64 = 1_000_000;

/// The largest integer up to which all integers are exact as doubles.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

impl ValueType {
    /// Returns the number by which a value is ordered. Returns `None` if the type has no order, or the value is not of
    /// the type.
    #[must_use]
    pub fn number(self, value: &str) -> Option<i64> {
        let number = match self {
            Self::Text => None,
            Self::Time => {
                DateTime::parse_from_rfc3339(value).ok().map(|time| time.to_utc().timestamp_millis())
            }
            Self::Count | Self::Duration => value.parse().ok(),
            Self::Amount => millionths_of(value),
        };
        // There is one value for each number, so that equal numbers are equal values.
        number.filter(|number| self.value(*number).as_deref() == Some(value))
    }

    /// Returns the value of this type with this number, or `None` if there is none.
    #[must_use]
    pub fn value(self, number: i64) -> Option<String> {
        match self {
            Self::Text => None,
            Self::Time => DateTime::from_timestamp_millis(number).map(super::timestamp_text),
            Self::Count | Self::Duration => Some(number.to_string()),
            Self::Amount => Some(amount_text(number)),
        }
    }

    /// Returns whether the values have an order.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        !matches!(self, Self::Text)
    }

    /// Returns the machine-readable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Time => "time",
            Self::Count => "count",
            Self::Duration => "duration",
            Self::Amount => "amount",
        }
    }

    const fn column_type(self) -> ColumnType {
        match self {
            Self::Text => Text,
            Self::Time => Time,
            Self::Count | Self::Duration => Number,
            Self::Amount => Real,
        }
    }
}

fn millionths_of(text: &str) -> Option<i64> {
    let (digits, is_negative) = text.strip_prefix('-').map_or((text, false), |digits| (digits, true));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = !whole.is_empty() && [whole, fraction].concat().bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || fraction.len() > DECIMALS {
        return None;
    }
    let fraction: i64 = format!("{fraction:0<DECIMALS$}").parse().ok()?;
    let number = whole.parse::<i64>().ok()?.checked_mul(MILLIONTHS)?.checked_add(fraction)?;
    Some(if is_negative { -number } else { number })
}

fn amount_text(millionths: i64) -> String {
    let (number, one) = (millionths.unsigned_abs(), MILLIONTHS.unsigned_abs());
    let (whole, fraction) = (number / one, number % one);
    let sign = if millionths < 0 { "-" } else { "" };
    let text = format!("{sign}{whole}.{fraction:0DECIMALS$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the count that a JSON number states: a non-negative integer up to 2^53, however it is written.
#[must_use]
pub fn parse_count(value: &Value<'_>) -> Option<i64> {
    non_negative_number(value, 1.0).filter(|number| number.fract() == 0.0).map(truncated)
}

/// Returns the milliseconds that a JSON number states, rounded.
#[must_use]
pub fn parse_milliseconds(value: &Value<'_>) -> Option<i64> {
    non_negative_number(value, 1.0).map(f64::round).map(truncated)
}

/// Returns the millionths of the amount that a JSON number states, rounded.
#[must_use]
pub fn parse_millionths(value: &Value<'_>) -> Option<i64> {
    non_negative_number(value, 1e6).map(f64::round).map(truncated)
}

/// Returns a non-negative JSON number times `factor`, unless the product is too large to be exact.
fn non_negative_number(value: &Value<'_>, factor: f64) -> Option<f64> {
    let number = value.as_number()?.as_f64() * factor;
    (0.0..=MAX_EXACT).contains(&number).then_some(number)
}

#[expect(clippy::cast_possible_truncation, reason = "the number is an integer of at most 2^53")]
fn truncated(number: f64) -> i64 {
    number as i64
}

/// The sum of the numbers that the parts of an artifact state, if at least one does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionalSum {
    sum: Option<i64>,
    is_partial: bool,
}

impl OptionalSum {
    /// Adds the number of a part that may have none.
    pub fn add(&mut self, number: Option<i64>) {
        if let Some(number) = number {
            self.sum = Some(self.sum.unwrap_or_default().saturating_add(number));
        }
    }

    /// Adds the number of a part that has one: if it is not stated, the sum is not known.
    pub fn add_required(&mut self, number: Option<i64>) {
        self.is_partial |= number.is_none();
        self.add(number);
    }

    /// Returns the sum, or `None` if no part states a number, or not all parts do that have one.
    #[must_use]
    pub fn sum(self) -> Option<i64> {
        self.sum.filter(|_| !self.is_partial)
    }
}

/// The earliest and the latest of several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSpan {
    /// The earliest and the latest time.
    bounds: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// Number of times.
    times: u64,
}

impl TimeSpan {
    /// Adds a time.
    pub fn add(&mut self, time: Option<DateTime<Utc>>) {
        let Some(time) = time else { return };
        let (first, last) = self.bounds.unwrap_or((time, time));
        self.bounds = Some((first.min(time), last.max(time)));
        self.times += 1;
    }

    /// Returns the earliest time.
    #[must_use]
    pub fn first(self) -> Option<DateTime<Utc>> {
        self.bounds.map(|(first, _)| first)
    }

    /// Returns the latest time.
    #[must_use]
    pub fn last(self) -> Option<DateTime<Utc>> {
        self.bounds.map(|(_, last)| last)
    }

    /// Returns the milliseconds between both, or `None` if there are not two times.
    #[must_use]
    pub fn milliseconds(self) -> Option<i64> {
        let (first, last) = self.bounds.filter(|_| self.times > 1)?;
        Some(last.signed_duration_since(first).num_milliseconds())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::reader::{self, Limits};

    #[test]
    fn numbers_order_values_by_their_meaning() {
        let number = |values: ValueType, text: &str| values.number(text);
        assert!(number(ValueType::Count, "9") < number(ValueType::Count, "10"));
        assert_eq!(number(ValueType::Time, "1970-01-01T00:00:00.001Z"), Some(1));
        assert_eq!(number(ValueType::Time, "1969-12-31T23:59:59.999Z"), Some(-1));
        assert_eq!(number(ValueType::Amount, "0.25"), Some(250_000));
        assert_eq!(number(ValueType::Amount, "-12"), Some(-12_000_000));
        for (values, text) in [
            (ValueType::Text, "9"),
            (ValueType::Count, "nine"),
            (ValueType::Count, ""),
            (ValueType::Count, "+9"),
            (ValueType::Count, "09"),
            (ValueType::Time, "1970-01-01T00:00:00Z"),
            (ValueType::Amount, "0.50"),
            (ValueType::Time, "yesterday"),
            (ValueType::Amount, "."),
            (ValueType::Amount, "1.2.3"),
            (ValueType::Amount, "0.1234567"),
            (ValueType::Amount, "99999999999999999999"),
        ] {
            assert_eq!(number(values, text), None, "{text}");
        }
    }

    #[test]
    fn stated_numbers_are_neither_negative_nor_inexact() {
        let parsed = |text: &str, read: fn(&Value<'_>) -> Option<i64>| {
            reader::read(text.as_bytes(), &Limits::default()).ok().as_ref().and_then(read)
        };
        assert_eq!(parsed("7e2", parse_count), Some(700));
        assert_eq!(parsed("0.0", parse_count), Some(0));
        for text in ["-1", "1.5", "\"7\"", "null", "1e300", "9007199254740994"] {
            assert_eq!(parsed(text, parse_count), None, "{text}");
        }
        assert_eq!(parsed("1.5", parse_milliseconds), Some(2));
        assert_eq!(parsed("0.0123", parse_millionths), Some(12_300));
    }

    #[test]
    fn a_span_needs_two_times() {
        let time = |seconds| DateTime::from_timestamp(seconds, 0);
        let mut span = TimeSpan::default();
        span.add(None);
        assert_eq!((span.first(), span.milliseconds()), (None, None));
        span.add(time(5));
        assert_eq!((span.first(), span.last(), span.milliseconds()), (time(5), time(5), None));
        span.add(time(3));
        assert_eq!((span.first(), span.last(), span.milliseconds()), (time(3), time(5), Some(2_000)));
    }

    proptest! {
        #[test]
        fn a_value_has_the_number_that_it_was_made_of(number in -(1_i64 << 60)..1 << 60, time in 0..1_i64 << 47) {
            for values in [ValueType::Count, ValueType::Duration, ValueType::Amount] {
                let text = values.value(number).unwrap();
                prop_assert_eq!(values.number(&text), Some(number), "{}", text);
            }
            let text = ValueType::Time.value(time).unwrap();
            prop_assert_eq!(ValueType::Time.number(&text), Some(time), "{}", text);
        }
    }
}

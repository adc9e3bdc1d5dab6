//! The evidence declarations of a contract beyond the members in the specification, which does not define how evidence
//! is read.

use std::fmt;

use crate::json::{Number, Value};

/// The value that a member states, if it is present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ParsedMember<T> {
    /// No value.
    #[default]
    Nothing,
    /// A valid value.
    Is(T),
    /// An invalid value, and the reason.
    Unreadable(String),
}

impl<T> ParsedMember<T> {
    /// Returns the value, if it is valid.
    #[must_use]
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Nothing | Self::Unreadable(_) => None,
        }
    }
}

/// Returns the text for comparing a value with stated ones: strings in lower case, integers as their literals, other
/// numbers by value. Returns `None` for null, lists and objects.
#[must_use]
pub fn comparable(value: &Value<'_>) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_lowercase()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Number(number) => Some(comparable_number(number)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn comparable_number(number: &Number<'_>) -> String {
    if number.is_integer() { number.literal().to_owned() } else { number.as_f64().to_string() }
}

/// Returns the values of a member that is one value or a list.
pub(super) fn values(member: Option<&Value<'_>>) -> ParsedMember<Vec<String>> {
    let Some(member) = member else { return ParsedMember::Nothing };
    let elements = member.as_array().unwrap_or(std::slice::from_ref(member));
    if elements.is_empty() {
        return ParsedMember::Unreadable("it is an empty list".to_owned());
    }
    let read: Option<Vec<String>> = elements.iter().map(comparable).collect();
    let expected = "it must be a string, a number, a boolean, or a list of these";
    read.map_or_else(|| ParsedMember::Unreadable(expected.to_owned()), ParsedMember::Is)
}

/// One end of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeBound {
    /// The number as written in JSON.
    pub literal: String,
    /// Whether the bound is exclusive.
    pub is_exclusive: bool,
}

/// A range with at least one bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The lower bound.
    pub least: Option<RangeBound>,
    /// The upper bound.
    pub most: Option<RangeBound>,
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least =
            self.least.as_ref().map(|bound| (if bound.is_exclusive { "above" } else { "at least" }, bound));
        let most =
            self.most.as_ref().map(|bound| (if bound.is_exclusive { "below" } else { "at most" }, bound));
        for (index, (words, bound)) in least.into_iter().chain(most).enumerate() {
            write!(f, "{}{words} {}", if index > 0 { ", " } else { "" }, bound.literal)?;
        }
        Ok(())
    }
}

/// The members that state the lower and the upper bound, and whether they are exclusive.
pub(super) const LEAST: [(&str, bool); 3] = [("minimum", false), ("min", false), ("exclusiveMinimum", true)];
pub(super) const MOST: [(&str, bool); 3] = [("maximum", false), ("max", false), ("exclusiveMaximum", true)];

/// Returns the bounds that `evidence` states.
pub(super) fn bounds(evidence: &Value<'_>) -> ParsedMember<Bounds> {
    match (end(evidence, &LEAST), end(evidence, &MOST)) {
        (ParsedMember::Unreadable(why), _) | (_, ParsedMember::Unreadable(why)) => {
            ParsedMember::Unreadable(why)
        }
        (ParsedMember::Nothing, ParsedMember::Nothing) => ParsedMember::Nothing,
        (least, most) => {
            let [least, most] = [least, most].map(|end| end.value().cloned());
            ParsedMember::Is(Bounds { least, most })
        }
    }
}

fn end(evidence: &Value<'_>, members: &[(&str, bool)]) -> ParsedMember<RangeBound> {
    let mut given =
        members.iter().filter_map(|(name, exclusive)| Some((*name, evidence.get(name)?, *exclusive)));
    let Some((name, value, is_exclusive)) = given.next() else { return ParsedMember::Nothing };
    if let Some((other, ..)) = given.next() {
        return ParsedMember::Unreadable(format!("both {name} and {other} are given"));
    }
    match value.as_number() {
        Some(number) => ParsedMember::Is(RangeBound { literal: number.literal().to_owned(), is_exclusive }),
        None => ParsedMember::Unreadable(format!("{name} must be a number, is {}", value.type_name())),
    }
}

/// Returns the strings of a member that is a string or a list of strings. Other values are skipped.
pub(super) fn names(value: Option<&Value<'_>>) -> Vec<String> {
    let elements = value.map(|value| value.as_array().unwrap_or(std::slice::from_ref(value)));
    let texts = elements.unwrap_or_default().iter().filter_map(Value::as_non_empty_str);
    texts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    fn read(text: &str) -> Value<'_> {
        reader::read(text.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn values_are_compared_without_case_and_sort() {
        let parse_values = |text| values(Some(&read(text)));
        assert_eq!(parse_values(r#""SET""#), ParsedMember::Is(vec!["set".to_owned()]));
        let all = ["set", "200", "true", "0.5", "100"].map(str::to_owned).to_vec();
        assert_eq!(parse_values(r#"["set", 200, true, 5e-1, 1e2]"#), ParsedMember::Is(all));
        assert_eq!(values(None), ParsedMember::Nothing);
        for text in ["[]", "null", "{}", r#"["a", null]"#, "[[1]]"] {
            assert!(matches!(parse_values(text), ParsedMember::Unreadable(_)), "{text}");
        }
    }

    #[test]
    fn bounds_have_one_or_two_ends() {
        let shown = |text| match bounds(&read(text)) {
            ParsedMember::Nothing => "nothing".to_owned(),
            ParsedMember::Is(bounds) => bounds.to_string(),
            ParsedMember::Unreadable(why) => why,
        };
        assert_eq!(shown("{}"), "nothing");
        assert_eq!(shown(r#"{"minimum": 0, "exclusiveMaximum": 1.50}"#), "at least 0, below 1.50");
        assert_eq!(shown(r#"{"max": 3}"#), "at most 3");
        assert_eq!(shown(r#"{"min": "0"}"#), "min must be a number, is a string");
        assert_eq!(shown(r#"{"max": 3, "maximum": 4}"#), "both maximum and max are given");
    }
}

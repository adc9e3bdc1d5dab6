//! Attributes as arguments: conditions on them, and orders by them.

use chrono::SecondsFormat;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use runvault::artifact::{AttributeInfo, ValueType};
use runvault::display::brief;
use runvault::formats;
use runvault::vault::columns::{ordered, short_name, shortened};
use runvault::vault::find::{Condition, FindOrder};

use crate::cli::output::time;

/// A condition on an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttributeTest(Condition);

impl AttributeTest {
    pub(crate) fn condition(&self) -> Condition {
        self.0.clone()
    }
}

/// Parses the condition `NAME=VALUE`, `NAME>=VALUE` or `NAME<=VALUE`, for clap.
pub(crate) fn test(text: &str) -> Result<AttributeTest, String> {
    let (before, value) = text.split_once('=').ok_or("expected NAME=VALUE, NAME>=VALUE or NAME<=VALUE")?;
    let least = before.strip_suffix('>');
    let most = before.strip_suffix('<');
    let info = named(least.or(most).unwrap_or(before))?;
    let name = info.name.to_owned();
    if least.is_none() && most.is_none() {
        return Ok(AttributeTest(Condition::Attribute { name, value: stored(info, value)? }));
    }
    let number = number(info, value)?;
    let (least, most) = (least.map(|_| number), most.map(|_| number));
    Ok(AttributeTest(Condition::Range { name, least, most }))
}

/// Parses `NAME=VALUE`, for clap.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let info = named(name)?;
    Ok((info.name.to_owned(), stored(info, value)?))
}

/// Returns the attribute with this name, with or without its unit.
fn named(name: &str) -> Result<AttributeInfo, String> {
    let short = || shortened().find(|(short, _)| *short == name).map(|(_, info)| info);
    formats::attribute(name).or_else(short).ok_or_else(|| {
        format!("unknown attribute {}; known attributes: {}", brief(name), formats::attribute_names())
    })
}

/// Returns a value in the notation in which it is stored.
fn stored(info: AttributeInfo, value: &str) -> Result<String, String> {
    if !info.values.is_ordered() {
        return Ok(value.to_owned());
    }
    let number = number(info, value)?;
    Ok(info.values.value(number).unwrap_or_else(|| value.to_owned()))
}

/// Returns the number of a value in the notations of arguments.
fn number(info: AttributeInfo, value: &str) -> Result<i64, String> {
    let wrong = |expected: &str| Err(format!("expected {expected} as a value of {}", info.name));
    match info.values {
        ValueType::Text => Err(format!("the values of {} are text, which has no order", info.name)),
        ValueType::Time => {
            let time = time::point(value)?;
            let text = time.to_rfc3339_opts(SecondsFormat::Millis, true);
            info.values.number(&text).map_or_else(|| wrong("a time"), Ok)
        }
        ValueType::Duration => {
            let length = || time::length(value).ok().map(|length| length.num_milliseconds());
            value
                .parse()
                .ok()
                .or_else(length)
                .map_or_else(|| wrong("milliseconds, or a length like 90s,"), Ok)
        }
        ValueType::Count => value.parse().or_else(|_| wrong("an integer")),
        ValueType::Amount => {
            // Trailing zeros do not matter to people.
            let trimmed =
                if value.contains('.') { value.trim_end_matches('0').trim_end_matches('.') } else { value };
            info.values.number(trimmed).map_or_else(|| wrong("a decimal number"), Ok)
        }
    }
}

/// The orders of artifacts that are not by an attribute.
const ORDERS: [(&str, FindOrder, &str); 5] = [
    ("seen", FindOrder::LastSeen, "Last seen, newest first"),
    ("added", FindOrder::FirstSeen, "First added, newest first"),
    ("created", FindOrder::Created, "Created, newest first; artifacts that state no time come last"),
    ("core", FindOrder::Core, "By core hash"),
    ("kind", FindOrder::Kind, "By kind, then last seen, newest first"),
];

/// Returns the parser of an order, for clap. Artifacts are ordered by the values of attributes, the largest first.
pub(crate) fn order() -> impl TypedValueParser<Value = FindOrder> {
    let own = ORDERS.iter().map(|(name, _, about)| PossibleValue::new(*name).help(*about));
    let attributes = ordered().map(|info| {
        let value = PossibleValue::new(short_name(info).unwrap_or(info.name));
        let value = if short_name(info).is_some() { value.alias(info.name) } else { value };
        let first = if info.values == ValueType::Time { "latest" } else { "largest" };
        value.help(format!("By {}, {first} first", info.about))
    });
    PossibleValuesParser::new(own.chain(attributes)).map(|name| {
        let own = ORDERS.iter().find(|(known, ..)| *known == name);
        let attribute = || named(&name).map_or(name.clone(), |info| info.name.to_owned());
        own.map_or_else(|| FindOrder::Attribute { name: attribute() }, |(_, order, _)| order.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_compared_in_the_notations_of_people() {
        let range = |name: &str, least, most| {
            Ok(AttributeTest(Condition::Range { name: name.to_owned(), least, most }))
        };
        assert_eq!(test("tokens>=100"), range("tokens", Some(100), None));
        assert_eq!(test("duration<=90s"), range("duration_ms", None, Some(90_000)));
        assert_eq!(test("duration_ms<=1500"), range("duration_ms", None, Some(1_500)));
        assert_eq!(test("cost>=0.50"), range("cost_usd", Some(500_000), None));
        assert_eq!(test("cost>=10"), range("cost_usd", Some(10_000_000), None));
        assert_eq!(test("finished>=1970-01-02"), range("finished_at", Some(86_400_000), None));
        let is = |name: &str, value: &str| {
            Ok(AttributeTest(Condition::Attribute { name: name.to_owned(), value: value.to_owned() }))
        };
        assert_eq!(test("model_id=a=b>=c"), is("model_id", "a=b>=c"));
        assert_eq!(test("duration=2s"), is("duration_ms", "2000"));
        assert_eq!(test("finished=1970-01-02T00:00:00Z"), is("finished_at", "1970-01-02T00:00:00.000Z"));
        assert_eq!(test("cost=0.50"), is("cost_usd", "0.5"));
        assert_eq!(pair("latency=1m").unwrap(), ("latency_ms".to_owned(), "60000".to_owned()));
        for wrong in [
            "tokens",
            "tokens>=many",
            "model_id>=m",
            "nothing=1",
            "cost>=1.2.3",
            "finished<=soon",
            "tokens=x",
        ] {
            assert!(test(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_order_is_one_of_the_library() {
        for info in ordered() {
            assert_ne!(short_name(info), Some("created"));
            assert!(ORDERS.iter().all(|(name, ..)| Some(*name) != short_name(info) && *name != info.name));
        }
    }
}

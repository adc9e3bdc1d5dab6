//! Attributes as arguments: conditions on them, and orders by them.

use chrono::SecondsFormat;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use runvault::artifact::{AttributeInfo, ValueType};
use runvault::display::brief;
use runvault::formats;
use runvault::json::reader::Limits;
use runvault::vault::find::{FindCondition, FindOrder};

use crate::cli::output::columns::{ordered, short_name, shortened};
use crate::cli::output::time;

/// A condition on an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttributeTest(FindCondition);

impl AttributeTest {
    pub(crate) fn condition(&self) -> FindCondition {
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
        return Ok(AttributeTest(FindCondition::Attribute { name, value: stored(info, value)? }));
    }
    let number = number(info, value)?;
    let (least, most) = (least.map(|_| number), most.map(|_| number));
    Ok(AttributeTest(FindCondition::Range { name, least, most }))
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

pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => {
            return Err("expected a number of bytes, or a number followed by k, M or G".to_owned());
        }
    };
    let number: u64 = digits.parse().map_err(|_| "a size must begin with a whole number".to_owned())?;
    let bytes = number.checked_mul(unit).filter(|bytes| (1..=Limits::MAX_BYTES).contains(bytes));
    bytes.ok_or_else(|| "expected a size from 1 to 900M".to_owned())
}

pub(crate) fn depth(text: &str) -> Result<usize, String> {
    bound_number(text, 1, Limits::MAX_DEPTH)
}

pub(crate) fn values(text: &str) -> Result<usize, String> {
    bound_number(text, 1, 1_000_000_000)
}

pub(crate) fn entries(text: &str) -> Result<usize, String> {
    bound_number(text, 1, 1_000_000)
}

pub(crate) fn violations(text: &str) -> Result<usize, String> {
    bound_number(text, 1, runvault::validation::Report::MAX_ERRORS)
}

fn bound_number(text: &str, least: usize, most: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_compared_in_the_notations_of_people() {
        let range = |name: &str, least, most| {
            Ok(AttributeTest(FindCondition::Range { name: name.to_owned(), least, most }))
        };
        assert_eq!(test("tokens>=100"), range("tokens", Some(100), None));
        assert_eq!(test("duration<=90s"), range("duration_ms", None, Some(90_000)));
        assert_eq!(test("duration_ms<=1500"), range("duration_ms", None, Some(1_500)));
        assert_eq!(test("cost>=0.50"), range("cost_usd", Some(500_000), None));
        assert_eq!(test("cost>=10"), range("cost_usd", Some(10_000_000), None));
        assert_eq!(test("finished>=1970-01-02"), range("finished_at", Some(86_400_000), None));
        let is = |name: &str, value: &str| {
            Ok(AttributeTest(FindCondition::Attribute { name: name.to_owned(), value: value.to_owned() }))
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

    #[test]
    fn both_sides_of_what_can_be_set() {
        assert_eq!(bytes("900M"), Ok(Limits::MAX_BYTES));
        assert!(
            bytes("943718401").is_err() && bytes("1G").is_err() && bytes("99999999999999999999").is_err()
        );
        assert_eq!((bytes("1k"), bytes("7"), bytes("2MiB")), (Ok(1024), Ok(7), Ok(2 << 20)));
        assert!(bytes("0").is_err() && bytes("0k").is_err() && bytes("1").is_ok());
        assert!(depth("500").is_ok() && depth("501").is_err() && depth("0").is_err() && depth("-1").is_err());
        assert!(values("1000000000").is_ok() && values("1000000001").is_err());
        assert!(entries("1000000").is_ok() && entries("1000001").is_err());
        assert!(violations("100000").is_ok() && violations("100001").is_err() && violations("").is_err());
    }
}

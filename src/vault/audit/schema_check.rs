//! The first violation of the rules of a schema by a value.
//!
//! A check ends at the first violation and remembers no others: those of the alternatives of `anyOf` by a large payload
//! would take gigabytes.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Number, Value as Json};

use super::decimal;
use super::schema_rules::{CountedUnit, MemberRules, NumberBound, SchemaPart, SchemaRule, SchemaRules};
use super::schema_work::shortened;

/// Maximum number of values that the message for an `enum` lists.
const LISTED: usize = 3;

/// A violation of a schema by a payload.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SchemaViolation {
    /// The JSON Pointer to the violation.
    pub(super) at: String,
    pub(super) message: String,
    /// Whether the violation is due only to a redacted value.
    pub(super) is_redacted: bool,
}

/// Returns the first violation by `payload` or a value in it that `accepts` accepts.
pub(super) fn first_violation(
    rules: &SchemaRules,
    payload: &Json,
    accepts: &dyn Fn(&Json) -> bool,
) -> Option<SchemaViolation> {
    SchemaCheck { rules, accepts: Some(accepts) }.part(0, &PayloadPlace::root(payload)).err()
}

#[derive(Clone, Copy)]
struct SchemaCheck<'c> {
    rules: &'c SchemaRules,
    /// The values whose violations are returned. Without it, the check is only whether there is a violation.
    accepts: Option<&'c dyn Fn(&Json) -> bool>,
}

/// A value and where it is in the payload.
#[derive(Clone, Copy)]
struct PayloadPlace<'p> {
    value: &'p Json,
    parent: Option<&'p PayloadPlace<'p>>,
    step: PlaceStep<'p>,
}

#[derive(Clone, Copy)]
enum PlaceStep<'p> {
    Item(usize),
    Member(&'p str),
}

impl<'p> PayloadPlace<'p> {
    /// The step to a value without a parent has no meaning.
    fn root(value: &'p Json) -> Self {
        Self { value, parent: None, step: PlaceStep::Item(0) }
    }

    fn child(&'p self, value: &'p Json, step: PlaceStep<'p>) -> Self {
        Self { value, parent: Some(self), step }
    }

    fn pointer(&self) -> String {
        let steps =
            std::iter::successors(Some(self), |place| place.parent).filter(|place| place.parent.is_some());
        let steps: Vec<String> = steps
            .map(|place| match place.step {
                PlaceStep::Item(index) => format!("/{index}"),
                PlaceStep::Member(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            })
            .collect();
        steps.into_iter().rev().collect()
    }
}

type CheckOutcome = Result<(), SchemaViolation>;

impl SchemaCheck<'_> {
    fn part(&self, part: SchemaPart, place: &PayloadPlace<'_>) -> CheckOutcome {
        self.rules.of(part).iter().try_for_each(|rule| self.rule(rule, place))
    }

    /// Returns whether a value satisfies a subschema.
    fn holds(&self, part: SchemaPart, place: &PayloadPlace<'_>) -> bool {
        SchemaCheck { accepts: None, ..*self }.part(part, place).is_ok()
    }

    fn expect(
        &self,
        is_met: bool,
        place: &PayloadPlace<'_>,
        message: impl FnOnce() -> String,
    ) -> CheckOutcome {
        match self.accepts {
            _ if is_met => Ok(()),
            None => Err(SchemaViolation::default()),
            Some(accepts) if !accepts(place.value) => Ok(()),
            Some(_) => Err(SchemaViolation {
                at: place.pointer(),
                message: shortened(&message()),
                is_redacted: false,
            }),
        }
    }

    fn rule(&self, rule: &SchemaRule, place: &PayloadPlace<'_>) -> CheckOutcome {
        let value = place.value;
        match rule {
            SchemaRule::Never => self.expect(false, place, || format!("False schema does not allow {value}")),
            SchemaRule::Types { names, permits_zero_fraction } => {
                let is_met = names.iter().any(|name| is_of_type(value, name, *permits_zero_fraction));
                self.expect(is_met, place, || not_of_types(value, names))
            }
            SchemaRule::Enum(options) => {
                let is_met = options.iter().any(|option| order(option, value).is_eq());
                self.expect(is_met, place, || not_in_enum(value, options))
            }
            SchemaRule::Const(expected) => {
                self.expect(order(expected, value).is_eq(), place, || format!("{expected} was expected"))
            }
            SchemaRule::All(parts) => parts.iter().try_for_each(|part| self.part(*part, place)),
            SchemaRule::Any(parts) => {
                let is_met = parts.iter().any(|part| self.holds(*part, place));
                self.expect(is_met, place, || not_under_any(value, "anyOf"))
            }
            SchemaRule::One(parts) => self.one(parts, place),
            SchemaRule::Not(part, text) => {
                let is_met = !self.holds(*part, place);
                self.expect(is_met, place, || format!("{text} is not allowed for {value}"))
            }
            SchemaRule::If { condition, then, otherwise } => {
                let part = if self.holds(*condition, place) { then } else { otherwise };
                part.map_or(Ok(()), |part| self.part(part, place))
            }
            rule => self.rule_of_type(rule, place),
        }
    }

    fn one(&self, parts: &[SchemaPart], place: &PayloadPlace<'_>) -> CheckOutcome {
        let mut holding = parts.iter().filter(|part| self.holds(**part, place));
        let (first, second) = (holding.next().is_some(), holding.next().is_some());
        self.expect(first && !second, place, || {
            if second {
                format!(
                    "{} is valid under more than one of the schemas listed in the 'oneOf' keyword",
                    place.value
                )
            } else {
                not_under_any(place.value, "oneOf")
            }
        })
    }

    /// Checks a rule for values of one type, which all others satisfy.
    fn rule_of_type(&self, rule: &SchemaRule, place: &PayloadPlace<'_>) -> CheckOutcome {
        match place.value {
            Json::Number(number) => self.number(rule, number, place),
            Json::String(text) => self.text(rule, text, place),
            Json::Array(items) => self.array(rule, items, place),
            Json::Object(members) => self.object(rule, members, place),
            Json::Null | Json::Bool(_) => Ok(()),
        }
    }

    fn number(&self, rule: &SchemaRule, number: &Number, place: &PayloadPlace<'_>) -> CheckOutcome {
        match rule {
            SchemaRule::Bound(bound, limit) => {
                let order = order_numbers(number, limit);
                let (is_met, relation) = match bound {
                    NumberBound::Least => (order.is_ge(), "less than the minimum"),
                    NumberBound::Most => (order.is_le(), "greater than the maximum"),
                    NumberBound::Above => (order.is_gt(), "less than or equal to the minimum"),
                    NumberBound::Below => (order.is_lt(), "greater than or equal to the maximum"),
                };
                self.expect(is_met, place, || format!("{number} is {relation} of {limit}"))
            }
            SchemaRule::MultipleOf(factor) => {
                let is_met = decimal::is_multiple(&number.to_string(), &factor.to_string());
                self.expect(is_met, place, || format!("{number} is not a multiple of {factor}"))
            }
            _ => Ok(()),
        }
    }

    fn text(&self, rule: &SchemaRule, text: &str, place: &PayloadPlace<'_>) -> CheckOutcome {
        match rule {
            SchemaRule::Count(CountedUnit::Characters, bound, limit) => {
                let relation =
                    if *bound == NumberBound::Least { "is shorter than" } else { "is longer than" };
                let is_met = is_within(text.chars().count(), *bound, *limit);
                self.expect(is_met, place, || {
                    amount(place.value, relation, *limit, ["character", "characters"])
                })
            }
            SchemaRule::Pattern(pattern, written) => self.expect(pattern.is_match(text), place, || {
                format!("{} does not match \"{written}\"", place.value)
            }),
            _ => Ok(()),
        }
    }

    fn array(&self, rule: &SchemaRule, items: &[Json], place: &PayloadPlace<'_>) -> CheckOutcome {
        let value = place.value;
        let at = |index: usize, item| place.child(item, PlaceStep::Item(index));
        match rule {
            SchemaRule::Count(CountedUnit::Items, bound, limit) => {
                let is_met = is_within(items.len(), *bound, *limit);
                self.expect(is_met, place, || amount(value, has(*bound), *limit, ["item", "items"]))
            }
            SchemaRule::UniqueItems => {
                let mut sorted: Vec<&Json> = items.iter().collect();
                sorted.sort_unstable_by(|one, other| order(one, other));
                let is_met = sorted.array_windows().all(|[one, other]| order(one, other).is_ne());
                self.expect(is_met, place, || format!("{value} has non-unique elements"))
            }
            SchemaRule::Items { first, others } => {
                for (index, (item, part)) in items.iter().zip(first).enumerate() {
                    self.part(*part, &at(index, item))?;
                }
                let Some(others) = *others else { return Ok(()) };
                let mut rest = items.iter().enumerate().skip(first.len());
                rest.try_for_each(|(index, item)| self.part(others, &at(index, item)))
            }
            SchemaRule::Contains { part, least, most } => {
                let found =
                    items.iter().filter(|item| self.holds(*part, &PayloadPlace::root(item))).count() as u64;
                let is_met = (*least..=*most).contains(&found);
                self.expect(is_met, place, || format!("None of {value} are valid under the given schema"))
            }
            _ => Ok(()),
        }
    }

    fn object(
        &self,
        rule: &SchemaRule,
        members: &Map<String, Json>,
        place: &PayloadPlace<'_>,
    ) -> CheckOutcome {
        match rule {
            SchemaRule::Count(CountedUnit::Properties, bound, limit) => {
                let is_met = is_within(members.len(), *bound, *limit);
                self.expect(is_met, place, || {
                    amount(place.value, has(*bound), *limit, ["property", "properties"])
                })
            }
            SchemaRule::Required(names) => names.iter().try_for_each(|name| {
                let message = || format!("{} is a required property", Json::from(name.as_str()));
                self.expect(members.contains_key(name), place, message)
            }),
            SchemaRule::Dependent(rules) => {
                let mut rules = rules.iter().filter(|(name, _)| members.contains_key(name));
                rules.try_for_each(|(_, rule)| self.rule(rule, place))
            }
            SchemaRule::Members(rules) => self.members(rules, members, place),
            SchemaRule::Names(part) => members.keys().try_for_each(|name| {
                let name = Json::from(name.as_str());
                let violation = first_name_violation(self.rules, *part, &name);
                self.expect(violation.is_none(), place, || {
                    violation.map(|name| name.message).unwrap_or_default()
                })
            }),
            _ => Ok(()),
        }
    }

    fn members(
        &self,
        rules: &MemberRules,
        members: &Map<String, Json>,
        place: &PayloadPlace<'_>,
    ) -> CheckOutcome {
        let mut unexpected = String::new();
        let mut count = 0;
        for (name, member) in members {
            let at = place.child(member, PlaceStep::Member(name));
            let mut parts = Vec::from_iter(rules.named.get(name).copied());
            let matching = rules.patterns.iter().filter(|(pattern, _)| pattern.is_match(name));
            parts.extend(matching.map(|(_, part)| *part));
            match rules.others {
                Some(others) if parts.is_empty() && self.rules.is_never(others) => {
                    let separator = if count == 0 { "" } else { ", " };
                    let _ = write!(unexpected, "{separator}'{name}'");
                    count += 1;
                }
                Some(others) if parts.is_empty() => self.part(others, &at)?,
                _ => parts.into_iter().try_for_each(|part| self.part(part, &at))?,
            }
        }
        let verb = if count == 1 { "was" } else { "were" };
        self.expect(count == 0, place, || {
            format!("Additional properties are not allowed ({unexpected} {verb} unexpected)")
        })
    }
}

fn first_name_violation(rules: &SchemaRules, part: SchemaPart, name: &Json) -> Option<SchemaViolation> {
    SchemaCheck { rules, accepts: Some(&|_| true) }.part(part, &PayloadPlace::root(name)).err()
}

fn is_within(count: usize, bound: NumberBound, limit: u64) -> bool {
    if bound == NumberBound::Least { count as u64 >= limit } else { count as u64 <= limit }
}

fn has(bound: NumberBound) -> &'static str {
    if bound == NumberBound::Least { "has less than" } else { "has more than" }
}

fn amount(value: &Json, relation: &str, limit: u64, [one, many]: [&str; 2]) -> String {
    format!("{value} {relation} {limit} {}", if limit == 1 { one } else { many })
}

fn not_under_any(value: &Json, keyword: &str) -> String {
    format!("{value} is not valid under any of the schemas listed in the '{keyword}' keyword")
}

fn not_of_types(value: &Json, names: &BTreeSet<String>) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let types = if names.len() == 1 { "type" } else { "types" };
    format!("{value} is not of {types} {}", quoted.join(", "))
}

fn not_in_enum(value: &Json, options: &[Json]) -> String {
    let mut texts: Vec<String> = options.iter().take(LISTED).map(Json::to_string).collect();
    if options.len() > LISTED {
        texts.truncate(LISTED - 1);
        texts.push(format!("{} other candidates", options.len() - texts.len()));
    }
    let last = texts.pop().unwrap_or_default();
    let separator = if texts.is_empty() { "" } else { " or " };
    format!("{value} is not one of {}{separator}{last}", texts.join(", "))
}

fn is_of_type(value: &Json, name: &str, permits_zero_fraction: bool) -> bool {
    match value {
        Json::Null => name == "null",
        Json::Bool(_) => name == "boolean",
        Json::String(_) => name == "string",
        Json::Array(_) => name == "array",
        Json::Object(_) => name == "object",
        Json::Number(number) => {
            let is_whole = || number.as_f64().is_some_and(|number| number.fract() == 0.0);
            name == "number" || name == "integer" && (!number.is_f64() || permits_zero_fraction && is_whole())
        }
    }
}

/// An order in which equal values are those that JSON Schema considers equal: numbers by value, and objects without the
/// order of their members.
fn order(one: &Json, other: &Json) -> Ordering {
    match (one, other) {
        (Json::Bool(one), Json::Bool(other)) => one.cmp(other),
        (Json::Number(one), Json::Number(other)) => order_numbers(one, other),
        (Json::String(one), Json::String(other)) => one.cmp(other),
        (Json::Array(one), Json::Array(other)) => one
            .len()
            .cmp(&other.len())
            .then_with(|| first_difference(one.iter().zip(other).map(|(one, other)| order(one, other)))),
        (Json::Object(one), Json::Object(other)) => one.len().cmp(&other.len()).then_with(|| {
            // Members are sorted by name.
            let orders = one
                .iter()
                .zip(other)
                .map(|(one, other)| one.0.cmp(other.0).then_with(|| order(one.1, other.1)));
            first_difference(orders)
        }),
        (one, other) => rank(one).cmp(&rank(other)),
    }
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn rank(value: &Json) -> u8 {
    match value {
        Json::Null => 0,
        Json::Bool(_) => 1,
        Json::Number(_) => 2,
        Json::String(_) => 3,
        Json::Array(_) => 4,
        Json::Object(_) => 5,
    }
}

fn order_numbers(one: &Number, other: &Number) -> Ordering {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => decimal::compare(&one.to_string(), &other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(schema: &Json, payload: &Json) -> Option<String> {
        let rules = SchemaRules::new(schema).unwrap();
        let violation = first_violation(&rules, payload, &|_| true);
        violation.map(|violation| format!("{} {}", violation.at, violation.message))
    }

    /// Schemas, each with a value that satisfies it, one that does not, and what is wrong with that.
    fn expect_each(cases: Vec<(Json, Json, Json, &str)>) {
        for (schema, valid, invalid, violation) in cases {
            assert_eq!(message(&schema, &valid), None, "{schema}");
            assert_eq!(message(&schema, &invalid).as_deref(), Some(violation), "{schema}");
        }
    }

    #[test]
    fn keywords_for_all_values_and_for_scalars_permit_what_they_describe() {
        expect_each(vec![
            (
                json!({"type": ["integer", "null"]}),
                json!(2.0),
                json!("2"),
                " \"2\" is not of types \"integer\", \"null\"",
            ),
            (json!({"enum": [1, [2]]}), json!([2.0]), json!(2), " 2 is not one of 1 or [2]"),
            (json!({"const": {"a": 1}}), json!({"a": 1.0}), json!({}), " {\"a\":1} was expected"),
            (
                json!({"allOf": [{"minimum": 1}, true]}),
                json!(1),
                json!(0),
                " 0 is less than the minimum of 1",
            ),
            (
                json!({"anyOf": [{"minimum": 9}, {"maximum": 0}]}),
                json!(0),
                json!(5),
                " 5 is not valid under any of the schemas listed in the 'anyOf' keyword",
            ),
            (
                json!({"oneOf": [{"minimum": 2}, {"minimum": 3}]}),
                json!(2),
                json!(3),
                " 3 is valid under more than one of the schemas listed in the 'oneOf' keyword",
            ),
            (
                json!({"not": {"type": "null"}}),
                json!(1),
                json!(null),
                " {\"type\":\"null\"} is not allowed for null",
            ),
            (
                json!({"if": {"minimum": 5}, "then": {"multipleOf": 5}, "else": {"const": 1}}),
                json!(10),
                json!(2),
                " 1 was expected",
            ),
            (
                json!({"exclusiveMaximum": 3}),
                json!(2.5),
                json!(3),
                " 3 is greater than or equal to the maximum of 3",
            ),
            (json!({"multipleOf": 0.01}), json!(-1.07), json!(1.075), " 1.075 is not a multiple of 0.01"),
            (
                json!({"minLength": 2}),
                json!("\u{e9}\u{e9}"),
                json!("\u{e9}"),
                " \"\u{e9}\" is shorter than 2 characters",
            ),
            (
                json!({"pattern": "^\\d+$"}),
                json!("12"),
                json!("\u{661}"),
                " \"\u{661}\" does not match \"^\\d+$\"",
            ),
        ]);
    }

    #[test]
    fn keywords_for_arrays_and_objects_permit_what_they_describe() {
        expect_each(vec![
            (json!({"maxItems": 1}), json!([1]), json!([1, 2]), " [1,2] has more than 1 item"),
            (
                json!({"uniqueItems": true}),
                json!([1, "1", true]),
                json!([{"a": [1]}, 2, {"a": [1.0]}]),
                " [{\"a\":[1]},2,{\"a\":[1.0]}] has non-unique elements",
            ),
            (
                json!({"prefixItems": [{"const": 1}], "items": false}),
                json!([1]),
                json!([1, 2]),
                "/1 False schema does not allow 2",
            ),
            (
                json!({"contains": {"const": 1}, "maxContains": 1}),
                json!([1, 2]),
                json!([1, 1]),
                " None of [1,1] are valid under the given schema",
            ),
            (json!({"minProperties": 1}), json!({"a": 1}), json!({}), " {} has less than 1 property"),
            (json!({"required": ["a/b"]}), json!({"a/b": 1}), json!({}), " \"a/b\" is a required property"),
            (
                json!({"properties": {"a/b": {"type": "null"}}}),
                json!({"a/b": null}),
                json!({"a/b": 1}),
                "/a~1b 1 is not of type \"null\"",
            ),
            (
                json!({"patternProperties": {"^x": true}, "additionalProperties": false}),
                json!({"x1": 1}),
                json!({"y": 1, "z": 2}),
                " Additional properties are not allowed ('y', 'z' were unexpected)",
            ),
            (
                json!({"propertyNames": {"maxLength": 1}}),
                json!({"a": 1}),
                json!({"ab": 1}),
                " \"ab\" is longer than 1 character",
            ),
            (
                json!({"dependentRequired": {"a": ["b"]}}),
                json!({"a": 1, "b": 1}),
                json!({"a": 1}),
                " \"b\" is a required property",
            ),
            (
                json!({"dependentSchemas": {"a": {"maxProperties": 1}}}),
                json!({"a": 1}),
                json!({"a": 1, "b": 1}),
                " {\"a\":1,\"b\":1} has more than 1 property",
            ),
            (
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}}),
                json!(1),
                json!(2),
                " 1 was expected",
            ),
        ]);
    }

    #[test]
    fn drafts_differ() {
        let is_valid = |draft: &str, schema: Json, payload: Json| {
            let mut schema = schema;
            schema["$schema"] = draft.into();
            message(&schema, &payload).is_none()
        };
        let (four, six) =
            ("http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#");
        let (seven, of_2019) =
            ("http://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2019-09/schema");
        let integer = || json!({"type": "integer"});
        assert!(!is_valid(four, integer(), json!(1.0)) && is_valid(six, integer(), json!(1.0)));
        let exclusive = || json!({"minimum": 1, "exclusiveMinimum": true});
        assert!(!is_valid(four, exclusive(), json!(1)) && is_valid(four, exclusive(), json!(2)));
        assert!(
            is_valid(four, json!({"const": 1}), json!(2)) && !is_valid(six, json!({"const": 1}), json!(2))
        );
        let conditional = || json!({"if": true, "then": false});
        assert!(is_valid(six, conditional(), json!(1)) && !is_valid(seven, conditional(), json!(1)));
        let beside = || json!({"$ref": "#/definitions/a", "maximum": 1, "definitions": {"a": {}}});
        assert!(is_valid(seven, beside(), json!(2)) && !is_valid(of_2019, beside(), json!(2)));
        let tuple = || json!({"items": [{"const": 1}], "additionalItems": false});
        assert!(is_valid(of_2019, tuple(), json!([1])) && !is_valid(of_2019, tuple(), json!([1, 2])));
        assert!(SchemaRules::new(&json!({"items": [true]})).is_err(), "a list is for prefixItems in 2020-12");
    }
}

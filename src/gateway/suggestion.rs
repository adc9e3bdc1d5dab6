//! The rules of comparison with which two requests would be the same.

use std::fmt;

use super::difference::{Difference, Rank, RequestStep, each_difference};
use crate::calls::matching::MatchingRules;
use crate::calls::normalize;
use crate::calls::providers::{Endpoint, is_named};
use crate::json::Value;

/// Maximum number of differences for which rules are looked for.
const MAX_DIFFERENCES: usize = 64;

/// Maximum size of two texts that are compared with rules.
const MAX_TEXTS: usize = 1 << 20;

/// Members of a conversation without which it is another one.
const CONTENT: [&str; 6] = ["content", "name", "parts", "role", "text", "tool_calls"];

/// A rule of comparison that would make a request match a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleSuggestion {
    /// A member to leave out: a name, or a JSON Pointer in which `*` matches every index.
    Ignore(String),
    /// The name of a known pattern to replace.
    Normalize(&'static str),
}

impl fmt::Display for RuleSuggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignore(location) => write!(f, "ignore {location}"),
            Self::Normalize(name) => write!(f, "normalize {name}"),
        }
    }
}

/// Returns a rule in the form in which it is given to the program.
pub(super) type RuleFormat = fn(&RuleSuggestion) -> String;

/// Returns rules with which two requests are the same; none if there are no such rules that leave the question the same.
pub(super) fn suggestions(recorded: &Value<'_>, requested: &Value<'_>) -> Vec<RuleSuggestion> {
    let mut found = SuggestionCollector::default();
    each_difference(recorded, requested, &mut |difference| found.add(difference));
    found.verified(recorded, requested)
}

/// Rules for some of the differences between two requests.
#[derive(Debug, Default)]
struct SuggestionCollector {
    rules: Vec<RuleSuggestion>,
    examined: usize,
    /// Whether there is a difference for which there is no rule.
    has_other: bool,
}

impl SuggestionCollector {
    /// Adds the rules for a difference.
    fn add(&mut self, difference: &Difference<'_, '_>) {
        self.examined += 1;
        if self.has_other || self.examined > MAX_DIFFERENCES {
            self.has_other = true;
            return;
        }
        match rules_for(difference) {
            Some(rules) => {
                for rule in rules {
                    if !self.rules.contains(&rule) {
                        self.rules.push(rule);
                    }
                }
            }
            None => self.has_other = true,
        }
    }

    /// Returns the rules if the two requests are the same with them.
    fn verified(self, recorded: &Value<'_>, requested: &Value<'_>) -> Vec<RuleSuggestion> {
        let mut rules = MatchingRules::default();
        let mut is_valid = !self.has_other;
        for rule in &self.rules {
            is_valid &= match rule {
                RuleSuggestion::Ignore(location) => rules.ignore(location).is_ok(),
                RuleSuggestion::Normalize(name) => rules.normalize(name).is_ok(),
            };
        }
        let prompt = |request| rules.prompt(&Endpoint::ANY, "", request);
        let is_same = is_valid && prompt(recorded) == prompt(requested);
        Some(self.rules).filter(|_| is_same).unwrap_or_default()
    }
}

/// Returns rules with which a difference disappears, or `None` if there are none that leave the question the same.
fn rules_for(difference: &Difference<'_, '_>) -> Option<Vec<RuleSuggestion>> {
    let named = match (difference.recorded, difference.requested) {
        (Some(Value::String(one)), Some(Value::String(other))) if one.len() + other.len() <= MAX_TEXTS => {
            normalize::with_which_equal(one, other)
        }
        _ => Vec::new(),
    };
    if !named.is_empty() {
        return Some(named.into_iter().map(RuleSuggestion::Normalize).collect());
    }
    if difference.rank() == Rank::Conversation && is_content(difference) {
        return None;
    }
    let location = match difference.path {
        [RequestStep::Member(name)] if !name.contains(['/', '~']) => name.clone(),
        [.., RequestStep::Member(_)] => difference.pointer(),
        // The elements after it would be compared with others.
        _ => return None,
    };
    Some(vec![RuleSuggestion::Ignore(location)])
}

/// Returns whether a difference in a conversation is one of what is said in it.
fn is_content(difference: &Difference<'_, '_>) -> bool {
    let inside = difference.path.get(1..).unwrap_or_default();
    let name = |step: &RequestStep| match step {
        RequestStep::Member(name) => Some(name.clone()),
        RequestStep::Index(_) => None,
    };
    let is_scalar = |value: &Value<'_>| matches!(value, Value::Number(_) | Value::Bool(_));
    let values = [difference.recorded, difference.requested];
    let is_other_value = values.iter().all(|value| value.is_none_or(is_scalar)) || values.contains(&None);
    inside.is_empty()
        || !is_other_value
        || inside.iter().filter_map(name).any(|name| is_named(&name, |names| names.tool_values))
        || inside.last().and_then(name).is_some_and(|last| CONTENT.contains(&last.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    fn rules(recorded: &str, requested: &str) -> Vec<String> {
        let read = |text| reader::read(str::as_bytes(text), &Limits::default()).unwrap();
        let (one, other) = (read(recorded), read(requested));
        suggestions(&one, &other).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_with_which_requests_are_the_same_are_found() {
        let chat = |content: &str, id: &str, more: &str| {
            format!(r#"{{"messages":[{{"content":"{content}","tool_call_id":"{id}"}}]{more}}}"#)
        };
        let today = |day: &str| chat(&format!("Today is {day}."), "a", "");
        assert_eq!(rules(&today("Thu Nov 26 2026"), &today("Fri Nov 27 2026")), ["normalize date"]);
        assert_eq!(
            rules(&chat("hi", "a", ",\"seed\":1"), &chat("hi", "b", ",\"seed\":2,\"a/b\":3")),
            ["ignore /messages/*/tool_call_id", "ignore seed", "ignore /a~1b"]
        );
        let uuid = |first: &str| chat(&format!("{first}190163d-8694-739b-aea5-966c26f8ad91"), "a", "");
        assert_eq!(rules(&uuid("0"), &uuid("1")), ["normalize uuid"]);
        assert_eq!(
            rules(
                r#"{"messages":[{"content":"a","cache_control":{}}]}"#,
                r#"{"messages":[{"content":"a"}]}"#
            ),
            ["ignore /messages/*/cache_control"]
        );
        assert_eq!(
            rules(r#"{"input":[{"meta":{"time":1.5}}]}"#, r#"{"input":[{"meta":{"time":2.5}}]}"#),
            ["ignore /input/*/meta/time"]
        );
    }

    #[test]
    fn no_rule_makes_another_question_the_same() {
        for (one, other) in [
            (r#"{"messages":[{"content":"a"}],"seed":1}"#, r#"{"messages":[{"content":"b"}],"seed":2}"#),
            (r#"{"messages":[{"content":"a"}]}"#, r#"{"messages":[{"content":"a"},{"content":"b"}]}"#),
            (r#"{"messages":[{"content":"a"}]}"#, r#"{"messages":[{"content":[{"text":"a"}]}]}"#),
            (r#"{"input":"a"}"#, r#"{"model":"m"}"#),
            (
                r#"{"messages":[{"content":[{"input":{"n":1}}]}]}"#,
                r#"{"messages":[{"content":[{"input":{"n":2}}]}]}"#,
            ),
        ] {
            assert_eq!(rules(one, other), Vec::<String>::new(), "{one} {other}");
        }
    }
}

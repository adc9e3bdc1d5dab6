//! Differences between two requests, and the rules of comparison with which they would be the same.

use std::fmt;

use crate::calls::matching::MatchingRules;
use crate::calls::normalize;
use crate::calls::normalize::is_id;
use crate::conversation::providers::{Endpoint, is_named};
use crate::json::{Value, compact};

/// Maximum number of characters of a value in a difference.
const SHOWN: usize = 80;

/// Maximum number of lines for locations that differ only in their indexes.
const MAX_ALIKE: usize = 2;

/// The differences between a recorded request and the one that was made.
#[derive(Debug)]
pub(super) struct Differences {
    /// A line for each of the first values that differ: those of the conversation first, and ids last.
    pub(super) lines: Vec<String>,
    /// The number of all values that differ.
    pub(super) count: usize,
}

/// Returns what differs between a recorded request and the one that was made, with up to `limit` lines.
pub(super) fn differences(recorded: &Value<'_>, requested: &Value<'_>, limit: usize) -> Differences {
    let mut lines = LineCollector { limit, count: 0, lines: Default::default() };
    each_difference(recorded, requested, &mut |difference| lines.add(difference));
    let LineCollector { count, lines, .. } = lines;
    let lines = lines.into_iter().flatten().map(|(_, line)| line).take(limit).collect();
    Differences { lines, count }
}

/// A step from a value to one inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RequestStep {
    Member(String),
    Index(usize),
}

/// A value that differs.
struct Difference<'d, 'v> {
    path: &'d [RequestStep],
    recorded: Option<&'d Value<'v>>,
    requested: Option<&'d Value<'v>>,
}

/// How early a difference is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    Conversation,
    Other,
    Id,
}

/// Calls `found` with each value that differs.
fn each_difference<'v>(
    recorded: &Value<'v>,
    requested: &Value<'v>,
    found: &mut dyn FnMut(&Difference<'_, 'v>),
) {
    compare(&mut Vec::new(), recorded, requested, found);
}

fn compare<'v>(
    path: &mut Vec<RequestStep>,
    recorded: &Value<'v>,
    requested: &Value<'v>,
    found: &mut dyn FnMut(&Difference<'_, 'v>),
) {
    match (recorded, requested) {
        (Value::Object(one), Value::Object(other)) => {
            for (name, value) in one.iter() {
                compare_at(path, RequestStep::Member(name.to_owned()), [Some(value), other.get(name)], found);
            }
            for (name, value) in other.iter().filter(|(name, _)| !one.contains(name)) {
                compare_at(path, RequestStep::Member(name.to_owned()), [None, Some(value)], found);
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            for index in 0..one.len().max(other.len()) {
                compare_at(path, RequestStep::Index(index), [one.get(index), other.get(index)], found);
            }
        }
        (one, other) if one == other => {}
        (one, other) => found(&Difference { path, recorded: Some(one), requested: Some(other) }),
    }
}

fn compare_at<'v>(
    path: &mut Vec<RequestStep>,
    step: RequestStep,
    values: [Option<&Value<'v>>; 2],
    found: &mut dyn FnMut(&Difference<'_, 'v>),
) {
    path.push(step);
    match values {
        [Some(recorded), Some(requested)] => compare(path, recorded, requested, found),
        [recorded, requested] => found(&Difference { path, recorded, requested }),
    }
    path.pop();
}

impl Difference<'_, '_> {
    /// Returns how early it is listed.
    fn rank(&self) -> Rank {
        match (self.path.first(), self.path.last()) {
            (_, Some(RequestStep::Member(last))) if is_id(last) => Rank::Id,
            (Some(RequestStep::Member(first)), _) if is_named(first, |names| names.conversation) => {
                Rank::Conversation
            }
            _ => Rank::Other,
        }
    }

    /// Returns the JSON Pointer of the value, in which `*` matches every index.
    fn pointer(&self) -> String {
        let token = |step: &RequestStep| match step {
            RequestStep::Member(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            RequestStep::Index(_) => "/*".to_owned(),
        };
        self.path.iter().map(token).collect::<Vec<_>>().concat()
    }

    fn line(&self) -> String {
        let at = location(self.path);
        match (self.recorded, self.requested) {
            (Some(Value::String(one)), Some(Value::String(other))) => {
                let (one, other) = from_difference(one, other);
                format!("{at} differs: recorded {one}, requested {other}")
            }
            (Some(one), Some(other)) => {
                format!("{at} differs: recorded {}, requested {}", shown(one), shown(other))
            }
            (Some(one), None) => format!("{at} is missing: recorded with {}", shown(one)),
            (None, other) => {
                format!("{at} was not recorded: requested with {}", other.map(shown).unwrap_or_default())
            }
        }
    }
}

/// The first lines of each rank.
struct LineCollector {
    limit: usize,
    count: usize,
    /// With their locations.
    lines: [Vec<(String, String)>; 3],
}

impl LineCollector {
    fn add(&mut self, difference: &Difference<'_, '_>) {
        self.count += 1;
        let [conversation, other, id] = &mut self.lines;
        let lines = match difference.rank() {
            Rank::Conversation => conversation,
            Rank::Other => other,
            Rank::Id => id,
        };
        if lines.len() < self.limit {
            let is_alike = |other: &&(String, String)| other.0 == difference.pointer();
            if lines.iter().filter(is_alike).count() < MAX_ALIKE {
                lines.push((difference.pointer(), difference.line()));
            }
        }
    }
}

/// Returns a path as programmers write it, such as `messages[1].content`.
fn location(path: &[RequestStep]) -> String {
    if path.is_empty() {
        return "the request".to_owned();
    }
    let steps = path.iter().enumerate().map(|(position, step)| match step {
        RequestStep::Member(name) if position == 0 => name.clone(),
        RequestStep::Member(name) => format!(".{name}"),
        RequestStep::Index(index) => format!("[{index}]"),
    });
    steps.collect::<Vec<_>>().concat()
}

fn shown(value: &Value<'_>) -> String {
    cut(&compact::text(value), 0)
}

/// Returns both texts as JSON, from a little before the first character that differs. Dates and identifiers, for which there
/// are rules, are replaced unless nothing else differs.
fn from_difference(one: &str, other: &str) -> (String, String) {
    if one.len() + other.len() <= MAX_TEXTS {
        let known = [one, other].map(normalize::without_known);
        if let [known_one, known_other] = &known
            && known_one != known_other
        {
            return from_first_difference(known_one, known_other);
        }
    }
    from_first_difference(one, other)
}

fn from_first_difference(one: &str, other: &str) -> (String, String) {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let start = if same > SHOWN / 2 { same - SHOWN / 4 } else { 0 };
    let quoted = |text: &str| {
        let rest: String = text.chars().skip(start).collect();
        cut(&compact::text(&Value::String(rest.into())), start)
    };
    (quoted(one), quoted(other))
}

/// Returns the beginning of a text, with marks where parts are left out.
fn cut(text: &str, start: usize) -> String {
    let before = if start > 0 { "…" } else { "" };
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{before}{shown}")
}

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

    fn compared(recorded: &str, requested: &str, limit: usize) -> Differences {
        let read = |text| reader::read(str::as_bytes(text), &Limits::default()).unwrap();
        differences(&read(recorded), &read(requested), limit)
    }

    #[test]
    fn differences_name_the_member() {
        let lines = |recorded, requested| compared(recorded, requested, 3).lines;
        assert_eq!(
            lines(
                r#"{"model":"m","messages":[{"content":"a"},{"content":"b"}],"n":1}"#,
                r#"{"model":"m","messages":[{"content":"a"},{"content":"c"}],"top_p":1}"#
            ),
            [
                r#"messages[1].content differs: recorded "b", requested "c""#,
                "n is missing: recorded with 1",
                "top_p was not recorded: requested with 1",
            ]
        );
        assert_eq!(lines("[1,2]", "[1]"), ["[1] is missing: recorded with 2"]);
        assert_eq!(lines("{}", "{}"), Vec::<String>::new());
        assert_eq!(lines("1", "2"), ["the request differs: recorded 1, requested 2"]);
    }

    #[test]
    fn the_conversation_is_listed_first_and_ids_last() {
        let request = |n: u8| {
            format!(
                r#"{{"a":{n},"input":[{{"call_id":"{n}","text":"{n}"}}],"messages":[{{"content":"{n}"}}],"trace_id":{n}}}"#
            )
        };
        let begins = |line: String| line.split(' ').next().unwrap().to_owned();
        let found = compared(&request(1), &request(2), 9);
        let found: Vec<String> = found.lines.into_iter().map(begins).collect();
        assert_eq!(found, ["input[0].text", "messages[0].content", "a", "input[0].call_id", "trace_id"]);
        let found = compared(&request(1), &request(2), 2);
        assert_eq!((found.lines.len(), found.count), (2, 5));
        assert!(found.lines[1].starts_with("messages[0].content"));
    }

    #[test]
    fn two_lines_at_most_differ_only_in_indexes() {
        let request = |n: u8| format!(r#"{{"messages":[{{"a":{n},"b":{n}}},{{"a":{n}}},{{"a":{n}}}]}}"#);
        let found = compared(&request(1), &request(2), 4);
        let begins: Vec<&str> = found.lines.iter().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!((begins, found.count), (vec!["messages[0].a", "messages[0].b", "messages[1].a"], 4));
    }

    #[test]
    fn dates_are_shown_only_if_nothing_else_differs() {
        let text = |day: u8, process: u8| format!("\"on 2026-11-{day} by process {process}\"");
        let found = |one: &str, other: &str| compared(one, other, 3).lines.concat();
        assert_eq!(
            found(&text(22, 1), &text(23, 2)),
            r#"the request differs: recorded "on DATE by process 1", requested "on DATE by process 2""#
        );
        assert_eq!(
            found(&text(22, 1), &text(23, 1)),
            r#"the request differs: recorded "on 2026-11-22 by process 1", requested "on 2026-11-23 by process 1""#
        );
    }

    #[test]
    fn long_texts_are_shown_from_where_they_differ() {
        let text = |end: &str| format!("\"{}{end}\"", "x".repeat(500));
        let found = compared(&text("one"), &text("two"), 3).lines;
        let same = "x".repeat(SHOWN / 4);
        assert_eq!(
            found,
            [format!("the request differs: recorded …\"{same}one\", requested …\"{same}two\"")]
        );
    }

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

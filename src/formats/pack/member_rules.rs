//! The rules of the documents inside a pack. A violation of an inner rule is a violation of the pack's own rule for
//! that member, and its message begins with the inner rule's id.

use std::collections::BTreeSet;

use crate::artifact::SupportedMajors;
use crate::json::reader::excerpt;
use crate::json::{Number, Value};
use crate::validation::{Finder, Rule, RuleInfo};

/// A row of an inner rule table.
pub(super) type PackMemberRule = Rule<fn(&Value<'_>, &mut PackMemberFinder<'_, '_>)>;

/// Shared by all members.
pub(super) const SCHEMA: RuleInfo = RuleInfo::error(
    "SCHEMA",
    "A pack's files have their required members, of the right types.",
    "Reported with the rule of the pack that the file breaks: PK4 for bundle.json, PK8 for the others. Where the \
     format's own verifier fails on a value instead of judging it, such as a null operation, this rule rejects it.",
);

/// The collector of the violations of one member.
pub(super) struct PackMemberFinder<'i, 'f> {
    found: &'i mut Finder<'f>,
    member: &'static str,
    rule: &'static str,
    broken: BTreeSet<&'static str>,
}

impl<'i, 'f> PackMemberFinder<'i, 'f> {
    pub(super) fn new(member: &'static str, found: &'i mut Finder<'f>) -> Self {
        Self { found, member, rule: "", broken: BTreeSet::new() }
    }

    /// Applies `rules` to `value`.
    pub(super) fn apply(&mut self, rules: &[PackMemberRule], value: &Value<'_>) {
        for rule in rules {
            self.rule = rule.info.id;
            (rule.check)(value, self);
        }
    }

    /// Applies the first `rules` to a document, which is called `what` in messages. Returns whether it has the right types.
    pub(super) fn has_shape(&mut self, value: &Value<'_>, what: &str, rules: &[PackMemberRule]) -> bool {
        if value.as_object().is_some() {
            self.apply(rules, value);
        } else {
            self.schema(format!("{what} must be an object, not {}", value.type_name()));
        }
        !self.breaks(SCHEMA.id)
    }

    /// Reports a violation of the rule that is being applied.
    pub(super) fn add(&mut self, message: impl std::fmt::Display) {
        self.report(self.rule, &message);
    }

    /// Reports a value of the wrong type.
    pub(super) fn schema(&mut self, message: impl std::fmt::Display) {
        self.report(SCHEMA.id, &message);
    }

    /// Returns whether the rule has been broken so far.
    pub(super) fn breaks(&self, rule: &str) -> bool {
        self.broken.contains(rule)
    }

    fn report(&mut self, rule: &'static str, message: &dyn std::fmt::Display) {
        self.broken.insert(rule);
        self.found.add(self.member, format!("{rule}: {message}"));
    }
}

/// Reports every one of `names` that is missing; null is present.
pub(super) fn required(value: &Value<'_>, names: &[&str], found: &mut PackMemberFinder<'_, '_>) {
    for name in names.iter().filter(|name| value.get(name).is_none()) {
        found.schema(format!("the required member {name} is missing"));
    }
}

/// Returns the name of the JSON type of a value for messages.
pub(super) fn type_name(value: Option<&Value<'_>>) -> &'static str {
    value.map_or("missing", Value::type_name)
}

/// Returns the member `name` if it is a string.
pub(super) fn text<'v>(value: &'v Value<'v>, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

/// Reports the member `name` of the object at `place` unless it is a non-empty string.
pub(super) fn filled(value: &Value<'_>, place: &str, name: &str, found: &mut PackMemberFinder<'_, '_>) {
    if value.get(name).and_then(Value::as_non_empty_str).is_none() {
        let is = type_name(value.get(name));
        found.add(format!("{place}{name} must be a non-empty string, is {is}"));
    }
}

/// Reports the version `name` of a member unless it is a non-empty string that does not state an unknown major version.
pub(super) fn version(
    value: &Value<'_>,
    name: &str,
    known: SupportedMajors,
    found: &mut PackMemberFinder<'_, '_>,
) {
    filled(value, "", name, found);
    if let Some(message) = text(value, name).and_then(|text| known.objection(text)) {
        found.add(format!("{name}: {message}"));
    }
}

/// Returns the object `name`. A value that is not an object was reported by the rule SCHEMA.
pub(super) fn object<'v>(runner: &'v Value<'v>, name: &str) -> Option<&'v Value<'v>> {
    runner.get(name).filter(|value| value.as_object().is_some())
}

/// Returns the number `name`.
pub(super) fn number(object: &Value<'_>, name: &str) -> Option<f64> {
    object.get(name).and_then(Value::as_number).map(Number::as_f64)
}

/// Reports the member `name` of the object at `place` unless it is one of `allowed`.
pub(super) fn one_of(
    object: &Value<'_>,
    place: &str,
    name: &str,
    allowed: &[&str],
    found: &mut PackMemberFinder<'_, '_>,
) {
    let value = text(object, name);
    if !value.is_some_and(|value| allowed.contains(&value)) {
        let is = value.map_or_else(|| type_name(object.get(name)).to_owned(), excerpt);
        found.add(format!("{place}.{name} is {is}, not one of {}", allowed.join(", ")));
    }
}

/// Reports the member `name` of the object at `place` unless it is a boolean.
pub(super) fn boolean(object: &Value<'_>, place: &str, name: &str, found: &mut PackMemberFinder<'_, '_>) {
    if !matches!(object.get(name), Some(Value::Bool(_))) {
        found.add(format!("{place}.{name} must be a boolean, is {}", type_name(object.get(name))));
    }
}

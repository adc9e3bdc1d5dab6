//! The members of documents and steps.

use crate::json::Value;
use crate::json::canonical::replaykit::{self, NonCanonicalValue, VolatilePolicy};

/// Returns the value at the path `names`.
pub(super) fn at<'v, 'd>(value: &'v Value<'d>, names: &[&str]) -> Option<&'v Value<'d>> {
    names.iter().try_fold(value, |value, name| value.get(name))
}

/// Returns the non-empty texts at `places`.
pub(super) fn texts_at<'v>(step: &'v Value<'_>, places: &[&[&str]]) -> impl Iterator<Item = &'v str> {
    places.iter().filter_map(|names| at(step, names).and_then(Value::as_non_empty_str))
}

/// Returns the steps of a document.
pub(super) fn steps<'v, 'd>(root: &'v Value<'d>) -> &'v [Value<'d>] {
    at(root, &["payload", "run", "steps"]).and_then(Value::as_array).unwrap_or_default()
}

/// Returns the type of a step.
pub(super) fn step_type<'v>(step: &'v Value<'_>) -> &'v str {
    step.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the canonical text of the object with only the members `names` of `value`, or `None` if one is missing.
pub(super) fn canonical_members(
    value: &Value<'_>,
    names: &[&'static str],
    volatile: VolatilePolicy,
) -> Option<Result<Vec<u8>, Vec<NonCanonicalValue>>> {
    let members: Option<Vec<_>> = names.iter().map(|name| Some((*name, value.get(name)?))).collect();
    Some(replaykit::object(&members?, volatile))
}

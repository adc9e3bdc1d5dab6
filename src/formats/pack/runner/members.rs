//! The members of a runner's objects, and checks of single ones.

use crate::formats::pack::inner::{PackMemberFinder, text, type_name};
use crate::json::reader::excerpt;
use crate::json::{Number, Value};

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

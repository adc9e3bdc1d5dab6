//! TR8: control records.

use super::record::TraceRecord;
use crate::json::Value;
use crate::json::reader::excerpt;
use crate::validation::Finder;

/// Checks TR8. Missing members are reported by TR2.
pub(super) fn check(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    if record.record_type() != Some("control") {
        return;
    }
    if let Some(control_type) = record.text("control_type").filter(|text| !text.is_empty() && *text != "loop")
    {
        found.add(record.path("/control_type"), format!("{} is not loop", excerpt(control_type)));
    }
    let known = ["repeat", "stop", "max_iterations_reached"];
    if let Some(action) = record.text("action").filter(|text| !text.is_empty() && !known.contains(text)) {
        found.add(record.path("/action"), format!("{} is not one of {}", excerpt(action), known.join(", ")));
    }
    let iteration = record.value.get("loop_iteration").and_then(Value::as_number);
    if iteration.is_some_and(|number| number.is_integer() && number.as_f64() < 1.0) {
        found.add(record.path("/loop_iteration"), "must be at least 1");
    }
    let Some(condition) = record.value.get("stop_condition").filter(|value| value.as_object().is_some())
    else {
        return;
    };
    for name in ["path", "operator"] {
        if condition.get(name).and_then(Value::as_non_empty_str).is_none() {
            found.add(record.path(&format!("/stop_condition/{name}")), "must be a non-empty string");
        }
    }
    let usable = match condition.get("value") {
        Some(Value::String(_) | Value::Bool(_)) => true,
        Some(Value::Number(number)) => number.is_integer(),
        _ => false,
    };
    if !usable {
        found.add(record.path("/stop_condition/value"), "must be a string, an integer or a boolean");
    }
}
